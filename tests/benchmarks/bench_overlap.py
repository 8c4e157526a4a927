"""Measuring overlaps: the prefix index against a set of rolling prefix hashes, and its growth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.workloads import Workload, load
from tests.benchmarks.timing import median_seconds, row

HASH_BASE, HASH_MODULUS = 1_000_003, (1 << 61) - 1


def rolling_hash_overlaps(workload: Workload) -> NDArray[np.int64]:
    """Measure the plain way: a set of the hash of every prefix, token by token.

    It is approximate: two prefixes with equal hashes would count as equal.
    """
    seen: set[int] = set()
    overlaps = []
    for request in workload:
        value, depth, matching = 0, 0, True
        for token in request.tokens.tolist():
            value = (value * HASH_BASE + token + 1) % HASH_MODULUS
            if matching and value in seen:
                depth += 1
            else:
                matching = False
                seen.add(value)
        overlaps.append(depth)
    return np.array(overlaps)


def run() -> list[dict[str, Any]]:
    """Return the rows of the comparison and of the growth."""
    return [*against_rolling_hashes(), *growth()]


def against_rolling_hashes() -> list[dict[str, Any]]:
    """Token-level workloads of three kinds; both ways must agree on every overlap."""
    workloads = {
        "20 articles, 18 questions each": load("synthetic_quality"),
        "10 stories, 30 questions each": load("synthetic_narrativeqa"),
        "uniform overlaps, 4,096 tokens": load("synthetic", groups=50),
    }
    rows = []
    for case, workload in workloads.items():
        assert np.array_equal(workload.overlap_samples(), rolling_hash_overlaps(workload))
        ours, _ = median_seconds(workload.overlap_samples, lambda: None, repeats=7)
        _, plain = median_seconds(
            lambda: None, lambda w=workload: rolling_hash_overlaps(w), repeats=1
        )
        tokens = workload.lengths().sum()
        rows.append(
            row("overlaps", f"{case}: {tokens:,} tokens", "set of hashes", ours, plain, ">= 50x")
        )
    return rows


def growth() -> list[dict[str, Any]]:
    """More requests, and longer ones: the time a token stays the same or falls."""
    cases = {
        "requests": [load("synthetic", groups=count) for count in (25, 100, 400)],
        "tokens a request": [
            load("synthetic_narrativeqa", documents=20, tokens_per_word=ratio)
            for ratio in (0.1, 0.4, 1.6)
        ],
    }
    rows = []
    for what, workloads in cases.items():
        tokens = [int(workload.lengths().sum()) for workload in workloads]
        seconds = [median_seconds(workload.overlap_samples)[0] for workload in workloads]
        rows += [
            row(
                "overlaps growth",
                f"more {what}: {count:,} tokens, {1e9 * time / count:.2f} ns a token",
                f"linear growth from {tokens[0]:,} tokens",
                time,
                seconds[0] / tokens[0] * count,
                ">= about 1 (linear)",
            )
            for count, time in zip(tokens, seconds, strict=True)
        ]
    return rows
