"""NarrativeQA as rows of the hub data set and as the repository's folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer


def row(document: str, text: str, question: str) -> dict:
    return {
        "document": {"id": document, "kind": "gutenberg", "text": text},
        "question": {"text": question, "tokens": question.split()},
        "answers": [{"text": "yes"}],
    }


ROWS = [
    row("a", "Once there was a mill.", "What was there?"),
    row("a", "Once there was a mill.", "When?"),
    row("b", "A clock struck twelve.", "What struck?"),
]


def ids(text: str, question: str) -> list[int]:
    encode = get_tokenizer().encode
    return [*encode(text), *encode(f"\n\nQuestion: {question}\nAnswer:")]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "documents.csv").write_text("document_id,set,kind\na,train,movie\nb,test,movie\n")
    (tmp_path / "qaps.csv").write_text(
        "document_id,set,question\na,train,What was there?\nb,test,What struck?\na,train,When?\n"
    )
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/a.content").write_text("Once there was a mill.")
    (tmp_path / "tmp/b.content").write_text("A clock struck twelve.")
    return tmp_path


def test_rows_become_story_ids_followed_by_question_ids(write_lines):
    workload = load("narrativeqa", write_lines(*ROWS))
    expected = [ids(r["document"]["text"], r["question"]["text"]) for r in ROWS]
    assert [r.tokens.tolist() for r in workload] == expected
    assert [r.group for r in workload] == ["a", "a", "b"]
    assert np.shares_memory(workload.requests[0]._head, workload.requests[1]._head)


def test_a_folder_gives_the_same_requests(write_lines, folder):
    rows = load("narrativeqa", write_lines(*ROWS, name="rows.jsonl"))
    local = load("narrativeqa", folder)
    assert [r.tokens.tolist() for r in local] == [r.tokens.tolist() for r in rows]


def test_the_hub_data_set_is_read_through_the_datasets_package(tmp_path):
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    assert [r.group for r in load("narrativeqa", f"hub:{tmp_path}")] == ["a", "a", "b"]


def test_split_and_number_of_documents_select(folder, write_lines):
    assert [r.group for r in load("narrativeqa", folder, split="test")] == ["b"]
    assert [r.group for r in load("narrativeqa", folder, documents=1)] == ["a", "a"]
    assert [r.group for r in load("narrativeqa", write_lines(*ROWS), documents=1)] == ["a", "a"]


def test_the_sample_is_read_without_a_path():
    workload = load("narrativeqa")
    assert len({r.group for r in workload}) == 2
    assert workload.overlap_samples()[1] > 1000


def test_bad_input_is_named(folder, write_lines):
    with pytest.raises(ValueError, match="split must be one of test, train"):
        load("narrativeqa", folder, split="dev")
    with pytest.raises(ValueError, match="documents must be at least 1, got 0"):
        load("narrativeqa", folder, documents=0)
    with pytest.raises(ValueError, match="line 1: the key 'document' is missing"):
        load("narrativeqa", write_lines({"question": {"text": "?"}}))
    with pytest.raises(ValueError, match="line 1, document: 'text' is empty"):
        load("narrativeqa", write_lines(row("a", "", "?")))

    (folder / "tmp/b.content").unlink()
    with pytest.raises(FileNotFoundError, match=r"no such file: .*b\.content"):
        load("narrativeqa", folder)
    (folder / "qaps.csv").write_text("document_id,set,question\na,train,When?\n")
    with pytest.raises(ValueError, match="line 3: document 'b' has no question"):
        load("narrativeqa", folder)
    (folder / "qaps.csv").write_text("document,set\na,train\n")
    with pytest.raises(ValueError, match="line 1: the column 'document_id' is missing"):
        load("narrativeqa", folder)


def test_a_file_has_no_split(write_lines):
    with pytest.raises(
        ValueError, match=r"split must be left out for .*file\.jsonl, .* got 'test'"
    ):
        load("narrativeqa", write_lines(*ROWS), split="test")
