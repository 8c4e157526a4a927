"""The longest prefix that a sequence shares with any of the stored ones.

A :class:`PrefixIndex` is a radix tree: each node carries a run of tokens, and sequences that agree
so far share the nodes. Tokens are compared themselves, never hashes of them, so no collision can
report an overlap that is not there. A search reads each token of its sequence at most once, in
vectorised runs.

>>> index = PrefixIndex()
>>> index.insert([1, 2, 3, 4]), index.insert([1, 2, 9])
(0, 1)
>>> index.longest_prefix([1, 2, 3, 7])
Match(depth=3, entry=0)
>>> index.longest_prefix([1, 2])  # both share two tokens: the newest is named
Match(depth=2, entry=1)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.validation import check_integers


class Match(NamedTuple):
    """The deepest shared prefix: ``depth`` elements, shared with the stored sequence ``entry``.

    ``entry`` is ``None`` exactly where ``depth`` is 0, that is, where nothing is shared.
    """

    depth: int
    entry: int | None


class _Node:
    """A run of tokens below its parent, and what is stored at or below its end.

    Every node but the root ends a stored sequence or has at least two children.
    """

    __slots__ = ("children", "entries", "newest", "parent", "tokens")

    def __init__(self, tokens: NDArray[np.int64], parent: _Node | None) -> None:
        self.tokens = tokens
        self.parent = parent
        self.children: dict[int, _Node] = {}  # by the first token of the child's run
        self.entries: dict[int, None] = {}  # that end here, oldest first
        self.newest = -1  # of all entries here and below


class PrefixIndex:
    """Stores integer sequences and finds the longest prefix shared with any of them.

    Sequences may be token ids or block ids, as 1-D arrays or lists; depths count their elements.
    The index keeps each shared run once, and copies what it keeps.
    """

    def __init__(self) -> None:
        self._root = _Node(np.zeros(0, dtype=np.int64), None)
        self._leaf: dict[int, _Node] = {}  # where each entry ends
        self._next_entry = 0

    def __len__(self) -> int:
        return len(self._leaf)

    def __contains__(self, entry: int) -> bool:
        return entry in self._leaf

    def longest_prefix(self, tokens: ArrayLike) -> Match:
        """Return the depth of the deepest prefix shared with an entry, and the newest such entry.

        Time: linear in the number of elements at most.
        """
        depth, node, _ = self._descend(check_integers("tokens", tokens))
        return Match(depth, node.newest) if depth else Match(0, None)

    def insert(self, tokens: ArrayLike) -> int:
        """Store a sequence of at least one element; return its number, 0, 1, 2, ... in order.

        Time: linear in the number of elements.
        """
        self.match_and_insert(tokens)
        return self._next_entry - 1

    def match_and_insert(self, tokens: ArrayLike) -> Match:
        """Search first and then store the same sequence, in one walk; return what was found.

        Time: linear in the number of elements.
        """
        sequence = check_integers("tokens", tokens)
        if not sequence.size:
            raise ValueError("tokens must hold at least one element, got none.")
        depth, node, within = self._descend(sequence)
        match = Match(depth, node.newest) if depth else Match(0, None)
        if within < node.tokens.size:
            node = _split(node, within)
        if depth < sequence.size:
            # A copy, so that an entry does not keep the caller's whole array alive.
            leaf = _Node(sequence[depth:].copy(), node)
            node.children[int(sequence[depth])] = leaf
            node = leaf
        entry = self._next_entry
        self._next_entry += 1
        node.entries[entry] = None
        self._leaf[entry] = node
        for above in _upwards(node):
            above.newest = entry
        return match

    def remove(self, entry: int) -> None:
        """Forget an entry; raises ``KeyError`` where it is not stored.

        Time: linear in the entry's elements and the run that it leaves undivided, plus the
        children of those nodes on its path where it was the newest (none when the oldest go first).
        """
        if entry not in self._leaf:
            raise KeyError(f"entry {entry} is not stored.")
        node = self._leaf.pop(entry)
        del node.entries[entry]
        if not node.entries and not node.children and node.parent is not None:
            parent = node.parent
            del parent.children[int(node.tokens[0])]
            node = parent
        if not node.entries and len(node.children) == 1 and node.parent is not None:
            node = _merge_with_child(node)
        for above in _upwards(node):
            if above.newest != entry:
                break
            below = (child.newest for child in above.children.values())
            above.newest = max(next(reversed(above.entries), -1), *below, -1)

    def _descend(self, sequence: NDArray[np.int64]) -> tuple[int, _Node, int]:
        """Follow ``sequence`` down; return its depth, the last node, and the depth in its run."""
        node, depth, within = self._root, 0, 0
        while depth < sequence.size:
            child = node.children.get(int(sequence[depth]))
            if child is None:
                break
            node = child
            within = common_prefix(node.tokens, sequence[depth:])
            depth += within
            if within < node.tokens.size:
                break
        return depth, node, within


def common_prefix(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Return how many leading elements two 1-D arrays have in common."""
    shorter = min(a.size, b.size)
    differs = a[:shorter] != b[:shorter]
    first = int(differs.argmax()) if shorter else 0
    return first if shorter and differs[first] else shorter


def _upwards(node: _Node | None) -> Iterator[_Node]:
    """Yield ``node`` and what is above it, up to the root."""
    while node is not None:
        yield node
        node = node.parent


def _split(node: _Node, within: int) -> _Node:
    """Cut ``node``'s run after ``within`` tokens; return the new upper node."""
    parent = node.parent
    assert parent is not None  # the root has no run to cut
    upper = _Node(node.tokens[:within].copy(), parent)
    upper.newest = node.newest
    parent.children[int(upper.tokens[0])] = upper
    node.tokens = node.tokens[within:]
    # A view keeps the run that it was cut from alive; once that is half waste, a copy is cheaper.
    if node.tokens.base is not None and node.tokens.base.size > 2 * node.tokens.size:
        node.tokens = node.tokens.copy()
    node.parent = upper
    upper.children[int(node.tokens[0])] = node
    return upper


def _merge_with_child(node: _Node) -> _Node:
    """Join ``node`` with its only child, so that paths stay short; return its parent."""
    parent = node.parent
    (child,) = node.children.values()
    assert parent is not None  # the root is never merged
    child.tokens = np.concatenate([node.tokens, child.tokens])
    child.parent = parent
    parent.children[int(child.tokens[0])] = child
    return parent
