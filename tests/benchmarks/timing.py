"""How the benchmarks measure, and the row that each of them reports."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any


def median_seconds(*functions: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Return the median seconds of each function, their runs interleaved.

    Interleaving exposes all of them alike to what else the machine is doing. Each runs once
    before, unmeasured, so that compilation and caches are not counted.
    """
    samples: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, times in zip(functions, samples, strict=True):
            gc.collect()
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in samples]


def row(
    benchmark: str, case: str, baseline: str, seconds: float, baseline_seconds: float, aim: str
) -> dict[str, Any]:
    """Return one result: ``ratio`` is the baseline's time over ours, above 1 if we win."""
    return {
        "benchmark": benchmark,
        "case": case,
        "baseline": baseline,
        "seconds": seconds,
        "baseline_seconds": baseline_seconds,
        "ratio": baseline_seconds / seconds,
        "aim": aim,
    }
