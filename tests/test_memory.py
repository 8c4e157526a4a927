"""What entries weigh, against the sizes that are known of the models."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import sparselab as sl
from sparselab import memory

SMALL = sl.HybridArchitecture.preset("qwen3.5-0.8b")
LARGE = sl.HybridArchitecture.preset("qwen3.5-27b")


def test_an_entry_weighs_its_kv_and_its_checkpoints() -> None:
    # 12 KiB of KV a token and 18.6 MiB a checkpoint.
    weight = memory.entry_bytes(SMALL, [0, 1000], [0, 2])
    assert weight.tolist() == [0, 1000 * 12 * 1024 + 2 * SMALL.checkpoint_bytes]
    assert SMALL.checkpoint_bytes / memory.MIB == pytest.approx(18.6, abs=0.05)


def test_layouts_differ_only_in_their_checkpoints() -> None:
    counts = {
        layout: memory.checkpoint_count(layout, [3, 1024, 1300], block_size=512, budget=4).tolist()
        for layout in memory.LAYOUTS
    }
    assert counts == {
        "dense": [3, 1024, 1300],
        "block": [0, 2, 2],
        "sparse": [3, 4, 4],
        "kv_only": [0, 0, 0],
    }


def test_block_counts_are_those_of_the_policy() -> None:
    for length in (511, 512, 5000):
        schedule = sl.place("block", length, block_size=512)
        assert len(schedule) == memory.checkpoint_count("block", length, block_size=512)


@pytest.mark.parametrize(("checkpoints", "length"), [(0, 0.0), (1, 1590), (4, 6360)])
def test_break_even_is_where_both_parts_weigh_the_same(checkpoints: int, length: float) -> None:
    assert memory.break_even_length(SMALL, checkpoints) == pytest.approx(length, rel=1e-3)
    kv = memory.break_even_length(SMALL, checkpoints) * SMALL.kv_bytes_per_token
    assert kv == pytest.approx(checkpoints * SMALL.checkpoint_bytes)


def test_without_attention_checkpoints_always_outweigh_kv() -> None:
    pure = dataclasses.replace(SMALL, attention_layers=0)
    assert memory.break_even_length(pure, 1) == np.inf


def test_layouts_table_adds_up() -> None:
    table = memory.layouts_table(LARGE, [512, 32_768], memory_bytes=10 * memory.GIB)
    assert (table["total_bytes"] == table["kv_bytes"] + table["checkpoint_bytes"]).all()
    assert np.allclose(table["entries"] * table["total_bytes"], 10 * memory.GIB)
    at_length = table[table["length"] == 32_768].set_index("layout")["total_bytes"]
    assert at_length["dense"] > at_length["block"] > at_length["sparse"] > at_length["kv_only"]


def test_family_table_agrees_with_the_published_sizes() -> None:
    table = memory.family_table([SMALL, LARGE]).set_index("model")
    assert table["checkpoint_kv_tokens"].round().tolist() == [1590, 2349]
    assert table["kv_bytes_per_token"].tolist() == [12 * 1024, 64 * 1024]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"layout": "blok", "length": 1}, ValueError, "did you mean 'block'"),
        ({"layout": "block", "length": -1}, ValueError, r"length must lie in 0\.\.\d+, got -1"),
        ({"layout": "dense", "length": [1.5]}, TypeError, "length must be integers, got float64"),
        ({"layout": "dense", "length": "9"}, TypeError, "length must be integers"),
        ({"layout": "dense", "length": [[1], [1, 2]]}, ValueError, "length must be a number or"),
        ({"layout": "block", "length": 1, "block_size": 10**30}, ValueError, "block_size must be"),
        ({"layout": "block", "length": 1, "block_size": 0}, ValueError, "block_size must be"),
        ({"layout": "sparse", "length": 1, "budget": -1}, ValueError, "budget must be at least 0"),
        ({"layout": "sparse", "length": 1, "budget": 1.5}, TypeError, "budget must be an integer"),
    ],
)
def test_bad_input_is_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        memory.checkpoint_count(**arguments)


def test_a_budget_beyond_any_entry_is_a_checkpoint_a_token() -> None:
    assert memory.checkpoint_count("sparse", 7, budget=10**30) == 7


@pytest.mark.parametrize(
    ("length", "checkpoints", "error", "message"),
    [
        (1.5, 0, TypeError, "length must be integers"),
        (1, [0.5], TypeError, "checkpoints must be integers"),
        (1, -1, ValueError, "checkpoints must lie in 0"),
        (2**52, 0, ValueError, "must weigh less than 2..63 bytes, got up to 4503599627370496"),
    ],
)
def test_bytes_are_never_those_of_rounded_or_overflowing_counts(
    length: Any, checkpoints: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        memory.entry_bytes(SMALL, length, checkpoints)


def test_infinitely_many_entries_of_no_bytes_fit() -> None:
    table = memory.layouts_table(SMALL, [0])
    assert np.isinf(table["entries"]).all()


def test_tables_take_whole_lengths_only() -> None:
    with pytest.raises(TypeError, match="lengths must be integers, got float64"):
        memory.layouts_table(SMALL, [512.5])
