"""What measurements say: medians, speedup over cold, and time saved against tokens saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparselab.recompute import PrefillCostModel
from sparselab.replay.measurement import COLD

if TYPE_CHECKING:
    import pandas as pd

CASE = ["policy", "budget", "depth"]


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median of each case of a table by :func:`~sparselab.replay.measure`.

    Beside the medians of the times: ``saved_ms`` and ``speedup`` over the median cold run, and
    ``load_share``, the load time's share of the total.
    """
    _check_cold(table)
    cold_ms = table.loc[table["policy"] == COLD, "total_ms"].median()
    kept = ["resume_point", "saved_tokens", "recomputed_tokens", "length"]
    kept += ["checkpoints", "checkpoint_bytes", "kv_bytes"]
    groups = table.groupby(CASE, dropna=False, sort=False)
    summary = groups[kept].first().join(groups[["load_ms", "compute_ms", "total_ms"]].median())
    summary["saved_ms"] = cold_ms - summary["total_ms"]
    summary["speedup"] = cold_ms / summary["total_ms"]
    summary["load_share"] = summary["load_ms"] / summary["total_ms"]
    return summary.reset_index().sort_values(CASE, ignore_index=True)


@dataclass(frozen=True)
class SavingsFit:
    """The line ``saved_ms = intercept_ms + ms_per_token * saved_tokens`` through the medians.

    Attributes:
        ms_per_token: slope. intercept_ms: what resuming costs or saves apart from tokens.
        r_squared: share of the variance that the line explains.
        points: distinct numbers of saved tokens that it goes through.
    """

    ms_per_token: float
    intercept_ms: float
    r_squared: float
    points: int


def has_cold(table: pd.DataFrame) -> bool:
    """Whether a table holds cold runs to compare with, which an interruption may have prevented."""
    return not table.empty and bool((table["policy"] == COLD).any())


def can_fit(table: pd.DataFrame) -> bool:
    """Whether a table has what :func:`fit_savings` needs."""
    return has_cold(table) and table["saved_tokens"].nunique() >= 3


def fit_savings(table: pd.DataFrame) -> SavingsFit:
    """Fit time saved on tokens saved by least squares.

    One point for each number of saved tokens: the median over all runs that saved as many.
    Raises ``ValueError`` for fewer than three points.
    """
    _check_cold(table)
    medians = table.groupby("saved_tokens")["total_ms"].median()
    tokens = medians.index.to_numpy(dtype=float)
    if tokens.size < 3:
        raise ValueError(
            f"a fit needs at least 3 different numbers of saved tokens, got {tokens.size}: "
            "measure more depths or budgets."
        )
    saved = medians.loc[0] - medians.to_numpy()
    slope, intercept = np.polyfit(tokens, saved, 1)
    residual = saved - (intercept + slope * tokens)
    r_squared = 1.0 - residual @ residual / ((saved - saved.mean()) @ (saved - saved.mean()))
    return SavingsFit(float(slope), float(intercept), float(r_squared), tokens.size)


def predict(table: pd.DataFrame, cost_model: PrefillCostModel) -> pd.DataFrame:
    """Return a table of runs, or their summary, with ``predicted_ms``: what each suffix costs."""
    predicted = cost_model.predict_ms(table["resume_point"].to_numpy(), table["length"].to_numpy())
    return table.assign(predicted_ms=predicted)


@dataclass(frozen=True)
class PredictionError:
    """How far predicted times of resumes are from measured ones, as shares of the measured.

    Attributes:
        median, worst: over the cases that resumed.
        cold_ratio: measured over predicted time of the cold prefills timed beside them. Far from 1
            the machine runs at another speed than when the cost model was fitted.
        relative_median: the median with every prediction times ``cold_ratio``: how well the *share*
            of a cold prefill is predicted.
        cases: how many resumed.
    """

    median: float
    worst: float
    cold_ratio: float
    relative_median: float
    cases: int

    @property
    def machine_changed(self) -> bool:
        """Whether cold prefills alone are off by more than 15 %."""
        return abs(self.cold_ratio - 1.0) > 0.15

    @property
    def verdict(self) -> str:
        """The errors in one sentence, without its full stop."""
        text = (
            f"predicted times are off by {self.median:.0%} in the median and {self.worst:.0%} at "
            f"most, over {self.cases} cases that resumed"
        )
        if self.machine_changed:
            text += (
                f"; a cold prefill takes {self.cold_ratio:.2f} times what was predicted, so the "
                "machine's speed has changed since the fit: relative to it they are off by "
                f"{self.relative_median:.0%} in the median"
            )
        return text


def prediction_error(summary: pd.DataFrame) -> PredictionError:
    """Compare ``predicted_ms`` with ``total_ms`` in what :func:`predict` made of a summary.

    Raises ``ValueError`` where no case resumed.
    """
    _check_cold(summary)
    resumed = summary[summary["resume_point"] > 0]
    if resumed.empty:
        raise ValueError("no case resumed from a checkpoint: there is no prediction to compare.")
    cold = summary[summary["policy"] == COLD]
    cold_ratio = (cold["total_ms"] / cold["predicted_ms"]).median()
    ratio = resumed["predicted_ms"] / resumed["total_ms"]
    errors = (ratio - 1.0).abs()
    return PredictionError(
        median=float(errors.median()),
        worst=float(errors.max()),
        cold_ratio=float(cold_ratio),
        relative_median=float((ratio * cold_ratio - 1.0).abs().median()),
        cases=len(resumed),
    )


def _check_cold(table: pd.DataFrame) -> None:
    if not has_cold(table):
        raise ValueError(f"the table has no cold runs (policy {COLD!r}) to compare with.")
