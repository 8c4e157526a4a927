"""The prefix index agrees with comparing every stored sequence, whatever is stored and removed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselab.workloads.prefix_index import Match, PrefixIndex, common_prefix

SEQUENCES = st.lists(st.integers(0, 2), min_size=1, max_size=8)


def shared(a, b):
    """Count equal leading elements, one at a time."""
    depth = 0
    while depth < min(len(a), len(b)) and a[depth] == b[depth]:
        depth += 1
    return depth


def best_of(stored, sequence):
    """The deepest shared prefix over all stored sequences; of equally deep ones the newest."""
    depth, entry = max(((shared(s, sequence), k) for k, s in stored.items()), default=(0, None))
    return Match(depth, entry) if depth else Match(0, None)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("insert"), SEQUENCES),
            st.tuples(st.just("remove"), st.integers(0, 10**6)),
            st.tuples(st.just("search"), SEQUENCES),
            st.tuples(st.just("match and insert"), SEQUENCES),
        ),
        max_size=60,
    )
)
def test_agrees_with_a_plain_search_under_any_history(history):
    index, stored, removed = PrefixIndex(), {}, set()
    for action, argument in history:
        if action == "insert":
            stored[index.insert(argument)] = argument
        elif action == "remove" and stored:
            entry = sorted(stored)[argument % len(stored)]
            index.remove(entry)
            del stored[entry]
            removed.add(entry)
        elif action == "search":
            assert index.longest_prefix(argument) == best_of(stored, argument)
        elif action == "match and insert":
            newest = max([-1, *stored, *removed])
            assert index.match_and_insert(argument) == best_of(stored, argument)
            stored[newest + 1] = argument
        assert len(index) == len(stored)


def test_ties_go_to_the_newest_entry_and_back_when_it_is_removed():
    index = PrefixIndex()
    first, second = index.insert([5, 6, 7]), index.insert([5, 6, 7])
    assert index.longest_prefix([5, 6, 8]) == (2, second)
    index.remove(second)
    assert index.longest_prefix([5, 6, 8]) == (2, first)


def test_a_stored_prefix_of_the_search_and_a_stored_extension_of_it():
    index = PrefixIndex()
    short, long = index.insert([1, 2]), index.insert([1, 2, 3, 4])
    assert index.longest_prefix([1, 2, 3, 9]) == (3, long)
    assert index.longest_prefix([1, 2, 9]) == (2, long)
    index.remove(long)
    assert index.longest_prefix([1, 2, 3, 9]) == (2, short)


def test_nothing_shared_and_nothing_stored_is_depth_zero():
    index = PrefixIndex()
    assert index.longest_prefix([1]) == (0, None)
    index.insert([2])
    assert index.longest_prefix([1]) == (0, None)
    assert index.longest_prefix([]) == (0, None)


def test_the_index_is_a_copy_and_leaves_its_input_alone():
    tokens = np.array([1, 2, 3], dtype=np.int64)
    index = PrefixIndex()
    index.insert(tokens)
    tokens[:] = 9
    assert index.longest_prefix([1, 2, 3]).depth == 3
    assert tokens.tolist() == [9, 9, 9]


@pytest.mark.parametrize("order", [1, -1], ids=["ever deeper", "ever less deep"])
def test_memory_grows_with_what_is_stored_however_it_branches(order):
    index, anchor = PrefixIndex(), np.arange(20_000)
    index.insert(anchor)
    for depth in range(19_000, 20_000)[::order]:
        index.insert(np.r_[anchor[:depth], -1])
    arrays, nodes = {}, [index._root]
    while nodes:
        node = nodes.pop()
        nodes += node.children.values()
        array = node.tokens if node.tokens.base is None else node.tokens.base
        arrays[id(array)] = array.size
    distinct = anchor.size + 1000
    assert sum(arrays.values()) <= 2 * distinct


def test_ids_that_python_hashes_alike_are_still_told_apart():
    # hash(-1) == hash(-2) in CPython: an index that trusted hashes could confuse the two.
    index = PrefixIndex()
    index.insert([-1, 5])
    assert index.longest_prefix([-2, 5]) == (0, None)


def test_paths_stay_short_when_diverging_entries_have_gone():
    # Each entry that leaves must take its branching point with it, or searches would slow down.
    index = PrefixIndex()
    long = index.insert(np.arange(2000))
    for depth in range(1, 1000):
        index.remove(index.insert(np.r_[np.arange(depth), -1]))
    node, nodes = index._root, 0
    while node.children:
        (node,) = node.children.values()
        nodes += 1
    assert nodes == 1
    assert index.longest_prefix(np.arange(2000)) == (2000, long)


@pytest.mark.parametrize(
    ("a", "b", "depth"),
    [([], [], 0), ([1], [], 0), ([1, 2], [1, 3], 1), ([1, 2], [1, 2, 3], 2), ([1], [2], 0)],
)
def test_common_prefix(a, b, depth):
    assert common_prefix(np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)) == depth


def test_bad_input_is_refused():
    index = PrefixIndex()
    with pytest.raises(ValueError, match="at least one element"):
        index.insert([])
    with pytest.raises(TypeError, match="tokens must be integers, got float64"):
        index.insert([1.5])
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 2\)"):
        index.longest_prefix([[1, 2]])
    with pytest.raises(KeyError, match="entry 3 is not stored"):
        index.remove(3)
