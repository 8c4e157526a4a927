"""Policies side by side: the same numbers as the public functions give one by one."""

import numpy as np
import pytest

import sparselab as sl
from widgets.comparison import compare, own_schedule
from widgets.theme import OWN

POLICIES = ("no_cache", "balanced", "block", "log", "optimal")


@pytest.fixture
def overlaps():
    return sl.OverlapDistribution.beta(1000, 2, 5)


def test_rows_are_what_the_public_functions_give(overlaps):
    comparison = compare(overlaps, 5, POLICIES, options={"block": {"block_size": 128}})
    assert [row.name for row in comparison.rows] == list(POLICIES)
    for row in comparison.rows:
        options = {"block_size": 128} if row.name == "block" else {}
        schedule = sl.place(row.name, 1000, 5, overlaps, **options)
        assert row.schedule == schedule
        assert row.expected == sl.expected_recompute(schedule, overlaps)
        assert row.worst == sl.worst_case_recompute(schedule)
        assert row.reduction == pytest.approx(sl.reduction_factor(schedule, overlaps), rel=1e-12)


def test_costs_other_than_tokens_are_priced_as_given(overlaps):
    cost = np.arange(1001.0) ** 2
    comparison = compare(overlaps, 3, ("balanced", "optimal"), 16, cost, "FLOPs")
    best = sl.place("optimal", 1000, 3, overlaps, align=16, prefill_cost=cost)
    assert comparison.row("optimal").schedule == best
    assert comparison.row("optimal").expected == sl.expected_recompute(best, overlaps, cost)
    assert comparison.unit == "FLOPs"


def test_excess_is_over_the_optimum_of_as_many_checkpoints(overlaps):
    comparison = compare(overlaps, 4, ("last", "balanced", "optimal"))
    assert comparison.row("optimal").excess == 0
    one = sl.optimal_frontier(overlaps, 1).expected[1]
    assert comparison.row("last").excess == pytest.approx(comparison.row("last").expected / one - 1)
    assert all(row.excess >= 0 for row in comparison.rows)


def test_more_checkpoints_than_the_frontier_covers_have_no_excess(overlaps):
    comparison = compare(overlaps, 4, ("sqrt",))
    assert len(comparison.row("sqrt").schedule) > comparison.frontier.max_budget
    assert comparison.row("sqrt").excess is None


def test_nothing_left_to_recompute_is_infinitely_less():
    comparison = compare(sl.OverlapDistribution.point(100, 60), 1, ("optimal", "no_cache"))
    assert comparison.row("optimal").reduction == float("inf")
    assert comparison.row("no_cache").excess == 0.0


@pytest.mark.parametrize("budget", [0, 5, 11, 16, 37])
@pytest.mark.parametrize("align", [1, 48])
def test_curves_go_through_where_the_policies_stand_at_every_budget(overlaps, budget, align):
    for cost in (None, np.arange(1001.0) ** 2):
        comparison = compare(overlaps, budget, POLICIES, align, cost)
        assert set(comparison.curves) == {"balanced", "optimal"}
        for name, (checkpoints, expected) in comparison.curves.items():
            row = comparison.row(name)
            here = expected[checkpoints == len(row.schedule)]
            assert np.isclose(here, row.expected, rtol=1e-9).any()


def test_a_curve_is_what_the_public_function_gives_for_each_budget(overlaps):
    checkpoints, expected = compare(overlaps, 8, ("balanced",)).curves["balanced"]
    schedules = [sl.place("balanced", 1000, budget) for budget in range(17)]
    assert checkpoints.tolist() == [len(schedule) for schedule in schedules]
    assert expected == pytest.approx([sl.expected_recompute(s, overlaps) for s in schedules])


def test_your_own_row_is_floored_to_the_grid_and_comes_last(overlaps):
    comparison = compare(overlaps, 2, ("optimal",), align=64, own=[700, 130, 128, 20])
    assert comparison.rows[-1].name == OWN
    assert comparison.rows[-1].schedule.positions.tolist() == [128, 640]


def test_own_positions_outside_the_entry_are_refused():
    with pytest.raises(ValueError, match=r"positions must lie in 1\.\.100, got 101"):
        own_schedule([5, 101], 100)


def test_the_table_has_units_in_its_column_names(overlaps):
    frame = compare(overlaps, 2, ("optimal",), own=[500]).to_frame()
    assert list(frame["policy"]) == ["optimal", OWN]
    assert "expected_recompute_tokens" in frame
    assert frame["positions"][1] == [500]
