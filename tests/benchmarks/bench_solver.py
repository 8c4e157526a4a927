"""The exact solver against the published way, against a sibling problem in C++, and its growth."""

from __future__ import annotations

from typing import Any

import kmeans1d
import numpy as np
from numpy.typing import NDArray

from sparselab import OverlapDistribution, optimal_frontier
from tests.benchmarks.timing import median_seconds, row


def quadratic_cost(pmf: NDArray[np.float64], budget: int) -> float:
    """Return the optimal cost by Theorem 2 as published: for each ``j``, minimise over all ``s``.

    O(N^2 M), each minimum vectorised; token costs on the dense ``pmf`` over depths ``0..N``.
    """
    depths = np.arange(pmf.size)
    weight = np.concatenate(([0.0], np.cumsum(pmf)))
    moment = np.concatenate(([0.0], np.cumsum(pmf * depths)))
    dp = moment[1:].copy()  # served from scratch
    for _ in range(budget):
        before = np.concatenate(([np.inf], dp[:-1]))
        for j in range(pmf.size):
            s = depths[: j + 1]
            served = moment[j + 1] - moment[s] - s * (weight[j + 1] - weight[s])
            dp[j] = min(dp[j], (before[s] + served).min())
    return dp[-1]


def random_overlaps(count: int, seed: int) -> OverlapDistribution:
    """Return ``count`` distinct depths with random integer weights in an entry twice as long."""
    rng = np.random.default_rng(seed)
    depths = rng.choice(2 * count + 1, count, replace=False)
    return OverlapDistribution(depths, rng.integers(1, 100, count), 2 * count)


def run() -> list[dict[str, Any]]:
    """Return the rows of all three comparisons."""
    return [against_the_quadratic_programme(), against_kmeans1d(), *growth()]


def against_the_quadratic_programme() -> dict[str, Any]:
    """N = 2,048 depths, M = 30: the same optimum, found by searching every position."""
    dist = OverlapDistribution.beta(2047, 2.0, 3.0)
    pmf = dist.pmf()
    assert np.isclose(quadratic_cost(pmf, 30), optimal_frontier(dist, 30).expected[30])
    ours, _ = median_seconds(lambda: optimal_frontier(dist, 30), lambda: None, repeats=15)
    _, theirs = median_seconds(lambda: None, lambda: quadratic_cost(pmf, 30), repeats=3)
    return row("solver", "N=2048, M=30", "O(N^2 M) programme, NumPy", ours, theirs, ">= 700x")


def against_kmeans1d() -> dict[str, Any]:
    """N = 131,072, k = 30: one-dimensional k-means of the same size by SMAWK in C++."""
    dist = random_overlaps(131_072, seed=0)
    points = dist.depths.astype(float).tolist()
    ours, theirs = median_seconds(
        lambda: optimal_frontier(dist, 30), lambda: kmeans1d.cluster(points, 30), repeats=5
    )
    return row(
        "solver", "K=131072, M=30", "kmeans1d (C++, a sibling problem)", ours, theirs, ">= 7x"
    )


def growth() -> list[dict[str, Any]]:
    """K = 2^14 .. 2^20 at M = 32: the time a cell (one depth of one budget) stays the same."""
    sizes = [1 << power for power in (14, 16, 18, 20)]
    problems = [random_overlaps(size, seed=1) for size in sizes]
    seconds = [median_seconds(lambda d=d: optimal_frontier(d, 32), repeats=5)[0] for d in problems]
    smallest = seconds[0] / sizes[0]
    return [
        row(
            "solver growth",
            f"K=2^{size.bit_length() - 1}, M=32: {1e9 * time / size / 32:.1f} ns a cell",
            "linear growth from K=2^14",
            time,
            smallest * size,
            "about 1 (linear)",
        )
        for size, time in zip(sizes, seconds, strict=True)
    ]
