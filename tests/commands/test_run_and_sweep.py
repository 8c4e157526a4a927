"""The commands `sparselab run` and `sparselab sweep`: what they print and return."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from sparselab.cli import main


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that publishes twice its size, and fails for size 0; beside the working folder."""
    cells = [
        nbformat.v4.new_code_cell(
            "size: int = 3  # how many\nlive: bool = True  # panels",
            metadata={"tags": ["parameters"]},
        ),
        nbformat.v4.new_code_cell(
            "from sparselab.batch import publish\n"
            "assert size > 0\n"
            "publish('total', 2 * size, unit='tokens')"
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel}
    path = tmp_path / "tiny.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    monkeypatch.chdir(tmp_path)
    return path


def test_run_prints_the_numbers_and_where_the_page_is(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(notebook), "-p", "size", "5", "--out", "here"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "total: 10 tokens"
    assert lines[-1].startswith("tiny.ipynb completed in")
    assert lines[-1].endswith("see here/tiny.html")
    assert json.loads(Path("here/run.json").read_text())["parameters"]["size"] == 5


def test_run_makes_a_new_folder_each_time_and_prints_the_record_as_json(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = set()
    for _ in range(2):
        assert main(["run", str(notebook), "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["status"] == "completed"
        assert (Path(record["folder"]) / "tiny.ipynb").exists()
        found.add(record["folder"])
    assert len(found) == 2


def test_a_failed_run_returns_1(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(notebook), "-p", "size", "0", "--out", "here"]) == 1
    assert "tiny.ipynb failed (cell [3] raised AssertionError" in capsys.readouterr().out
    assert Path("here/traceback.txt").exists()


def test_a_run_without_a_page_points_to_its_folder(
    notebook: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("sparselab.batch.run.export_html", broken)
    assert main(["run", str(notebook), "--out", "here"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "failed (OSError: no space left)" in last
    assert last.endswith("see here")


def test_run_lists_the_parameters(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(notebook), "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "size: int = 3  # how many"
    assert main(["run", str(notebook), "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["default"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "sise", "3"], "no parameter 'sise' (did you mean 'size'?)"),
        (["-p", "size", "x"], "'size' must be int, got 'x'"),
        (["-p", "size", "1", "-p", "size", "2"], "'size' is given twice"),
        (["--timeout", "-1"], "timeout_s must be greater than 0"),
        (["--out", "taken"], "taken holds something else than a run: file"),
        (["--out", "."], "folder . is or holds the working directory"),
    ],
)
def test_run_refuses_in_one_sentence_before_anything_runs(
    notebook: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    Path("taken").mkdir()
    Path("taken/file").touch()
    assert main(["run", str(notebook), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not Path("runs").exists()


def test_run_refuses_what_is_no_notebook_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd.ipynb").write_text("[]")
    assert main(["run", str(tmp_path / "odd.ipynb")]) == 2
    error = capsys.readouterr().err
    assert "odd.ipynb is not a readable notebook (a JSON object is expected, got list)" in error
    assert len(error.splitlines()) == 1


def test_run_refuses_a_missing_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.ipynb"]) == 2
    assert "no such notebook: nowhere.ipynb" in capsys.readouterr().err


def test_sweep_returns_1_if_any_run_failed_and_says_where_the_index_is(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("sweep.yaml").write_text("runs: [{notebook: tiny.ipynb, matrix: {size: [0, 1]}}]")
    assert main(["sweep", "sweep.yaml", "--jobs", "2"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "1 of 2 runs completed, 1 failed: open runs/sweep/index.html"
    assert Path("runs/sweep/index.html").exists()

    assert main(["sweep", "sweep.yaml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"] == 1


def test_sweep_lists_its_runs(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sweep.yaml").write_text("runs: [{notebook: tiny.ipynb, matrix: {size: [1, 2]}}]")
    assert main(["sweep", "sweep.yaml", "--list"]) == 0
    names = capsys.readouterr().out.split()
    assert [name.rpartition("__")[0] for name in names] == ["tiny__size-1", "tiny__size-2"]
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("runs: [{notebook: tiny.ipynb, sets: [{sise: 1}]}]", [], "did you mean 'size'"),
        ("runs: [{notebook: tiny.ipynb}]", ["--jobs", "-2"], "jobs must be at least 1, got -2"),
        ("runs: [{notebook: tiny.ipynb}]", ["--jobs", "0"], "jobs must be at least 1, got 0"),
    ],
)
def test_sweep_refuses_in_one_sentence(
    notebook: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    arguments: list[str],
    message: str,
) -> None:
    Path("sweep.yaml").write_text(text)
    assert main(["sweep", "sweep.yaml", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
