"""The index page of a sweep: every run with its parameters, headline numbers, picture and links.

Beside the page stands the same table as ``results.parquet``. The page is self-contained apart from
the links to the runs' own pages: its pictures are the first figure of each run, drawn small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.batch.record import TRACEBACK_FILE, RunRecord
from sparselab.batch.results import Number
from sparselab.export import (
    CONTENT_SECURITY_POLICY,
    TEMPLATES,
    figure_html,
    first_figure,
    plotly_js,
    read_notebook,
)
from sparselab.files import atomic_path, write_text

if TYPE_CHECKING:
    import pandas as pd

INDEX_FILE = "index.html"
TABLE_FILE = "results.parquet"


def write_index(folder: Path, title: str, records: Mapping[str, RunRecord]) -> None:
    """Write ``index.html`` and ``results.parquet`` about the runs in ``folder``, by folder name."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(TEMPLATES / "page"), autoescape=True)
    runs = [_describe(folder, name, record) for name, record in records.items()]
    page = environment.get_template("index.html.j2").render(
        title=title,
        content_security_policy=CONTENT_SECURITY_POLICY,
        plotly_js=plotly_js() if any(run["picture"] for run in runs) else "",
        runs=runs,
        tables=_tables(runs),
        completed=sum(record.completed for record in records.values()),
    )
    write_text(folder / INDEX_FILE, page)
    with atomic_path(folder / TABLE_FILE) as temporary:
        results_table(records).to_parquet(temporary)


def results_table(records: Mapping[str, RunRecord]) -> pd.DataFrame:
    """Return one row a run: its status, duration (seconds), parameters and published numbers.

    Columns of parameters are called ``parameter.<name>``, those of numbers ``number.<name>``; a run
    that has no such parameter or number has a missing value there.
    """
    import pandas as pd

    rows = [
        {"run": name, "notebook": r.notebook, "status": r.status, "duration_s": r.duration_s}
        | {f"parameter.{key}": _cell(value) for key, value in r.parameters.items()}
        | {f"number.{key}": float(number["value"]) for key, number in r.numbers.items()}
        for name, r in records.items()
    ]
    table = pd.DataFrame(rows)
    for column in table.columns:
        # Notebooks may give one name different types; Parquet wants one type a column.
        if table[column].dropna().map(type).nunique() > 1:
            table[column] = table[column].map(lambda value: None if value is None else str(value))
    return table


def _cell(value: Any) -> Any:
    return str(value) if isinstance(value, list) else value


def _tables(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one table a notebook: its runs, with the parameters and numbers that they have."""
    notebooks = dict.fromkeys(run["record"].notebook for run in runs)
    tables = []
    for notebook in notebooks:
        own = [run for run in runs if run["record"].notebook == notebook]
        records = [run["record"] for run in own]
        tables.append(
            {
                "title": records[0].title,
                "runs": own,
                "parameters": _given(records),
                "units": _units(records),
            }
        )
    return tables


def _given(records: Iterable[RunRecord]) -> list[str]:
    """Return every parameter that some run was given, in the order of appearance."""
    return list(dict.fromkeys(name for record in records for name in record.given))


def _units(records: Iterable[RunRecord]) -> dict[str, str]:
    """Return the unit of every number, in the order of appearance; that of its first run counts."""
    units: dict[str, str] = {}
    for record in records:
        for name, number in record.numbers.items():
            units.setdefault(name, number["unit"])
    return units


def _describe(folder: Path, name: str, record: RunRecord) -> dict[str, Any]:
    stem = Path(record.notebook).stem
    notebook = folder / name / record.notebook
    figure = first_figure(read_notebook(notebook)) if notebook.exists() else None
    return {
        "name": name,
        "record": record,
        "numbers": {key: Number(**number) for key, number in record.numbers.items()},
        "page": f"{name}/{stem}.html" if (folder / name / f"{stem}.html").exists() else None,
        "notebook": f"{name}/{record.notebook}" if notebook.exists() else None,
        "traceback": None if record.completed else f"{name}/{TRACEBACK_FILE}",
        "picture": figure_html(figure, thumbnail=True) if figure else None,
    }
