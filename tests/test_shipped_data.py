"""The shipped tables are what their description says, and can be listed and loaded by name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import sparselab as sl
from sparselab.files import sha256
from sparselab.shipped_data import data_folder, datasets, load_overlap, sample

DESCRIPTION = json.loads((data_folder() / "datapackage.json").read_text())
RESOURCES = {resource["name"]: resource for resource in DESCRIPTION["resources"]}


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_every_file_is_there_with_its_checksum_source_and_licence(name):
    resource = RESOURCES[name]
    file = data_folder() / resource["path"]
    assert resource["hash"] == f"sha256:{sha256(file)}"
    assert resource["bytes"] == file.stat().st_size
    assert all(source["title"] and source["license"] for source in resource["sources"])
    assert resource["title"]
    assert resource["licenses"]


def test_every_shipped_file_is_described():
    described = {resource["path"] for resource in RESOURCES.values()} | {"datapackage.json"}
    shipped = {
        path.relative_to(data_folder()).as_posix()
        for path in data_folder().rglob("*")
        if path.is_file()
    }
    assert shipped == described


@pytest.mark.parametrize("name", sorted(datasets()))
def test_tables_hold_as_many_requests_and_tokens_as_described(name):
    table, resource = load_overlap(name), RESOURCES[name]
    assert table.total == resource["requests"] == datasets()[name].requests
    assert int(table.weights @ table.depths) == resource["overlap_tokens"]
    assert resource["overlap_tokens"] < resource["prompt_tokens"]
    assert {"date", "method", "granularity_tokens", "synthetic"} <= resource.keys()


def test_the_tables_of_real_requests_are_there_under_their_names():
    assert {"mooncake_conversation", "quality", "system_prompts"} <= datasets().keys()
    assert not any(dataset.synthetic for dataset in datasets().values())


def test_mooncake_has_the_known_numbers_and_says_it_goes_by_blocks():
    table = load_overlap("mooncake_conversation")
    assert table.total == 12_031
    assert table.weights[table.depths == 512].tolist() == [7_372]
    assert datasets()["mooncake_conversation"].unit == 512
    resource = RESOURCES["mooncake_conversation"]
    share = resource["overlap_tokens"] / resource["prompt_tokens"]
    assert share == pytest.approx(0.374, abs=0.0005)


def test_they_are_exported_at_the_top():
    assert sl.datasets() == datasets()
    assert sl.load_overlap("quality") == load_overlap("quality")


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"'qualty' \(did you mean 'quality'\?\)"):
        load_overlap("qualty")


def test_samples_have_a_path():
    assert sample("chats.jsonl").is_file()


def test_listing_and_loading_imports_nothing_heavy():
    program = (
        "import sys, sparselab as sl; sl.load_overlap('quality')\n"
        "heavy = {'torch', 'pandas', 'plotly', 'numba', 'transformers'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
