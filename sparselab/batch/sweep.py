"""Many runs: read what is asked for, run what is missing in parallel, and list all of it.

A sweep is a YAML file::

    title: Budgets and overlaps       # optional; of the index page
    output: runs/budgets              # optional; runs/<name of this file> unless given
    timeout_s: 600                    # optional; for one cell
    runs:
      - notebook: 01_checkpoint_placement.ipynb    # beside this file; may be a pattern: "*.ipynb"
        parameters: {length: 8192}                 # the same for all
        matrix:                                    # every combination
          budget: [2, 4, 8]
          source: [quality, mooncake_conversation]
      - notebook: 02_drift.ipynb
        sets:                                      # or one by one
          - {gamma: 0.9}
          - {gamma: 0.99, seed: 1}

Each run has a folder of its own, named after the notebook and its parameters, which appears only
when the run is complete. So a sweep that was killed is continued by starting it again: what is
there, and was made from the same notebook and parameters, stays; the rest is run.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparselab.batch.folders import check_replaceable, complete_folder, remove_abandoned
from sparselab.batch.index import write_index
from sparselab.batch.notebook import read_runnable
from sparselab.batch.record import TRACEBACK_FILE, RunRecord
from sparselab.batch.results import Results
from sparselab.batch.run import (
    DEFAULT_TIMEOUT_S,
    Start,
    describe_run,
    fingerprint,
    notebook_parameters,
)
from sparselab.batch.yaml_file import load_yaml
from sparselab.files import as_path, write_text
from sparselab.provenance import code_checksum
from sparselab.validation import check_choice, check_integer, check_number, nearest

LOCK_FILE = ".lock"
GRACE_S = 10.0  # a busy kernel is given 5 seconds to end by itself
RERUN = ("missing", "failed", "changed", "all")


@dataclass(frozen=True)
class PlannedRun:
    """One run that a sweep asks for, with the name of its folder and the parameters ``given``."""

    name: str
    notebook: Path
    given: dict[str, Any]
    fingerprint: str


@dataclass(frozen=True)
class Sweep:
    """What a sweep file asks for, with every parameter already checked."""

    title: str
    output: Path
    timeout_s: float
    runs: tuple[PlannedRun, ...]

    @property
    def links(self) -> dict[str, str]:
        """Where a page of this sweep finds the page of another notebook: its first run here."""
        links: dict[str, str] = {}
        for run in self.runs:
            page = f"../{run.name}/{run.notebook.stem}.html"
            links.setdefault(run.notebook.name, page)
        return links


def load_sweep(path: str | Path, output: str | Path | None = None) -> Sweep:
    """Read a sweep file; ``output`` overrides the folder that it names.

    A relative ``output`` counts from the working directory, a relative notebook from the file's
    folder. Raises ``ValueError`` or ``TypeError`` with one sentence for anything that does not
    fit: bad YAML, a key twice, unknown keys, no such notebook, parameters that a notebook does not
    have or of the wrong type, two equal runs, two notebooks of one name.
    """
    path = Path(path)
    content = load_yaml(path)
    _check_keys(path.name, content, ("title", "output", "timeout_s", "runs"), required=("runs",))
    timeout_s = check_number("timeout_s", content.get("timeout_s", DEFAULT_TIMEOUT_S), above=0)
    blocks = _check_list(f"{path.name}: runs", content["runs"])
    runs = []
    for number, block in enumerate(blocks, start=1):
        try:
            runs += _plan_block(block, path.parent)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{path.name}, runs[{number}]: {error}") from None
    _check_distinct(path.name, {run.notebook for run in runs})
    name, count = Counter(run.name for run in runs).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{path.name} asks {count} times for the same run: {name}.")
    return Sweep(
        title=str(content.get("title", path.stem)),
        output=Path(output or as_path("output", content.get("output", Path("runs") / path.stem))),
        timeout_s=timeout_s,
        runs=tuple(runs),
    )


def run_sweep(
    sweep: Sweep,
    jobs: int | None = None,
    rerun: str = "missing",
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, RunRecord]:
    """Run everything that ``sweep`` asks for and is not there yet; write its index page.

    ``jobs`` runs go at a time, each in processes of its own; unless given, as many as there are
    processors, at most 4. ``rerun="failed"`` repeats the failed ones too, ``"changed"`` also those
    that were made by other code of the lab than today's, ``"all"`` everything. ``report`` gets a
    line for each run that ends. Returns the record of every run by name, in the order asked for.

    Raises ``ValueError`` where another sweep is at work in the same folder.
    """
    from filelock import FileLock, Timeout

    if jobs is None:
        jobs = min(4, os.cpu_count() or 1)
    check_integer("jobs", jobs, minimum=1)
    check_choice("rerun", rerun, RERUN)
    sweep.output.mkdir(parents=True, exist_ok=True)
    try:
        # The system drops the lock with the process that holds it, however that ends.
        with FileLock(sweep.output / LOCK_FILE, blocking=False):
            remove_abandoned(sweep.output)
            records = _finished(sweep, rerun, code_checksum())
            try:
                _run_missing(sweep, records, jobs, report)
            finally:
                remove_abandoned(sweep.output)  # of workers that had to be killed
            ordered = {run.name: records[run.name] for run in sweep.runs}
            write_index(sweep.output, sweep.title, ordered)
    except Timeout:
        raise ValueError(f"another sweep is at work in {sweep.output}.") from None
    return ordered


def _finished(sweep: Sweep, rerun: str, code: str) -> dict[str, RunRecord]:
    """Return the records of the runs that need not be run (again)."""
    records = {}
    for run in sweep.runs:
        record = _readable_record(sweep.output / run.name)
        if record is not None and record.fingerprint == run.fingerprint:
            is_current = rerun != "changed" or record.code == code
            if rerun == "missing" or (rerun != "all" and record.completed and is_current):
                records[run.name] = record
    return records


def _readable_record(folder: Path) -> RunRecord | None:
    """Return a run's record; one of another release, or damaged, is as good as none.

    So is one whose files are gone: its run has to be made again.
    """
    try:
        record = RunRecord.load(folder)
    except ValueError:
        return None
    return None if record is None or record.missing_files(folder) else record


def _run_missing(
    sweep: Sweep, records: dict[str, RunRecord], jobs: int, report: Callable[[str], None]
) -> None:
    """Run what is not in ``records`` and add it there."""
    missing = [run for run in sweep.runs if run.name not in records]
    for run in missing:
        check_replaceable(sweep.output / run.name)
    if records:
        report(_describe_kept(records, len(sweep.runs)))
    workers = _Workers(sweep, jobs)
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        futures = {pool.submit(workers.run, run): run for run in missing}
        for done, future in enumerate(as_completed(futures), start=1):
            run, record = futures[future], future.result()
            records[run.name] = record
            outcome = "" if record.completed else f": {record.error}"
            report(
                f"[{done}/{len(missing)}] {record.status} in {record.duration_s:.1f} s: "
                f"{run.name}{outcome}"
            )
    except BaseException:
        workers.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _describe_kept(records: Mapping[str, RunRecord], asked: int) -> str:
    code = code_checksum()
    older = sum(record.code != code for record in records.values())
    note = f", {older} of them made by other code: --rerun changed repeats those" if older else ""
    return f"{len(records)} of {asked} runs are there already{note}"


class _Workers:
    """Starts a worker process for a run, and can end all of them."""

    def __init__(self, sweep: Sweep, jobs: int) -> None:
        self.sweep = sweep
        self.processes: set[subprocess.Popen[str]] = set()
        self.lock = threading.Lock()
        self.stopped = False
        self.environment = dict(os.environ)
        if jobs > 1:
            # Runs side by side share the processors; each using all of them would slow all down.
            threads = str(max(1, (os.cpu_count() or 1) // jobs))
            self.environment.setdefault("OMP_NUM_THREADS", threads)
            self.environment.setdefault("NUMBA_NUM_THREADS", threads)

    def run(self, run: PlannedRun) -> RunRecord:
        """Run one in a process of its own and return its record, also where the process dies."""
        folder = self.sweep.output / run.name
        arguments = {
            "notebook": str(run.notebook),
            "folder": str(folder),
            "parameters": run.given,
            "timeout_s": self.sweep.timeout_s,
            "links": self.sweep.links,
        }
        start = Start.now()
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as messages:
            code = self._wait(arguments, messages)
            messages.seek(0)
            trace = messages.read()
        if self.stopped:
            raise RuntimeError("the sweep is being stopped.")
        if code == 0:
            record = RunRecord.load(folder)
            if record is not None:
                return record
        error = f"its process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        return _record_lost_run(run, folder, start, error, trace)

    def _wait(self, arguments: Mapping[str, Any], messages: Any) -> int:
        with self.lock:
            if self.stopped:
                raise RuntimeError("the sweep is being stopped.")
            process = subprocess.Popen(
                [sys.executable, "-m", "sparselab.batch.worker"],
                stdin=subprocess.PIPE,
                stdout=messages,
                stderr=messages,
                text=True,
                env=self.environment,
                # Ctrl-C is for the sweep, which then ends its workers itself.
                start_new_session=True,
            )
            self.processes.add(process)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(arguments) + "\n")
            process.stdin.flush()  # and left open: the worker ends when it closes
            return process.wait()
        except BrokenPipeError:
            return process.wait()
        finally:
            with self.lock:
                self.processes.discard(process)

    def stop(self) -> None:
        """Ask every worker to end, which ends its kernel too; kill those that do not in time."""
        with self.lock:
            self.stopped = True
            processes = list(self.processes)
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + GRACE_S
        try:
            while any(p.poll() is None for p in processes) and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:  # at once, where Ctrl-C comes a second time
            for process in processes:
                process.kill()


def _record_lost_run(
    run: PlannedRun, folder: Path, start: Start, error: str, trace: str
) -> RunRecord:
    source = read_runnable(run.notebook)
    passed = notebook_parameters(source, run.given)
    kernel = {"name": source.metadata.kernelspec.name, "python": None}
    record = describe_run(run.notebook, source, passed, start, error, Results(), kernel)
    with complete_folder(folder) as partial:
        write_text(partial / TRACEBACK_FILE, trace)
        record.save(partial)
    return record


def _plan_block(block: Any, folder: Path) -> list[PlannedRun]:
    """Return the runs of one entry under ``runs``; notebooks lie in ``folder``."""
    if not isinstance(block, dict):
        raise TypeError(f"a mapping with the key 'notebook' is expected, got {block!r}.")
    _check_keys("it", block, ("notebook", "parameters", "matrix", "sets"), required=("notebook",))
    if "matrix" in block and "sets" in block:
        raise ValueError("give 'matrix' or 'sets', not both.")
    fixed = _check_mapping("parameters", block.get("parameters", {}))
    if "matrix" in block:
        matrix = _check_mapping("matrix", block["matrix"])
        axes = [_check_list(f"matrix: {name}", values) for name, values in matrix.items()]
        variations = [dict(zip(matrix, values, strict=True)) for values in itertools.product(*axes)]
    else:
        variations = [
            _check_mapping("sets", v) for v in _check_list("sets", block.get("sets", [{}]))
        ]
    return [
        run
        for notebook in _find_notebooks(folder, block["notebook"])
        for run in _plan_notebook(notebook, fixed, variations)
    ]


def _plan_notebook(
    notebook: Path, fixed: dict[str, Any], variations: list[dict[str, Any]]
) -> Iterator[PlannedRun]:
    source = read_runnable(notebook)
    for variation in variations:
        repeated = fixed.keys() & variation.keys()
        if repeated:
            raise ValueError(f"parameter {min(repeated)!r} is both fixed and varied.")
        try:
            passed = notebook_parameters(source, fixed | variation)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{notebook.name}: {error}") from None
        given = {name: passed[name] for name in fixed | variation}
        name = _folder_name(notebook.stem, given, variation)
        yield PlannedRun(name, notebook, given, fingerprint(source, passed))


def _folder_name(stem: str, given: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return a readable file name for each different ``given``, with ``shown`` spelt out."""
    if not given:
        return stem
    readable = "_".join(f"{name}-{value}" for name, value in shown.items())
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", readable)[:60].strip("-.")
    digest = hashlib.sha256(json.dumps(dict(given), sort_keys=True).encode()).hexdigest()[:8]
    return "__".join(part for part in (stem, readable, digest) if part)


def _find_notebooks(folder: Path, pattern: Any) -> list[Path]:
    if not isinstance(pattern, str):
        raise TypeError(f"notebook must be a file name or pattern, got {pattern!r}.")
    if not any(sign in pattern for sign in "*?["):
        return [folder / pattern]
    # Unlike Path.glob it takes absolute patterns, too.
    names = set(glob.glob(pattern, root_dir=folder, recursive=True))
    found = [folder / name for name in sorted(names) if name.endswith(".ipynb")]
    if not found:
        raise ValueError(f"no notebook in {folder} matches {pattern!r}.")
    return found


def _check_distinct(where: str, notebooks: set[Path]) -> None:
    """Raise ``ValueError`` where two notebooks have one name, as their runs' folders would."""
    seen: dict[str, Path] = {}
    for notebook in sorted(notebooks):
        other = seen.setdefault(notebook.stem.casefold(), notebook)
        if other.resolve() != notebook.resolve():
            raise ValueError(
                f"{where} asks for two notebooks of one name, {other} and {notebook}; "
                "rename one or give it a sweep of its own."
            )


def _check_keys(
    where: str, content: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...]
) -> None:
    for key in content:
        if key not in known:
            hint = nearest(key, known)
            raise ValueError(
                f"{where} has an unknown key {key!r}{hint}; known: {', '.join(known)}."
            )
    for key in required:
        if key not in content:
            raise ValueError(f"{where} needs the key {key!r}.")


def _check_mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a mapping from parameter names to values, got {value!r}.")
    return value


def _check_list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name} must be a list with at least one entry, got {value!r}.")
    return value
