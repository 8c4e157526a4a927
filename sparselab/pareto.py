"""Pareto frontiers: a grid of policies and budgets over one workload, and what is not dominated."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.files import open_text, parse_json, write_json
from sparselab.placement import expand
from sparselab.progress import progress
from sparselab.provenance import code_checksum, provenance
from sparselab.recompute import prefill_cost_values
from sparselab.regret import clairvoyant_cost, overlap_cost
from sparselab.simulator import simulate
from sparselab.validation import check_integer

if TYPE_CHECKING:
    import pandas

    from sparselab.workloads.workload import Workload

# Looked up when the code is loaded: it is this code that runs, whatever is edited afterwards.
CODE = code_checksum(("sparselab",))

#: What each row has, besides the other quantities of a simulation's summary.
COLUMNS = {
    *("label", "policy", "budget", "seed", "checkpoints_per_entry", "cost", "extra_cost"),
    *("overlap_cost", "clairvoyant_cost", "regret", "fullest"),
}

#: What :func:`pareto` runs unless told otherwise: the policies of the paper.
DEFAULT_POLICIES = ("kv_only", "last", "branch", "block", "sqrt", "log", "balanced", "optimal")


def pareto(
    workload: Workload,
    policies: Sequence[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_POLICIES,
    budgets: Iterable[int] = (1, 2, 4, 8, 16),
    seeds: Iterable[int] = (),
    folder: str | Path | None = None,
    n_jobs: int = 1,
    dask: str | None = None,
    show_progress: bool = True,
    **options: Any,
) -> pandas.DataFrame:
    """Simulate every policy at every budget; return one row a run, the non-dominated ones marked.

    Args:
        workload: the requests.
        policies: names, or a mapping from a label of your own to arguments of
            :func:`sparselab.simulate` that belong to it, such as
            ``{"blocks of 64": {"policy": "block", "block_size": 64}}``; the label is the policy
            where none is named. A policy that ignores the budget runs once, and so does one whose
            arguments name a budget.
        budgets: checkpoints an entry may hold.
        seeds: interleave the workload with each of these and run the grid on each; none keeps the
            requests in their order. For a workload of several groups without arrivals of its own.
        folder: where each finished run is kept as a JSON file. Called again with the same
            arguments by the same code, only what is missing there is run. A file that is damaged
            is reported and made again.
        n_jobs: processes, -1 for one a core (joblib's counting).
        dask: the address of a running Dask scheduler, such as ``"tcp://10.0.0.1:8786"``, to run on
            instead (extra ``dask``).
        show_progress: report how many runs are done.
        **options: further arguments of :func:`sparselab.simulate` for all runs.

    Returns:
        A DataFrame, in grid order: ``label``, ``policy``, ``budget`` (missing where ignored),
        ``seed`` (missing without), every quantity of ``summary``; ``overlap_cost``,
        ``clairvoyant_cost`` and their difference ``regret`` (see `regret.py`, also on policies that
        ignore the budget); ``non_dominated``: no run of the same seed has fewer or as many
        checkpoints an entry and computes less or as much (``cost + extra_cost``), and one of them
        better; ``fullest``: the moments at which the cache held the most, as pairs of KV tokens and
        checkpoints; whatever those weigh, no other moment held more bytes.
    """
    import pandas

    if check_integer("n_jobs", n_jobs) == 0:
        raise ValueError("n_jobs must not be 0: a number of processes, or -1 for one a core.")
    workloads = _interleaved(workload, seeds)
    options = dict(_with_cost_values(options, workload))
    cells = [
        {"label": label, "seed": seed, **options, **_with_cost_values(arguments, workload)}
        for seed in workloads
        for label, arguments in _grid(policies, budgets)
    ]
    paths = _paths(folder, workloads, cells)
    rows = {}
    for number, cell in enumerate(cells):
        row = _kept_row(paths[number], cell)
        if row is not None:
            rows[number] = row
    missing = [number for number in range(len(cells)) if number not in rows]
    finished = _run_cells(cells, missing, workloads, n_jobs, dask)
    label = f"simulations of {workload.name}"
    made_by = provenance() if folder is not None else {}
    for number, row in progress(finished, label, total=len(missing), enabled=show_progress):
        rows[number] = row
        path = paths[number]
        if path is not None:
            write_json(path, {"row": row, **made_by})
    frame = pandas.DataFrame([rows[number] for number in range(len(cells))])
    frame = frame.astype({"budget": "Int64", "seed": "Int64"})
    frame["non_dominated"] = False
    for _, runs in frame.groupby("seed", dropna=False):
        frame.loc[runs.index, "non_dominated"] = non_dominated(
            runs["checkpoints_per_entry"], runs["cost"] + runs["extra_cost"]
        )
    return frame


def non_dominated(first: ArrayLike, second: ArrayLike) -> NDArray[np.bool_]:
    """Mark the points to which no other is better in one coordinate and no worse in the other.

    Smaller is better in both. Equal points are marked alike. O(n log n).
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"first and second must be equally long and one-dimensional, got {x.shape}, {y.shape}."
        )
    order = np.lexsort((y, x))
    marked = np.zeros(x.size, dtype=bool)
    best_x, best_y = np.inf, np.inf
    for at in order:
        if y[at] < best_y or (y[at] == best_y and x[at] == best_x):
            marked[at] = True
            best_x, best_y = x[at], y[at]
    return marked


def _interleaved(workload: Workload, seeds: Iterable[int]) -> dict[int | None, Workload]:
    seeds = [check_integer("seeds", seed, minimum=0) for seed in seeds]
    if not seeds:
        return {None: workload}
    if len(seeds) > 1 and len({request.group for request in workload}) == 1:
        raise ValueError(
            f"seeds interleave groups, but all requests of {workload.name!r} are of one: every "
            "seed would give the same; leave seeds out."
        )
    return {seed: workload.interleave(seed) for seed in seeds}


def _with_cost_values(options: Mapping[str, Any], workload: Workload) -> Mapping[str, Any]:
    """Replace a prefill-cost function by its values: these travel to other processes, and hash."""
    if options.get("prefill_cost") is None:
        return options
    longest = int(workload.lengths().max())
    return {**options, "prefill_cost": prefill_cost_values(options["prefill_cost"], longest)}


def _grid(
    policies: Sequence[str] | Mapping[str, Mapping[str, Any]], budgets: Iterable[int]
) -> list[tuple[str, dict[str, Any]]]:
    """Return ``(label, arguments of simulate)`` of every run, all checked before any starts."""
    if isinstance(policies, str):
        raise TypeError(f"policies must be a list or a mapping, got the text {policies!r}.")
    if not isinstance(policies, Mapping):
        policies = {name: {} for name in policies}
    budgets = [check_integer("budgets", budget, minimum=0) for budget in budgets]
    runs = []
    for label, given in policies.items():
        arguments = {"policy": label, **given}
        own = [given["budget"]] if "budget" in given else budgets
        for _, budget in expand([arguments["policy"]], own):
            runs.append((label, arguments if budget is None else {**arguments, "budget": budget}))
    if not runs:
        raise ValueError("policies and budgets must not be empty: there is nothing to run.")
    return runs


def _paths(
    folder: str | Path | None,
    workloads: Mapping[int | None, Workload],
    cells: list[dict[str, Any]],
) -> list[Path | None]:
    """Return where each run is kept: named by a hash of requests, arguments and code."""
    if folder is None:
        return [None] * len(cells)
    import joblib

    prints = {seed: joblib.hash(workload.requests) for seed, workload in workloads.items()}
    return [
        Path(folder) / f"{joblib.hash([CODE, prints[cell['seed']], cell])}.json" for cell in cells
    ]


def _kept_row(path: Path | None, cell: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the row of the run ``cell`` that is kept at ``path``; ``None`` where it has to be run.

    A file that holds no such row is as good as none; a warning says so.
    """
    if path is None or not path.exists():
        return None
    try:
        with open_text(path) as stream:
            content = parse_json(stream.read(), path)
        row = content.get("row") if isinstance(content, dict) else None
        if isinstance(row, dict) and row.keys() >= COLUMNS and row["label"] == cell["label"]:
            return row
        problem = f"{path} holds no row of a run."
    except ValueError as error:
        problem = str(error)
    warnings.warn(f"{problem} The run is made again.", stacklevel=3)  # at who calls pareto
    return None


def _run_cells(
    cells: list[dict[str, Any]],
    missing: list[int],
    workloads: Mapping[int | None, Workload],
    n_jobs: int,
    dask: str | None,
) -> Iterable[tuple[int, dict[str, Any]]]:
    """Run the missing cells and yield ``(number, row)`` as they finish."""
    import joblib

    with _dask_backend(dask):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from parallel(
            joblib.delayed(_run_cell)(number, cells[number], workloads[cells[number]["seed"]])
            for number in missing
        )


@contextmanager
def _dask_backend(address: str | None) -> Iterator[None]:
    """Let joblib run on the Dask cluster at ``address`` meanwhile, or as usual without one."""
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ValueError(f"dask={address!r} needs Dask: pip install 'sparselab[dask]'.") from None
    import joblib

    with Client(address), joblib.parallel_config("dask"):
        yield


def _run_cell(
    number: int, cell: Mapping[str, Any], workload: Workload
) -> tuple[int, dict[str, Any]]:
    arguments = {name: value for name, value in cell.items() if name not in ("label", "seed")}
    result = simulate(workload, **arguments)
    actual, least = overlap_cost(result), clairvoyant_cost(result)
    return number, {
        "label": cell["label"],
        "policy": cell["policy"],
        "budget": result.parameters["budget"],
        "seed": cell["seed"],
        **result.summary,
        "overlap_cost": actual,
        "clairvoyant_cost": least,
        "regret": actual - least,
        "fullest": _fullest(result.requests),
    }


def _fullest(requests: pandas.DataFrame) -> list[list[int]]:
    """Return the measured moments to which no other one holds more KV or more checkpoints."""
    held = requests.loc[requests["measured"], ["retained_kv_tokens", "retained_checkpoints"]]
    pairs = np.unique(held.to_numpy(), axis=0)
    return pairs[non_dominated(-pairs[:, 0], -pairs[:, 1])].tolist()
