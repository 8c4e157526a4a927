"""What a request recomputes, given a schedule: the objective that placement minimises.

With checkpoints ``C`` a request of overlap depth ``t`` resumes at the deepest checkpoint within
its overlap and recomputes the rest of it::

    l(t; C) = max({0} U {c in C : c <= t})
    r(t; C) = G(t) - G(l(t; C))

``G(x)`` is the cost of prefilling the first ``x`` tokens. This file holds the objective apart
from the solver (`optimal.py`), so that any schedule can be priced by the same few lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.overlap import OverlapDistribution
from sparselab.validation import LARGEST_EXACT_INTEGER, check_instance, check_number, check_vector

if TYPE_CHECKING:
    from sparselab.placement import Schedule

#: The prefill cost ``G``: ``None`` counts tokens (``G(x) = x``); an array holds ``G(0..N)``; a
#: callable takes an integer array of token counts and returns their costs.
PrefillCost = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None


def prefill_cost_values(prefill_cost: PrefillCost, length: int) -> NDArray[Any]:
    """Return ``G(0), ..., G(length)`` as an ``int64`` or ``float64`` array, checked.

    Integers stay integers as long as doubles hold them all exactly, up to 2**53. Raises
    ``ValueError`` unless there are ``length + 1`` finite values that start at 0 and never decrease.
    """
    if prefill_cost is None:
        return np.arange(length + 1)
    raw = prefill_cost(np.arange(length + 1)) if callable(prefill_cost) else prefill_cost
    values = check_vector("prefill_cost", raw)
    if values.size != length + 1:
        raise ValueError(
            f"prefill_cost must hold length + 1 = {length + 1} values G(0)..G(length), "
            f"got {values.size}."
        )
    if values.dtype.kind not in "iuf":
        raise TypeError(f"prefill_cost must hold numbers, got {values.dtype} values.")
    if not np.isfinite(values).all():
        raise ValueError("prefill_cost must be finite everywhere.")
    if values[0] != 0:
        raise ValueError(f"prefill_cost must start at G(0) = 0, got {values[0]}.")
    falls = np.flatnonzero(values[1:] < values[:-1])
    if falls.size:
        at = int(falls[0])
        raise ValueError(
            f"prefill_cost must not decrease, got G({at}) = {values[at]} and "
            f"G({at + 1}) = {values[at + 1]}."
        )
    exact = values.dtype.kind != "f" and values[-1] <= LARGEST_EXACT_INTEGER
    return values.astype(np.int64 if exact else np.float64)


def recompute(schedule: Schedule, t: ArrayLike, prefill_cost: PrefillCost = None) -> Any:
    """Return ``r(t; C)``, the cost of what a request of overlap depth ``t`` recomputes.

    ``t`` may be one depth or an array of them, each in ``0..schedule.length``; the answer has its
    shape and the unit of ``prefill_cost`` (tokens by default).
    """
    starts = np.asarray(schedule.resume_point(t))
    depths = np.asarray(t).astype(np.int64)
    if prefill_cost is None:
        costs = depths - starts
    else:
        values = prefill_cost_values(prefill_cost, schedule.length)
        costs = np.asarray(values[depths] - values[starts])
    return costs if depths.ndim else costs.item()


def total_recompute(
    schedule: Schedule, distribution: OverlapDistribution, prefill_cost: PrefillCost = None
) -> int | float:
    """Return ``sum_t w_t r(t; C)`` in the weights' own unit.

    Integer weights with an integer cost give an exact ``int``, however large.
    """
    _check_same_length(schedule, distribution)
    costs = recompute(schedule, distribution.depths, prefill_cost)
    if costs.dtype.kind == "f" or distribution.weights.dtype.kind == "f":
        return _dot(distribution.weights, costs)
    # A bound on the sum says whether 64-bit products can overflow; Python's integers cannot.
    if float(costs.max(initial=0)) * float(distribution.total) < LARGEST_EXACT_INTEGER:
        return int(distribution.weights @ costs)
    return sum(w * c for w, c in zip(distribution.weights.tolist(), costs.tolist(), strict=True))


def expected_recompute(
    schedule: Schedule, distribution: OverlapDistribution, prefill_cost: PrefillCost = None
) -> float:
    """Return ``E[r]``: :func:`total_recompute` over the total weight (weights normalised)."""
    _check_same_length(schedule, distribution)
    costs = recompute(schedule, distribution.depths, prefill_cost)
    if distribution.weights.dtype.kind == "f":
        return _dot(distribution.probabilities(), costs)
    return total_recompute(schedule, distribution, prefill_cost) / distribution.total


def worst_case_recompute(schedule: Schedule, prefill_cost: PrefillCost = None) -> int | float:
    """Return ``max_t r(t; C)`` over every depth ``0..length``.

    ``G`` never decreases, so the worst depth of each run is its last one.
    """
    last_depths = np.append(schedule.positions - 1, schedule.length)
    return np.max(recompute(schedule, last_depths, prefill_cost)).item()


def reduction_factor(
    schedule: Schedule, distribution: OverlapDistribution, prefill_cost: PrefillCost = None
) -> float:
    """Return ``E[r without a cache] / E[r]``: how many times less of the overlap is recomputed.

    Both count tokens of the shared prefix alone: what a request has beyond its overlap is computed
    either way, so a whole prompt gains less. It is ``inf`` where the schedule leaves nothing of the
    overlaps to recompute and 1 where nothing overlapped.
    """
    _check_same_length(schedule, distribution)
    remaining = expected_recompute(schedule, distribution, prefill_cost)
    without = recompute_without_cache(distribution, prefill_cost)
    if remaining == 0:
        return float("inf") if without > 0 else 1.0
    return without / remaining


def recompute_without_cache(
    distribution: OverlapDistribution, prefill_cost: PrefillCost = None
) -> float:
    """Return ``E[G(t)]``: what is recomputed of the overlap where no checkpoint exists."""
    cost: NDArray[Any] = distribution.depths
    if prefill_cost is not None:
        cost = prefill_cost_values(prefill_cost, distribution.length)[cost]
    return _dot(distribution.probabilities(), cost)


@dataclass(frozen=True)
class PrefillCostModel:
    """Time of a prefill as ``overhead + linear * x + quadratic * x**2`` milliseconds.

    The quadratic term is attention's; the overhead is paid once a prefill, whatever its length, and
    so is no part of ``G``: called with token counts the model returns
    ``G(x) = linear * x + quadratic * x**2``, which starts at 0 and can be a prefill cost.

    Args:
        overhead_ms: milliseconds a prefill costs whatever its length.
        linear_ms: milliseconds a token.
        quadratic_ms: milliseconds a squared token.
    """

    overhead_ms: float
    linear_ms: float
    quadratic_ms: float

    def __post_init__(self) -> None:
        for name in ("overhead_ms", "linear_ms", "quadratic_ms"):
            check_number(name, getattr(self, name), minimum=0.0)

    def __call__(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Return ``G`` in milliseconds at each of ``tokens``."""
        x = np.asarray(tokens, dtype=float)
        return self.linear_ms * x + self.quadratic_ms * x**2

    def predict_ms(self, start: ArrayLike, end: ArrayLike) -> NDArray[np.float64]:
        """Return the milliseconds of computing tokens ``start..end`` after a resume."""
        return self.overhead_ms + self(end) - self(start)

    @classmethod
    def fit(cls, lengths: ArrayLike, milliseconds: ArrayLike) -> PrefillCostModel:
        """Fit the three terms to measured cold prefills by non-negative least squares.

        Each measurement is weighed by its inverse, so that relative errors count alike for short
        and long prompts. At least three distinct lengths are needed.
        """
        from scipy.optimize import nnls

        x, y = check_vector("lengths", lengths), check_vector("milliseconds", milliseconds)
        if x.dtype.kind not in "iuf" or y.dtype.kind not in "iuf":
            raise TypeError(
                f"lengths and milliseconds must be numbers, got {x.dtype} and {y.dtype} values."
            )
        if x.size != y.size or np.unique(x).size < 3:
            raise ValueError(
                "lengths and milliseconds must be equally long with at least 3 distinct lengths, "
                f"got {x.size} and {y.size}, of which {np.unique(x).size} lengths are distinct."
            )
        if not (np.isfinite(x).all() and np.isfinite(y).all() and (x >= 0).all() and (y > 0).all()):
            raise ValueError("lengths must be non-negative and milliseconds positive and finite.")
        # Columns of like size keep the least-squares problem well conditioned.
        scale = max(float(x.max()), 1.0)
        columns = np.stack([np.ones_like(x), x / scale, (x / scale) ** 2], axis=1)
        terms, _ = nnls(columns / y[:, None], np.ones_like(y))
        return cls(float(terms[0]), float(terms[1] / scale), float(terms[2] / scale**2))


def _dot(weights: NDArray[Any], costs: NDArray[Any]) -> float:
    """Return the sum of products, added up pairwise and in this thread; ``inf`` where too large.

    BLAS would use all cores, and wait milliseconds for them where a browser keeps one busy.
    """
    with np.errstate(over="ignore"):
        return float((weights * costs).sum())


def _check_same_length(schedule: Schedule, distribution: OverlapDistribution) -> None:
    check_instance("distribution", distribution, OverlapDistribution)
    if schedule.length != distribution.length:
        raise ValueError(
            f"the schedule is for an entry of {schedule.length} tokens and the distribution for "
            f"one of {distribution.length}: restrict() the distribution first."
        )
