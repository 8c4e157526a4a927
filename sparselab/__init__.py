"""sparselab: where to checkpoint the recurrent state of hybrid and recurrent LLMs.

A serving engine can skip work on a shared prompt prefix only from a position where the recurrent
state was checkpointed. This package computes the provably optimal positions for given traffic,
replays real requests through a simulated cache, and checks resumption on a live model::

    import sparselab as sl

    overlaps = sl.load_overlap("quality")
    frontier = sl.optimal_frontier(overlaps, max_budget=16)
    frontier.schedule(4).positions

Only NumPy is imported with it; everything heavier is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sparselab.optimal import Frontier, optimal_frontier
from sparselab.overlap import OverlapDistribution

# `pareto`, like `recompute`, shares its name with its module. It is imported here and not on
# first use, since whoever imported the module first would bind that under the name.
from sparselab.pareto import pareto
from sparselab.placement import Policy, Schedule, place, policies, register_policy
from sparselab.recompute import (
    PrefillCostModel,
    expected_recompute,
    recompute,
    reduction_factor,
    total_recompute,
    worst_case_recompute,
)

if TYPE_CHECKING:
    from sparselab import architecture, estimators, replay, simulator, workloads
    from sparselab.architecture import HybridArchitecture
    from sparselab.shipped_data import datasets, load_overlap
    from sparselab.simulator import simulate

__version__ = "0.1.0"

_LAZY_MODULES = ("architecture", "estimators", "replay", "simulator", "workloads")
_LAZY_NAMES = {
    "HybridArchitecture": "sparselab.architecture",
    "datasets": "sparselab.shipped_data",
    "load_overlap": "sparselab.shipped_data",
    "simulate": "sparselab.simulator",
}

__all__ = [
    "Frontier",
    "HybridArchitecture",
    "OverlapDistribution",
    "Policy",
    "PrefillCostModel",
    "Schedule",
    "architecture",
    "datasets",
    "estimators",
    "expected_recompute",
    "load_overlap",
    "optimal_frontier",
    "pareto",
    "place",
    "policies",
    "recompute",
    "reduction_factor",
    "register_policy",
    "replay",
    "simulate",
    "simulator",
    "total_recompute",
    "workloads",
    "worst_case_recompute",
]


def __getattr__(name: str) -> Any:
    """Import the heavier parts on first use (PEP 562), so that ``import sparselab`` stays quick."""
    if name in _LAZY_MODULES:
        return importlib.import_module(f"sparselab.{name}")
    if name in _LAZY_NAMES:
        value = getattr(importlib.import_module(_LAZY_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sparselab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
