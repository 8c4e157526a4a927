"""What planning costs while the overlaps drift: measured regret beside the bounds of the theory.

Traffic swings between two populations of requests, :class:`Drift`. A :class:`PlanningRule` says
when a new plan is made and on which of the overlaps seen so far; :func:`measure_regret` plays many
random runs and compares each plan, at each request, with the plan that knows the truth. Everything
here is synthetic: the truth is known, and so regret, distances and bounds are computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparselab.estimators import (
    DecayedHistogram,
    DriftBound,
    Estimator,
    Histogram,
    drift_bound,
)
from sparselab.optimal import optimal_frontier
from sparselab.overlap import OverlapDistribution
from sparselab.placement import Schedule, place
from sparselab.recompute import recompute
from sparselab.validation import check_integer

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Drift:
    """Overlaps that swing from one distribution to another and back, in equal steps.

    The distribution of request ``j`` is ``(1 - s_j) first + s_j second``, where ``s_j`` rises from
    0 to 1 within ``swing`` requests, falls to 0 within as many, and so on.

    Attributes:
        first, second: the two distributions, of the same length.
        swing: requests from one to the other, at least 1.
        requests: how many requests there are, at least 1.
    """

    first: OverlapDistribution
    second: OverlapDistribution
    swing: int
    requests: int

    def __post_init__(self) -> None:
        check_integer("swing", self.swing, minimum=1)
        check_integer("requests", self.requests, minimum=1)
        if self.first.length != self.second.length:
            raise ValueError(
                f"first is for entries of {self.first.length} tokens and second for "
                f"{self.second.length}: they must be equal."
            )

    @property
    def length(self) -> int:
        """Tokens in the entry."""
        return self.first.length

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """``s_j``, the share of the second distribution at each request."""
        phase = np.arange(self.requests) % (2 * self.swing)
        return np.minimum(phase, 2 * self.swing - phase) / self.swing

    @property
    def step(self) -> float:
        """Total variation between the distributions of two successive requests."""
        return self.first.tv(self.second) / self.swing

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """The depths that have weight at any time, increasing."""
        return np.union1d(self.first.depths, self.second.depths)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each of :attr:`depths` under the first and the second."""
        both = np.zeros((2, self.depths.size))
        for row, part in zip(both, (self.first, self.second), strict=True):
            row[np.searchsorted(self.depths, part.depths)] = part.probabilities()
        return both

    def sample(self, seed: int) -> NDArray[np.int64]:
        """Draw one overlap a request, independently; equal seeds give equal draws."""
        rng = np.random.default_rng(seed)
        columns = self.probabilities().cumsum(axis=1)
        is_second, draws = rng.random(self.requests) < self.shares, rng.random(self.requests)
        at = np.where(is_second, *(np.searchsorted(part, draws) for part in columns[::-1]))
        return self.depths[np.minimum(at, self.depths.size - 1)]

    def least_cost(self, budget: int) -> NDArray[np.float64]:
        """Return ``E[r]`` of the plan that knows the truth, for each request."""
        first, second = self.probabilities()
        shares, request = np.unique(self.shares, return_inverse=True)
        costs = [
            optimal_frontier(
                OverlapDistribution(self.depths, (1 - s) * first + s * second, self.length), budget
            ).expected[budget]
            for s in shares
        ]
        return np.array(costs)[request]


@dataclass(frozen=True)
class PlanningRule:
    """When a plan is made, and on what.

    Attributes:
        make_estimator: returns a fresh estimator.
        replan_every: requests between two plans; the first comes after as many. Before it, the
            schedule is the balanced one.
        restarts: forget everything after each plan, so that each rests on the last
            ``replan_every`` requests alone.
        plans: the most plans made, or ``None`` for no limit.
    """

    make_estimator: Callable[[], Estimator]
    replan_every: int
    restarts: bool = False
    plans: int | None = None

    def __post_init__(self) -> None:
        check_integer("replan_every", self.replan_every, minimum=1)


def standard_rules(gamma: float, replan_every: int, window: int) -> dict[str, PlanningRule]:
    """Return the three rules that the lab compares.

    ``frozen`` plans once, on the first ``window`` requests; ``periodic`` plans every ``window``
    requests on those alone; ``decayed`` plans every ``replan_every`` requests on a histogram that
    forgets by ``gamma`` a request.
    """
    DecayedHistogram(gamma)  # a gamma outside (0, 1] is refused here, not in the middle of a run
    return {
        "frozen": PlanningRule(Histogram, window, plans=1),
        "periodic": PlanningRule(Histogram, window, restarts=True),
        "decayed": PlanningRule(partial(DecayedHistogram, gamma), replan_every),
    }


def measure_regret(
    drift: Drift,
    budget: int,
    rules: Mapping[str, PlanningRule],
    repeats: int = 10,
    seed: int = 0,
) -> pandas.DataFrame:
    """Play ``repeats`` random runs under each rule; return one row a rule and request.

    Columns, all means over the runs: ``regret`` (tokens: ``E_p r(C) - min E_p r`` for the true
    ``p`` of that request), ``tv`` and ``ks`` between what was planned on and the truth, and
    ``loss_bound``, the smaller of ``2 N tv`` (Theorem 3) and ``4 N ks`` (see
    :func:`sparselab.estimators.loss_bound`) in each run, in tokens. Requests before
    the first plan have no estimate: there all but the regret are missing.
    """
    import pandas

    budget = check_integer("budget", budget, minimum=0)
    repeats = check_integer("repeats", repeats, minimum=1)
    least = drift.least_cost(budget)
    samples = [drift.sample(seed + run) for run in range(repeats)]
    frames = []
    for name, rule in rules.items():
        runs = [_play(drift, budget, rule, overlaps) for overlaps in samples]
        cost, tv, ks = (np.mean(part, axis=0) for part in zip(*runs, strict=True))
        bound = [np.minimum(2 * drift.length * run[1], 4 * drift.length * run[2]) for run in runs]
        frames.append(
            pandas.DataFrame(
                {
                    "rule": name,
                    "request": np.arange(drift.requests),
                    "regret": cost - least,
                    "tv": tv,
                    "ks": ks,
                    "loss_bound": np.mean(bound, axis=0),
                }
            )
        )
    return pandas.concat(frames, ignore_index=True)


def measure_gammas(
    drift: Drift,
    budget: int,
    gammas: Sequence[float],
    replan_every: int = 10,
    repeats: int = 5,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return, for each decay, the mean regret in the second half of the run beside Theorem 4.

    Columns: ``gamma``, ``regret`` (tokens, mean over runs and requests), and the bound on it with
    its parts, means over the same requests: ``bias`` and ``variance`` (total variation) and
    ``theorem_4`` (tokens). The requests are those of the second half that come after the first
    plan; all but ``gamma`` are missing where there are none.
    """
    import pandas

    rules = {
        str(gamma): PlanningRule(partial(DecayedHistogram, gamma), replan_every) for gamma in gammas
    }
    table = measure_regret(drift, budget, rules, repeats, seed)
    served = np.arange(max(drift.requests // 2, replan_every), drift.requests)
    late = table[table["request"].isin(served)].groupby("rule")["regret"].mean()
    bounds = [_mean_bound(drift, gamma, replan_every, served) for gamma in gammas]
    return pandas.DataFrame(
        {
            "gamma": gammas,
            "regret": [late.get(str(gamma), np.nan) for gamma in gammas],
            "bias": [bound.bias for bound in bounds],
            "variance": [bound.variance for bound in bounds],
            "theorem_4": [bound.loss for bound in bounds],
        }
    )


def _mean_bound(
    drift: Drift, gamma: float, replan_every: int, served: NDArray[np.int64]
) -> DriftBound:
    """Return the mean of Theorem 4 over the requests ``served``, each after the first plan."""
    if not served.size:
        return DriftBound(np.nan, np.nan, np.nan)
    seen, requests = np.unique(served // replan_every * replan_every, return_counts=True)
    bounds = [theorem_4(drift, gamma, n, replan_every) for n in seen.tolist()]
    parts = [(bound.bias, bound.variance, bound.loss) for bound in bounds]
    return DriftBound(*np.average(parts, axis=0, weights=requests).tolist())


def theorem_4(drift: Drift, gamma: float, samples: int, replan_every: int) -> DriftBound:
    """Return the bound of Theorem 4 for this drift after ``samples`` requests."""
    return drift_bound(samples, gamma, drift.step, drift.depths.size, drift.length, replan_every)


def plans_over_time(
    drift: Drift, budget: int, rule: PlanningRule, overlaps: NDArray[np.int64]
) -> list[tuple[int, Schedule, OverlapDistribution | None]]:
    """Return ``(first request that it serves, schedule, estimate)`` of every plan of one run."""
    plans: list[tuple[int, Schedule, OverlapDistribution | None]] = [
        (0, place("balanced", drift.length, budget), None)
    ]
    estimator = rule.make_estimator()
    for number, depth in enumerate(overlaps.tolist(), start=1):
        estimator.observe(depth, drift.length)
        is_due = number % rule.replan_every == 0 and number < drift.requests
        if not is_due or (rule.plans is not None and len(plans) > rule.plans):
            continue
        estimate = estimator.distribution(drift.length)
        plans.append((number, place("optimal", drift.length, budget, estimate), estimate))
        if rule.restarts:
            estimator = rule.make_estimator()
    return plans


def _play(
    drift: Drift, budget: int, rule: PlanningRule, overlaps: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each request of one run, the true ``E[r]`` of its plan, and its TV and KS."""
    plans = plans_over_time(drift, budget, rule, overlaps)
    first, second = drift.probabilities()
    cost, tv, ks = (np.full(drift.requests, np.nan) for _ in range(3))
    ends = [start for start, _, _ in plans[1:]] + [drift.requests]
    for (start, schedule, estimate), end in zip(plans, ends, strict=True):
        share = drift.shares[start:end, None]
        truth = (1 - share) * first + share * second
        cost[start:end] = truth @ recompute(schedule, drift.depths)
        if estimate is not None:
            tv[start:end], ks[start:end] = _distances(truth, drift.depths, estimate)
    return cost, tv, ks


def _distances(
    truth: NDArray[np.float64], depths: NDArray[np.int64], estimate: OverlapDistribution
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return TV and KS between an estimate and each row of ``truth``, probabilities of ``depths``.

    The estimate may have any depths. Between two of ``depths`` the truth's distribution function
    is flat and the estimate's rises, so they are furthest apart at one end of such a gap.
    """
    cumulated = np.concatenate(([0.0], np.cumsum(estimate.probabilities())))
    before = cumulated[np.searchsorted(estimate.depths, depths, side="left")]
    upto = cumulated[np.searchsorted(estimate.depths, depths, side="right")]
    off = truth - (upto - before)
    elsewhere = max(0.0, 1.0 - (upto - before).sum())  # the estimate's, where the truth has none
    tv = 0.5 * (np.abs(off).sum(axis=1) + elsewhere)
    true_upto = truth.cumsum(axis=1)
    ks = np.maximum(np.abs(true_upto - upto), np.abs(true_upto - truth - before)).max(axis=1)
    return tv, ks
