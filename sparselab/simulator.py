"""Replays a workload through a cache of retained prompts, under one placement policy.

Requests come one after another. Each one

1. *matches* the retained entry with which it shares the most leading tokens (over all entries,
   ties go to the newest): the overlap ``t``;
2. *resumes* at that entry's deepest checkpoint ``l(min(t, L - 1))``, since the last of its ``L``
   tokens is always computed, and computes the rest: ``L - l`` tokens;
3. becomes an entry itself, with checkpoints where the policy wants them and where they can be had
   (:func:`capture_positions`), and old entries are evicted (`entry_cache.py`).

Time is linear in the tokens of the workload. Nothing is random.
"""

from __future__ import annotations

import copy
import html
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparselab.architecture import HybridArchitecture
from sparselab.entry_cache import Entry, EntryCache
from sparselab.estimators import DecayedHistogram, Estimator, check_estimator
from sparselab.files import atomic_path
from sparselab.placement import Policy, place, policies
from sparselab.provenance import provenance
from sparselab.recompute import PrefillCost, prefill_cost_values
from sparselab.validation import check_choice, check_instance, check_integer, check_number
from sparselab.workloads.workload import Request, Workload

if TYPE_CHECKING:
    import pandas

CAPTURES = ("resumed", "full")
#: Options of a policy that :func:`simulate` fills in.
FILLED_OPTIONS = frozenset({"overlap", "parent_positions"})
NO_POSITIONS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
NO_SPANS: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """What came of a simulation.

    Attributes:
        requests: a DataFrame with one row a request, in order: ``request`` (its number), ``group``
            (as text), ``arrival`` (seconds), ``length`` (tokens), ``measured`` (not warm-up),
            ``matched`` (the number of the request whose entry it matched, or -1), ``hit`` (overlap
            above 0), ``overlap``, ``resume_point``, ``recomputed`` and ``checkpoint_miss``
            (= overlap - resume point: KV matched, state missing), all in tokens; ``cost``
            (``G(length) - G(resume_point)``); ``extra_prefill``, the tokens computed again only to
            capture checkpoints (``capture="full"``), and ``extra_cost``, their ``G``, which no
            other column counts; ``positions`` stored and ``checkpoints``, their
            number; of the whole cache after it ``retained_entries``, ``retained_kv_tokens`` and
            ``retained_checkpoints``; with an architecture also ``kv_bytes`` and
            ``checkpoint_bytes`` of the new entry, and ``retained_kv_bytes`` and
            ``retained_checkpoint_bytes`` of the whole cache.
        summary: totals over the measured requests, see :func:`summarise`.
        parameters: what :func:`simulate` was called with, ready for JSON.
        prefill_cost: ``G(0..longest request)`` that costs are counted in.
    """

    requests: pandas.DataFrame
    summary: Mapping[str, Any]
    parameters: Mapping[str, Any]
    prefill_cost: NDArray[Any]

    def to_parquet(self, path: str | Path) -> None:
        """Write :attr:`requests` as Parquet, whole or not at all.

        Summary, parameters, versions and machine go with it: ``pandas.read_parquet(path).attrs``.
        """
        frame = self.requests.copy()
        record = provenance(parameters=dict(self.parameters), summary=dict(self.summary))
        frame.attrs.update(record)
        with atomic_path(path) as temporary:
            frame.to_parquet(temporary, index=False)

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"SimulationResult({self.parameters['policy']!r} on {self.parameters['workload']!r}: "
            f"{s['requests']:,} requests, {s['saved_share']:.1%} of {s['prompt_tokens']:,} prompt "
            f"tokens saved of {s['overlap_share']:.1%} that overlap)"
        )

    def _repr_html_(self) -> str:
        import pandas

        known = {name: value for name, value in self.summary.items() if value is not None}
        rows = [
            (name, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
            for name, value in known.items()
        ]
        table = pandas.DataFrame(rows, columns=["measured requests, simulated", ""])
        return f"<p>{html.escape(repr(self))}</p>{table.to_html(index=False)}"


def simulate(
    workload: Workload,
    policy: str = "optimal",
    budget: int = 8,
    estimator: Estimator | None = None,
    replan_every: int = 1,
    capacity: int | None = None,
    capacity_bytes: int | None = None,
    eviction: str = "fifo",
    align: int = 1,
    warmup: float = 0.0,
    capture: str = "resumed",
    prefill_cost: PrefillCost = None,
    architecture: HybridArchitecture | str | None = None,
    **policy_options: Any,
) -> SimulationResult:
    """Replay ``workload`` under one policy and return what each request cost.

    Args:
        workload: the requests; see `workloads/`.
        policy: a name in :func:`sparselab.policies`. Its options ``overlap`` and
            ``parent_positions``, where it has them, are filled in with how deep the request could
            have resumed (``min(overlap, length - 1)``) and with the checkpoints of the matched
            entry that lie within the overlap.
        budget: checkpoints an entry may hold; policies that need none ignore it.
        estimator: what turns observed overlaps into the distribution that the policy plans on,
            by default ``DecayedHistogram()``. It is copied, so what it was taught before counts and
            the caller's stays as it is. Each request with an overlap is observed as
            ``(depth, length, group)``: how deep it could have resumed, and the length and group of
            the *matched entry*; one without concerns no entry.
        replan_every: plans use what was observed up to the last request whose number is a multiple
            of this (its own overlap included).
        capacity, capacity_bytes, eviction: of the cache; see `entry_cache.py`. Bytes need an
            architecture.
        align: checkpoints stand on multiples of it.
        warmup: the share of requests at the start that is replayed but not measured.
        capture: ``"resumed"`` or ``"full"``; see :func:`capture_positions`.
        prefill_cost: the cost ``G``: ``None`` for tokens, a callable, or an array
            ``G(0..longest request)``.
        architecture: whose bytes to count: a :class:`HybridArchitecture` or a preset's name.
        **policy_options: the policy's own, such as ``block_size=512``.

    Raises:
        TypeError, ValueError: for arguments outside their range, in one sentence.
    """
    check_instance("workload", workload, Workload)
    replan_every = check_integer("replan_every", replan_every, minimum=1)
    warmup = check_number("warmup", warmup, minimum=0.0, below=1.0)
    check_choice("capture", capture, CAPTURES)
    if isinstance(architecture, str):
        architecture = HybridArchitecture.preset(architecture)
    if architecture is not None:
        check_instance("architecture", architecture, HybridArchitecture)
    if capacity_bytes is not None and architecture is None:
        raise ValueError("capacity_bytes needs an architecture to weigh the entries with.")
    estimator = DecayedHistogram() if estimator is None else estimator
    estimator = copy.deepcopy(check_estimator("estimator", estimator))
    cost = prefill_cost_values(prefill_cost, int(workload.lengths().max()))
    planner = _Planner(
        policy, budget, estimator, align, None if prefill_cost is None else cost, policy_options
    )
    cache = EntryCache(
        capacity,
        eviction,
        capacity_bytes,
        0 if architecture is None else architecture.kv_bytes_per_token,
        0 if architecture is None else architecture.checkpoint_bytes,
    )
    rows = _replay(workload, planner, cache, replan_every, capture)
    # At least one is measured, however near to 1 the share is.
    skipped = min(math.floor(warmup * len(workload) + 1e-9), len(workload) - 1)
    frame = _frame(workload, rows, cost, skipped, architecture)
    settings = {
        "replan_every": replan_every,
        "capacity": capacity,
        "capacity_bytes": capacity_bytes,
        "eviction": eviction,
        "align": align,
        "warmup": warmup,
        "capture": capture,
        "prefill_cost": "tokens" if prefill_cost is None else "given",
        "architecture": getattr(architecture, "name", None),
    }
    parameters = _parameters(workload, planner, settings)
    return SimulationResult(frame, summarise(frame), parameters, cost)


def _replay(
    workload: Workload, planner: _Planner, cache: EntryCache, replan_every: int, capture: str
) -> list[tuple[Any, ...]]:
    """Serve the requests in turn; return a row for each, whose columns `_frame` names."""
    rows = []
    for number, request in enumerate(workload.requests):
        tokens = request.tokens
        depth, parent = cache.match(tokens)
        overlap = usable = 0
        if parent is not None:
            overlap = workload.shared_tokens(depth, request, workload.requests[parent.request])
            # The last token is always computed: a checkpoint after it would serve no such request.
            usable = min(overlap, request.length - 1)
            planner.observe(usable, parent.length, parent.group)
        if number % replan_every == 0:
            planner.replan()
        held = NO_POSITIONS if parent is None else _within(parent.positions, overlap)
        resume_point = _deepest(held, usable)
        stored, again = capture_positions(
            planner.wanted(request, usable, held), held, resume_point, planner.budget, capture
        )
        kv_tokens = request.length if planner.policy.stores_kv else 0
        cache.add(tokens, Entry(number, request.group, request.length, stored, kv_tokens))
        rows.append(
            (
                -1 if parent is None else parent.request,
                overlap,
                resume_point,
                again,
                stored,
                kv_tokens,
                len(cache),
                cache.kv_tokens,
                cache.checkpoints,
            )
        )
    return rows


def capture_positions(
    wanted: NDArray[np.int64],
    held: NDArray[np.int64],
    resume_point: int,
    budget: int | None,
    capture: str,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the checkpoints that a new entry gets, and the spans computed again to get them.

    Spans are rows ``(start, end)`` of tokens.

    ``capture="resumed"`` is what one pass over the prompt can do. It computes only what follows
    the resume point, so only there can new checkpoints be captured; a wanted position at or before
    it is kept if the matched entry holds it and dropped otherwise. Slots of the budget that stay
    free go to the deepest other checkpoints that the matched entry holds within the overlap.

    ``capture="full"`` puts them anywhere, as the paper's experiments do. Where a wanted position
    at or before the resume point is not held, tokens are computed again from the deepest held
    checkpoint before it, each once.

    Args:
        wanted: what the policy asks for, increasing.
        held: checkpoints of the matched entry within the overlap, increasing.
        resume_point: where the request resumed.
        budget: the most checkpoints, or ``None`` for a policy that ignores the budget (no free
            slots then).
        capture: ``"resumed"`` or ``"full"``.
    """
    computed = int(np.searchsorted(wanted, resume_point, side="right"))
    is_held = _among(wanted[:computed], held)
    if capture == "full":
        missing = wanted[:computed][~is_held]
        starts = np.concatenate(([0], held))[np.searchsorted(held, missing, side="right")]
        # Missing positions that start from one checkpoint are met on the way to the deepest.
        deepest = np.diff(starts, append=-1) != 0
        return wanted, np.stack([starts, missing], axis=1)[deepest]
    stored = np.concatenate([wanted[:computed][is_held], wanted[computed:]])
    if budget is not None and stored.size < budget and held.size:
        others = held[~_among(held, stored)]
        free = budget - stored.size
        stored = np.sort(np.concatenate([stored, others[max(0, others.size - free) :]]))
    return stored, NO_SPANS


def summarise(requests: pandas.DataFrame) -> dict[str, Any]:
    """Return totals over the measured rows of :attr:`SimulationResult.requests`.

    ``requests``, ``warmup_requests``, ``hits`` (overlap above 0), ``resumes`` (resume point above
    0); ``prompt_tokens`` = ``saved_tokens`` (resumed) + ``recomputed_tokens``; ``overlap_tokens`` =
    ``saved_tokens`` + ``checkpoint_miss_tokens``; ``cost`` in the unit of the prefill cost; the
    shares of prompt tokens that overlapped and were saved; ``extra_prefill_tokens`` and
    ``extra_cost`` of what was computed again only to capture, which none of the others counts; the
    mean number of checkpoints of a new entry; ``kv_tokens`` and ``checkpoints``: the most that the
    cache held at once, and the same as ``kv_bytes`` and ``checkpoint_bytes`` (``None`` without an
    architecture).
    """
    measured = requests[requests["measured"]]
    total = {
        name: int(measured[name].sum())
        for name in ("length", "overlap", "resume_point", "recomputed", "checkpoint_miss")
    }
    held = {
        name: int(measured[f"retained_{name}"].max()) if f"retained_{name}" in measured else None
        for name in ("kv_tokens", "checkpoints", "kv_bytes", "checkpoint_bytes")
    }
    return {
        "requests": len(measured),
        "warmup_requests": len(requests) - len(measured),
        "hits": int(measured["hit"].sum()),
        "resumes": int((measured["resume_point"] > 0).sum()),
        "prompt_tokens": total["length"],
        "overlap_tokens": total["overlap"],
        "saved_tokens": total["resume_point"],
        "recomputed_tokens": total["recomputed"],
        "checkpoint_miss_tokens": total["checkpoint_miss"],
        "extra_prefill_tokens": int(measured["extra_prefill"].sum()),
        "cost": measured["cost"].to_numpy().sum().item(),
        "extra_cost": measured["extra_cost"].to_numpy().sum().item(),
        "overlap_share": total["overlap"] / total["length"],
        "saved_share": total["resume_point"] / total["length"],
        "checkpoints_per_entry": float(measured["checkpoints"].mean()),
        **held,
    }


class _Planner:
    """Turns observations into the positions that the policy wants, planning no more than needed."""

    def __init__(
        self,
        policy: str,
        budget: int,
        estimator: Estimator,
        align: int,
        cost: NDArray[Any] | None,
        options: dict[str, Any],
    ) -> None:
        check_choice("policy", policy, policies())
        self.policy: Policy = policies()[policy]
        budget = check_integer("budget", budget, minimum=0)
        self.budget = budget if "budget" in self.policy.needs else None
        self.needs_distribution = "distribution" in self.policy.needs
        self.estimator = estimator
        self._align = check_integer("align", align, minimum=1)
        self._cost = cost
        self.options = options
        self._fills = FILLED_OPTIONS & set(self.policy.options)
        self._pending: list[tuple[int, int, Hashable]] = []
        self._plans: dict[Hashable, NDArray[np.int64]] = {}

    def observe(self, depth: int, length: int, group: Hashable) -> None:
        if self.needs_distribution:
            self._pending.append((depth, length, group))

    def replan(self) -> None:
        """Let the estimator see what was observed since the last time."""
        if self._pending:
            for observation in self._pending:
                self.estimator.observe(*observation)
            self._pending.clear()
            self._plans.clear()

    def wanted(self, request: Request, usable: int, held: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions for a new entry that could have resumed at ``usable``.

        ``held`` are its parent's within the overlap.
        """
        key = (request.length, request.group if self.needs_distribution else None)
        if self._fills:
            return self._place(request, {"overlap": usable, "parent_positions": held})
        if key not in self._plans:
            self._plans[key] = self._place(request, {})
        return self._plans[key]

    def _place(self, request: Request, known: dict[str, Any]) -> NDArray[np.int64]:
        length = request.length
        distribution = None
        if self.needs_distribution:
            distribution = self.estimator.distribution(length, request.group)
        filled = {name: known[name] for name in self._fills}
        return place(
            self.policy.name,
            length,
            self.budget,
            distribution,
            self._align,
            None if self._cost is None else self._cost[: length + 1],
            **{**filled, **self.options},
        ).positions


def _among(values: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of ``values`` are among increasing ``positions`` (quicker than numpy.isin)."""
    found = np.searchsorted(positions, values)
    return np.append(positions, -1)[found] == values


def _within(positions: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """Return the leading ones of increasing ``positions`` that are at most ``depth``."""
    return positions[: np.searchsorted(positions, depth, side="right")]


def _deepest(positions: NDArray[np.int64], depth: int) -> int:
    """Return the last of increasing ``positions`` that is at most ``depth``, or 0."""
    usable = _within(positions, depth)
    return int(usable[-1]) if usable.size else 0


def _parameters(
    workload: Workload, planner: _Planner, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what was simulated, as values that JSON has."""
    return _plain(
        {
            "workload": workload.name,
            "synthetic": workload.synthetic,
            "policy": planner.policy.name,
            "budget": planner.budget,
            "estimator": repr(planner.estimator) if planner.needs_distribution else None,
            **settings,
            "policy_options": planner.options,
        }
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, and what JSON has no form for as its ``repr``."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)


def _frame(
    workload: Workload,
    rows: list[tuple[Any, ...]],
    cost: NDArray[Any],
    skipped: int,
    architecture: HybridArchitecture | None,
) -> pandas.DataFrame:
    """Return one row a request; see :class:`SimulationResult`."""
    import pandas

    matched, overlap, resume, again, positions, kv_tokens, *retained = zip(*rows, strict=True)
    lengths, start, depth = workload.lengths(), np.array(resume), np.array(overlap)
    spans = np.concatenate(again)
    request = np.repeat(np.arange(len(rows)), [len(part) for part in again])
    extra, extra_cost = np.zeros(len(rows), np.int64), np.zeros(len(rows), cost.dtype)
    np.add.at(extra, request, spans[:, 1] - spans[:, 0])
    np.add.at(extra_cost, request, cost[spans[:, 1]] - cost[spans[:, 0]])
    frame = pandas.DataFrame(
        {
            "request": np.arange(len(rows)),
            "group": [str(request.group) for request in workload.requests],
            "arrival": [request.arrival for request in workload.requests],
            "length": lengths,
            "measured": np.arange(len(rows)) >= skipped,
            "matched": matched,
            "hit": depth > 0,
            "overlap": depth,
            "resume_point": start,
            "recomputed": lengths - start,
            "checkpoint_miss": depth - start,
            "cost": cost[lengths] - cost[start],
            "extra_prefill": extra,
            "extra_cost": extra_cost,
            "positions": positions,
            "checkpoints": [stored.size for stored in positions],
            "retained_entries": retained[0],
            "retained_kv_tokens": retained[1],
            "retained_checkpoints": retained[2],
        }
    )
    if architecture is not None:
        frame["kv_bytes"] = np.array(kv_tokens) * architecture.kv_bytes_per_token
        frame["checkpoint_bytes"] = frame["checkpoints"] * architecture.checkpoint_bytes
        frame["retained_kv_bytes"] = frame["retained_kv_tokens"] * architecture.kv_bytes_per_token
        frame["retained_checkpoint_bytes"] = (
            frame["retained_checkpoints"] * architecture.checkpoint_bytes
        )
    return frame
