"""The committed notebooks: clean as they lie there, and right when they are run headless."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import papermill
import pytest
from notebook_cases import CASES, FOLDER, NOTEBOOKS

from sparselab import export
from sparselab.batch import read_parameters
from sparselab.batch.results import Number, collect
from sparselab.batch.run import RunRecord
from sparselab.batch.sweep import load_sweep

SWEEPS = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


# -- as they lie there -----------------------------------------------------------------------------


def test_a_notebook_has_no_outputs_and_no_widget_state(path: Path) -> None:
    notebook = export.read_notebook(path)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert "execution" not in cell.metadata


def test_its_cells_have_stable_ids_and_its_kernel_is_python3(path: Path) -> None:
    notebook = export.read_notebook(path)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"


def test_its_parameters_are_literals_with_a_help_text_and_live_is_true(path: Path) -> None:
    parameters = read_parameters(export.read_notebook(path))
    assert all(parameter.help for parameter in parameters.values())
    assert parameters["live"].type == "bool"
    assert parameters["live"].default is True


def test_its_links_lead_to_notebooks_that_are_there(path: Path) -> None:
    text = "\n".join(cell.source for cell in export.read_notebook(path).cells)
    for name in re.findall(r"\]\(([^)#:]+\.ipynb)", text):
        assert (FOLDER / name).exists(), name


def test_all_its_formulas_become_mathml(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    export.notebook_html(export.read_notebook(path))
    assert "formula left as LaTeX source" not in caplog.text


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_a_shipped_sweep_fits_the_notebooks(file: Path) -> None:
    assert load_sweep(file).runs


def test_the_demo_runs_every_notebook_as_it_is() -> None:
    runs = load_sweep(FOLDER / "demo.yaml").runs
    assert [run.notebook for run in runs] == NOTEBOOKS
    assert all(run.given == {} for run in runs)


# -- run headless ----------------------------------------------------------------------------------


def test_every_notebook_has_a_case() -> None:
    assert sorted(CASES) == [path.stem for path in NOTEBOOKS]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stem", sorted(CASES))
def test_a_notebook_runs_headless_and_its_numbers_are_right(
    stem: str, run_notebook_case: Callable[[str], Path]
) -> None:
    folder = run_notebook_case(stem)
    record = RunRecord.load(folder)
    assert record is not None
    assert record.error is None
    assert record.parameters["live"] is False
    given, check = CASES[stem]
    check(given, {name: number["value"] for name, number in record.numbers.items()})

    executed = export.read_notebook(folder / f"{stem}.ipynb")
    assert export.first_figure(executed) is not None
    assert "widgets" not in executed.metadata
    assert (folder / f"{stem}.ipynb").stat().st_size < 1_000_000
    assert (folder / f"{stem}.html").stat().st_size < 7_000_000


def test_plain_papermill_runs_a_notebook_with_live_panels(tmp_path: Path) -> None:
    """With ``live=True`` and no front end the panels are made, and merely stay unseen."""
    target = tmp_path / "executed.ipynb"
    papermill.execute_notebook(
        FOLDER / "00_start_here.ipynb",
        target,
        {"length": 4096, "budget": 2},
        progress_bar=False,
        cwd=FOLDER,
        execution_timeout=120,
    )
    executed = export.read_notebook(target)
    number = collect(executed).numbers["expected_recompute_optimal"]
    assert isinstance(number, Number)
    assert number.value > 0
    assert export.WIDGET_MIME in str(executed.cells)
