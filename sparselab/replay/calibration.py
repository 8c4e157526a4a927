"""Predicting prefill time: a cost model fitted on some lengths and checked on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparselab.architecture import DENSE_TYPES, EXPERT_TYPES, HybridArchitecture
from sparselab.progress import progress
from sparselab.recompute import PrefillCostModel
from sparselab.replay import state
from sparselab.replay.capture import CHUNK
from sparselab.replay.devices import Stopwatch
from sparselab.replay.models import ReplayModel
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.tokens import random_tokens
from sparselab.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

# Of the longest prompt; see calibration_lengths().
FIT_SHARES = (0.125, 0.25, 0.5, 1.0)
CHECK_SHARES = (0.375, 0.75)
# From here on all of them are different.
SHORTEST = 8


@dataclass(frozen=True)
class Calibration:
    """A fitted cost model and how well it does.

    Attributes:
        cost_model: milliseconds; usable as a solver's prefill cost.
        table: one row a length: ``length``, ``role`` (``fit`` or ``check``), ``measured_ms``
            (median), ``predicted_ms``, and ``flops_ms``: the FLOPs of the architecture at one
            rate fitted on the same lengths (missing where the formulas do not cover the model).
    """

    cost_model: PrefillCostModel
    table: pd.DataFrame

    @property
    def worst_error(self) -> float:
        """Largest relative error of the prediction on the lengths it was not fitted on."""
        check = self.table[self.table["role"] == "check"]
        return float((check["predicted_ms"] / check["measured_ms"] - 1).abs().max())


def calibration_lengths(length: int) -> tuple[list[int], list[int]]:
    """Return lengths to fit on and lengths to check with, in proportion to the longest one."""
    length = check_integer("length", length, minimum=SHORTEST)
    fit, check = (
        [round(share * length) for share in shares] for shares in (FIT_SHARES, CHECK_SHARES)
    )
    return fit, check


def calibrate(
    model: ReplayModel,
    fit_lengths: Sequence[int] = (256, 512, 1024, 2048),
    check_lengths: Sequence[int] = (384, 768, 1536),
    repeats: int = 3,
    chunk: int = CHUNK,
    seed: int = 0,
    show_progress: bool = True,
) -> Calibration:
    """Time cold prefills, fit ``a + b x + c x^2`` on some lengths and predict the others.

    Runs are shuffled by ``seed``; medians of ``repeats``. At least three lengths to fit.
    """
    import pandas as pd

    lengths = [check_integer("length", n, minimum=1) for n in (*fit_lengths, *check_lengths)]
    times = time_cold_prefills(model, lengths, repeats, chunk, seed, show_progress)
    measured = np.array([np.median(times[length]) for length in lengths])
    fitted = len(fit_lengths)
    cost_model = PrefillCostModel.fit(lengths[:fitted], measured[:fitted])
    table = pd.DataFrame(
        {
            "length": lengths,
            "role": ["fit"] * fitted + ["check"] * len(check_lengths),
            "measured_ms": measured,
            "predicted_ms": cost_model.predict_ms(np.zeros(len(lengths)), lengths),
            "flops_ms": _flops_ms(model, np.array(lengths), measured, fitted),
        }
    )
    return Calibration(cost_model, table.sort_values("length", ignore_index=True))


def time_cold_prefills(
    model: ReplayModel,
    lengths: Sequence[int],
    repeats: int,
    chunk: int = CHUNK,
    seed: int = 0,
    show_progress: bool = True,
) -> dict[int, list[float]]:
    """Return milliseconds of cold prefills by length, in an order shuffled by ``seed``."""
    repeats = check_integer("repeats", repeats, minimum=1)
    prompt = random_tokens(max(lengths), model.vocab_size, seed)
    runs = np.random.default_rng(seed).permutation(np.repeat(np.unique(lengths), repeats))
    times: dict[int, list[float]] = {int(length): [] for length in lengths}
    # The first run warms up and is not kept.
    for number, length in enumerate(progress([runs[0], *runs], "calibrate", enabled=show_progress)):
        cache = state.new_cache(model.config)
        watch = Stopwatch(model.device)
        prefill(model, cache, prompt[:length], 0, cut_plan(0, int(length), chunk))
        if number:
            times[int(length)].append(watch.lap())
    return times


def _flops_ms(
    model: ReplayModel, lengths: np.ndarray, measured: np.ndarray, fitted: int
) -> np.ndarray:
    """Return the time that FLOPs predict, at the one rate that fits the fitted lengths best."""
    if model.config.model_type not in DENSE_TYPES + EXPERT_TYPES:
        return np.full(lengths.size, np.nan)
    flops = HybridArchitecture.from_config(model.config).prefill_flops(lengths)
    rate = (measured[:fitted] / flops[:fitted]).mean()
    return rate * flops
