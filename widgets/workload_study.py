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
from sparselab.simulator import SimulationResult
from sparselab.workloads import Workload
from widgets.workload_source import WorkloadSource

BLOCK_SIZES = (64, 128, 256, 512, 1024)
BUDGETS = (1, 2, 4, 8, 16)
HISTOGRAM, ENTRY_AWARE = "optimal, histogram", "optimal, entry-aware"

#: Label of a family of runs -> arguments of :func:`sparselab.simulate`. Those that take a budget
#: run once for each; blocks run once for each size, as ``block 64`` and so on.
FAMILIES: Mapping[str, dict[str, Any]] = {
    "no_cache": {},
    "kv_only": {},
    "last": {},
    "branch": {},
    "sqrt": {},
    "log": {},
    "block": {},
    "balanced": {},
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


def run_names() -> tuple[str, ...]:
    """Return the name of every run of a study, in the order of its table."""
    return tuple(name for family in FAMILIES for name in _names(family))


def run_arguments(run: str) -> tuple[str, dict[str, Any]]:
    """Return the family of a run, and the arguments of :func:`sparselab.simulate` that make it."""
    for family, arguments in FAMILIES.items():
        for name, own in _names(family).items():
            if name == run:
                return family, {**arguments, **own}
    raise ValueError(f"unknown run {run!r}; known: {', '.join(run_names())}.")


def _names(family: str) -> dict[str, dict[str, Any]]:
    """Return the names of a family's runs and the arguments in which they differ."""
    if family == "block":
        return {f"block {size}": {"block_size": size} for size in BLOCK_SIZES}
    policy = FAMILIES[family].get("policy", family)
    if "budget" not in sl.policies()[policy].needs:
        return {family: {}}
    return {f"{family}, {budget}": {"budget": budget} for budget in BUDGETS}


def study_workload(workload: Workload, n_jobs: int = 1, **settings: Any) -> WorkloadStudy:
    """Replay a workload under every policy; ``settings`` go to :func:`sparselab.simulate`."""
    families = {name: family for family in FAMILIES for name in _names(family)}
    runs = sl.pareto(
        workload,
        {name: {"policy": family, **run_arguments(name)[1]} for name, family in families.items()},
        n_jobs=n_jobs,
        show_progress=False,
        **settings,
    ).rename(columns={"label": "run"})
    runs.insert(1, "family", runs["run"].map(families))
    return WorkloadStudy(workload, workload.overlap_samples(), runs, settings)


@lru_cache(maxsize=8)
def study_source(source: WorkloadSource, capacity: int, align: int, capture: str) -> WorkloadStudy:
    """Return the study of a panel's requests; kept, since a panel asks again and again."""
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
