"""Overlap distributions: how deep later requests share a retained prefix.

A retained prefix of ``length`` tokens is shared by a later request down to some *overlap depth*
``t`` in ``0..length``. An :class:`OverlapDistribution` holds a weight for each depth that has
one, so that a table of a few hundred observed depths stays small however long the prefix is.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.files import as_path, atomic_path, read_csv
from sparselab.validation import (
    LARGEST_EXACT_INTEGER,
    check_choice,
    check_instance,
    check_integer,
    check_integers,
    check_number,
    check_token_count,
    check_vector,
    shorten,
)

#: The families weigh every depth, so a length beyond this one would fill the memory.
LONGEST_FAMILY = 2**27


class OverlapDistribution:
    """Weights on overlap depths ``0..length``; immutable and sparse.

    Args:
        depths: integers in ``0..length``, in any order; weights of equal depths are added up.
        weights: one non-negative finite number a depth. Integers are kept as integers (counts of
            requests, say), anything else as floats. They need not sum to one: **nothing is
            renormalised**. Quantities called ``expected`` divide by :attr:`total`, others are in
            the unit of the weights.
        length: tokens in the retained prefix, 1 to 2**53.

    Raises:
        TypeError, ValueError: for anything else, naming the argument and the value.
    """

    __slots__ = ("_depths", "_length", "_weights")

    def __init__(self, depths: ArrayLike, weights: ArrayLike, length: int) -> None:
        self._length = check_token_count("length", length)
        depth_array = _as_depths(depths, self._length)
        weight_array = _as_weights(weights)
        if depth_array.size != weight_array.size:
            raise ValueError(
                f"depths and weights must be equally long, got {depth_array.size} depths "
                f"and {weight_array.size} weights."
            )
        self._depths, self._weights = _merge(depth_array, weight_array)
        if not self._depths.size:
            raise ValueError("weights must not all be zero: there is no depth to serve.")
        self._depths.setflags(write=False)
        self._weights.setflags(write=False)

    # -- what it holds -------------------------------------------------------------------------

    @property
    def length(self) -> int:
        """Tokens in the retained prefix; depths lie in ``0..length``."""
        return self._length

    @property
    def depths(self) -> NDArray[np.int64]:
        """The depths with positive weight, strictly increasing; read-only, shape ``(K,)``."""
        return self._depths

    @property
    def weights(self) -> NDArray[Any]:
        """Their weights as given, ``int64`` or ``float64``; read-only, shape ``(K,)``."""
        return self._weights

    @property
    def total(self) -> int | float:
        """The sum of all weights: a number of requests where the weights are counts."""
        return self._weights.sum().item()

    def pmf(self) -> NDArray[np.float64]:
        """Return the normalised weight of each depth ``0..length``, shape ``(length + 1,)``."""
        dense = np.zeros(self._length + 1)
        dense[self._depths] = self.probabilities()
        return dense

    def probabilities(self) -> NDArray[np.float64]:
        """Return the normalised weights of :attr:`depths`, shape ``(K,)``."""
        # Scaling by the largest first keeps the sum finite for weights near the largest double.
        scaled = self._weights / self._weights.max()
        return scaled / scaled.sum()

    def mean(self) -> float:
        """Return the expected overlap depth in tokens."""
        return float(self.probabilities() @ self._depths)

    def sample(self, n: int, seed: int) -> NDArray[np.int64]:
        """Draw ``n`` independent depths; equal seeds give equal draws."""
        n = check_integer("n", n, minimum=0)
        check_integer("n", n, maximum=LARGEST_EXACT_INTEGER)
        seed = check_integer("seed", seed, minimum=0)
        return np.random.default_rng(seed).choice(self._depths, size=n, p=self.probabilities())

    # -- distances -----------------------------------------------------------------------------

    def tv(self, other: OverlapDistribution) -> float:
        """Return the total variation distance ``0.5 * sum |p_t - q_t|``, weights normalised.

        The two may have any supports and lengths; a depth beyond one's length has weight 0 there.
        """
        return min(1.0, 0.5 * float(np.abs(self._difference(other)).sum()))

    def ks(self, other: OverlapDistribution) -> float:
        """Return the Kolmogorov-Smirnov distance ``max |P(t) - Q(t)|``, weights normalised."""
        return min(1.0, float(np.abs(np.cumsum(self._difference(other))).max()))

    def _difference(self, other: OverlapDistribution) -> NDArray[np.float64]:
        """Return ``p_t - q_t`` on the union of the two supports."""
        check_instance("other", other, OverlapDistribution)
        union = np.union1d(self._depths, other._depths)
        difference = np.zeros(union.size)
        difference[np.searchsorted(union, self._depths)] += self.probabilities()
        difference[np.searchsorted(union, other._depths)] -= other.probabilities()
        return difference

    # -- derived -------------------------------------------------------------------------------

    def restrict(self, length: int, beyond: str = "count") -> OverlapDistribution:
        """Return the distribution as seen by an entry of another ``length``.

        For a shorter entry ``beyond="count"`` lets deeper depths count at ``length`` (a request
        that shares more than the entry holds shares all of it) and ``beyond="drop"`` forgets
        them, as the paper does. Raises ``ValueError`` where dropping leaves nothing.
        """
        length = check_token_count("length", length)
        check_choice("beyond", beyond, ("count", "drop"))
        if beyond == "count":
            return OverlapDistribution(np.minimum(self._depths, length), self._weights, length)
        keep = self._depths <= length
        if not keep.any():
            raise ValueError(
                f"length {length} with beyond='drop' leaves no depth: the smallest one here is "
                f"{self._depths[0]}."
            )
        return OverlapDistribution(self._depths[keep], self._weights[keep], length)

    def to_csv(self, path: str | Path) -> None:
        """Write a table ``depth,requests`` of the weights, whole or not at all.

        Packed where the name ends in ``.gz``, as :meth:`from_csv` reads it. The length is not in
        the table: :meth:`from_csv` takes it as an argument.
        """
        opener = gzip.open if Path(path).suffix == ".gz" else open
        with atomic_path(path) as temporary, opener(temporary, "wt", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(("depth", "requests"))
            writer.writerows(zip(self._depths.tolist(), self._weights.tolist(), strict=True))

    # -- families ------------------------------------------------------------------------------

    @classmethod
    def from_samples(cls, depths: ArrayLike, length: int | None = None) -> OverlapDistribution:
        """Count observed depths; ``length`` is the deepest one unless given, at least 1."""
        array = _as_depths(depths, None)
        if not array.size:
            raise ValueError("depths must hold at least one sample, got none.")
        if length is None:
            length = max(1, int(array.max()))
        return cls(array, np.ones(array.size, dtype=np.int64), length)

    @classmethod
    def from_csv(cls, path: str | Path, length: int | None = None) -> OverlapDistribution:
        """Read a table with the header ``depth,requests`` (or ``depth,weight``).

        ``length`` is the deepest depth in it unless given, at least 1. Raises ``ValueError`` with
        the number of the line where one is malformed.
        """
        depths, weights = _read_table(as_path("path", path))
        if length is None:
            length = max(1, max(depths))
        try:
            return cls(depths, weights, length)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path}: {error}") from None

    @classmethod
    def uniform(cls, length: int) -> OverlapDistribution:
        """Every depth ``0..length`` alike (weight 1 each)."""
        depths = _every_depth(length)
        return cls(depths, np.ones(depths.size, dtype=np.int64), length)

    @classmethod
    def point(cls, length: int, depth: int) -> OverlapDistribution:
        """All requests share exactly ``depth`` tokens."""
        length = check_token_count("length", length)
        return cls([check_integer("depth", depth, 0, length)], [1], length)

    @classmethod
    def geometric(cls, length: int, mean: float) -> OverlapDistribution:
        """Weight ``(mean / (1 + mean))**t`` on depth ``t``, truncated to ``0..length``.

        ``mean`` is that of the untruncated distribution, in tokens.
        """
        depths, mean = _every_depth(length), check_number("mean", mean, above=0.0)
        # exp(-1000) is 0 as well, and unlike an infinite rate leaves depth 0 its weight of 1.
        rate = min(np.log1p(1.0 / mean), 1000.0)
        return cls(depths, np.exp(depths * -rate), length)

    @classmethod
    def zipf(cls, length: int, exponent: float) -> OverlapDistribution:
        """Weight ``(t + 1)**-exponent`` on depth ``t`` in ``0..length``."""
        depths, exponent = _every_depth(length), check_number("exponent", exponent, above=0.0)
        return cls(depths, (depths + 1.0) ** -exponent, length)

    @classmethod
    def beta(cls, length: int, a: float, b: float) -> OverlapDistribution:
        """A beta distribution of the relative depth ``t / length``.

        The unit interval is cut into ``length + 1`` equal cells, one a depth, and each depth
        weighs what the beta distribution function gives its cell.
        """
        from scipy.special import betainc

        depths = _every_depth(length)
        a, b = check_number("a", a, above=0.0), check_number("b", b, above=0.0)
        edges = np.linspace(0.0, 1.0, depths.size + 1)
        # Differences of the nearer tail keep small weights near 1 from cancelling to zero.
        lower, upper = np.diff(betainc(a, b, edges)), -np.diff(betainc(b, a, 1.0 - edges))
        weights = np.where(edges[1:] <= 0.5, lower, upper)
        return cls(depths, np.maximum(weights, 0.0), length)

    @classmethod
    def mixture(
        cls, parts: Sequence[OverlapDistribution], weights: ArrayLike
    ) -> OverlapDistribution:
        """Mix ``parts`` (each normalised first) in proportion to ``weights``.

        The result is as long as the longest part, and its weights sum to that of ``weights``.
        """
        parts, shares = list(parts), _as_weights(weights)
        for part in parts:
            check_instance("each of parts", part, OverlapDistribution)
        if not len(parts) or len(parts) != shares.size:
            raise ValueError(
                "parts and weights must be equally many and at least one, got "
                f"{len(parts)} parts and {shares.size} weights."
            )
        return cls(
            np.concatenate([part.depths for part in parts]),
            np.concatenate(
                [w * part.probabilities() for part, w in zip(parts, shares, strict=True)]
            ),
            max(part.length for part in parts),
        )

    # -- protocol ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OverlapDistribution):
            return NotImplemented
        return (
            self._length == other._length
            and np.array_equal(self._depths, other._depths)
            and np.array_equal(self._weights, other._weights)
        )

    def __hash__(self) -> int:
        return hash((self._length, self._depths.tobytes(), self._weights.astype(float).tobytes()))

    def __repr__(self) -> str:
        return (
            f"OverlapDistribution({self._depths.size} depths, total weight {self.total:g}, "
            f"mean depth {self.mean():,.1f} of {self._length:,} tokens)"
        )


def _every_depth(length: int) -> NDArray[np.int64]:
    """Return the depths ``0..length`` of a family that weighs them all."""
    length = check_token_count("length", length)
    if length > LONGEST_FAMILY:
        raise ValueError(f"length must be at most {LONGEST_FAMILY} for a family, got {length}.")
    return np.arange(length + 1)


def _as_depths(depths: ArrayLike, length: int | None) -> NDArray[np.int64]:
    """Return depths as a flat integer array within ``0..length``; floats only if whole."""
    array = check_vector("depths", depths)
    if array.dtype.kind == "f":
        wrong = array[~(np.isfinite(array) & (array == np.floor(array)))]
        if wrong.size:
            raise ValueError(f"depths must be whole numbers of tokens, got {wrong[0]}.")
    else:
        array = check_integers("depths", array)
    longest = LARGEST_EXACT_INTEGER if length is None else length
    outside = array[(array < 0) | (array > longest)]
    if outside.size:
        raise ValueError(f"depths must lie in 0..{longest}, got {outside[0]}.")
    return array.astype(np.int64)


def _as_weights(weights: ArrayLike) -> NDArray[Any]:
    """Return weights as a flat ``int64`` or ``float64`` array, all finite and non-negative."""
    array = check_vector("weights", weights)
    if array.dtype.kind == "O" and all(type(weight) is int for weight in array):
        array = check_integers("weights", array)
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(
            f"weights must be numbers, got {array.dtype} values such as {array[:1].tolist()[0]!r}."
        )
    wrong = array[~(np.isfinite(array) & (array >= 0))]
    if wrong.size:
        raise ValueError(f"weights must be finite and not negative, got {wrong[0]}.")
    if array.dtype.kind == "f" or array.size == 0:
        return array.astype(np.float64)
    largest = np.iinfo(np.int64).max
    # Python's integers add up what might overflow; most sums are far from it.
    if int(array.max()) * array.size > largest and (total := sum(array.tolist())) > largest:
        raise ValueError(f"integer weights must sum to less than 2**63, got {total}.")
    return array.astype(np.int64)


def _merge(
    depths: NDArray[np.int64], weights: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Sort by depth, add up equal depths and leave out those without weight."""
    if not (depths[1:] > depths[:-1]).all():
        depths, weights = _add_up(depths, weights)
    keep = weights > 0
    return depths[keep], weights[keep]


def _add_up(
    depths: NDArray[np.int64], weights: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the distinct depths in order, and the sum of the weights of each."""
    # The stable sort is the quick one for what often comes: a few sorted lists one after another.
    order = np.argsort(depths, kind="stable")
    depths, weights = depths[order], weights[order]
    starts = np.flatnonzero(np.diff(depths, prepend=-1))
    counts = np.diff(starts, append=depths.size)
    if weights.dtype.kind == "f" and counts.max() > 2:
        # A rounded sum of three depends on their order. From the least to the greatest weight, it
        # does not depend on the order in which the caller listed them.
        many = np.flatnonzero(np.repeat(counts > 2, counts))
        weights[many] = weights[many[np.lexsort((weights[many], depths[many]))]]
    with np.errstate(over="ignore"):
        depths, weights = depths[starts], np.add.reduceat(weights, starts)
    if not np.isfinite(weights).all():
        raise ValueError("weights of equal depths must add up to a finite number.")
    return depths, weights


def _read_table(path: Path) -> tuple[list[int], list[int] | list[float]]:
    """Return depths and weights of a CSV, the weights as integers if all of them are."""
    rows = read_csv(path)
    _, header = next(rows, (1, None))
    if header is None:
        raise ValueError(f"{path} is empty: a header 'depth,requests' is expected.")
    names = [name.strip().lower() for name in header]
    if names not in (["depth", "requests"], ["depth", "weight"]):
        raise ValueError(
            f"{path}, line 1: the header must be 'depth,requests' or 'depth,weight', "
            f"got {shorten(','.join(header))}."
        )
    depths: list[int] = []
    texts: list[str] = []
    for number, row in rows:
        try:
            depth_text, weight_text = row
            depths.append(int(depth_text))
            if not 0 <= depths[-1] <= LARGEST_EXACT_INTEGER:
                raise ValueError("no number of tokens")
            if not 0 <= float(weight_text) < float("inf"):
                raise ValueError("no weight")
        except ValueError:
            raise ValueError(
                f"{path}, line {number}: a whole depth in 0..2**53 and a finite, non-negative "
                f"{names[1]} are expected, got {shorten(','.join(row))}."
            ) from None
        texts.append(weight_text.strip())
    if not depths:
        raise ValueError(f"{path} has a header but no rows.")
    if all(text.lstrip("+").isdigit() for text in texts):
        return depths, [int(text) for text in texts]
    return depths, [float(text) for text in texts]
