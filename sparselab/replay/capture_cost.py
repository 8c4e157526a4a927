"""What capturing costs: a prefill that keeps checkpoints against one that keeps none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sparselab.progress import progress
from sparselab.replay import state
from sparselab.replay.capture import CHUNK, capture
from sparselab.replay.devices import Stopwatch
from sparselab.replay.entry import as_positions
from sparselab.replay.models import ReplayModel
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.tokens import random_tokens
from sparselab.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

PLAIN = "plain prefill"


def measure_capture(
    model: ReplayModel,
    length: int,
    cases: Mapping[str, Any],
    repeats: int = 5,
    chunk: int = CHUNK,
    seed: int = 0,
    show_progress: bool = True,
) -> pd.DataFrame:
    """Time capturing ``length`` tokens with the positions (or schedule) of each case, and without.

    Each repeat runs every case once, in an order shuffled by ``seed``, so that they meet the same
    machine. Returns one row a case: ``case``, ``checkpoints``, ``calls`` (of the prefill),
    ``total_ms`` (median) and ``overhead`` (the median over repeats of the ratio to the plain
    prefill of the same repeat, less 1).
    """
    import pandas as pd

    length = check_integer("length", length, minimum=1)
    repeats = check_integer("repeats", repeats, minimum=1)
    tokens = random_tokens(length, model.vocab_size, seed)

    if PLAIN in cases:
        raise ValueError(f"cases must not be named {PLAIN!r}, which is the baseline's name.")
    positions = {PLAIN: (), **{name: as_positions(at, length) for name, at in cases.items()}}

    def run(name: str) -> None:
        if name == PLAIN:
            cache = state.new_cache(model.config)
            prefill(model, cache, tokens, 0, cut_plan(0, length, chunk))
        else:
            capture(model, tokens, positions[name], chunk)

    times: dict[str, list[float]] = {name: [] for name in positions}
    generator = np.random.default_rng(seed)
    for name in positions:
        run(name)
    for _ in progress(range(repeats), "capture", enabled=show_progress):
        for name in generator.permutation(list(positions)):
            watch = Stopwatch(model.device)
            run(name)
            times[name].append(watch.lap())
    return pd.DataFrame(
        {
            "case": name,
            "checkpoints": len(positions[name]),
            "calls": len(cut_plan(0, length, chunk, positions[name])),
            "total_ms": np.median(times[name]),
            "overhead": np.median(np.divide(times[name], times[PLAIN])) - 1.0,
        }
        for name in positions
    )
