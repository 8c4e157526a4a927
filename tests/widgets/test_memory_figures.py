"""The figures of memory draw what `sparselab.memory` computes."""

from __future__ import annotations

import numpy as np
import pytest

import sparselab as sl
from sparselab import memory
from widgets.figures import memory as figures

MODEL = sl.HybridArchitecture.preset("qwen3.5-0.8b")


def lines(figure):
    return {trace.name: trace for trace in figure.data if trace.mode == "lines"}


def test_state_and_kv_are_drawn_to_one_scale():
    shapes = figures.state_to_scale(MODEL).layout.shapes
    areas = [(s.x1 - s.x0) * (s.y1 - s.y0) for s in shapes]
    assert sum(areas[:-1]) == pytest.approx(16 * 128 * 128)
    assert areas[-1] == 2 * 2 * 256


def test_every_layout_has_its_own_line_colour_and_dash():
    drawn = [trace.line for trace in lines(figures.weight_by_length(MODEL)).values()]
    assert len(drawn) == len(memory.LAYOUTS)
    assert len({line.color for line in drawn}) == len({line.dash for line in drawn}) == len(drawn)


def test_weight_by_length_is_entry_bytes():
    line = lines(figures.weight_by_length(MODEL, budget=4))["sparse: 4 checkpoints"]
    expected = memory.entry_bytes(MODEL, line.x, np.minimum(line.x, 4))
    assert np.array_equal(line.y, expected)


def test_entries_are_whole_and_the_line_ends_where_none_fits():
    line = lines(figures.entries_by_length(MODEL, memory.GIB))["dense: after every token"]
    fits = line.y[~np.isnan(line.y)]
    assert (fits >= 1).all()
    assert np.array_equal(fits, np.floor(fits))
    assert np.isnan(line.y[-1])


def test_the_ring_stands_where_the_share_is_half():
    figure = figures.checkpoint_share(MODEL, budgets=(4,))
    line, ring = figure.data
    assert np.interp(ring.x[0], line.x, line.y) == pytest.approx(50, abs=0.2)


def test_layouts_side_by_side_stack_to_the_total():
    figure = figures.layouts_at_length(MODEL, 8192, block_size=512, budget=4)
    heights = [trace.y[0] for trace in figure.data]
    table = memory.layouts_table(MODEL, [8192]).set_index("layout")["total_bytes"]
    for index, layout in enumerate(memory.LAYOUTS):
        total = sum(heights[2 * index : 2 * index + 2]) * memory.MIB
        assert total == pytest.approx(table[layout])


def test_family_labels_say_how_many_tokens_a_checkpoint_weighs():
    figure = figures.family(memory.family_table([MODEL]))
    assert [note.text for note in figure.layout.annotations] == ["= 1,590 tokens"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1000, "1,000 B"),
        (12 * 1024, "12 KiB"),
        (19_537_920, "18.6 MiB"),
        (2**41, "2 TiB"),
    ],
)
def test_bytes_are_written_for_readers(value, text):
    assert figures.bytes_text(value) == text
