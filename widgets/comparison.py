"""Several policies on one entry: their schedules, costs and frontiers, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sparselab as sl
from sparselab.recompute import prefill_cost_values, recompute_without_cache
from widgets.theme import OWN

# A power of two as the largest budget of a frontier: nearby budgets then share the solution.
SMALLEST_MAX_BUDGET = 16


@dataclass(frozen=True)
class Row:
    """One policy: its schedule and what it costs, in the comparison's unit.

    Attributes:
        name: the policy, or ``"your own"``.
        schedule: where its checkpoints stand.
        expected: ``E[r]``.
        worst: ``max_t r(t; C)``.
        reduction: ``E[r]`` without a cache over ``E[r]``; infinite if nothing is left.
        optimum: the smallest ``E[r]`` that as many checkpoints can reach, or ``None`` where they
            are more than the frontier covers.
    """

    name: str
    schedule: sl.Schedule
    expected: float
    worst: float
    reduction: float
    optimum: float | None

    @property
    def excess(self) -> float | None:
        """``E[r]`` above the optimum of as many checkpoints, as a fraction of it (0.1 = 10 %)."""
        if self.optimum is None:
            return None
        if self.optimum == 0:
            return 0.0 if self.expected == 0 else float("inf")
        return max(0.0, self.expected / self.optimum - 1.0)


@dataclass(frozen=True)
class Comparison:
    """What the placement figures draw.

    Attributes:
        distribution: the expected overlaps.
        source: what they are, in words.
        budget: the checkpoints allowed.
        align: the grid they stand on, in tokens.
        cost: ``G(0..N)``, shape ``(N + 1,)``.
        unit: what ``G`` counts: ``"tokens"`` or ``"FLOPs"``.
        rows: one a policy, in the order asked for, ``your own`` last.
        frontier: the optimum for every budget up to the next power of two.
        curves: for each policy that takes a budget, ``(checkpoints, E[r])`` for every budget that
            the frontier covers. On a coarse grid there may be fewer checkpoints than allowed.
    """

    distribution: sl.OverlapDistribution
    source: str
    budget: int
    align: int
    cost: NDArray[Any]
    unit: str
    rows: tuple[Row, ...]
    frontier: sl.Frontier = field(repr=False)
    curves: Mapping[str, tuple[NDArray[np.int32], NDArray[np.float64]]] = field(repr=False)

    @property
    def length(self) -> int:
        """Tokens in the entry."""
        return self.distribution.length

    def row(self, name: str) -> Row:
        """Return the row of a policy; ``KeyError`` if it is not shown."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a policy: checkpoints, expected and worst cost, reduction, positions."""
        return pd.DataFrame(
            {
                "policy": [row.name for row in self.rows],
                "checkpoints": [len(row.schedule) for row in self.rows],
                f"expected_recompute_{self.unit.lower()}": [row.expected for row in self.rows],
                f"worst_case_{self.unit.lower()}": [row.worst for row in self.rows],
                "reduction_factor": [row.reduction for row in self.rows],
                "above_optimum": [row.excess for row in self.rows],
                "positions": [row.schedule.positions.tolist() for row in self.rows],
            }
        )


def compare(
    distribution: sl.OverlapDistribution,
    budget: int,
    policies: Sequence[str],
    align: int = 1,
    prefill_cost: NDArray[Any] | None = None,
    unit: str = "tokens",
    own: Sequence[int] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    source: str = "overlaps",
) -> Comparison:
    """Place with every policy and price the schedules.

    Args:
        distribution: the expected overlaps; its length is the entry's.
        budget: checkpoints allowed, for the policies that take a budget.
        policies: names in the registry.
        align: the grid in tokens; ``own`` positions are floored to it, as every policy's are.
        prefill_cost: ``G(0..N)``, or ``None`` for tokens.
        unit: what ``prefill_cost`` counts.
        own: positions of a schedule of the reader's, as an extra row.
        options: for a policy, its own options, e.g. ``{"block": {"block_size": 512}}``.
        source: what the overlaps are, in words.

    Raises:
        ValueError, TypeError: as `sparselab.place` does.
    """
    length = distribution.length
    # Tokens are the solver's default, and exact; a dense array would give the same, slower.
    frontier = _frontier(distribution, _max_budget(budget), align, _Key(prefill_cost))
    without = recompute_without_cache(distribution, prefill_cost)
    schedules = {}
    for name in policies:
        if name == "optimal":
            schedules[name] = frontier.schedule(budget)
            continue
        arguments = dict((options or {}).get(name, {}))
        schedules[name] = sl.place(
            name, length, budget, distribution, align, prefill_cost, **arguments
        )
    if own is not None:
        schedules[OWN] = own_schedule(own, length, align)
    return Comparison(
        distribution,
        source,
        budget,
        align,
        prefill_cost_values(prefill_cost, length),
        unit,
        tuple(
            _price(name, schedule, distribution, prefill_cost, frontier, without)
            for name, schedule in schedules.items()
        ),
        frontier,
        {
            name: _curve(name, distribution, frontier, _Key(prefill_cost))
            for name in policies
            if "budget" in sl.policies()[name].needs
        },
    )


def own_schedule(positions: Sequence[int], length: int, align: int = 1) -> sl.Schedule:
    """Return positions in any order as a schedule: floored to the grid, 0 and doubles dropped."""
    checked = sl.Schedule(np.unique(np.asarray(positions, dtype=np.int64)), length, OWN)
    aligned = np.unique(checked.positions // align * align)
    return sl.Schedule(aligned[aligned > 0], length, OWN)


def _max_budget(budget: int) -> int:
    largest = SMALLEST_MAX_BUDGET
    while largest < budget:
        largest *= 2
    return largest


class _Key:
    """An array that may be ``None``, hashable by its bytes so that solutions can be kept."""

    def __init__(self, values: NDArray[Any] | None) -> None:
        self.values = values
        self._digest = None if values is None else hash(values.tobytes())

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        if self.values is None or other.values is None:
            return self.values is other.values
        return self._digest == other._digest and np.array_equal(self.values, other.values)


# Only the last solutions are kept: one takes 4 bytes for each depth and budget.
@lru_cache(maxsize=2)
def _frontier(
    distribution: sl.OverlapDistribution, max_budget: int, align: int, cost: _Key
) -> sl.Frontier:
    return sl.optimal_frontier(distribution, max_budget, align, cost.values)


@lru_cache(maxsize=8)
def _curve(
    policy: str, distribution: sl.OverlapDistribution, frontier: sl.Frontier, cost: _Key
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return checkpoints and ``E[r]`` for every budget: a line through a few would miss others."""
    if policy == "optimal":
        return np.arange(frontier.max_budget + 1, dtype=np.int32), frontier.expected
    schedules = [
        sl.place(policy, distribution.length, m, distribution, frontier.align, cost.values)
        for m in range(frontier.max_budget + 1)
    ]
    checkpoints = np.array([len(schedule) for schedule in schedules], dtype=np.int32)
    return checkpoints, _expected_of_each(schedules, distribution, cost.values)


def _expected_of_each(
    schedules: Sequence[sl.Schedule],
    distribution: sl.OverlapDistribution,
    prefill_cost: NDArray[Any] | None,
) -> NDArray[np.float64]:
    """Return ``E[r]`` of each schedule, without a walk over all depths for each.

    Of ``E[G(t)]`` each checkpoint ``c`` saves ``G(c)`` less ``G`` of the one before it, for all
    requests that share at least ``c`` tokens.
    """
    cost = prefill_cost_values(prefill_cost, distribution.length)
    without = recompute_without_cache(distribution, prefill_cost)
    reaching = np.cumsum(distribution.pmf()[::-1])[::-1]
    saved = [np.diff(cost[s.positions], prepend=0) @ reaching[s.positions] for s in schedules]
    return np.maximum(without - np.array(saved), 0.0)


def _price(
    name: str,
    schedule: sl.Schedule,
    distribution: sl.OverlapDistribution,
    prefill_cost: NDArray[Any] | None,
    frontier: sl.Frontier,
    without: float,
) -> Row:
    expected = sl.expected_recompute(schedule, distribution, prefill_cost)
    covered = len(schedule) <= frontier.max_budget
    nothing_left = float("inf") if without else 1.0
    return Row(
        name,
        schedule,
        expected,
        float(sl.worst_case_recompute(schedule, prefill_cost)),
        without / expected if expected else nothing_left,
        float(frontier.expected[len(schedule)]) if covered else None,
    )
