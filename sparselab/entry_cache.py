"""A cache of retained prompts ("entries") with a capacity and an order of eviction.

It stands for what a serving engine keeps: for each retained prompt its attention KV and the
recurrent checkpoints that a policy chose. An entry is charged for all of its bytes; nothing is
shared between entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparselab.validation import check_choice, check_integer
from sparselab.workloads.prefix_index import PrefixIndex

EVICTIONS = ("fifo", "lru")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One retained prompt.

    Attributes:
        request: the number of the request that it was, in the workload.
        group: that request's group.
        length: its tokens.
        positions: where it has checkpoints, increasing in ``1..length``.
        kv_tokens: tokens of attention KV that it keeps: ``length``, or 0 if none is kept.
    """

    request: int
    group: Hashable
    length: int
    positions: NDArray[np.int64]
    kv_tokens: int


class EntryCache:
    """Entries in order of eviction, found by the longest prefix they share with a prompt.

    Args:
        capacity: the most entries held, or ``None`` for any number.
        eviction: ``"fifo"`` evicts the oldest entry first, ``"lru"`` the one whose insertion or
            last match lies longest back.
        capacity_bytes: the most bytes held, or ``None``. A new entry pushes out old ones until the
            rest fits, itself as the last one if it alone is too large. So what is held is always
            the newest entries that fit, and under FIFO more bytes never hold fewer of them.
        bytes_per_kv_token, bytes_per_checkpoint: what an entry weighs.

    Attributes:
        kv_tokens, checkpoints: how many of each the entries hold together.
    """

    def __init__(
        self,
        capacity: int | None = None,
        eviction: str = "fifo",
        capacity_bytes: int | None = None,
        bytes_per_kv_token: int = 0,
        bytes_per_checkpoint: int = 0,
    ) -> None:
        if capacity is not None:
            capacity = check_integer("capacity", capacity, minimum=1)
        if capacity_bytes is not None:
            capacity_bytes = check_integer("capacity_bytes", capacity_bytes, minimum=1)
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._bytes_per_kv_token = bytes_per_kv_token
        self._bytes_per_checkpoint = bytes_per_checkpoint
        self._renew_on_match = check_choice("eviction", eviction, EVICTIONS) == "lru"
        self._index = PrefixIndex()
        self._entries: OrderedDict[int, Entry] = OrderedDict()  # first to go first
        self.kv_tokens = 0
        self.checkpoints = 0

    def __len__(self) -> int:
        return len(self._entries)

    def match(self, tokens: NDArray[np.int64]) -> tuple[int, Entry | None]:
        """Return the most ids that ``tokens`` shares with an entry, and the newest such entry."""
        depth, number = self._index.longest_prefix(tokens)
        if number is None:
            return 0, None
        if self._renew_on_match:
            self._entries.move_to_end(number)
        return depth, self._entries[number]

    def add(self, tokens: NDArray[np.int64], entry: Entry) -> None:
        """Retain an entry, then evict until the capacity holds."""
        self._entries[self._index.insert(tokens)] = entry
        self.kv_tokens += entry.kv_tokens
        self.checkpoints += entry.positions.size
        while self._is_over():
            number, evicted = self._entries.popitem(last=False)
            self._index.remove(number)
            self.kv_tokens -= evicted.kv_tokens
            self.checkpoints -= evicted.positions.size

    def _is_over(self) -> bool:
        if self._capacity is not None and len(self._entries) > self._capacity:
            return True
        return self._capacity_bytes is not None and self._bytes() > self._capacity_bytes

    def _bytes(self) -> int:
        kv = self.kv_tokens * self._bytes_per_kv_token
        return kv + self.checkpoints * self._bytes_per_checkpoint
