"""One workload under many policies, as plain data: what the workload panel computes and draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sparselab as sl
from sparselab.estimators import DecayedHistogram, EntryAware
from sparselab.pareto import non_dominated
from sparselab.simulator import FILLED_OPTIONS, SimulationResult
from sparselab.workloads import Workload
from widgets.workload_source import WorkloadSource

BLOCK_SIZES = (64, 128, 256, 512, 1024)
BUDGETS = (1, 2, 4, 8, 16)
HISTOGRAM, ENTRY_AWARE = "optimal, histogram", "optimal, entry-aware"

# In this order in the legend; a policy that somebody registered comes after them.
POLICIES = ("no_cache", "kv_only", "last", "branch", "sqrt", "log", "block", "balanced")
# Label of a family of runs -> arguments of `simulate`.
OPTIMA: Mapping[str, dict[str, Any]] = {
    HISTOGRAM: {
        "policy": "optimal",
        "estimator": DecayedHistogram(0.99),
        "replan_every": 10,
    },
    ENTRY_AWARE: {
        "policy": "optimal",
        "estimator": EntryAware(DecayedHistogram(0.99), strength=0.05),
    },
}


@dataclass(frozen=True, eq=False)
class WorkloadStudy:
    """A workload, how its requests overlap, and what every policy saves of that.

    Attributes:
        workload: the requests, in the order in which they were replayed.
        overlaps: tokens that each shares with the best earlier one, nothing evicted.
        runs: one row a simulation: ``run`` (its name), ``family``, and the columns of
            :func:`sparselab.pareto`.
        settings: the arguments of :func:`sparselab.simulate` that all runs share.
    """

    workload: Workload
    overlaps: NDArray[np.int64]
    runs: pd.DataFrame
    settings: Mapping[str, Any]

    def simulate(self, run: str) -> SimulationResult:
        """Return the whole simulation of one run, by its name."""
        family, arguments = run_arguments(run)
        return sl.simulate(self.workload, **{"policy": family, **arguments, **self.settings})


def families() -> dict[str, dict[str, Any]]:
    """Return every family of runs by its label, with arguments of :func:`sparselab.simulate`.

    The registered policies that need no option, then the optimum as two estimators plan it. Those
    that take a budget run once for each; blocks run once for each size, as ``block 64`` and so on.
    """
    known = sl.policies()
    names = [name for name in dict.fromkeys([*POLICIES, *known]) if name != "optimal"]
    usable = (name for name in names if FILLED_OPTIONS.issuperset(known[name].required_options))
    return {**{name: {} for name in usable}, **OPTIMA}


def run_names() -> tuple[str, ...]:
    """Return the name of every run of a study, in the order of its table."""
    return tuple(name for family in families() for name in _names(family))


def run_arguments(run: str) -> tuple[str, dict[str, Any]]:
    """Return the family of a run, and the arguments of :func:`sparselab.simulate` that make it."""
    for family, arguments in families().items():
        for name, own in _names(family).items():
            if name == run:
                return family, {**arguments, **own}
    raise ValueError(f"unknown run {run!r}; known: {', '.join(run_names())}.")


def _names(family: str) -> dict[str, dict[str, Any]]:
    """Return the names of a family's runs and the arguments in which they differ."""
    if family == "block":
        return {f"block {size}": {"block_size": size} for size in BLOCK_SIZES}
    policy = OPTIMA[family]["policy"] if family in OPTIMA else family
    if "budget" not in sl.policies()[policy].needs:
        return {family: {}}
    return {f"{family}, {budget}": {"budget": budget} for budget in BUDGETS}


def study_workload(workload: Workload, n_jobs: int = 1, **settings: Any) -> WorkloadStudy:
    """Replay a workload under every policy; ``settings`` go to :func:`sparselab.simulate`."""
    family_of = {name: family for family in families() for name in _names(family)}
    runs = sl.pareto(
        workload,
        {name: {"policy": family, **run_arguments(name)[1]} for name, family in family_of.items()},
        n_jobs=n_jobs,
        show_progress=False,
        **settings,
    ).rename(columns={"label": "run"})
    runs.insert(1, "family", runs["run"].map(family_of))
    return WorkloadStudy(workload, workload.overlap_samples(), runs, settings)


@lru_cache(maxsize=8)
def study_source(
    source: WorkloadSource, capacity: int, align: int, capture: str, _runs: tuple[str, ...]
) -> WorkloadStudy:
    """Return the study of a panel's requests; kept, since a panel asks again and again.

    ``_runs`` are :func:`run_names`: a policy registered since then makes another study.
    """
    return study_workload(source.workload, capacity=capacity, align=align, capture=capture)


def held_gib(runs: pd.DataFrame, architecture: sl.HybridArchitecture) -> NDArray[np.float64]:
    """Return the most GiB of KV and checkpoints that each run held at once, for a model."""
    weights = (architecture.kv_bytes_per_token, architecture.checkpoint_bytes)
    most = [max(int(np.dot(moment, weights)) for moment in moments) for moments in runs["fullest"]]
    return np.array(most) / 2**30


def recomputed_share(runs: pd.DataFrame) -> NDArray[np.float64]:
    """Return what each run did not resume, as a share of its prompt tokens."""
    return (runs["recomputed_tokens"] / runs["prompt_tokens"]).to_numpy()


def computed_share(runs: pd.DataFrame) -> NDArray[np.float64]:
    """Return all tokens that each run computed, also only to capture, over its prompt tokens."""
    extra = runs["extra_prefill_tokens"] / runs["prompt_tokens"]
    return recomputed_share(runs) + extra.to_numpy()


def not_dominated(runs: pd.DataFrame, memory: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the runs that no other one beats in ``memory`` or in tokens computed, at no loss."""
    return non_dominated(memory, runs["recomputed_tokens"] + runs["extra_prefill_tokens"])
