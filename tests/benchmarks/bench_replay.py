"""What capturing costs over a plain prefill, and resuming over an ideal that loads nothing.

On one layer group with the real dimensions, 2,048 tokens, in the device's own dtype. Runs of a
case and of its baseline take turns, so that both meet the same machine. A busy machine still
blurs them: run this alone.

On a CPU expect capture at unaligned positions to miss its aim: the reference kernel of the
recurrence pads every call to a multiple of 64 tokens, so calls that end elsewhere compute more.
"""

from __future__ import annotations

from typing import Any

import sparselab as sl
from sparselab import replay
from sparselab.replay import state
from sparselab.replay.capture import CHUNK
from sparselab.replay.models import ReplayModel
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.resume import restore_at
from tests.benchmarks.timing import median_seconds, row

MODEL, LENGTH = "qwen3.5-0.8b-group", 2048
# Enough that the median of runs of seconds is known to a few percent on a noisy machine.
REPEATS = 11
WITHIN_5_PERCENT = "at least 0.95 (within 5 %)"


def run() -> list[dict[str, Any]]:
    """Return one row a benchmark and case."""
    model = replay.load_model(MODEL)
    return [*capture_rows(model), *resume_rows(model), linearity_row(model)]


def capture_rows(model: ReplayModel) -> list[dict[str, Any]]:
    """Capture with M = 8 and with a checkpoint every 64 tokens, against no checkpoint."""
    cases = {
        "M = 8, on the grid of 256": (range(256, LENGTH + 1, 256), WITHIN_5_PERCENT),
        "M = 8, balanced, aligned to the kernel's 64 tokens": (
            sl.place("balanced", LENGTH, 8, align=64).positions,
            WITHIN_5_PERCENT,
        ),
        "M = 8, balanced, unaligned": (
            sl.place("balanced", LENGTH, 8).positions,
            WITHIN_5_PERCENT,
        ),
        "a checkpoint every 64 tokens": (range(64, LENGTH + 1, 64), "none, for comparison"),
    }
    tokens = replay.random_tokens(LENGTH, model.vocab_size, seed=0)

    def plain() -> None:
        cache = state.new_cache(model.config)
        prefill(model, cache, tokens, 0, cut_plan(0, LENGTH, CHUNK))

    rows = []
    for name, (positions, aim) in cases.items():
        times = median_seconds(
            lambda positions=positions: replay.capture(model, tokens, positions),
            plain,
            repeats=REPEATS,
        )
        rows.append(row("replay: capture", name, "prefill without checkpoints", *times, aim))
    return rows


def resume_rows(model: ReplayModel) -> list[dict[str, Any]]:
    """Resume at each quarter, against computing the suffix after a cache that is handed over."""
    prompt = replay.random_tokens(LENGTH, model.vocab_size, seed=0)
    entry = replay.capture(model, prompt, [LENGTH // 4, LENGTH // 2, 3 * LENGTH // 4])
    rows = []
    for point in entry.positions.tolist():
        tokens = replay.diverging(prompt, point, LENGTH, model.vocab_size, seed=1)
        cuts = cut_plan(point, LENGTH, CHUNK)
        # Restored beforehand, one for each run, since a run extends its cache.
        caches = [
            restore_at(model, entry, point, entry.checkpoints[point]) for _ in range(REPEATS + 1)
        ]
        times = median_seconds(
            lambda tokens=tokens: replay.resume(model, entry, tokens),
            lambda tokens=tokens, point=point, cuts=cuts, caches=caches: prefill(
                model, caches.pop(), tokens, point, cuts
            ),
            repeats=REPEATS,
        )
        name = f"resume at {point:,} of {LENGTH:,} tokens"
        rows.append(row("replay: resume", name, "suffix alone", *times, WITHIN_5_PERCENT))
    return rows


def linearity_row(model: ReplayModel) -> dict[str, Any]:
    """How linear time saved is in tokens saved: here ``ratio`` is R^2."""
    table = replay.measure(
        model, LENGTH, ["balanced"], [1, 2, 4, 8], repeats=7, show_progress=False
    )
    fit = replay.fit_savings(table)
    medians = table.groupby("saved_tokens")["total_ms"].median() / 1000
    name = f"time saved on tokens saved, {fit.points} points; ratio is R^2"
    times = float(medians.min()), float(medians.loc[0])
    return row("replay: linearity", name, "cold prefill", *times, "R^2 at least 0.97") | {
        "ratio": fit.r_squared
    }
