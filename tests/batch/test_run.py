"""One run: what its folder holds, and how each way of failing is recorded."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
from tiny_notebooks import PUBLISH, write

from sparselab.batch import collect
from sparselab.batch.run import RunRecord, fingerprint, run_notebook

WriteNotebook = Callable[..., Path]


@pytest.fixture
def write_notebook(tmp_path: Path) -> WriteNotebook:
    """Write ``tiny.ipynb`` with the given code cells."""
    return lambda *cells, **options: write(tmp_path / "tiny.ipynb", *cells, **options)


def test_a_run_leaves_notebook_page_results_and_record(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    parameters = "size: int = 3\nlabel: str = 'a'\nseed: int = 5\nlive: bool = True\n"
    notebook = write_notebook(PUBLISH, "print(size, live)", parameters=parameters)
    record = run_notebook(notebook, tmp_path / "run", {"size": 4})
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "results",
        "run.json",
        "tiny.html",
        "tiny.ipynb",
    ]
    assert record == RunRecord.load(tmp_path / "run")
    assert record.completed
    assert record.error is None
    assert record.title == "A tiny notebook"
    assert record.parameters == {"size": 4, "label": "a", "seed": 5, "live": False}
    assert record.given == {"size": 4}
    assert record.seed == 5
    assert record.duration_s > 0
    assert record.numbers == {"total": {"value": 8, "unit": "tokens"}}
    assert record.provenance["versions"]["python"].startswith("3.")
    rows = pd.read_parquet(tmp_path / "run" / "results" / "rows.parquet")
    assert rows["row"].tolist() == [0, 1, 2, 3]
    assert "4 False" in (tmp_path / "run" / "tiny.html").read_text(encoding="utf-8")


def test_the_source_notebook_is_left_as_it_was(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    notebook = write_notebook(PUBLISH)
    before = notebook.read_bytes()
    run_notebook(notebook, tmp_path / "run")
    assert notebook.read_bytes() == before


def test_the_executed_notebook_names_no_path_of_this_machine(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    run_notebook(write_notebook("1 + 1"), tmp_path / "run")
    assert str(tmp_path) not in (tmp_path / "run" / "tiny.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("live", "given", "printed"),
    [(False, {}, "False"), (True, {}, "True"), (False, {"live": True}, "True")],
)
def test_live_is_false_unless_told(
    write_notebook: WriteNotebook, tmp_path: Path, live: bool, given: dict, printed: str
) -> None:
    run_notebook(write_notebook("print('live is', live)"), tmp_path / "run", given, live=live)
    assert f"live is {printed}" in (tmp_path / "run" / "tiny.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sizes": 3}, ValueError, "did you mean 'size'"),
        ({"size": "3"}, TypeError, "'size' must be int, got '3'"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_before_anything_runs(
    write_notebook: WriteNotebook,
    tmp_path: Path,
    given: dict,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        run_notebook(write_notebook(), tmp_path / "run", given)
    assert not (tmp_path / "run").exists()


def test_a_cell_that_raises_fails_the_run_and_keeps_what_came_before(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    notebook = write_notebook(PUBLISH, "1 / 0", "print('never reached')")
    record = run_notebook(notebook, tmp_path / "run")
    assert record.status == "failed"
    assert record.error == "cell [4] raised ZeroDivisionError: division by zero"
    trace = (tmp_path / "run" / "traceback.txt").read_text(encoding="utf-8")
    assert "1 / 0" in trace
    assert "\x1b[" not in trace
    assert record.numbers["total"]["value"] == 6
    page = (tmp_path / "run" / "tiny.html").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page


def test_a_cell_that_takes_too_long_fails_the_run(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    notebook = write_notebook("import time; time.sleep(60)")
    record = run_notebook(notebook, tmp_path / "run", timeout_s=1)
    assert record.status == "failed"
    assert "timed out" in str(record.error)
    assert record.duration_s < 30


def test_a_kernel_that_dies_fails_the_run(write_notebook: WriteNotebook, tmp_path: Path) -> None:
    record = run_notebook(write_notebook("import os; os._exit(3)"), tmp_path / "run")
    assert record.status == "failed"
    assert "Kernel died" in str(record.error)


def test_publishing_a_name_twice_fails_the_run(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    record = run_notebook(write_notebook(PUBLISH, PUBLISH), tmp_path / "run")
    assert record.error == "the notebook publishes 'total' twice."


def test_a_page_that_cannot_be_written_fails_the_run_and_keeps_the_rest(
    write_notebook: WriteNotebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("sparselab.batch.run.export_html", broken)
    record = run_notebook(write_notebook(PUBLISH), tmp_path / "run")
    assert record.error == "OSError: no space left"
    assert record.numbers["total"]["value"] == 6
    assert (tmp_path / "run" / "tiny.ipynb").exists()
    assert "no space left" in (tmp_path / "run" / "traceback.txt").read_text(encoding="utf-8")


def test_plain_papermill_runs_the_notebook_and_its_results_can_be_collected(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    target = tmp_path / "executed.ipynb"
    papermill.execute_notebook(write_notebook(PUBLISH), target, {"size": 5}, progress_bar=False)
    assert collect(nbformat.read(target, as_version=4)).numbers["total"].value == 10


def test_nobody_is_warned_of_a_parameter_that_was_checked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parameters = "note: str | None = None  # papermill cannot read this annotation\n"
    notebook = write(tmp_path / "tiny.ipynb", "assert note == 'x'", parameters=parameters)
    assert run_notebook(notebook, tmp_path / "run", {"note": "x"}).completed
    assert not [record for record in caplog.records if "unknown parameter" in record.message]


def test_a_folder_name_with_braces_is_taken_as_it_stands(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    assert run_notebook(write_notebook(), tmp_path / "run {size}").completed
    assert (tmp_path / "run {size}" / "tiny.ipynb").exists()


def test_a_fingerprint_tells_notebooks_and_parameters_apart(
    write_notebook: WriteNotebook,
) -> None:
    first, second = (
        nbformat.read(write_notebook(cell), as_version=4) for cell in ("1 + 1", "1 + 2")
    )
    marks = {
        fingerprint(first, {"size": 3}),
        fingerprint(first, {"size": 4}),
        fingerprint(second, {"size": 3}),
    }
    assert len(marks) == 3
    assert fingerprint(first, {"size": 3, "label": "a"}) == fingerprint(
        first, {"label": "a", "size": 3}
    )


def test_a_record_names_the_code_that_began_the_run_and_the_kernel_that_ran_it(
    write_notebook: WriteNotebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    code.write_text("before")
    monkeypatch.setattr("sparselab.batch.run.code_checksum", code.read_text)
    notebook = write_notebook("from pathlib import Path", "Path('code').write_text('after')")
    record = run_notebook(notebook, tmp_path / "run")
    assert code.read_text() == "after"
    assert record.code == "before"
    assert record.provenance["kernel"] == {"name": "python3", "python": platform.python_version()}


def test_a_notebook_without_a_kernel_in_its_metadata_runs(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    path = write_notebook(PUBLISH)
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.clear()
    nbformat.write(notebook, path)
    assert run_notebook(path, tmp_path / "run", {"size": 4}).numbers["total"]["value"] == 8


def test_a_notebook_is_not_replaced_by_its_own_run(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    run_notebook(write_notebook(), tmp_path / "run")
    made = tmp_path / "run" / "tiny.ipynb"
    before = made.read_bytes()
    with pytest.raises(ValueError, match="lies in the run's folder"):
        run_notebook(made, tmp_path / "run")
    assert made.read_bytes() == before


def test_a_seed_that_is_no_integer_is_a_parameter_only(
    write_notebook: WriteNotebook, tmp_path: Path
) -> None:
    record = run_notebook(write_notebook(parameters="seed: str = 'x'"), tmp_path / "run")
    assert record.seed is None
    assert record.parameters == {"seed": "x"}
    assert RunRecord.load(tmp_path / "run") == record
