"""Recomputing the shipped tables: from the samples always, from the sources where they are."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from sparselab.build_data import (
    TABLES,
    build,
    count_lengths,
    measure,
    mooncake_sample,
    numbered_blocks,
    qwen_bailian_sample,
)
from sparselab.shipped_data import data_folder, load_overlap, sample
from sparselab.workloads import load


@pytest.mark.parametrize("name", ["sample_documents", "sample_system_prompts", "sample_chats"])
def test_the_samples_give_the_shipped_tables(name):
    (table,) = [table for table in TABLES if table.name == name]
    distribution, facts = measure(table.read(Path("unused")))
    assert distribution == load_overlap(name)
    assert facts["requests"] == distribution.total


def test_the_sample_traces_are_made_from_the_sample_texts():
    assert "".join(mooncake_sample()) == sample("trace_mooncake.jsonl").read_text()
    assert "".join(qwen_bailian_sample()) == sample("trace_qwen_bailian.jsonl").read_text()


def test_a_trace_measures_what_its_texts_overlap_down_to_whole_blocks():
    chats = load("append_only_chat").interleave(seed=0)
    exact, by_blocks = chats.overlap_samples(), load("qwen_bailian").overlap_samples()
    assert by_blocks.tolist() == (exact // 16 * 16).tolist()


def test_chained_blocks_differ_after_a_difference_and_plain_ones_do_not():
    first, second = np.array([1, 2, 3, 4]), np.array([9, 2, 3, 4])
    for chained, last_equal in ((True, False), (False, True)):
        number_of: dict = {}
        a = list(numbered_blocks(first, 2, number_of, chained))
        b = list(numbered_blocks(second, 2, number_of, chained))
        assert a[0] != b[0]
        assert (a[1] == b[1]) is last_equal


def test_document_lengths_are_counted_in_cells(tmp_path):
    file = tmp_path / "documents.csv"
    file.write_text("kind,story_word_count\nmovie,999\nmovie,1000\nmovie,1999\ngutenberg,0\n")
    assert count_lengths(file).splitlines() == [
        "kind,words_from,words_to,documents",
        "gutenberg,0,999,1",
        "movie,0,999,1",
        "movie,1000,1999,2",
    ]


def test_a_document_list_that_does_not_fit_is_named_with_its_line(tmp_path):
    file = tmp_path / "documents.csv"
    file.write_text("kind,story_word_count\nmovie,999\nmovie,many\n")
    with pytest.raises(ValueError, match="line 3: 'story_word_count' must be a whole number, got"):
        count_lengths(file)
    file.write_text("kind,words\nmovie,999\n")
    with pytest.raises(ValueError, match="line 1: the column 'story_word_count' is missing"):
        count_lengths(file)


def test_missing_sources_are_named_and_nothing_is_written(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    with pytest.raises(FileNotFoundError, match=r"lacks .*mooncake_conversation_trace\.jsonl"):
        build(source, target)
    assert not target.exists()


@pytest.mark.reference_data
def test_the_published_files_give_the_shipped_data(tmp_path):
    folder = os.environ.get("SPARSELAB_REFERENCE_DATA")
    if not folder:
        pytest.skip("SPARSELAB_REFERENCE_DATA does not name the folder of published files")
    target = tmp_path / "data"
    shutil.copytree(data_folder() / "samples", target / "samples")
    build(Path(folder), target)
    for file in ("overlaps/mooncake_conversation.csv", "overlaps/quality.csv"):
        assert (target / file).read_bytes() == (data_folder() / file).read_bytes()
    old, new = (
        {
            r["name"]: r["hash"]
            for r in json.loads((f / "datapackage.json").read_text())["resources"]
        }
        for f in (data_folder(), target)
    )
    assert new == old
