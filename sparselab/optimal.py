"""The exact solver: the cheapest placement for every budget at once.

Minimises, over at most ``M`` checkpoints on the alignment grid ::

    sum_t w_t * (G(t) - G(l(t; C)))

Implements the dynamic programme of Theorem 2 (Shirokikh and Nikolenko, "Sparse Prefix Caching
for Hybrid and Recurrent LLM Serving", arXiv 2605.05219) with two departures that leave it exact:

* **Support reduction.** A checkpoint can move right, at no cost, until it stands on the last grid
  position at or before the next depth that has weight. So only ``align * (d // align)`` for the
  observed depths ``d`` are candidates, and depths that share a candidate form one *group*.
* **Monotone convex-hull trick.** The inner minimum is an envelope of lines, O(1) amortised, where
  the published code searches every position.

Time is ``O(K * M)`` and memory ``4 * K * M`` bytes for ``K`` groups, however long the entry is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparselab.overlap import OverlapDistribution
from sparselab.placement import Schedule
from sparselab.recompute import PrefillCost, prefill_cost_values
from sparselab.validation import (
    LARGEST_EXACT_INTEGER,
    check_instance,
    check_integer,
    check_token_count,
)

if TYPE_CHECKING:
    import pandas

#: The solver refuses to keep more choices than this many bytes.
MEMORY_LIMIT = 8 * 2**30
#: Halvings of the price of a checkpoint: whole prices take at most 53, others end well below 1e-15.
PRICES_TRIED = 100


@dataclass(frozen=True, eq=False)
class Frontier:
    """The optimal cost for each budget ``0..max_budget``, and the schedules that reach it.

    Attributes:
        distribution: the overlaps that it was solved for.
        max_budget: the largest budget ``M``.
        align: the grid on which checkpoints stand, in tokens.
        costs: ``costs[m] = sum_t w_t r(t; C*_m)`` in the weights' own unit times the prefill
            cost's; read-only, shape ``(M + 1,)``; convex and non-increasing. ``int64`` where
            :attr:`exact`, else ``float64`` (``inf`` beyond the largest double).
        expected: ``E[r]`` for each budget, ``costs`` over the total weight; read-only, shape
            ``(M + 1,)``.
        exact: whether the costs are exact integers: integer weights and costs with
            ``total weight * G(N) < 2**53``. Elsewhere they are rounded as doubles are: each is the
            cost of its schedule to about 1e-15 of itself (unless it is subnormal), and above the
            least possible cost by at most about 1e-15 of ``costs[0]``.
    """

    distribution: OverlapDistribution
    max_budget: int
    align: int
    costs: NDArray[Any]
    expected: NDArray[np.float64]
    exact: bool
    _candidates: NDArray[np.int64]
    _choices: NDArray[np.int32]
    _checkpoints: NDArray[np.int64]  # the fewest that reach the cost of each budget

    @property
    def gains(self) -> NDArray[Any]:
        """What each further checkpoint saves, in the unit of :attr:`costs`, shape ``(M,)``.

        Non-increasing by convexity, so that gains can be compared across entries.
        """
        return -np.diff(self.costs)

    def schedule(self, budget: int) -> Schedule:
        """Return an optimal schedule of at most ``budget`` checkpoints, in ``0..max_budget``.

        It holds fewer where fewer reach the same cost.
        """
        budget = check_integer("budget", budget, minimum=0, maximum=self.max_budget)
        layer = int(self._checkpoints[budget])
        group, chosen = self._candidates.size - 1, []
        while layer > 0 and group >= 0:
            group = int(self._choices[layer - 1, group])
            chosen.append(int(self._candidates[group]))
            layer, group = layer - 1, group - 1
        return Schedule(chosen[::-1], self.distribution.length, "optimal")

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a budget: cost, ``E[r]``, what the last checkpoint gained, positions."""
        import pandas

        budgets = range(self.max_budget + 1)
        return pandas.DataFrame(
            {
                "budget": budgets,
                "cost": self.costs,
                "expected_recompute": self.expected,
                "gain": np.append([0], self.gains),
                "positions": [self.schedule(m).positions.tolist() for m in budgets],
            }
        )

    def __repr__(self) -> str:
        return (
            f"Frontier(budgets 0..{self.max_budget}, align={self.align}, "
            f"E[r] from {self.expected[0]:,.1f} to {self.expected[-1]:,.1f}, "
            f"{'exact' if self.exact else 'rounded'} costs)"
        )


@dataclass(frozen=True)
class _Groups:
    """The depths of a distribution gathered by candidate position.

    ``starts[g]..starts[g + 1]`` are the support depths that candidate ``g`` serves best; depths
    before ``starts[0]`` have no candidate, and are served from scratch. Weights are in units of
    ``2**weight_exponent`` and costs of ``2**cost_exponent``, so that no product of them overflows
    or vanishes.
    """

    weights: NDArray[np.float64]
    weight_exponent: int
    cost_exponent: int
    depth_costs: NDArray[np.float64]
    candidates: NDArray[np.int64]
    candidate_costs: NDArray[np.float64]
    starts: NDArray[np.int64]
    exact: bool

    def weight_below(self) -> NDArray[np.float64]:
        """Return the weight of the groups before each, and of all of them, shape ``(K + 1,)``."""
        weights = np.add.reduceat(self.weights, self.starts[:-1])
        return np.concatenate(([0.0], np.cumsum(weights)))


def optimal_frontier(
    distribution: OverlapDistribution,
    max_budget: int,
    align: int = 1,
    prefill_cost: PrefillCost = None,
) -> Frontier:
    """Return the optimal cost and schedule for every budget ``0..max_budget``, in one run.

    Args:
        distribution: weights on overlap depths; integer counts give exact integer costs.
        max_budget: the largest number of checkpoints, at least 0.
        align: checkpoints stand on multiples of it; the cost still counts every token.
        prefill_cost: the non-decreasing ``G``, by default tokens; see `recompute.py`.

    Raises:
        TypeError, ValueError: for arguments outside their range.
    """
    max_budget, align = _check_arguments(distribution, max_budget, align)
    groups = _gather(distribution, align, prefill_cost)
    layers = min(max_budget, groups.candidates.size)
    _check_memory(max_budget, layers, groups.candidates.size)
    choices = np.empty((layers, groups.candidates.size), dtype=np.int32)
    saved = np.zeros((3, groups.candidates.size + 1))
    if layers:
        from sparselab.optimal_kernel import solve_layers

        solve_layers(groups.weight_below(), groups.candidate_costs, layers, choices, saved)
    return _frontier(distribution, max_budget, align, groups, choices, saved[0, : layers + 1])


def least_expected_recompute(
    distribution: OverlapDistribution,
    budget: int,
    align: int = 1,
    prefill_cost: PrefillCost = None,
) -> float:
    """Return ``E[r]`` of the optimum with ``budget`` checkpoints, without their positions.

    The ``expected[budget]`` of :func:`optimal_frontier`, to about 1e-12 of ``expected[0]``, but in
    ``O(K)`` memory and some 40 passes of ``O(K)`` whatever the budget: for thousands of checkpoints
    among a million depths. Arguments and errors are those of :func:`optimal_frontier`.

    The most that ``m`` checkpoints save, ``S(m)``, is concave in ``m``. So
    ``S(budget) = min over price >= 0 of max over m of (S(m) - price * m) + price * budget``, where
    the inner maximum needs no layers, and the number of checkpoints that it takes tells on which
    side of the best price it lies. With whole weights and costs the best price is whole as well.
    """
    budget, align = _check_arguments(distribution, budget, align, "budget")
    groups = _gather(distribution, align, prefill_cost)
    scratch = float(groups.weights @ groups.depth_costs)
    saved = _most_saved(groups, budget) if groups.candidates.size and budget else 0.0
    return math.ldexp(max(0.0, scratch - saved) / groups.weights.sum(), groups.cost_exponent)


def _most_saved(groups: _Groups, budget: int) -> float:
    """Return what ``budget`` checkpoints save, in the units of ``groups``, by bisecting the price.

    Every price gives a bound from above, the best one what is saved.
    """
    from sparselab.optimal_kernel import solve_priced

    weight_below = groups.weight_below()
    saved, used = solve_priced(weight_below, groups.candidate_costs, 0.0)
    if used <= budget:
        return saved
    low, high = 0.0, saved + 1.0  # prices at which too many checkpoints are taken, and none
    for _ in range(PRICES_TRIED):
        price = (low + high) / 2
        if groups.exact:
            price = math.floor(price)
        if price == low:
            break
        net, used = solve_priced(weight_below, groups.candidate_costs, price)
        saved = min(saved, net + price * budget)
        if used == budget:
            break
        low, high = (price, high) if used > budget else (low, price)
    return saved


def _check_arguments(
    distribution: Any, budget: Any, align: Any, name: str = "max_budget"
) -> tuple[int, int]:
    """Return the budget, which the caller calls ``name``, and the alignment."""
    check_instance("distribution", distribution, OverlapDistribution)
    budget = check_integer(name, budget, minimum=0)
    check_integer(name, budget, maximum=LARGEST_EXACT_INTEGER)
    return budget, check_token_count("align", align)


def _check_memory(max_budget: int, layers: int, count: int) -> None:
    needed = 4 * layers * count + 24 * max_budget
    if needed > MEMORY_LIMIT:
        raise ValueError(
            f"max_budget {max_budget} with {count} distinct depths needs {needed / 2**30:.1f} GiB, "
            f"more than the {MEMORY_LIMIT / 2**30:.0f} GiB allowed: lower max_budget or align more."
        )


def _gather(distribution: OverlapDistribution, align: int, prefill_cost: PrefillCost) -> _Groups:
    """Reduce the distribution to its candidate positions (exact; see the module's docstring)."""
    depths, weights = distribution.depths, distribution.weights
    positions = depths // align * align
    if prefill_cost is None:
        depth_costs, position_costs, largest = depths, positions, distribution.length
    else:
        cost = prefill_cost_values(prefill_cost, distribution.length)
        depth_costs, position_costs, largest = cost[depths], cost[positions], cost[-1].item()
    integers = weights.dtype.kind == "i" and depth_costs.dtype.kind == "i"
    # Python's integers: the product may not fit in 64 bits.
    exact = integers and distribution.total * largest < LARGEST_EXACT_INTEGER
    weight_exponent = 0 if exact else math.frexp(weights.max())[1]
    cost_exponent = 0 if exact else math.frexp(largest)[1]
    scaled_costs = np.ldexp(position_costs.astype(np.float64), -cost_exponent)
    # A position that costs no more to reach than the candidate before it saves nothing more, and
    # serves fewer: it is no candidate (nor is position 0, or any other that costs nothing).
    is_new = np.diff(scaled_costs, prepend=0) > 0
    starts = np.flatnonzero(is_new)
    return _Groups(
        weights=np.ldexp(weights.astype(np.float64), -weight_exponent),
        weight_exponent=weight_exponent,
        cost_exponent=cost_exponent,
        depth_costs=np.ldexp(depth_costs.astype(np.float64), -cost_exponent),
        candidates=positions[starts],
        candidate_costs=scaled_costs[starts],
        starts=np.append(starts, depths.size),
        exact=exact,
    )


def _frontier(
    distribution: OverlapDistribution,
    max_budget: int,
    align: int,
    groups: _Groups,
    choices: NDArray[np.int32],
    saved: NDArray[np.float64],
) -> Frontier:
    """Return the frontier, given the choices and what each number of checkpoints saves."""
    scaled = _scaled_costs(groups, choices, saved)
    # Budgets that reach the same cost share the schedule of the smallest.
    checkpoints = np.searchsorted(-scaled, -scaled)
    enough = np.minimum(np.arange(max_budget + 1), scaled.size - 1)
    scaled, checkpoints = scaled[enough], checkpoints[enough]
    if groups.exact:
        costs: NDArray[Any] = scaled.astype(np.int64)
    else:
        with np.errstate(over="ignore", under="ignore"):
            costs = np.ldexp(scaled, groups.weight_exponent + groups.cost_exponent)
    expected = np.ldexp(scaled / groups.weights.sum(), groups.cost_exponent)
    costs.setflags(write=False)
    expected.setflags(write=False)
    return Frontier(
        distribution=distribution,
        max_budget=max_budget,
        align=align,
        costs=costs,
        expected=expected,
        exact=groups.exact,
        _candidates=groups.candidates,
        _choices=choices,
        _checkpoints=checkpoints,
    )


def _scaled_costs(
    groups: _Groups, choices: NDArray[np.int32], saved: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the cost of each number of checkpoints, in the units of ``groups``; never rising.

    Exact integers come by subtraction. Elsewhere each schedule is priced afresh, and one that
    rounding made no better than its predecessor gives way to it.
    """
    scratch = float(groups.weights @ groups.depth_costs)
    if groups.exact:
        return scratch - saved
    from sparselab.optimal_kernel import price_layers

    costs = np.empty(saved.size)
    costs[0] = scratch
    price_layers(
        groups.weights, groups.depth_costs, groups.starts, groups.candidate_costs, choices, costs
    )
    return np.minimum.accumulate(costs)
