"""Requests of a panel: by name or path, in their own order or interleaved."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import sparselab as sl
from sparselab.workloads import Workload
from widgets.workload_source import FILE, workload_source


def order(workload: Workload) -> list[tuple[Any, int, float]]:
    return [(request.group, request.length, request.arrival) for request in workload]


def write(file: Path, prompts: list[dict[str, Any]], changed: int) -> None:
    """Write the prompts as a file that was last changed at a time of its own (ns)."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(map(json.dumps, prompts)))
    os.utime(file, ns=(changed, changed))


PROMPTS = [{"group": name, "tokens": [number, 7, 7]} for number, name in enumerate("aaabbb")]
TIMED = [{**prompt, "arrival": number / 2} for number, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize("name", sl.workloads.loaders())
def test_the_code_makes_the_same_requests(name: str) -> None:
    source = workload_source(name, "", 5)
    assert order(eval(source.code, {"sl": sl})) == order(source.workload)


@pytest.mark.parametrize("name", ["mooncake", "qwen_bailian", "jsonl"])
def test_requests_with_arrivals_keep_them(name: str) -> None:
    assert order(workload_source(name, "", 5).workload) == order(sl.workloads.load(name))


@pytest.mark.parametrize("name", ["quality", "append_only_chat", "synthetic"])
def test_requests_without_arrivals_are_interleaved(name: str) -> None:
    expected = sl.workloads.load(name).interleave(5)
    assert order(workload_source(name, "", 5).workload) == order(expected)


def test_the_same_rule_holds_for_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    write(file, PROMPTS, 1)
    untimed = workload_source(FILE, f" {file} ", 5)
    expected = sl.workloads.load("jsonl", path=file)
    assert order(untimed.workload) == order(expected.interleave(5))
    assert order(eval(untimed.code, {"sl": sl})) == order(untimed.workload)
    write(file, TIMED, 2)
    timed = workload_source(FILE, str(file), 5)
    assert order(timed.workload) == order(sl.workloads.load("jsonl", path=file))
    assert order(eval(timed.code, {"sl": sl})) == order(timed.workload)


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    write(file, TIMED, 1)
    first = workload_source(FILE, str(file), 5)
    assert workload_source(FILE, str(file), 5) is first
    write(file, TIMED[:2], 2)
    assert len(workload_source(FILE, str(file), 5).workload) == 2


def test_a_folder_is_read_anew_when_one_of_its_files_changes(tmp_path: Path) -> None:
    prompt = tmp_path / "prompts" / "one.md"
    write(prompt, [{"some": "text"}], 1)
    before = workload_source(FILE, str(prompt.parent), 5).workload
    write(prompt, [{"some": "other and longer text"}], 2)
    after = workload_source(FILE, str(prompt.parent), 5).workload
    assert after.lengths().sum() > before.lengths().sum()


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file: nowhere\.jsonl\."):
        workload_source(FILE, "nowhere.jsonl", 0)


def test_a_file_gives_its_name_and_is_looked_at_only_where_it_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    write(file, TIMED, 1)
    assert workload_source(FILE, str(file), 5).workload.name == "own.jsonl (read as jsonl)"
    assert workload_source("quality", str(file), 5).workload.name == "sample documents"
    with pytest.raises(ValueError, match="path is empty: name a trace or data set"):
        workload_source(FILE, " ", 5)


def test_a_file_that_could_be_either_is_read_in_the_format_named(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    write(file, [{"prompt": "be brief and kind", "tokens": [1, 2, 3]}], 1)
    with pytest.raises(ValueError, match="name the one that is meant"):
        workload_source(FILE, str(file), 5)
    source = workload_source(FILE, str(file), 5, "jsonl")
    assert source.workload.name == "prompts.jsonl (read as jsonl)"
    assert order(eval(source.code, {"sl": sl})) == order(source.workload)
    with pytest.raises(ValueError, match=r"unknown file_format 'json'.*did you mean 'jsonl'"):
        workload_source(FILE, str(file), 5, "json")
