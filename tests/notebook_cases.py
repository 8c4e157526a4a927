"""The notebooks with small parameters, and what must come out of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparselab as sl

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

Numbers = dict[str, float]
Check = Callable[[dict[str, Any], Numbers], None]


def check_start_here(given: dict[str, Any], numbers: Numbers) -> None:
    overlaps = sl.load_overlap("system_prompts").restrict(given["length"])
    best = sl.optimal_frontier(overlaps, given["budget"]).expected[given["budget"]]
    assert numbers["expected_recompute_optimal"] == pytest.approx(best, rel=1e-12)
    assert numbers["expected_recompute_balanced"] > best


def check_checkpoint_placement(given: dict[str, Any], numbers: Numbers) -> None:
    overlaps = sl.load_overlap("quality").restrict(given["length"])
    best = sl.optimal_frontier(overlaps, given["budget"]).expected[given["budget"]]
    assert numbers["expected_recompute_optimal"] == pytest.approx(best, rel=1e-12)
    assert numbers["expected_recompute_balanced"] > best


def check_drift(given: dict[str, Any], numbers: Numbers) -> None:
    # Overlaps that drift away from a frozen plan cost it more than a plan that forgets.
    assert 0 <= numbers["regret_decayed"] < numbers["regret_frozen"]
    assert 0 < numbers["best_gamma_measured"] < 1


def check_workload_frontiers(given: dict[str, Any], numbers: Numbers) -> None:
    workload = sl.workloads.load(given["workload"])
    overlap = workload.overlap_samples().sum() / workload.lengths().sum()
    assert numbers["overlap_share"] == pytest.approx(overlap)
    assert numbers["saved_share_1_balanced"] <= numbers["saved_share_1_optimal_entry_aware"]
    assert numbers["saved_share_1_optimal_entry_aware"] <= overlap


def check_live_resume(given: dict[str, Any], numbers: Numbers) -> None:
    assert numbers["bit_identical"] == 1
    assert numbers["checkpoint_bytes"] > 0


def check_memory_and_serving(given: dict[str, Any], numbers: Numbers) -> None:
    # 27B: 146.8 MiB a checkpoint and 64 KiB of KV a token.
    assert numbers["break_even"] == pytest.approx(146.8 * 1024 / 64, rel=1e-3)
    dense = 1 + sl.HybridArchitecture.preset(given["model"]).checkpoint_kv_tokens
    assert numbers["dense_over_kv"] == pytest.approx(dense)


CASES: dict[str, tuple[dict[str, Any], Check]] = {
    "00_start_here": ({"length": 4096, "budget": 2}, check_start_here),
    "01_checkpoint_placement": ({"length": 4096, "budget": 2}, check_checkpoint_placement),
    "02_drift_and_robustness": (
        {"swing": 120, "requests": 300, "depths": 6, "window": 40, "repeats": 1},
        check_drift,
    ),
    "03_workload_frontiers": (
        {"workload": "append_only_chat", "live_model": "none"},
        check_workload_frontiers,
    ),
    "04_live_qwen_resume": (
        {"model": "tiny", "length": 256, "block_size": 64, "repeats": 1, "requests": 4},
        check_live_resume,
    ),
    "05_memory_and_serving": (
        {"model": "qwen3.5-27b", "length": 2048, "budget": 2},
        check_memory_and_serving,
    ),
}
