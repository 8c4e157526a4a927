"""Requests as token ids, and workloads: requests in order of arrival with their origin."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.progress import progress
from sparselab.validation import (
    check_instance,
    check_integer,
    check_integers,
    check_number,
    check_token_count,
)
from sparselab.workloads.prefix_index import PrefixIndex

#: A loader that multiplies requests refuses to make more than this many of anything.
MOST_REQUESTS = 10_000_000


def check_request_count(name: str, value: Any) -> int:
    """Return how many requests (or documents) to make: 1 to :data:`MOST_REQUESTS`.

    Raises as :func:`sparselab.validation.check_integer` does.
    """
    number = check_integer(name, value, minimum=1)
    return check_integer(name, number, maximum=MOST_REQUESTS)


class Request:
    """One prompt.

    Args:
        group: what requests belong together: a document, a system prompt, a conversation.
        tokens: its token ids, or in a hashed trace the ids of its blocks; at least one.
        length: tokens in the prompt; by default as many as ``tokens`` has elements.
        arrival: seconds since the start of the workload, not negative.
        tail: more ids that follow ``tokens``. Requests that share a document share one array
            ``tokens`` in memory and differ in ``tail``.
    """

    __slots__ = ("_head", "_tail", "arrival", "group", "length")

    def __init__(
        self,
        group: Hashable,
        tokens: ArrayLike,
        length: int | None = None,
        arrival: float = 0.0,
        tail: ArrayLike = (),
    ) -> None:
        try:
            hash(group)
        except TypeError:
            raise TypeError(f"group must be hashable, got {group!r}.") from None
        self.group = group
        self._head = _as_ids("tokens", tokens)
        self._tail = _as_ids("tail", tail)
        if not self.elements:
            raise ValueError(f"tokens of a request of group {group!r} must not be empty.")
        self.length = self.elements if length is None else check_token_count("length", length)
        self.arrival = check_number("arrival", arrival, minimum=0.0)

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The ids, read-only; joined anew at each access where there is a tail."""
        if not self._tail.size:
            return self._head
        joined = np.concatenate([self._head, self._tail])
        joined.setflags(write=False)
        return joined

    @property
    def elements(self) -> int:
        """How many ids :attr:`tokens` holds."""
        return self._head.size + self._tail.size

    def at(self, arrival: float) -> Request:
        """Return the same request with another arrival, in seconds."""
        return Request(self.group, self._head, self.length, arrival, self._tail)

    def __repr__(self) -> str:
        return f"Request(group={self.group!r}, length={self.length:,}, arrival={self.arrival:.3f})"


@dataclass(frozen=True)
class Workload:
    """Requests in order of arrival, and where they come from.

    Args:
        name: short, for tables and plots. That of a made-up workload says "synthetic".
        requests: at least one; arrivals must not fall.
        source: where the requests come from, for a person to read.
        tokenizer: the name of the tokenizer that gave the ids, or ``None`` for a hashed trace.
        unit: tokens that one id stands for: 1 for token ids, or the block size of a hashed trace.
        synthetic: whether the requests were made up by a random generator.
        provenance: anything else worth keeping, such as the options of the loader.

    Raises:
        ValueError: where there is no request, arrivals fall, or a request has not as many ids as
            its length in tokens takes at this ``unit``.
    """

    name: str
    requests: Sequence[Request]
    source: str
    tokenizer: str | None = None
    unit: int = 1
    synthetic: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", tuple(self.requests))
        check_token_count("unit", self.unit)
        if not self.requests:
            raise ValueError(f"workload {self.name!r} must hold at least one request, got none.")
        earlier = 0.0
        for number, request in enumerate(self.requests):
            check_instance(f"request {number}", request, Request)
            if request.arrival < earlier:
                raise ValueError(
                    f"requests must be in order of arrival: request {number} of {self.name!r} "
                    f"arrives at {request.arrival} s, after one at {earlier} s."
                )
            earlier = request.arrival
            needed = -(-request.length // self.unit)
            if request.elements != needed:
                raise ValueError(
                    f"request {number} of {self.name!r} has {request.elements} ids, but its "
                    f"{request.length} tokens take {needed} at {self.unit} tokens an id: "
                    "units must not be mixed."
                )

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each request in tokens."""
        return np.fromiter((request.length for request in self.requests), np.int64, len(self))

    @property
    def has_arrivals(self) -> bool:
        """Whether the requests say when they arrive: not all of them at the same time."""
        return any(request.arrival != self.requests[0].arrival for request in self.requests)

    def shared_tokens(self, depth: int, request: Request, entry: Request) -> int:
        """Return the tokens that two requests share, given that they share ``depth`` ids.

        In a hashed trace the last block of a prompt may be partly filled, so the count is capped
        by both lengths.
        """
        return min(depth * self.unit, request.length, entry.length)

    def overlap_samples(self, show_progress: bool = False) -> NDArray[np.int64]:
        """Return how many leading tokens each request shares with the best earlier one.

        The first request has 0. Nothing is evicted. In a hashed trace the count goes by whole
        blocks (see :meth:`shared_tokens`). Time: linear in the number of ids.
        """
        index = PrefixIndex()
        overlaps = np.zeros(len(self), dtype=np.int64)
        requests = progress(self.requests, f"overlaps of {self.name}", enabled=show_progress)
        for number, request in enumerate(requests):
            depth, entry = index.match_and_insert(request.tokens)
            if entry is not None:
                overlaps[number] = self.shared_tokens(depth, request, self.requests[entry])
        return overlaps

    def interleave(self, seed: int, mean_gap_s: float = 1.0) -> Workload:
        """Return the same requests as concurrent load: every group runs at the same time.

        Within a group requests keep their order and follow each other after exponential gaps of
        ``mean_gap_s`` seconds on average; equal seeds give equal arrivals. Requests of no group are
        one stream, as a log is, and keep their order likewise.

        Raises ``ValueError`` where the requests have arrivals of their own, which this would
        replace.
        """
        if self.has_arrivals and "interleave" not in self.provenance:
            raise ValueError(
                f"the requests of {self.name!r} have arrivals of their own and need no "
                "interleaving."
            )
        seed = check_integer("seed", seed, minimum=0)
        mean_gap_s = check_number("mean_gap_s", mean_gap_s, above=0.0)
        gaps = np.random.default_rng(seed).exponential(mean_gap_s, size=len(self))
        clock: dict[Hashable, float] = {}
        moved = []
        for request, gap in zip(self.requests, gaps.tolist(), strict=True):
            clock[request.group] = clock.get(request.group, 0.0) + gap
            moved.append(request.at(clock[request.group]))
        moved.sort(key=lambda request: request.arrival)
        details = dict(self.provenance) | {"interleave": {"seed": seed, "mean_gap_s": mean_gap_s}}
        return replace(self, requests=moved, provenance=details)

    def __repr__(self) -> str:
        kind = "synthetic, " if self.synthetic else ""
        what = "tokens" if self.unit == 1 else f"blocks of {self.unit} tokens"
        return f"Workload({self.name!r}, {kind}{len(self):,} requests, ids are {what})"


def _as_ids(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return ids as a read-only 1-D ``int64`` array; not copied where it is one already."""
    array = check_integers(name, values)
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array
