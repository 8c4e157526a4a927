"""One run of one notebook: execute it, keep what it made, say how it went.

A run's folder holds the executed notebook, the same as a self-contained page, the published
tables as Parquet, and ``run.json`` (:class:`RunRecord`). The folder appears under its name only
when it is complete; a run that is cut short leaves at most a hidden ``.partial-...`` folder.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.batch.folders import check_replaceable, complete_folder
from sparselab.batch.kernel import execute
from sparselab.batch.notebook import read_runnable
from sparselab.batch.parameters import check_parameters, read_parameters
from sparselab.batch.record import RESULTS_FOLDER, TRACEBACK_FILE, RunRecord
from sparselab.batch.results import Results, collect
from sparselab.export import export_html, notebook_title, read_notebook
from sparselab.files import write_text
from sparselab.provenance import code_checksum, provenance
from sparselab.validation import check_number

if TYPE_CHECKING:
    from nbformat import NotebookNode

DEFAULT_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Start:
    """When a run began and by which code, looked up at once: it may be edited while it runs."""

    time: datetime
    clock_s: float
    code: str
    provenance: dict[str, Any]

    @classmethod
    def now(cls) -> Start:
        """Return the start of a run that begins now."""
        return cls(datetime.now(UTC), time.monotonic(), code_checksum(), provenance())


def notebook_parameters(
    notebook: NotebookNode, given: Mapping[str, Any] | None, live: bool = False
) -> dict[str, Any]:
    """Return the checked parameters to run with: ``given``, and ``live=False`` unless told.

    Raises ``ValueError`` or ``TypeError`` for unknown names and wrong types.
    """
    known = read_parameters(notebook)
    checked = check_parameters(known, given or {})
    if not live and "live" in known:
        return {"live": False} | checked
    return checked


def fingerprint(notebook: NotebookNode, parameters: Mapping[str, Any]) -> str:
    """Return a checksum over the notebook's cells and the ``parameters`` passed to it."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    text = json.dumps([cells, dict(parameters)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def run_notebook(
    notebook: str | Path,
    folder: str | Path,
    parameters: Mapping[str, Any] | None = None,
    live: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    links: Mapping[str, str] | None = None,
) -> RunRecord:
    """Run ``notebook`` with ``parameters`` and leave everything it made in ``folder``.

    ``folder`` is replaced if it exists, in the moment when the new one is complete. ``live=False``
    is passed to the notebook unless ``live`` is true or ``parameters`` say otherwise. A cell that
    takes longer than ``timeout_s`` seconds, or raises, makes the run ``"failed"``: the record says
    why, ``traceback.txt`` holds the traceback, and the notebook is kept as far as it came.
    ``links`` is handed to :func:`sparselab.export.export_html`.

    Raises ``ValueError`` or ``TypeError`` before anything runs for parameters that do not fit, and
    for a ``folder`` that holds the notebook or may not be replaced for another reason (see
    :func:`sparselab.batch.folders.check_replaceable`).
    """
    notebook = Path(notebook)
    check_replaceable(folder)
    if notebook.resolve().is_relative_to(Path(folder).resolve()):
        raise ValueError(f"{notebook} lies in the run's folder {folder}; name another folder.")
    check_number("timeout_s", timeout_s, above=0)
    source = read_runnable(notebook)
    passed = notebook_parameters(source, parameters, live)
    with complete_folder(folder) as partial:
        start = Start.now()
        executed = partial / notebook.name
        error, trace = execute(source, executed, passed, timeout_s, cwd=notebook.parent)
        node = read_notebook(executed) if executed.exists() else source
        results = Results()
        if executed.exists():
            node.metadata.get("papermill", {}).update(
                input_path=notebook.name, output_path=notebook.name
            )
            _write_notebook(node, executed)
            # What was computed stays, whatever becomes of its tables and its page.
            try:
                results = collect(node)
                results.save(partial / RESULTS_FOLDER)
                export_html(node, executed.with_suffix(".html"), links=links)
            except Exception as problem:
                is_sentence = isinstance(problem, ValueError)
                what = str(problem) if is_sentence else f"{type(problem).__name__}: {problem}"
                error, trace = error or what, trace or traceback.format_exc()
        if error:
            write_text(partial / TRACEBACK_FILE, trace)
        kernel = {
            "name": node.metadata.kernelspec.name,
            "python": node.metadata.get("language_info", {}).get("version"),
        }
        record = describe_run(notebook, source, passed, start, error, results, kernel)
        record.save(partial)
    return record


def describe_run(
    notebook: Path,
    source: NotebookNode,
    passed: Mapping[str, Any],
    start: Start,
    error: str | None,
    results: Results,
    kernel: Mapping[str, str | None],
) -> RunRecord:
    """Return the record of a run of ``source``, the notebook at ``notebook``, with ``passed``.

    ``kernel`` has the name of the kernel and the version of its Python, which may be of another
    environment than this process; so far as they are known.
    """
    defaults = {name: p.default for name, p in read_parameters(source).items()}
    values = defaults | dict(passed)
    seed = values.get("seed")
    return RunRecord(
        notebook=notebook.name,
        title=notebook_title(source) or notebook.stem,
        status="failed" if error else "completed",
        parameters=values,
        given={name: value for name, value in passed.items() if name != "live"},
        seed=seed if isinstance(seed, int) else None,
        started=start.time.isoformat(timespec="seconds"),
        duration_s=round(time.monotonic() - start.clock_s, 3),
        fingerprint=fingerprint(source, passed),
        code=start.code,
        error=error,
        numbers={name: asdict(number) for name, number in results.numbers.items()},
        tables=list(results.tables),
        provenance=start.provenance | {"kernel": dict(kernel)},
    )


def _write_notebook(notebook: NotebookNode, path: Path) -> None:
    import nbformat

    write_text(path, nbformat.writes(notebook) + "\n")
