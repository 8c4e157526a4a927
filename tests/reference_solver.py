"""The optimum by its definition: what the exact solver is held against, slow and plain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab import OverlapDistribution
from sparselab.recompute import PrefillCost, prefill_cost_values


def reference_costs(
    distribution: OverlapDistribution,
    max_budget: int,
    align: int = 1,
    prefill_cost: PrefillCost = None,
) -> NDArray[Any]:
    """Return the least ``sum_t w_t r(t; C)`` for each budget, by Theorem 2 over all of ``0..N``.

    ``dp[m][j]`` is the least cost of depths ``0..j`` with ``m`` checkpoints. The last one may stand
    at every multiple ``s`` of ``align``, whether or not a depth there has weight. O(N^2 M).
    """
    length = distribution.length
    cost = prefill_cost_values(prefill_cost, length)
    weights = np.zeros(length + 1, dtype=distribution.weights.dtype)
    weights[distribution.depths] = distribution.weights
    weight, scratch = np.cumsum(weights), np.cumsum(weights * cost)
    before = scratch
    totals = [before[-1]]
    for _ in range(max_budget):
        now = before.copy()
        for s in range(align, length + 1, align):
            served = scratch[s:] - scratch[s - 1] - cost[s] * (weight[s:] - weight[s - 1])
            now[s:] = np.minimum(now[s:], before[s - 1] + served)
        totals.append(now[-1])
        before = now
    return np.array(totals)
