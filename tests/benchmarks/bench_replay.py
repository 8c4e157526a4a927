"""What capturing costs over a plain prefill, and resuming over an ideal that loads nothing.

On one layer group with the real dimensions, 2,048 tokens, in the device's own dtype. Runs of a
case and of its baseline take turns, so that both meet the same machine; a ratio is the median over
the turns. A busy machine still blurs them: run this alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sparselab as sl
from sparselab import replay
from sparselab.replay import state
from sparselab.replay.capture import CHUNK
from sparselab.replay.devices import Stopwatch
from sparselab.replay.models import ReplayModel
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.resume import restore_at

MODEL, LENGTH, REPEATS = "qwen3.5-0.8b-group", 2048, 9
AIM_OVERHEAD, AIM_R_SQUARED = 1.05, 0.97


def run() -> list[dict[str, Any]]:
    """Return one row a benchmark and case; ``ratio`` is what is compared with ``aim``."""
    model = replay.load_model(MODEL)
    return [*capture_rows(model), *resume_rows(model), linearity_row(model)]


def capture_rows(model: ReplayModel) -> list[dict[str, Any]]:
    """Capture with M = 8 and with a checkpoint every 64 tokens, against no checkpoint."""
    cases = {
        "M = 8, balanced": (sl.place("balanced", LENGTH, 8).positions, AIM_OVERHEAD),
        "M = 8, on the grid of 256": (range(256, LENGTH + 1, 256), AIM_OVERHEAD),
        "every 64 tokens": (range(64, LENGTH + 1, 64), None),
    }
    tokens = replay.random_tokens(LENGTH, model.vocab_size, seed=0)

    def plain() -> None:
        cache = state.new_cache(model.config)
        prefill(model, cache, tokens, 0, cut_plan(0, LENGTH, CHUNK))

    rows = []
    for name, (positions, aim) in cases.items():
        seconds, baseline, ratio = take_turns(
            model, lambda positions=positions: replay.capture(model, tokens, positions), plain
        )
        rows.append(_row("capture", name, "plain prefill", seconds, baseline, ratio, aim))
    return rows


def resume_rows(model: ReplayModel) -> list[dict[str, Any]]:
    """Resume at each quarter, against computing the suffix after a cache that is handed over."""
    prompt = replay.random_tokens(LENGTH, model.vocab_size, seed=0)
    entry = replay.capture(model, prompt, [LENGTH // 4, LENGTH // 2, 3 * LENGTH // 4])
    rows = []
    for point in entry.positions.tolist():
        tokens = replay.diverging(prompt, point, LENGTH, model.vocab_size, seed=1)
        caches = []

        def hand_over(point: int = point, caches: list[Any] = caches) -> None:
            caches.append(restore_at(model, entry, point, entry.checkpoints[point]))

        def ideal(tokens: Any = tokens, point: int = point, caches: list[Any] = caches) -> None:
            prefill(model, caches.pop(), tokens, point, cut_plan(point, LENGTH, CHUNK))

        seconds, baseline, ratio = take_turns(
            model, lambda tokens=tokens: replay.resume(model, entry, tokens), ideal, hand_over
        )
        name = f"overlap {point:,} of {LENGTH:,}"
        rows.append(_row("resume", name, "restored cache", seconds, baseline, ratio, AIM_OVERHEAD))
    return rows


def linearity_row(model: ReplayModel) -> dict[str, Any]:
    """How linear time saved is in tokens saved: ``ratio`` is R^2."""
    table = replay.measure(
        model, LENGTH, ["balanced"], [1, 2, 4, 8], repeats=5, show_progress=False
    )
    fit = replay.fit_savings(table)
    cold = table.loc[table["policy"] == "no_cache", "total_ms"].median() / 1000
    best = table["total_ms"].min() / 1000
    name = f"{fit.ms_per_token:.3f} ms a token, {fit.points} points"
    return _row(
        "R^2 of time saved on tokens saved", name, "cold", best, cold, fit.r_squared, AIM_R_SQUARED
    )


def take_turns(
    model: ReplayModel,
    case: Callable[[], Any],
    baseline: Callable[[], Any],
    prepare_baseline: Callable[[], Any] | None = None,
) -> tuple[float, float, float]:
    """Return the median seconds of both and the median ratio, over alternating runs.

    ``prepare_baseline`` runs before each baseline and is not timed. The first turn warms up.
    """
    times = np.zeros((REPEATS + 1, 2))
    for turn in range(REPEATS + 1):
        # Whichever comes second may find the machine in another state, so the order changes too.
        for column in (0, 1) if turn % 2 else (1, 0):
            if column and prepare_baseline is not None:
                prepare_baseline()
            watch = Stopwatch(model.device)
            (baseline if column else case)()
            times[turn, column] = watch.lap() / 1000
    times = times[1:]
    seconds, baseline_seconds = np.median(times, axis=0)
    return seconds, baseline_seconds, float(np.median(times[:, 0] / times[:, 1]))


def _row(
    benchmark: str,
    case: str,
    baseline: str,
    seconds: float,
    baseline_seconds: float,
    ratio: float,
    aim: float | None,
) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "case": case,
        "baseline": baseline,
        "seconds": float(seconds),
        "baseline_seconds": float(baseline_seconds),
        "ratio": float(ratio),
        "aim": aim,
    }


if __name__ == "__main__":
    for row in run():
        print(row)
