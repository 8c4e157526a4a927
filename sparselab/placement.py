"""Schedules of checkpoints and the policies that place them.

A policy turns what a serving engine knows about an entry into token positions. All policies
stand in one registry: :func:`place` looks them up by name, :func:`policies` lists them, and
:func:`register_policy` adds another without a change elsewhere.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.overlap import OverlapDistribution
from sparselab.recompute import PrefillCost
from sparselab.validation import (
    check_choice,
    check_instance,
    check_integer,
    check_integers,
    check_token_count,
    nearest,
)

if TYPE_CHECKING:
    import pandas

#: The default of an option that a caller must give.
REQUIRED = inspect.Parameter.empty


class Schedule:
    """Checkpoint positions in an entry of ``length`` tokens; immutable.

    A checkpoint at position ``c`` holds the recurrent state after the first ``c`` tokens.

    Args:
        positions: strictly increasing integers in ``1..length``, at most one a token.
        length: tokens in the entry, 1 to 2**53.
        policy: the name of the policy that chose them, or a label of your own.
    """

    __slots__ = ("_length", "_policy", "_positions")

    def __init__(self, positions: ArrayLike, length: int, policy: str = "custom") -> None:
        self._length = check_token_count("length", length)
        self._policy = policy
        # A copy: the caller's array stays writable.
        self._positions = check_integers("positions", positions).copy()
        outside = self._positions[(self._positions < 1) | (self._positions > self._length)]
        if outside.size:
            raise ValueError(f"positions must lie in 1..{self._length}, got {outside[0]}.")
        if (np.diff(self._positions) <= 0).any():
            raise ValueError("positions must be strictly increasing.")
        self._positions.setflags(write=False)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions, strictly increasing in ``1..length``; read-only, shape ``(M,)``."""
        return self._positions

    @property
    def length(self) -> int:
        """Tokens in the entry."""
        return self._length

    @property
    def policy(self) -> str:
        """The name of the policy that chose the positions."""
        return self._policy

    def resume_point(self, t: ArrayLike) -> Any:
        """Return ``l(t; C)``, the deepest checkpoint at or before depth ``t``, or 0.

        ``t`` may be one depth or an array of them in ``0..length``; an ``int`` or an array of
        ``t``'s shape comes back.
        """
        depths = np.asarray(t)
        if depths.size and depths.dtype.kind not in "iu":
            raise TypeError(f"t must be integer depths, got {depths.dtype} values.")
        outside = depths[(depths < 0) | (depths > self._length)]
        if outside.size:
            raise ValueError(f"t must lie in 0..{self._length}, got {outside.flat[0]}.")
        starts = np.concatenate(([0], self._positions))
        found = starts[np.searchsorted(self._positions, depths, side="right")]
        return found if depths.ndim else int(found)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a checkpoint: its number, position and the tokens since the one before."""
        import pandas

        return pandas.DataFrame(
            {
                "checkpoint": np.arange(1, len(self) + 1),
                "position": self._positions,
                "tokens_since_previous": np.diff(self._positions, prepend=0),
            }
        )

    def __len__(self) -> int:
        return self._positions.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self._length == other._length and np.array_equal(self._positions, other._positions)

    def __hash__(self) -> int:
        return hash((self._length, self._positions.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self._positions[:8].tolist()))
        more = f", ... {len(self) - 8} more" if len(self) > 8 else ""
        return f"Schedule([{shown}{more}], length={self._length}, policy={self._policy!r})"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False) if len(self) else f"<code>{self!r}</code>"


@dataclass(frozen=True)
class PlacementContext:
    """What a policy may look at.

    Attributes:
        length: tokens in the entry.
        budget: the most checkpoints allowed, or ``None`` where the caller gave none.
        distribution: the expected overlaps, of the same length, or ``None``.
        align: positions must be multiples of this many tokens.
        prefill_cost: the cost ``G`` of prefilling a prefix; see `recompute.py`.
    """

    length: int
    budget: int | None
    distribution: OverlapDistribution | None
    align: int
    prefill_cost: PrefillCost


@dataclass(frozen=True)
class Policy:
    """One entry of the registry.

    Attributes:
        name: what :func:`place` is called with.
        summary: one line about it.
        needs: which of ``"budget"`` and ``"distribution"`` it cannot do without.
        options: its own options and their defaults; :data:`REQUIRED` where there is none.
        stores_kv: whether attention KV of the entry is kept (only ``no_cache`` keeps none).
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    options: dict[str, Any]
    stores_kv: bool
    positions: Callable[..., ArrayLike] = field(repr=False)

    @property
    def required_options(self) -> tuple[str, ...]:
        """The options that have no default: without them it cannot place."""
        return tuple(name for name, default in self.options.items() if default is REQUIRED)


_REGISTRY: dict[str, Policy] = {}


def register_policy(
    name: str, summary: str, needs: Sequence[str] = (), stores_kv: bool = True
) -> Callable[[Callable[..., ArrayLike]], Callable[..., ArrayLike]]:
    """Add a policy: a function of a :class:`PlacementContext` and options of its own.

    It returns token positions in any order; :func:`place` floors them to the alignment and drops
    0 and duplicates. Keyword parameters of the function become the policy's options::

        @register_policy("halves", "one checkpoint in the middle")
        def halves(context):
            return [context.length // 2]
    """
    unknown = set(needs) - {"budget", "distribution"}
    if unknown:
        raise ValueError(f"needs may name 'budget' and 'distribution', got {sorted(unknown)[0]!r}.")
    if name in _REGISTRY:
        raise ValueError(f"name {name!r} is taken by another policy.")

    def register(function: Callable[..., ArrayLike]) -> Callable[..., ArrayLike]:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        options = {parameter.name: parameter.default for parameter in parameters}
        _REGISTRY[name] = Policy(name, summary, tuple(needs), options, stores_kv, function)
        return function

    return register


def policies() -> dict[str, Policy]:
    """Return the registry: name -> what the policy needs and one line about it."""
    return dict(_REGISTRY)


def place(
    policy: str,
    length: int,
    budget: int | None = None,
    distribution: OverlapDistribution | None = None,
    align: int = 1,
    prefill_cost: PrefillCost = None,
    **options: Any,
) -> Schedule:
    """Return the schedule that ``policy`` chooses for an entry of ``length`` tokens.

    Args:
        policy: a name in :func:`policies`.
        length: tokens in the entry, at least 1.
        budget: the most checkpoints allowed; the policies that ignore it say so.
        distribution: the expected overlaps, of the same ``length``.
        align: every position is floored to a multiple of it (kernel chunk, block size); at least 1;
            ``optimal`` instead optimises on that grid.
        prefill_cost: the cost ``G``; see `recompute.py`. Only ``optimal`` looks at it.
        **options: the policy's own, e.g. ``block_size=512``.

    Raises:
        ValueError, TypeError: for an unknown policy or option (with the nearest name), a missing
            argument that the policy needs, or a value outside its range.
    """
    check_choice("policy", policy, _REGISTRY)
    entry = _REGISTRY[policy]
    length = check_token_count("length", length)
    align = check_token_count("align", align)
    if budget is not None:
        budget = check_integer("budget", budget, minimum=0)
    if distribution is not None:
        check_instance("distribution", distribution, OverlapDistribution)
        if distribution.length != length:
            raise ValueError(
                f"distribution is for an entry of {distribution.length} tokens and length is "
                f"{length}: restrict() it first."
            )
    for need in entry.needs:
        if {"budget": budget, "distribution": distribution}[need] is None:
            raise ValueError(f"policy {policy!r} needs a {need}, got none.")
    _check_options(entry, options)
    context = PlacementContext(length, budget, distribution, align, prefill_cost)
    wanted = check_integers(f"positions of policy {policy!r}", entry.positions(context, **options))
    aligned = np.unique(wanted // align * align)
    return Schedule(aligned[aligned > 0], length, policy)


def expand(names: Iterable[str], budgets: Iterable[int]) -> list[tuple[str, int | None]]:
    """Return every policy with every budget; one that ignores the budget once, with ``None``.

    Raises ``ValueError`` for an unknown policy or a negative budget, ``TypeError`` for a budget
    that is no integer.
    """
    checked = [check_integer("budgets", budget, minimum=0) for budget in budgets]
    cases: list[tuple[str, int | None]] = []
    for name in names:
        needs = _REGISTRY[check_choice("policy", name, _REGISTRY)].needs
        cases += [(name, budget) for budget in (checked if "budget" in needs else [None])]
    return cases


def _check_options(entry: Policy, options: dict[str, Any]) -> None:
    for name in options:
        if name not in entry.options:
            known = ", ".join(entry.options) or "none"
            raise ValueError(
                f"policy {entry.name!r} has no option {name!r}"
                f"{nearest(name, entry.options)}; it has: {known}."
            )
    for name, default in entry.options.items():
        if default is REQUIRED and name not in options:
            raise ValueError(f"policy {entry.name!r} needs the option {name!r}, got none.")


# -- the policies ------------------------------------------------------------------------------


@register_policy("no_cache", "nothing is kept: every prompt is prefilled whole", stores_kv=False)
def no_cache(context: PlacementContext) -> ArrayLike:
    """No checkpoint and no KV (ignores the budget)."""
    return []


@register_policy("kv_only", "attention KV is kept, no checkpoint: no recurrent layer can skip")
def kv_only(context: PlacementContext) -> ArrayLike:
    """No checkpoint: recomputes what ``no_cache`` does and pays for KV (ignores the budget)."""
    return []


@register_policy("balanced", "equal spacing: optimal for uniform overlaps (Theorem 1)", ["budget"])
def balanced(context: PlacementContext) -> ArrayLike:
    """Cut the ``N + 1`` depths into ``M + 1`` runs whose lengths differ by at most one.

    Theorem 1: optimal for uniform overlaps and for the worst case (cost in tokens, no alignment).
    """
    assert context.budget is not None
    runs = min(context.budget, context.length) + 1
    whole, rest = divmod(context.length + 1, runs)
    number = np.arange(1, runs)
    # number * (N + 1) // runs, in two terms: that product may not fit in 64 bits.
    return number * whole + number * rest // runs


@register_policy("block", "one checkpoint at the end of every block (ignores the budget)")
def block(context: PlacementContext, block_size: int = 512) -> ArrayLike:
    """The multiples of ``block_size`` up to the length, as engines with block caches do."""
    size = check_integer("block_size", block_size, minimum=1)
    return np.arange(size, context.length + 1, size)


@register_policy("sqrt", "one checkpoint every floor(sqrt(N)) tokens (ignores the budget)")
def sqrt(context: PlacementContext) -> ArrayLike:
    """The multiples of ``floor(sqrt(N))``: as many checkpoints as tokens between two."""
    size = math.isqrt(context.length)
    return np.arange(size, context.length + 1, size)


@register_policy("log", "the powers of two from `start` up to N (ignores the budget)")
def log(context: PlacementContext, start: int = 1) -> ArrayLike:
    """The powers of two in ``start..N``: dense at the front, sparse behind."""
    first = check_integer("start", start, minimum=1)
    exponents = range((first - 1).bit_length(), context.length.bit_length())
    return [1 << exponent for exponent in exponents]


@register_policy("last", "the end of the prompt only (ignores the budget)")
def last(context: PlacementContext) -> ArrayLike:
    """One checkpoint after the last token: all that an append-only chat needs."""
    return [context.length]


@register_policy("branch", "the observed point of divergence (ignores the budget)")
def branch(context: PlacementContext, overlap: int) -> ArrayLike:
    """One checkpoint where this request was seen to leave an earlier one (``overlap`` tokens)."""
    return [check_integer("overlap", overlap, 0, context.length)]


@register_policy(
    "optimal", "the exact optimum for the expected overlaps (Theorem 2)", ["budget", "distribution"]
)
def optimal(context: PlacementContext) -> ArrayLike:
    """The positions that minimise ``E[r]`` on the alignment grid, by `optimal.py`."""
    from sparselab.optimal import optimal_frontier

    assert context.budget is not None
    assert context.distribution is not None
    # More checkpoints than observed depths save nothing.
    budget = min(context.budget, context.distribution.depths.size)
    frontier = optimal_frontier(context.distribution, budget, context.align, context.prefill_cost)
    return frontier.schedule(budget).positions
