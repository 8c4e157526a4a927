"""Estimators: from observed overlaps to the distribution that a schedule is planned on.

A serving engine sees, request by request, how deep it shared a retained entry. An *estimator* is
told each of these (:meth:`observe`) and says what to expect for an entry of a given length
(:meth:`distribution`). The second half of the file says how much a plan made on an estimate can
lose: the bounds of Theorems 3 and 4, each as a number that is computed from its arguments.

Anything with the two methods of :class:`Estimator` can be handed to the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparselab.overlap import OverlapDistribution
from sparselab.recompute import PrefillCost, prefill_cost_values
from sparselab.validation import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    check_token_count,
)

#: The longest entry of a relative histogram: depths times lengths then fit in 64 bits.
LONGEST_RELATIVE = 2**31


class Estimator(Protocol):
    """What the simulator asks of an estimator."""

    def observe(self, depth: int, length: int, group: Hashable | None = None) -> None:
        """Take in that a request shared ``depth`` tokens of an entry of ``length`` tokens."""

    def distribution(self, length: int, group: Hashable | None = None) -> OverlapDistribution:
        """Return the overlaps to expect for an entry of ``length`` tokens of this ``group``."""


def check_estimator(name: str, value: Any) -> Estimator:
    """Return ``value`` once it has the two methods of an :class:`Estimator`; else ``TypeError``."""
    methods = (getattr(value, method, None) for method in ("observe", "distribution"))
    if isinstance(value, type) or not all(map(callable, methods)):
        raise TypeError(
            f"{name} must be an estimator with observe() and distribution(), got {value!r}."
        )
    return value


class Histogram:
    """Counts of all overlaps seen so far, each with weight 1.

    Before anything was seen, and where ``beyond="drop"`` leaves nothing, the answer is the uniform
    distribution: it knows nothing, and its optimal schedule is the balanced one (Theorem 1).

    Args:
        relative: count ``depth / length`` instead of ``depth``. For an entry of ``N`` tokens the
            observation ``(depth, length)`` then stands for depth ``depth * N // length``, and no
            entry may be longer than 2**31 tokens.
        beyond: what an absolute depth beyond the entry's length means for that entry:
            ``"count"`` it at the length (who shares more than the entry holds shares all of it)
            or ``"drop"`` it, as the paper does. Relative depths are never beyond, so that
            ``"drop"`` beside ``relative`` raises ``ValueError``.
    """

    def __init__(self, relative: bool = False, beyond: str = "count") -> None:
        if not isinstance(relative, bool):
            raise TypeError(f"relative must be True or False, got {relative!r}.")
        self.relative = relative
        self.beyond = check_choice("beyond", beyond, ("count", "drop"))
        if relative and beyond == "drop":
            raise ValueError(
                "beyond must be 'count' where relative is True, got 'drop': "
                "relative depths are never beyond an entry."
            )
        self._seen = _Weights(np.int64)

    def observe(self, depth: int, length: int, group: Hashable | None = None) -> None:
        """Take in that a request shared ``depth`` tokens of an entry of ``length`` tokens.

        ``group`` is accepted and ignored: a histogram is global.
        """
        self._add(depth, length, 1)

    def distribution(self, length: int, group: Hashable | None = None) -> OverlapDistribution:
        """Return the weights seen, as an entry of ``length`` tokens would see them."""
        length = self._check_length(length)
        depths, lengths, weights = self._seen.arrays()
        if self.relative:
            depths = depths * length // lengths
        elif self.beyond == "drop":
            within = depths <= length
            depths, weights = depths[within], weights[within]
        # Very old weights can have faded to exactly 0.
        if not weights.any():
            return OverlapDistribution.uniform(length)
        # Equal depths stand together: added up here, they need no sorting there.
        depths = np.minimum(depths, length)
        starts = np.flatnonzero(np.diff(depths, prepend=-1))
        return OverlapDistribution(depths[starts], np.add.reduceat(weights, starts), length)

    def _add(self, depth: int, length: int, weight: float) -> None:
        length = self._check_length(length)
        depth = check_integer("depth", depth, 0, length)
        # The length only matters where depths are relative; without it equal depths share a slot.
        self._seen.add(depth, length if self.relative else 1, weight)

    def _check_length(self, length: int) -> int:
        length = check_token_count("length", length)
        return (
            check_integer("length", length, maximum=LONGEST_RELATIVE) if self.relative else length
        )

    def __repr__(self) -> str:
        return f"Histogram(relative={self.relative}, beyond={self.beyond!r})"


class DecayedHistogram(Histogram):
    """A histogram that forgets: the observation ``i`` requests ago weighs ``gamma**i``.

    Normalised these are the ``w_i`` of Theorem 4. The newest observation weighs 1, so the total
    weight is the effective number of samples, ``(1 - gamma**n) / (1 - gamma)``.

    Args:
        gamma: in ``(0, 1]``; 1 forgets nothing.
        relative, beyond: as for :class:`Histogram`.
    """

    def __init__(self, gamma: float = 0.99, relative: bool = False, beyond: str = "count") -> None:
        super().__init__(relative, beyond)
        self.gamma = check_number("gamma", gamma, above=0.0, maximum=1.0)
        self._seen = _Weights(np.float64)
        self._newest = 1.0

    def observe(self, depth: int, length: int, group: Hashable | None = None) -> None:
        """Take in an overlap with weight 1 and let all earlier ones fade by ``gamma``."""
        # Instead of shrinking every weight at every request, the newest one grows by 1 / gamma;
        # only their ratios matter. Scaling back in time keeps them far from overflow; a gamma so
        # small that it does not forgets everything either way.
        grown = min(self._newest / self.gamma, 1e300)
        self._add(depth, length, grown)
        self._newest = grown
        if grown > 1e100:
            self._seen.scale(1.0 / grown)
            self._newest = 1.0

    def distribution(self, length: int, group: Hashable | None = None) -> OverlapDistribution:
        """Return the decayed weights, as an entry of ``length`` tokens would see them."""
        self._seen.scale(1.0 / self._newest)
        self._newest = 1.0
        return super().distribution(length, group)

    def __repr__(self) -> str:
        return (
            f"DecayedHistogram(gamma={self.gamma:g}, relative={self.relative}, "
            f"beyond={self.beyond!r})"
        )


class EntryAware:
    """What was seen for the entry's own group, over a prior for what was not.

    The distribution of an entry is ``counts + strength * prior``: the raw counts of overlaps of
    this entry's group plus ``strength`` pseudo-observations spread as the prior's probabilities.
    Where the group is ``None`` or nothing was seen for it, it is the prior alone. Counts are over
    absolute depth, and depths beyond an entry count at its length.

    Args:
        prior: an estimator; it is told every observation as well.
        strength: how many observations the prior is worth, at least 0.
    """

    def __init__(self, prior: Estimator, strength: float = 1.0) -> None:
        self.prior = check_estimator("prior", prior)
        self.strength = check_number("strength", strength, minimum=0.0)
        self._own: dict[Hashable, Histogram] = {}

    def observe(self, depth: int, length: int, group: Hashable | None = None) -> None:
        """Count the overlap for its group and tell the prior."""
        self.prior.observe(depth, length, group)
        if group is not None:
            self._own.setdefault(group, Histogram()).observe(depth, length)

    def distribution(self, length: int, group: Hashable | None = None) -> OverlapDistribution:
        """Return ``counts + strength * prior`` for an entry of ``length`` tokens of ``group``."""
        prior = self.prior.distribution(length, group)
        if group is None or group not in self._own:
            return prior
        own = self._own[group].distribution(length)
        return OverlapDistribution(
            np.concatenate([own.depths, prior.depths]),
            np.concatenate([own.weights, self.strength * prior.probabilities()]),
            length,
        )

    def __repr__(self) -> str:
        return f"EntryAware(prior={self.prior!r}, strength={self.strength:g})"


class _Weights:
    """Weights of ``(depth, length)`` pairs in arrays that grow by doubling."""

    def __init__(self, dtype: Any) -> None:
        self._slots: dict[tuple[int, int], int] = {}
        self._pairs: NDArray[np.int64] = np.zeros((2, 16), dtype=np.int64)
        self._weights = np.zeros(16, dtype=dtype)
        self._order: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # slots by depth / length

    def add(self, depth: int, length: int, weight: float) -> None:
        slot = self._slots.setdefault((depth, length), len(self._slots))
        if slot == self._weights.size:
            self._pairs = np.concatenate([self._pairs, np.zeros_like(self._pairs)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
        self._pairs[:, slot] = depth, length
        self._weights[slot] += weight

    def scale(self, factor: float) -> None:
        self._weights *= factor

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return depths, lengths and weights, one element a pair seen, ``depth / length`` rising.

        In this order the depths of any entry rise as well, so that none need be sorted: many
        entries are planned for between two new pairs.
        """
        self._order_new()
        depths, lengths = self._pairs
        order = self._order
        return depths[order], lengths[order], self._weights[order]

    def _order_new(self) -> None:
        """Bring the pairs added since the last time into the order."""
        known, used = self._order.size, len(self._slots)
        if known == used:
            return
        ratios = self._pairs[0, :used] / self._pairs[1, :used]
        new = known + np.argsort(ratios[known:], kind="stable")
        places = np.searchsorted(ratios[self._order], ratios[new], side="right")
        self._order = np.insert(self._order, places, new)


# -- bounds ------------------------------------------------------------------------------------
# Counts of samples, depths and requests are checked as counts of tokens are: 1 to 2**53.


@dataclass(frozen=True)
class LossBound:
    """Two bounds of the same kind on what a plan made on an estimate loses, in units of ``G``.

    Attributes:
        tv: the one through the total variation distance (Theorem 3).
        ks: the one through the Kolmogorov-Smirnov distance.
    """

    tv: float
    ks: float

    @property
    def smaller(self) -> float:
        """The smaller of the two: both hold, so it does."""
        return min(self.tv, self.ks)


def loss_bound(
    planned: OverlapDistribution, actual: OverlapDistribution, prefill_cost: PrefillCost = None
) -> LossBound:
    r"""Bound what the optimal schedule for ``planned`` loses when ``actual`` comes.

    With ``q = planned``, ``p = actual`` and their optimal schedules ``C_q`` and ``C_p`` the loss is
    ``E_p r(C_q) - E_p r(C_p)``. Insert the expectations under ``q``::

        E_p r(C_q) - E_p r(C_p) =   [E_p r(C_q) - E_q r(C_q)]
                                  + [E_q r(C_q) - E_q r(C_p)]     <= 0, since C_q is optimal for q
                                  + [E_q r(C_p) - E_p r(C_p)]

    so it is at most twice a bound on ``|E_p r - E_q r|`` that holds for every schedule.

    *Total variation* (Lemma 1, Theorem 3): ``0 <= r <= G(N)``, and ``p - q`` has a positive and a
    negative part of mass ``TV`` each, so ``|E_p r - E_q r| <= G(N) TV`` and the loss is at most
    ``2 G(N) TV(p, q)``.

    *Kolmogorov-Smirnov*: by summation by parts, since ``P(N) = Q(N) = 1``,
    ``E_p r - E_q r = -sum_{t<N} (P(t) - Q(t)) (r(t+1) - r(t))``, so it is at most ``V KS`` with
    ``V = sum_t |r(t+1) - r(t)|``. The sawtooth ``r`` starts at 0, rises by at most ``G(N)`` in all
    and cannot fall by more than it rose: ``V <= 2 G(N)``. The loss is at most ``4 G(N) KS(p, q)``.

    Both distributions must have the same length; raises ``ValueError`` otherwise.
    """
    check_instance("planned", planned, OverlapDistribution)
    check_instance("actual", actual, OverlapDistribution)
    if planned.length != actual.length:
        raise ValueError(
            f"planned is for entries of {planned.length} tokens and actual for {actual.length}: "
            "restrict() one of them first."
        )
    top = _full_cost(actual.length, prefill_cost)
    return LossBound(tv=2 * top * planned.tv(actual), ks=4 * top * planned.ks(actual))


def expected_tv(samples: int, support: int) -> float:
    """Bound ``E TV(p_hat, p)`` for ``samples`` independent draws over ``support`` depths.

    ``E |p_hat_t - p_t| <= sqrt(p_t / n)`` (a binomial's standard deviation), and by Cauchy-Schwarz
    ``sum_t sqrt(p_t) <= sqrt(K)``: half their sum is at most ``0.5 * sqrt(K / n)``. At most 1.
    """
    n = check_token_count("samples", samples)
    k = check_token_count("support", support)
    return min(1.0, 0.5 * math.sqrt(k / n))


def expected_ks(samples: int) -> float:
    """Bound ``E KS(p_hat, p)`` for ``samples`` independent draws, whatever the support.

    Integrating the Dvoretzky-Kiefer-Wolfowitz tail ``P(KS > x) <= 2 exp(-2 n x**2)`` over ``x``
    gives ``sqrt(pi / (2 n))``. At most 1.
    """
    n = check_token_count("samples", samples)
    return min(1.0, math.sqrt(math.pi / (2 * n)))


def ks_quantile(samples: int, alpha: float) -> float:
    """Return ``sqrt(log(2 / alpha) / (2 n))``, which KS exceeds with probability at most ``alpha``.

    The Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant (1990), solved for ``x``; it
    needs no bound on the number of depths. At most 1.
    """
    n = check_token_count("samples", samples)
    alpha = check_number("alpha", alpha, above=0.0, below=1.0)
    return min(1.0, math.sqrt(math.log(2 / alpha) / (2 * n)))


def tv_quantile(samples: int, support: int, alpha: float) -> float:
    """Return a distance that ``TV(p_hat, p)`` exceeds with probability at most ``alpha``.

    Changing one sample moves TV by at most ``1 / n``, so by McDiarmid's inequality TV exceeds its
    mean (:func:`expected_tv`) by more than ``sqrt(log(1 / alpha) / (2 n))`` with probability at
    most ``alpha``. At most 1.
    """
    n = check_token_count("samples", samples)
    alpha = check_number("alpha", alpha, above=0.0, below=1.0)
    return min(1.0, expected_tv(n, support) + math.sqrt(math.log(1 / alpha) / (2 * n)))


def sample_loss_bound(
    samples: int,
    support: int,
    length: int,
    alpha: float | None = None,
    prefill_cost: PrefillCost = None,
) -> LossBound:
    """Bound what planning on the histogram of ``samples`` independent overlaps loses.

    The sample-size form of :func:`loss_bound`: ``2 G(N)`` times a bound on TV, which grows with
    the ``support`` (the number of possible depths), and ``4 G(N)`` times one on KS, which does not.
    In expectation where ``alpha`` is ``None``, so that the KS form is the smaller from
    ``8 pi`` = 25.1 depths on; otherwise each with probability at least ``1 - alpha``.
    """
    top = _full_cost(length, prefill_cost)
    if alpha is None:
        tv, ks = expected_tv(samples, support), expected_ks(samples)
    else:
        tv, ks = tv_quantile(samples, support, alpha), ks_quantile(samples, alpha)
    return LossBound(tv=2 * top * tv, ks=4 * top * ks)


@dataclass(frozen=True)
class DriftBound:
    """Theorem 4, split: what ``gamma`` near 1 raises, and what it lowers.

    Attributes:
        bias: bound on ``TV(E q_n, p)``: the plan lags behind the drift.
        variance: bound on ``E TV(q_n, E q_n)``: the plan rests on few effective samples.
        loss: ``2 G(N) (bias + variance)``, in units of ``G``. Above ``G(N)`` it says nothing.
    """

    bias: float
    variance: float
    loss: float


def drift_bound(
    samples: int,
    gamma: float,
    drift: float,
    support: int,
    length: int,
    replan_every: int = 1,
    prefill_cost: PrefillCost = None,
) -> DriftBound:
    """Bound the expected loss of planning on a decayed histogram while the overlaps drift.

    The estimate is ``q_n = sum_i w_i delta(T_{n-i})`` of independent overlaps ``T_1..T_n`` with
    ``w_i = gamma**i (1 - gamma) / (1 - gamma**n)``, and ``TV(p_j, p_{j+1}) <= drift`` for every
    request ``j``.

    *Bias.* ``E q_n = sum_i w_i p_{n-i}``, and ``p_{n-i}`` is ``i + 1`` requests older than
    ``p_{n+1}``: ``TV(E q_n, p_{n+1}) <= drift * sum_i w_i (i + 1) <= drift / (1 - gamma)``. A plan
    that is renewed every ``R`` requests is up to ``R - 1`` requests older: ``+ drift (R - 1)``.

    *Variance.* The deviation at depth ``t`` is a sum of independent terms of variance at most
    ``w_i**2 p_{n-i,t}``; by Jensen and Cauchy-Schwarz over the ``K`` depths that had weight at any
    time, ``E TV(q_n, E q_n) <= 0.5 sqrt(K sum_i w_i**2)``, where ``sum_i w_i**2 =
    (1 - gamma) (1 + gamma**n) / ((1 + gamma) (1 - gamma**n))``.

    *Loss.* Theorem 3 with the triangle inequality: at most ``2 G(N)`` times their sum.

    Args:
        samples: ``n``, overlaps observed so far, at least 1.
        gamma: the decay, in ``(0, 1)``.
        drift: total variation per request, in ``[0, 1]``.
        support: ``K``, the number of depths that had weight at any time.
        length: ``N``, tokens in the entry.
        replan_every: ``R``, requests between two plans.
        prefill_cost: the cost ``G``; tokens by default.
    """
    n = check_token_count("samples", samples)
    gamma = check_number("gamma", gamma, above=0.0, below=1.0)
    drift = check_number("drift", drift, minimum=0.0, maximum=1.0)
    k = check_token_count("support", support)
    interval = check_token_count("replan_every", replan_every)
    bias = drift / (1 - gamma) + drift * (interval - 1)
    variance = 0.5 * math.sqrt(k * _squared_weights(n, gamma))
    return DriftBound(bias, variance, 2 * _full_cost(length, prefill_cost) * (bias + variance))


def _squared_weights(samples: int, gamma: float) -> float:
    """Return ``sum_i w_i**2`` of the normalised decayed weights of ``samples`` observations.

    Its inverse is the effective number of samples: ``(1 + gamma) / (1 - gamma)`` in the long run.
    """
    # (1 + gamma**n) / (1 - gamma**n) = coth(-n log(gamma) / 2): no cancellation near gamma = 1.
    return (1 - gamma) / (1 + gamma) / math.tanh(-0.5 * samples * math.log(gamma))


def _full_cost(length: int, prefill_cost: PrefillCost) -> float:
    """Return ``G(N)``, the cost of prefilling the whole entry."""
    length = check_token_count("length", length)
    if prefill_cost is None:
        return float(length)
    return float(prefill_cost_values(prefill_cost, length)[length])
