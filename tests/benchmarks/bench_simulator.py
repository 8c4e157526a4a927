"""The simulator on a production-sized trace, against a plain replay, and its growth.

The trace is Mooncake's published conversations (12,031 requests) where SPARSELAB_REFERENCE_DATA
names the folder that holds ``mooncake_conversation_trace.jsonl``, and else a synthetic trace of
that shape; the case says which.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sparselab.estimators import DecayedHistogram, EntryAware
from sparselab.simulator import simulate
from sparselab.workloads import Request, Workload, load
from tests.benchmarks.timing import median_seconds, row

sys.path.insert(0, str(Path(__file__).parent.parent))
from serving_reference import replay

REQUESTS, BLOCK, CAPACITY = 12_031, 512, 1_000
SECONDS_ALLOWED = 5.0


def trace_like_mooncake(requests: int = REQUESTS, tokens: int = 12_000, seed: int = 0) -> Workload:
    """Return conversations, as block ids, of about ``tokens`` tokens a request on average.

    A third of the requests extend an earlier one by some blocks, as turns of a chat do.
    """
    rng = np.random.default_rng(seed)
    mean_blocks = max(1, tokens // BLOCK)
    prompts: list[np.ndarray] = []
    fresh = 0
    for _ in range(requests):
        earlier = prompts[rng.integers(max(0, len(prompts) - 500), len(prompts))] if prompts else []
        start = earlier if len(earlier) < 2 * mean_blocks and rng.random() < 0.35 else []
        new = int(rng.geometric(1 / mean_blocks))
        prompts.append(np.concatenate([start, np.arange(fresh, fresh + new)]).astype(np.int64))
        fresh += new
    made = [Request("trace", blocks, blocks.size * BLOCK) for blocks in prompts]
    return Workload("synthetic trace", made, "made up for a benchmark", unit=BLOCK, synthetic=True)


def production_trace() -> Workload:
    """Return the real trace if it is there, else the synthetic one."""
    folder = os.environ.get("SPARSELAB_REFERENCE_DATA")
    path = Path(folder or "") / "mooncake_conversation_trace.jsonl"
    return load("mooncake", path=path) if folder and path.exists() else trace_like_mooncake()


def run() -> list[dict[str, Any]]:
    """Return the rows of all three parts."""
    return [*policies_on_a_production_trace(), against_a_plain_replay(), *growth()]


def policies_on_a_production_trace() -> list[dict[str, Any]]:
    """12,031 requests under each policy, 1,000 entries retained, replanned at every request."""
    trace = production_trace()
    cases: dict[str, dict[str, Any]] = {
        "balanced": {"policy": "balanced"},
        "block": {"policy": "block"},
        "sqrt": {"policy": "sqrt"},
        "branch": {"policy": "branch"},
        "optimal, decayed": {"policy": "optimal"},
        "optimal, decayed, LRU": {"policy": "optimal", "eviction": "lru"},
        "optimal, decayed, full capture": {"policy": "optimal", "capture": "full"},
        "optimal, entry-aware": {"policy": "optimal", "estimator": EntryAware(DecayedHistogram())},
    }
    rows = []
    for label, case in cases.items():
        (seconds,) = median_seconds(
            lambda case=case: simulate(trace, budget=8, capacity=CAPACITY, **case), repeats=1
        )
        name = f"{trace.name}, {len(trace):,} requests: {label}"
        limit = f"a limit of {SECONDS_ALLOWED:g} s"
        rows.append(row("simulator", name, limit, seconds, SECONDS_ALLOWED, ">= 1"))
    return rows


def against_a_plain_replay() -> dict[str, Any]:
    """The same rows by dictionaries and loops: every retained entry compared id by id."""
    workload = load("synthetic", groups=10, requests_per_group=20).interleave(seed=0)
    settings: dict[str, Any] = {"policy": "block", "budget": 8, "capacity": 100}
    ours, theirs = median_seconds(
        lambda: simulate(workload, **settings),
        lambda: replay(workload, make_estimator=DecayedHistogram, **settings),
        repeats=3,
    )
    case = "synthetic, 200 requests of 4,096 tokens, 100 entries: block"
    return row("simulator", case, "plain replay, Python lists", ours, theirs, ">= 10x")


def growth() -> list[dict[str, Any]]:
    """Time grows with the number of requests, and with their tokens, no faster than linearly."""
    rows = []
    for what, sizes, make in [
        ("requests", (3_000, 6_000, 12_000, 24_000), lambda n: trace_like_mooncake(requests=n)),
        ("tokens a request", (4_096, 16_384, 65_536), _long_prompts),
    ]:
        traces = [make(size) for size in sizes]
        seconds = [
            median_seconds(
                lambda trace=trace: simulate(trace, "balanced", 8, capacity=CAPACITY), repeats=3
            )[0]
            for trace in traces
        ]
        for size, time in zip(sizes, seconds, strict=True):
            linear = seconds[0] * size / sizes[0]
            case = f"synthetic, {size:,} {what}: balanced"
            label = f"linear growth from {sizes[0]:,}"
            rows.append(row("simulator growth", case, label, time, linear, ">= 0.8 (linear)"))
    return rows


def _long_prompts(tokens: int) -> Workload:
    from sparselab import OverlapDistribution

    overlaps = OverlapDistribution([tokens // 4, tokens // 2], [1, 1], tokens)
    return load("synthetic", distribution=overlaps, groups=10, requests_per_group=20)
