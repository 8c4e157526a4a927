"""Cut plans: calls end on the absolute grid, at checkpoints and at the end."""

import pytest

from sparselab.replay.plan import cut_plan


@pytest.mark.parametrize(
    ("start", "end", "chunk", "positions", "expected"),
    [
        (0, 10, 4, (), (4, 8, 10)),
        (0, 8, 4, (), (4, 8)),
        (0, 3, 4, (), (3,)),
        (0, 10, 4, (3, 4, 10), (3, 4, 8, 10)),
        # Resumed off the grid: back on it at once, as a run from the first token is.
        (5, 13, 4, (), (8, 12, 13)),
        (8, 13, 4, (), (12, 13)),
        # Positions that were passed already do not cut.
        (5, 10, 4, (2, 5, 6), (6, 8, 10)),
        (4, 4, 4, (), ()),
    ],
)
def test_cuts(start, end, chunk, positions, expected):
    assert cut_plan(start, end, chunk, positions) == expected


def test_a_resumed_plan_is_the_tail_of_the_whole_one():
    whole = cut_plan(0, 100, 16, (37,))
    assert cut_plan(0, 37, 16) + cut_plan(37, 100, 16) == whole


def test_a_chunk_below_one_is_refused():
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        cut_plan(0, 10, 0)
