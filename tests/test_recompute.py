"""The objective: what a request recomputes, and what that costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparselab import (
    OverlapDistribution,
    PrefillCostModel,
    Schedule,
    expected_recompute,
    recompute,
    reduction_factor,
    total_recompute,
    worst_case_recompute,
)
from sparselab.recompute import prefill_cost_values

SCHEDULE = Schedule([3, 7], length=10)


def test_a_request_recomputes_from_the_deepest_checkpoint_within_its_overlap():
    assert recompute(SCHEDULE, np.arange(11)).tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3]
    assert recompute(SCHEDULE, 6) == 3
    assert isinstance(recompute(SCHEDULE, 6), int)


def test_depths_of_any_integer_type_and_none_at_all_are_priced():
    costs = recompute(SCHEDULE, np.array([2, 9], dtype=np.uint64))
    assert (costs.tolist(), costs.dtype) == ([2, 2], np.int64)
    assert recompute(SCHEDULE, [], prefill_cost=np.arange(11)).tolist() == []


def test_any_prefill_cost_prices_the_same_gap():
    squares = [x * x for x in range(11)]
    assert recompute(SCHEDULE, 6, prefill_cost=squares) == 36 - 9
    assert recompute(SCHEDULE, 6, prefill_cost=lambda x: x * x) == 36 - 9


def test_total_is_in_the_weights_own_unit_and_expected_is_per_request():
    dist = OverlapDistribution([6, 10], [3, 1], 10)
    assert total_recompute(SCHEDULE, dist) == 3 * 3 + 1 * 3
    assert expected_recompute(SCHEDULE, dist) == 3.0
    assert reduction_factor(SCHEDULE, dist) == pytest.approx((3 * 6 + 10) / 4 / 3.0)


def test_the_reduction_is_infinite_where_nothing_is_left_and_one_where_nothing_was():
    assert reduction_factor(SCHEDULE, OverlapDistribution.point(10, 7)) == float("inf")
    assert reduction_factor(SCHEDULE, OverlapDistribution.point(10, 0)) == 1.0


def test_counting_tokens_takes_no_memory_for_the_length():
    length = 2**53
    factor = reduction_factor(Schedule([2], length), OverlapDistribution.point(length, 6))
    assert factor == 6 / 4


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sets(st.integers(1, n)),
            st.lists(st.integers(0, 5), min_size=n, max_size=n),
        )
    )
)
def test_the_worst_case_is_the_largest_over_all_depths(case):
    length, positions, steps = case
    schedule = (
        Schedule(sorted(positions), length) if positions else Schedule(np.zeros(0, int), length)
    )
    cost = np.concatenate([[0], np.cumsum(steps)])
    depths = np.arange(length + 1)
    assert worst_case_recompute(schedule) == recompute(schedule, depths).max()
    assert worst_case_recompute(schedule, cost) == recompute(schedule, depths, cost).max()


def test_integer_totals_stay_exact_beyond_64_bits():
    dist = OverlapDistribution([10], [2**60], 10)
    total = total_recompute(SCHEDULE, dist, prefill_cost=np.arange(11) * 2**40)
    assert total == 2**60 * 3 * 2**40


class TestPrefillCost:
    def test_tokens_are_the_default(self):
        assert prefill_cost_values(None, 3).tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("cost", "message"),
        [
            ([0, 2, 1], "must not decrease, got G\\(1\\) = 2 and G\\(2\\) = 1"),
            ([1, 2, 3], "must start at G\\(0\\) = 0, got 1"),
            ([0, 1], "must hold length \\+ 1 = 3 values"),
            ([[0], [1, 2]], "prefill_cost must be one-dimensional"),
            ([0, 1, float("nan")], "must be finite"),
            (lambda x: x + 1, "must start at G\\(0\\) = 0"),
        ],
    )
    def test_bad_costs_are_refused(self, cost, message):
        with pytest.raises(ValueError, match=message):
            prefill_cost_values(cost, 2)

    def test_integers_stay_exact_or_become_floats(self):
        assert prefill_cost_values([0, 2**53], 1).dtype == np.int64
        assert prefill_cost_values(np.array([0, 2**63], np.uint64), 1).tolist() == [0.0, 2.0**63]

    def test_costs_must_be_numbers(self):
        with pytest.raises(TypeError, match="must hold numbers"):
            prefill_cost_values(["a", "b", "c"], 2)


class TestPrefillCostModel:
    def test_it_recovers_the_terms_that_made_the_measurements(self):
        truth = PrefillCostModel(overhead_ms=5.0, linear_ms=0.2, quadratic_ms=1e-5)
        lengths = np.array([128, 512, 1024, 2048])
        fitted = PrefillCostModel.fit(lengths, truth.predict_ms(0, lengths))
        assert fitted.overhead_ms == pytest.approx(5.0)
        assert fitted.linear_ms == pytest.approx(0.2)
        assert fitted.quadratic_ms == pytest.approx(1e-5)

    def test_the_overhead_is_paid_a_call_and_is_no_part_of_the_prefill_cost(self):
        model = PrefillCostModel(5.0, 0.5, 0.0)
        assert model(0) == 0
        assert model.predict_ms(100, 300) == pytest.approx(5.0 + 100.0)
        assert prefill_cost_values(model, 4).tolist() == [0, 0.5, 1, 1.5, 2]

    def test_no_term_is_fitted_below_zero(self):
        fitted = PrefillCostModel.fit([1, 2, 3, 4], [10, 11, 11.5, 11.6])
        assert min(fitted.overhead_ms, fitted.linear_ms, fitted.quadratic_ms) >= 0

    def test_too_few_lengths_are_refused(self):
        with pytest.raises(ValueError, match="at least 3 distinct lengths"):
            PrefillCostModel.fit([1, 2, 2], [1, 2, 2])
        with pytest.raises(TypeError, match="lengths and milliseconds must be numbers"):
            PrefillCostModel.fit(["1", "2", "3"], [1, 2, 2])
        with pytest.raises(ValueError, match="linear_ms must be at least 0"):
            PrefillCostModel(0.0, -1.0, 0.0)


def test_a_schedule_and_a_distribution_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="entry of 10 tokens and the distribution for one of 9"):
        expected_recompute(SCHEDULE, OverlapDistribution.uniform(9))
    with pytest.raises(TypeError, match="distribution must be an OverlapDistribution, got list"):
        expected_recompute(SCHEDULE, [1, 2])
