"""One study of drift as plain data: what the drift panel computes and its figure draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sparselab as sl
from sparselab.drift import (
    Drift,
    measure_gammas,
    measure_regret,
    plans_over_time,
    standard_rules,
    theorem_4,
)
from sparselab.validation import check_integer

#: Where the two populations lie, as parts of the entry, and how wide they are.
CENTRES, HALF_WIDTH = (0.3, 0.75), 0.18
GAMMAS = (0.5, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.998)


@dataclass(frozen=True)
class DriftStudy:
    """Regret of three planning rules while synthetic overlaps drift.

    Attributes:
        drift: the truth.
        budget, gamma, replan_every, window, repeats: the settings.
        overlaps: those of the first run, one a request.
        checkpoints: of the decayed rule in the first run: one row a plan with the request from
            which on it serves, and its positions.
        regret: one row a rule and request, from :func:`sparselab.drift.measure_regret`, with the
            bound of Theorem 4 for the decayed rule in ``theorem_4``.
        gammas: regret and bound for a range of decays.
    """

    drift: Drift
    budget: int
    gamma: float
    replan_every: int
    window: int
    repeats: int
    overlaps: NDArray[np.int64]
    checkpoints: list[tuple[int, list[int]]]
    regret: pd.DataFrame
    gammas: pd.DataFrame


def study_drift(
    swing: int = 500,
    requests: int = 1500,
    depths: int = 12,
    length: int = 4096,
    budget: int = 2,
    gamma: float = 0.975,
    replan_every: int = 20,
    window: int = 100,
    repeats: int = 4,
    seed: int = 0,
) -> DriftStudy:
    """Return the study for these settings; the parts that a change leaves alone are kept.

    ``depths`` is the number of overlap depths of each population; see
    :class:`sparselab.drift.Drift` and :func:`sparselab.drift.standard_rules` for the rest.
    """
    drift = populations(swing, requests, depths, length)
    rules = standard_rules(gamma, replan_every, window)
    overlaps = drift.sample(seed)
    plans = plans_over_time(drift, budget, rules["decayed"], overlaps)
    regret = pd.concat(
        [
            _regret(drift, budget, "frozen", 0.5, 1, window, repeats, seed),
            _regret(drift, budget, "periodic", 0.5, 1, window, repeats, seed),
            _regret(drift, budget, "decayed", gamma, replan_every, 1, repeats, seed),
        ],
        ignore_index=True,
    )
    return DriftStudy(
        drift,
        budget,
        gamma,
        replan_every,
        window,
        repeats,
        overlaps,
        [(start, schedule.positions.tolist()) for start, schedule, _ in plans],
        _with_theorem_4(regret, drift, gamma, replan_every),
        _gammas(drift, budget, replan_every, repeats, seed),
    )


@lru_cache(maxsize=8)
def populations(swing: int, requests: int, depths: int, length: int) -> Drift:
    """Return a drift between a shallow and a deep population of equally likely depths."""
    depths = check_integer("depths", depths, minimum=1)
    length = check_integer("length", length, minimum=64)
    spread = np.linspace(-HALF_WIDTH, HALF_WIDTH, depths) if depths > 1 else np.zeros(1)
    first, second = (
        sl.OverlapDistribution.from_samples(np.rint((c + spread) * length).astype(int), length)
        for c in CENTRES
    )
    return Drift(first, second, swing, requests)


@lru_cache(maxsize=24)
def _regret(
    drift: Drift,
    budget: int,
    rule: str,
    gamma: float,
    replan_every: int,
    window: int,
    repeats: int,
    seed: int,
) -> pd.DataFrame:
    """Measure one rule; only its own settings are in the key, so that others can move."""
    rules = standard_rules(gamma, replan_every, window)
    return measure_regret(drift, budget, {rule: rules[rule]}, repeats, seed)


@lru_cache(maxsize=8)
def _gammas(drift: Drift, budget: int, replan_every: int, repeats: int, seed: int) -> pd.DataFrame:
    return measure_gammas(drift, budget, GAMMAS, replan_every, repeats, seed)


def _with_theorem_4(
    regret: pd.DataFrame, drift: Drift, gamma: float, replan_every: int
) -> pd.DataFrame:
    """Add the bound of each plan of the decayed rule, from the requests it rests on."""
    seen = regret["request"] // replan_every * replan_every
    planned = (regret["rule"] == "decayed") & (seen > 0)
    bound = {n: theorem_4(drift, gamma, n, replan_every).loss for n in seen[planned].unique()}
    return regret.assign(theorem_4=seen.where(planned).map(bound))
