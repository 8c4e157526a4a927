"""One run of one notebook: execute it, keep what it made, say how it went.

A run's folder holds the executed notebook, the same as a self-contained page, the published
tables as Parquet, and ``run.json`` (:class:`RunRecord`). The folder appears under its name only
when it is complete; a run that is cut short leaves at most a hidden ``.partial-...`` folder.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import logging
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.batch.parameters import check_parameters, read_parameters
from sparselab.batch.results import Results, collect
from sparselab.export import export_html, notebook_title, read_notebook
from sparselab.files import write_json, write_text
from sparselab.provenance import provenance
from sparselab.validation import check_number

if TYPE_CHECKING:
    from nbformat import NotebookNode

DEFAULT_TIMEOUT_S = 600.0
PARTIAL_PREFIX = ".partial-"
RECORD_FILE = "run.json"
TRACEBACK_FILE = "traceback.txt"
RESULTS_FOLDER = "results"

# Packages whose source decides what a notebook computes.
CODE_PACKAGES = ("sparselab", "widgets")


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` says about a run.

    ``parameters`` are all of the notebook's, ``given`` those that were set for this run (``live``
    apart). ``seed`` repeats the parameter of that name where there is one. ``status`` is
    ``"completed"`` or ``"failed"``; ``error`` is then one line. ``numbers`` maps the name of a
    published number to its value and unit. ``fingerprint`` identifies notebook and parameters,
    ``code`` the source of the lab.
    """

    notebook: str
    title: str
    status: str
    parameters: dict[str, Any]
    given: dict[str, Any]
    seed: int | None
    started: str
    duration_s: float
    fingerprint: str
    code: str
    error: str | None = None
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        """Whether every cell ran and everything was kept."""
        return self.status == "completed"

    @classmethod
    def load(cls, folder: str | Path) -> RunRecord | None:
        """Return the record in ``folder``, or ``None`` where there is no such file.

        Raises ``ValueError`` for a file that is not a run's record.
        """
        path = Path(folder) / RECORD_FILE
        if not path.is_file():
            return None
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a run's record ({error}).") from None

    def save(self, folder: str | Path) -> None:
        """Write ``run.json`` into ``folder``."""
        write_json(Path(folder) / RECORD_FILE, asdict(self))


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


@functools.cache
def code_checksum() -> str:
    """Return a checksum over the source of the lab, as it is when this process first asks."""
    digest = hashlib.sha256()
    for package in CODE_PACKAGES:
        found = importlib.util.find_spec(package)
        for root in (found.submodule_search_locations or []) if found else []:
            for path in sorted(Path(root).rglob("*.py")):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0")
                digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


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
    for a ``folder`` that holds something else than a run.
    """
    notebook = Path(notebook)
    check_replaceable(folder)
    check_number("timeout_s", timeout_s, above=0)
    source = read_notebook(notebook)
    passed = notebook_parameters(source, parameters, live)
    with complete_folder(folder) as partial:
        started, clock = datetime.now(UTC), time.monotonic()
        executed = partial / notebook.name
        error, trace = _execute(source, executed, passed, timeout_s, cwd=notebook.parent)
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
        record = describe_run(
            notebook,
            source,
            passed,
            started=started,
            duration_s=time.monotonic() - clock,
            error=error,
            results=results,
        )
        record.save(partial)
    return record


def describe_run(
    notebook: Path,
    source: NotebookNode,
    passed: Mapping[str, Any],
    started: datetime,
    duration_s: float,
    error: str | None,
    results: Results,
) -> RunRecord:
    """Return the record of a run of ``source``, the notebook at ``notebook``, with ``passed``."""
    defaults = {name: p.default for name, p in read_parameters(source).items()}
    values = defaults | dict(passed)
    return RunRecord(
        notebook=notebook.name,
        title=notebook_title(source) or notebook.stem,
        status="failed" if error else "completed",
        parameters=values,
        given={name: value for name, value in passed.items() if name != "live"},
        seed=values.get("seed"),
        started=started.isoformat(timespec="seconds"),
        duration_s=round(duration_s, 3),
        fingerprint=fingerprint(source, passed),
        code=code_checksum(),
        error=error,
        numbers={name: asdict(number) for name, number in results.numbers.items()},
        tables=list(results.tables),
        provenance=provenance(),
    )


def _execute(
    source: NotebookNode, target: Path, passed: Mapping[str, Any], timeout_s: float, cwd: Path
) -> tuple[str | None, str]:
    """Execute into ``target``; return what went wrong in one line, if anything, and a traceback."""
    import papermill
    from nbconvert.filters import strip_ansi
    from papermill.exceptions import PapermillExecutionError

    # It cannot read annotations such as `str | None`, and warns of parameters that were checked.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        with _private_kernel() as config:
            papermill.execute_notebook(
                source,
                # papermill fills in {names} in a path; this one is meant as it stands.
                str(target).replace("{", "{{").replace("}", "}}"),
                parameters=dict(passed),
                progress_bar=False,
                cwd=cwd.resolve(),
                execution_timeout=timeout_s,
                config=config,
            )
    except PapermillExecutionError as error:
        trace = strip_ansi("\n".join(error.traceback))
        return f"cell [{error.exec_count}] raised {error.ename}: {error.evalue}", trace
    except Exception as error:  # a time-out, a kernel that died or would not start
        first_line = next(iter(str(error).strip().splitlines()), "")
        return f"{type(error).__name__}: {first_line}", traceback.format_exc()
    return None, ""


@contextmanager
def _private_kernel() -> Iterator[Any]:
    """Give a configuration that lets the kernel talk through socket files of its own.

    TCP ports, the default and on Windows the only way, are chosen before they are bound: kernels
    started at the same moment may pick the same one, and any user of the machine can connect.
    """
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="sparselab-") as folder:
        sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
        yield Config({} if os.name == "nt" else {"KernelManager": sockets})


def _write_notebook(notebook: NotebookNode, path: Path) -> None:
    import nbformat

    write_text(path, nbformat.writes(notebook) + "\n")


def check_replaceable(folder: str | Path) -> None:
    """Raise ``ValueError`` for a folder with something else in it than a run, or for a file."""
    folder = Path(folder)
    if not folder.exists():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError(f"the run's folder {folder} is a file or a link; name another folder.")
    if any(folder.iterdir()) and not (folder / RECORD_FILE).is_file():
        raise ValueError(
            f"the run's folder {folder} holds something else than a run; name another folder."
        )


@contextmanager
def complete_folder(target: str | Path) -> Iterator[Path]:
    """Give an empty hidden folder beside ``target`` that becomes ``target`` when the body succeeds.

    An older ``target`` is removed only then. If the body raises, the hidden folder is removed.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{PARTIAL_PREFIX}{target.name}-"))
    try:
        yield partial
        partial.chmod(0o755)
        if target.exists():
            # A folder cannot replace another in one step; out of the way first, then in.
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{PARTIAL_PREFIX}old-"))
            target.rename(old / target.name)
            partial.rename(target)
            shutil.rmtree(old)
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
