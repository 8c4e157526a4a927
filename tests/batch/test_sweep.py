"""Sweeps: what a file asks for, running it in parallel, failures, and being killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from filelock import FileLock
from tiny_notebooks import FIGURE, PUBLISH, write

from sparselab.batch.folders import complete_folder
from sparselab.batch.run import RunRecord
from sparselab.batch.sweep import LOCK_FILE, load_sweep, run_sweep

MATRIX = """\
title: Tiny runs
output: {output}
runs:
  - notebook: tiny.ipynb
    parameters: {{label: b c}}
    matrix: {{size: [1, 2]}}
  - notebook: figure.ipynb
"""


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    """A sweep of three runs over two notebooks, into ``out``."""
    write(tmp_path / "tiny.ipynb", PUBLISH)
    write(tmp_path / "figure.ipynb", FIGURE)
    path = tmp_path / "sweep.yaml"
    path.write_text(MATRIX.format(output=tmp_path / "out"))
    return path


def folders(output: Path) -> set[str]:
    return {path.name for path in output.iterdir() if path.is_dir()}


# -- reading the file ------------------------------------------------------------------------------


def test_a_matrix_asks_for_every_combination_and_a_plain_entry_for_the_defaults(
    sweep_file: Path,
) -> None:
    sweep = load_sweep(sweep_file)
    assert [(run.notebook.name, run.given) for run in sweep.runs] == [
        ("tiny.ipynb", {"label": "b c", "size": 1}),
        ("tiny.ipynb", {"label": "b c", "size": 2}),
        ("figure.ipynb", {}),
    ]
    assert [run.name.rpartition("__")[0] for run in sweep.runs[:2]] == [
        "tiny__size-1",
        "tiny__size-2",
    ]
    assert sweep.runs[2].name == "figure"


def test_sets_are_taken_one_by_one_and_patterns_match_notebooks(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / f"{name}.ipynb")
    file = tmp_path / "sweep.yaml"
    file.write_text("runs:\n- notebook: '*.ipynb'\n  sets: [{size: 1}, {label: x, size: 2}]\n")
    sweep = load_sweep(file)
    assert [(run.notebook.name, run.given) for run in sweep.runs] == [
        ("a.ipynb", {"size": 1}),
        ("a.ipynb", {"label": "x", "size": 2}),
        ("b.ipynb", {"size": 1}),
        ("b.ipynb", {"label": "x", "size": 2}),
    ]
    assert sweep.output == Path("runs/sweep")


def test_a_pattern_may_be_absolute_and_a_number_in_scientific_notation(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    write(tmp_path / "notebooks" / "tiny.ipynb", parameters="rate: float = 0.5")
    file = tmp_path / "sweep.yaml"
    pattern = tmp_path / "notebooks" / "*.ipynb"
    file.write_text(f"runs: [{{notebook: '{pattern}', parameters: {{rate: 1e-3}}}}]")
    (run,) = load_sweep(file).runs
    assert run.notebook == tmp_path / "notebooks" / "tiny.ipynb"
    assert run.given == {"rate": 0.001}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: [", "line 1: not valid YAML"),
        ("- tiny.ipynb", "a mapping with the key 'runs' is expected"),
        ("output: x", "needs the key 'runs'"),
        ("runs: []", "runs must be a list with at least one entry"),
        ("runs: [tiny.ipynb]", "runs[1]: a mapping with the key 'notebook' is expected"),
        ("run: []", "unknown key 'run' (did you mean 'runs'?)"),
        ("timeout_s: 0\nruns: [{notebook: tiny.ipynb}]", "timeout_s must be greater than 0"),
        ("runs: [{notebook: none.ipynb}]", "no such notebook"),
        ("runs: [{notebook: 'x*.ipynb'}]", "matches 'x*.ipynb'"),
        ("runs: [{notebook: tiny.ipynb, matrx: {}}]", "'matrx' (did you mean 'matrix'?)"),
        ("runs: [{notebook: tiny.ipynb, matrix: {size: 3}}]", "matrix: size must be a list"),
        ("runs: [{notebook: tiny.ipynb, matrix: {size: []}}]", "matrix: size must be a list"),
        (
            "runs: [{notebook: tiny.ipynb, matrix: {siz: [3]}}]",
            "runs[1]: tiny.ipynb: the notebook has no parameter 'siz' (did you mean 'size'?)",
        ),
        ("runs: [{notebook: tiny.ipynb, sets: [{size: '3'}]}]", "'size' must be int, got '3'"),
        (
            "runs: [{notebook: tiny.ipynb, parameters: {size: 1}, matrix: {size: [2]}}]",
            "parameter 'size' is both fixed and varied",
        ),
        ("runs: [{notebook: tiny.ipynb}, {notebook: tiny.ipynb}]", "asks 2 times for the same run"),
        ("runs: [{notebook: tiny.ipynb, sets: [{}], matrix: {size: [1]}}]", "not both"),
        ("runs: [{notebook: tiny.ipynb}]\nruns: []", "the key 'runs' is there twice"),
        (
            "output: 5\nruns: [{notebook: tiny.ipynb}]",
            "output must be the path",
        ),
        ("runs: [{notebook: tiny.ipynb}, {notebook: sub/tiny.ipynb}]", "two notebooks of one name"),
        ("runs: [{notebook: '**/tiny.ipynb'}]", "two notebooks of one name"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    write(tmp_path / "tiny.ipynb")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "tiny.ipynb")
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as caught:
        load_sweep(file)
    assert message in str(caught.value)


# -- running it ------------------------------------------------------------------------------------


def test_a_sweep_runs_everything_once_and_lists_it(sweep_file: Path) -> None:
    sweep = load_sweep(sweep_file)
    lines: list[str] = []
    records = run_sweep(sweep, jobs=2, report=lines.append)
    assert list(records) == [run.name for run in sweep.runs]
    assert all(record.completed for record in records.values())
    assert folders(sweep.output) == set(records)
    assert len(lines) == 3

    table = pd.read_parquet(sweep.output / "results.parquet")
    assert table["run"].tolist() == list(records)
    assert table["number.total"].tolist()[:2] == [2.0, 4.0]
    assert table["parameter.label"].tolist() == ["b c", "b c", "a"]

    page = (sweep.output / "index.html").read_text(encoding="utf-8")
    assert "<h1>Tiny runs</h1>" in page
    assert "3 runs, 3 completed" in page
    assert "size = 2" in page
    assert "4 <small>tokens</small>" in page
    assert "Figure of a" in page
    assert f'href="{sweep.runs[0].name}/tiny.html"' in page

    again: list[str] = []
    assert run_sweep(load_sweep(sweep_file), jobs=2, report=again.append) == records
    assert len(again) == 1
    assert again[0].startswith("3 of 3 runs are there already")


def test_a_changed_notebook_is_run_again_and_the_rest_kept(sweep_file: Path) -> None:
    before = run_sweep(load_sweep(sweep_file), jobs=2)
    write(sweep_file.parent / "figure.ipynb", FIGURE, "'changed'")
    after = run_sweep(load_sweep(sweep_file), jobs=2)
    changed = [name for name in before if before[name] != after[name]]
    assert changed == ["figure"]
    assert folders(sweep_file.parent / "out") == set(before)


def test_a_record_that_cannot_be_read_is_made_again(sweep_file: Path) -> None:
    sweep = load_sweep(sweep_file)
    run_sweep(sweep)
    record = sweep.output / sweep.runs[0].name / "run.json"
    record.write_text('{"notebook": "tiny.ipynb", "unknown": 1}')
    lines: list[str] = []
    assert all(made.completed for made in run_sweep(sweep, report=lines.append).values())
    assert lines[0].startswith("2 of 3 runs are there already")
    assert len(lines) == 2


def test_a_run_whose_files_are_gone_is_made_again(tmp_path: Path) -> None:
    write(tmp_path / "tiny.ipynb", PUBLISH)
    file = tmp_path / "sweep.yaml"
    file.write_text(f"output: {tmp_path / 'out'}\nruns: [{{notebook: tiny.ipynb}}]")
    run_sweep(load_sweep(file))
    table = tmp_path / "out" / "tiny" / "results" / "rows.parquet"
    table.unlink()
    run_sweep(load_sweep(file))
    assert table.exists()


def test_a_run_at_work_beside_a_starting_sweep_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "tiny.ipynb")
    file = tmp_path / "sweep.yaml"
    file.write_text(f"output: {tmp_path / 'out'}\nruns: [{{notebook: tiny.ipynb}}]")
    sweep = load_sweep(file)
    sweep.output.mkdir()
    (sweep.output / ".partial-killed-1").mkdir()
    with complete_folder(sweep.output / "mine") as partial:
        run_sweep(sweep)
        assert partial.exists()
    assert folders(sweep.output) == {"tiny", "mine"}


def test_runs_made_by_other_code_are_kept_and_said_and_repeated_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "tiny.ipynb")
    file = tmp_path / "sweep.yaml"
    file.write_text(f"output: {tmp_path / 'out'}\nruns: [{{notebook: tiny.ipynb}}]")
    before = run_sweep(load_sweep(file))
    monkeypatch.setattr("sparselab.batch.sweep.code_checksum", lambda: "another")
    lines: list[str] = []
    assert run_sweep(load_sweep(file), report=lines.append) == before
    assert "1 of them made by other code: --rerun changed repeats those" in lines[0]
    after = run_sweep(load_sweep(file), rerun="changed")
    assert after["tiny"].provenance["created"] > before["tiny"].provenance["created"]


def test_a_failed_run_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    write(tmp_path / "tiny.ipynb", PUBLISH)
    write(tmp_path / "fails.ipynb", f"assert __import__('os').path.exists({str(flag)!r}), 'boom'")
    file = tmp_path / "sweep.yaml"
    file.write_text(
        f"output: {tmp_path / 'out'}\nruns: [{{notebook: fails.ipynb}}, {{notebook: tiny.ipynb}}]"
    )
    records = run_sweep(load_sweep(file), jobs=1)
    assert [record.status for record in records.values()] == ["failed", "completed"]
    assert "AssertionError: boom" in str(records["fails"].error)
    assert "boom" in (tmp_path / "out/fails/traceback.txt").read_text()
    page = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "1 failed" in page
    assert 'href="fails/traceback.txt"' in page

    flag.touch()
    assert run_sweep(load_sweep(file), jobs=1) == records, "a failed run has finished, too"
    mended = run_sweep(load_sweep(file), jobs=1, rerun="failed")
    assert mended["fails"].completed
    assert mended["tiny"] == records["tiny"]


def test_a_worker_that_dies_is_a_failed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "tiny.ipynb")
    file = tmp_path / "sweep.yaml"
    file.write_text(f"output: {tmp_path / 'out'}\nruns: [{{notebook: tiny.ipynb}}]")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    records = run_sweep(load_sweep(file), jobs=1)
    assert records["tiny"].error == "its process ended with exit code 1"
    assert RunRecord.load(tmp_path / "out/tiny") == records["tiny"]


def test_two_sweeps_at_once_in_one_folder_are_refused(sweep_file: Path) -> None:
    sweep = load_sweep(sweep_file)
    sweep.output.mkdir()
    with (
        FileLock(sweep.output / LOCK_FILE),
        pytest.raises(ValueError, match="another sweep is at work in"),
    ):
        run_sweep(sweep)


# -- being killed ----------------------------------------------------------------------------------

# A shell starts what runs in the background with interrupts ignored, and its children inherit that.
DRIVER = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "import sys; from sparselab.batch.sweep import load_sweep, run_sweep; "
    "run_sweep(load_sweep(sys.argv[1]), jobs=2)"
)


def complete(output: Path) -> dict[str, RunRecord]:
    """The runs that are there; each of them has all its files, at whatever moment one looks."""
    found = {}
    for name in folders(output) if output.exists() else ():
        if name.startswith("."):
            continue
        record = RunRecord.load(output / name)
        assert record is not None, f"{name} is there without its record"
        for file in ("tiny.ipynb", "tiny.html", "results/rows.parquet"):
            assert (output / name / file).is_file(), f"{name} is there without {file}"
        found[name] = record
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_sweep_killed_at_random_moments_ends_with_exactly_the_runs_asked_for(
    tmp_path: Path,
) -> None:
    write(tmp_path / "tiny.ipynb", PUBLISH)
    output, file = tmp_path / "out", tmp_path / "sweep.yaml"
    file.write_text(
        f"output: {output}\nruns: [{{notebook: tiny.ipynb, matrix: {{size: [1, 2, 3, 4, 5]}}}}]"
    )
    moments = random.Random(2605)
    for _kill in range(3):
        process = subprocess.Popen([sys.executable, "-c", DRIVER, str(file)])
        time.sleep(moments.uniform(1.0, 6.0))
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(children, timeout=20)
        assert alive == [], "workers and kernels must not outlive the sweep"
        finished = complete(output)

    subprocess.run([sys.executable, "-c", DRIVER, str(file)], check=True)
    asked = {run.name for run in load_sweep(file).runs}
    assert folders(output) == asked, "nothing is missing and nothing else is left"
    ended = complete(output)
    assert sorted(record.numbers["total"]["value"] for record in ended.values()) == [2, 4, 6, 8, 10]
    assert {name: ended[name] for name in finished} == finished, "what was complete was kept"
    assert pd.read_parquet(output / "results.parquet")["status"].tolist() == ["completed"] * 5


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupted_sweep_calls_no_run_failed_and_can_be_continued(tmp_path: Path) -> None:
    write(tmp_path / "tiny.ipynb", PUBLISH, "import time; time.sleep(4)")
    output, file = tmp_path / "out", tmp_path / "sweep.yaml"
    file.write_text(f"output: {output}\nruns: [{{notebook: tiny.ipynb}}]")
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(file)], stderr=subprocess.PIPE, text=True
    )
    while not list(output.glob(".partial-*")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in messages
    assert complete(output) == {}

    assert run_sweep(load_sweep(file))["tiny"].completed
    assert folders(output) == {"tiny"}


def test_a_folder_with_something_else_in_it_is_not_replaced(sweep_file: Path) -> None:
    mine = sweep_file.parent / "out" / "figure" / "data.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ValueError, match="figure holds something else than a run"):
        run_sweep(load_sweep(sweep_file), jobs=1)
    assert mine.read_text() == "mine"
    assert folders(sweep_file.parent / "out") == {"figure"}
