"""The record of a run: what is no record is refused, and which files it promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparselab.batch.record import RunRecord

RECORD = RunRecord(
    notebook="tiny.ipynb",
    title="A tiny notebook",
    status="completed",
    parameters={"size": 3},
    given={},
    seed=None,
    started="2026-01-01T00:00:00+00:00",
    duration_s=1,
    fingerprint="f",
    code="c",
    numbers={"total": {"value": 6, "unit": "tokens"}},
    tables=["rows"],
)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    assert RunRecord.load(tmp_path) is None
    RECORD.save(tmp_path)
    assert RunRecord.load(tmp_path) == RECORD


@pytest.mark.parametrize("text", ["", "[]", "null", '{"status": "completed"}', "\xff", "[" * 99999])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"run\.json is not a run's record"):
        RunRecord.load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("notebook", 3, "notebook is 3"),
        ("notebook", "../tiny.ipynb", "which is no file name"),
        ("status", "done", "status is 'done'"),
        ("status", "failed", "a failed run with the error None"),
        ("error", "boom", "a completed run with the error 'boom'"),
        ("error", 5, "error is 5"),
        ("parameters", [], r"parameters is \[\]"),
        ("given", None, "given is None"),
        ("seed", "7", "seed is '7'"),
        ("seed", True, "seed is True"),
        ("duration_s", "1", "duration_s is '1'"),
        ("tables", {"rows": 1}, "tables is"),
        ("tables", ["../rows"], "name must be up to 64 letters"),
        ("numbers", {"total": 6}, "mapping"),
        ("numbers", {"total": {"value": "6", "unit": ""}}, "total must be a number, got '6'"),
        ("numbers", {"total": {"value": 6, "unit": 3}}, "unit must be text, got 3"),
        ("provenance", "mine", "provenance is 'mine'"),
    ],
)
def test_a_value_that_no_run_records_is_named(
    tmp_path: Path, key: str, value: Any, what: str
) -> None:
    RECORD.save(tmp_path)
    content = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(content | {key: value}))
    with pytest.raises(ValueError, match=what):
        RunRecord.load(tmp_path)


def test_a_completed_run_promises_notebook_page_and_tables(tmp_path: Path) -> None:
    files = ["tiny.ipynb", "tiny.html", "results/rows.parquet", "results/numbers.parquet"]
    assert RECORD.missing_files(tmp_path) == files
    (tmp_path / "results").mkdir()
    for name in files:
        (tmp_path / name).touch()
    assert RECORD.missing_files(tmp_path) == []
