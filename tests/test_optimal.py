"""The exact solver, against brute force, the plain programme and what the theorems say."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference_solver import reference_costs

from sparselab import (
    OverlapDistribution,
    Schedule,
    expected_recompute,
    optimal_frontier,
    place,
    policies,
    total_recompute,
)
from sparselab.optimal import least_expected_recompute
from sparselab.placement import REQUIRED


def brute_force(dist, budget, align, cost):
    """The least cost over all subsets of the grid."""
    grid = range(align, dist.length + 1, align)
    return min(
        total_recompute(Schedule(np.array(chosen, dtype=int), dist.length), dist, cost)
        for size in range(min(budget, len(grid)) + 1)
        for chosen in itertools.combinations(grid, size)
    )


@st.composite
def problems(draw, longest=9):
    """A small distribution (integer or float weights, zeros, duplicates), alignment and cost."""
    length = draw(st.integers(1, longest))
    depths = draw(st.lists(st.integers(0, length), min_size=1, max_size=7))
    # Below about 1e-300 products of the two are subnormal numbers and have few digits.
    real = st.just(0.0) | st.floats(1e-250, 1e6)
    real_step = st.just(0.0) | st.floats(1e-50, 100)
    weight = draw(st.sampled_from([st.integers(0, 4), real]))
    weights = draw(
        st.lists(weight, min_size=len(depths), max_size=len(depths)).filter(lambda w: max(w) > 0)
    )
    step = draw(st.sampled_from([None, st.integers(0, 3), real_step]))
    cost = None
    if step is not None:
        steps = draw(st.lists(step, min_size=length, max_size=length))
        cost = np.concatenate([[0], np.cumsum(steps)])
    return OverlapDistribution(depths, weights, length), draw(st.integers(1, 7)), cost


def close(cost, expected, scale):
    """Equal to 1e-12 of the whole cost, which sums of that size can be held to."""
    return cost == pytest.approx(expected, rel=1e-12, abs=1e-12 * scale)


class TestOptimality:
    @settings(max_examples=1500, deadline=None)
    @given(problems(), st.integers(0, 8))
    def test_no_subset_of_the_grid_is_cheaper(self, problem, budget):
        dist, align, cost = problem
        frontier = optimal_frontier(dist, budget, align, cost)
        best = brute_force(dist, budget, align, cost)
        if frontier.exact:
            assert frontier.costs[budget] == best
        else:
            assert close(frontier.costs[budget], best, frontier.costs[0])

    @settings(max_examples=300, deadline=None)
    @given(problems(longest=60), st.integers(0, 12))
    def test_the_programme_over_all_depths_agrees(self, problem, budget):
        dist, align, cost = problem
        fast = optimal_frontier(dist, budget, align, cost)
        slow = reference_costs(dist, budget, align, cost)
        assert close(fast.costs, slow, fast.costs[0])
        if fast.exact:
            assert fast.costs.tolist() == slow.tolist()

    @pytest.mark.parametrize("seed", range(6))
    def test_it_agrees_on_larger_problems(self, seed):
        rng = np.random.default_rng(seed)
        length = 400
        weights = (
            rng.integers(0, 50, length + 1) if seed % 2 else 10 ** rng.uniform(-9, 9, length + 1)
        )
        dist = OverlapDistribution(np.arange(length + 1), weights, length)
        cost = [None, lambda x: x + 0.01 * x**2, np.arange(length + 1) ** 2][seed % 3]
        fast = optimal_frontier(dist, 40, 1 + seed, cost)
        slow = reference_costs(dist, 40, 1 + seed, cost)
        assert close(fast.costs, slow, fast.costs[0])

    @pytest.mark.parametrize("policy", [name for name in policies() if name != "optimal"])
    def test_no_policy_beats_it_with_as_many_checkpoints(self, policy):
        dist = OverlapDistribution.beta(500, 2.0, 3.0)
        options = {"overlap": 300} if REQUIRED in policies()[policy].options.values() else {}
        schedule = place(policy, 500, 7, **options)
        best = optimal_frontier(dist, len(schedule)).expected[len(schedule)]
        assert expected_recompute(schedule, dist) >= best - 1e-9


class TestLeastExpectedRecompute:
    @settings(max_examples=300, deadline=None)
    @given(problems(longest=60), st.integers(0, 70))
    def test_it_is_what_the_frontier_reaches(self, problem, budget):
        dist, align, cost = problem
        expected = optimal_frontier(dist, budget, align, cost).expected
        found = least_expected_recompute(dist, budget, align, cost)
        assert close(found, expected[budget], expected[0])

    @pytest.mark.parametrize("kind", ["uniform", "counts", "reals", "wide"])
    def test_it_agrees_for_every_budget(self, kind):
        rng, length = np.random.default_rng(0), 500
        weights = {
            "uniform": np.ones(length + 1, dtype=int),  # gains come in many equal steps
            "counts": rng.integers(0, 9, length + 1),
            "reals": rng.random(length + 1),
            "wide": 10 ** rng.uniform(-9, 9, length + 1),
        }[kind]
        dist = OverlapDistribution(np.arange(length + 1), weights, length)
        expected = optimal_frontier(dist, length).expected
        found = [least_expected_recompute(dist, budget) for budget in range(length + 1)]
        assert close(np.array(found), expected, expected[0])

    def test_thousands_of_checkpoints_among_a_million_depths_take_little_memory(self):
        length = (1 << 20) - 1
        tracemalloc.start()
        try:
            # 2**20 uniform depths in 2048 runs of 512, as Theorem 1 has it.
            found = least_expected_recompute(OverlapDistribution.uniform(length), 2047)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert found == 511 / 2
        assert peak < 2**28

    def test_bad_input_is_named(self):
        with pytest.raises(ValueError, match=r"^budget must be at least 0, got -1"):
            least_expected_recompute(OverlapDistribution.uniform(10), -1)


class TestSchedules:
    @settings(max_examples=300, deadline=None)
    @given(problems(longest=40), st.integers(0, 10))
    def test_positions_priced_by_the_public_objective_give_the_stated_cost(self, problem, budget):
        dist, align, cost = problem
        frontier = optimal_frontier(dist, budget, align, cost)
        for m in range(budget + 1):
            schedule = frontier.schedule(m)
            price = total_recompute(schedule, dist, cost)
            assert len(schedule) <= m
            assert (schedule.positions % align == 0).all()
            if frontier.exact:
                assert price == frontier.costs[m]
            else:
                assert price == pytest.approx(frontier.costs[m], rel=1e-12, abs=1e-300)

    @settings(max_examples=300, deadline=None)
    @given(problems(), st.integers(0, 8))
    def test_no_checkpoint_is_useless(self, problem, budget):
        dist, align, cost = problem
        frontier = optimal_frontier(dist, budget, align, cost)
        schedule = frontier.schedule(budget)
        assume(frontier.exact)  # rounding may hide what a tiny weight gains
        for left_out in range(len(schedule)):
            fewer = Schedule(np.delete(schedule.positions, left_out), dist.length)
            assert total_recompute(fewer, dist, cost) > frontier.costs[budget]

    def test_as_many_checkpoints_as_depths_leave_nothing_to_recompute(self):
        frontier = optimal_frontier(OverlapDistribution([0, 3, 8], [5, 1, 1], 10), 6)
        assert frontier.costs.tolist() == [11, 3, 0, 0, 0, 0, 0]
        assert frontier.schedule(6).positions.tolist() == [3, 8]

    def test_flat_stretches_of_the_cost_need_no_checkpoint(self):
        dist = OverlapDistribution.uniform(4)
        frontier = optimal_frontier(dist, 4, prefill_cost=[0, 0, 1, 1, 1])
        assert frontier.schedule(4).positions.tolist() == [2]

    def test_a_grid_coarser_than_the_entry_has_no_checkpoint(self):
        frontier = optimal_frontier(OverlapDistribution.uniform(6), 3, align=7)
        assert frontier.schedule(3).positions.tolist() == []
        assert frontier.costs.tolist() == [21] * 4


class TestFrontier:
    @settings(max_examples=300, deadline=None)
    @given(problems(longest=40))
    def test_it_is_convex_and_never_rises(self, problem):
        dist, align, cost = problem
        frontier = optimal_frontier(dist, 12, align, cost)
        slack = 0 if frontier.exact else 1e-12 * frontier.costs[0]
        assert (frontier.gains >= 0).all()
        assert (np.diff(frontier.gains) <= slack).all()

    def test_a_larger_budget_solves_the_smaller_ones_alike(self):
        dist = OverlapDistribution.zipf(300, 1.1)
        large = optimal_frontier(dist, 20)
        for m in range(20):
            small = optimal_frontier(dist, m)
            assert small.costs[m] == large.costs[m]
            assert small.schedule(m) == large.schedule(m)

    def test_expected_is_the_cost_over_the_total_weight(self):
        dist = OverlapDistribution([4, 9], [3, 1], 10)
        assert optimal_frontier(dist, 1).expected.tolist() == [21 / 4, 5 / 4]

    def test_it_converts_to_a_table(self):
        frame = optimal_frontier(OverlapDistribution([4, 9], [3, 1], 10), 2).to_frame()
        assert frame["cost"].tolist() == [21, 5, 0]
        assert frame["positions"].tolist() == [[], [4], [4, 9]]


class TestHowADistributionIsWrittenDown:
    @settings(max_examples=200, deadline=None)
    @given(problems(longest=40), st.randoms(use_true_random=False))
    def test_splitting_and_shuffling_counts_changes_nothing(self, problem, random):
        dist, align, cost = problem
        counts = np.ceil(dist.weights).astype(int)
        whole = OverlapDistribution(dist.depths, counts, dist.length)
        rows = [
            (d, part)
            for d, c in zip(dist.depths, counts, strict=True)
            for part in (c // 2, c - c // 2)
        ]
        random.shuffle(rows)
        depths, parts = zip(*rows, strict=True)
        split = OverlapDistribution(depths, parts, dist.length)
        first, second = (optimal_frontier(d, 6, align, cost) for d in (whole, split))
        assert first.costs.tolist() == second.costs.tolist()
        assert all(first.schedule(m) == second.schedule(m) for m in range(7))

    @settings(max_examples=200, deadline=None)
    @given(problems(longest=40), st.floats(1e-6, 1e6))
    def test_scaling_the_weights_scales_the_costs(self, problem, factor):
        dist, align, cost = problem
        scaled = OverlapDistribution(dist.depths, dist.weights * factor, dist.length)
        first = optimal_frontier(dist, 6, align, cost)
        second = optimal_frontier(scaled, 6, align, cost)
        assert close(second.costs, first.costs * factor, second.costs[0])
        assert close(second.expected, first.expected, second.expected[0])


class TestExactness:
    def test_integers_are_exact_up_to_the_last_bit_that_a_double_holds(self):
        length = 300
        rng = np.random.default_rng(0)
        cost = np.concatenate([[0], np.cumsum(rng.integers(0, 2**21 // length, length))])
        weights = rng.integers(0, 2**33 // length, length + 1)
        dist = OverlapDistribution(np.arange(length + 1), weights, length)
        assert 2**51 < dist.total * cost[-1] < 2**53
        fast, slow = (solve(dist, 20, 1, cost) for solve in (optimal_frontier, reference_costs))
        assert fast.exact
        assert fast.costs.dtype == np.int64
        assert fast.costs.tolist() == slow.tolist()
        for m in (1, 7, 20):
            assert total_recompute(fast.schedule(m), dist, cost) == fast.costs[m]

    @pytest.mark.parametrize("weight", [2**52, 2**61])
    def test_beyond_that_the_result_says_that_it_is_rounded(self, weight):
        dist = OverlapDistribution([5, 9], [weight, weight], 10)
        frontier = optimal_frontier(dist, 1)
        assert not frontier.exact
        assert "rounded" in repr(frontier)
        assert frontier.costs.tolist() == pytest.approx([14.0 * weight, 4.0 * weight])

    @pytest.mark.parametrize("scale", [1e-300, 1e300])
    def test_extreme_weights_neither_overflow_nor_vanish(self, scale):
        dist = OverlapDistribution([5, 9], [scale, 3 * scale], 10)
        frontier = optimal_frontier(dist, 1)
        assert frontier.schedule(1).positions.tolist() == [9]
        assert frontier.costs[1] == pytest.approx(5 * scale)
        assert frontier.expected[1] == pytest.approx(5 / 4)

    @pytest.mark.parametrize(
        ("weights", "cost"),
        [
            ([1e308, 3e307], None),
            ([5e-324, 5e-324], np.arange(11) * 0.01),
            ([1.0, 2.0], np.arange(11) * 1e307),
            ([1e-300, 2e-300], np.arange(11) * 1e-300),
        ],
    )
    def test_costs_that_no_double_holds_still_have_their_schedule(self, weights, cost):
        dist = OverlapDistribution([5, 9], weights, 10)
        frontier = optimal_frontier(dist, 3, prefill_cost=cost)
        assert [len(frontier.schedule(m)) for m in range(4)] == [0, 1, 2, 2]
        assert frontier.expected == pytest.approx(
            [expected_recompute(frontier.schedule(m), dist, cost) for m in range(4)], rel=1e-12
        )

    @pytest.mark.parametrize("dtype", [np.int64, np.uint64])
    def test_prefill_costs_beyond_exact_doubles_are_priced_as_the_objective_does(self, dtype):
        steps = np.random.default_rng(0).integers(0, 3, 60)
        cost = np.concatenate([[0], np.cumsum(steps) + 2**60]).astype(dtype) * dtype(7)
        dist = OverlapDistribution(np.arange(61), np.arange(1, 62), 60)
        frontier = optimal_frontier(dist, 5, prefill_cost=cost)
        for m in range(6):
            price = total_recompute(frontier.schedule(m), dist, cost)
            assert price == pytest.approx(frontier.costs[m], rel=1e-12)

    def test_tiny_tails_do_not_disturb_the_rest(self):
        dist = OverlapDistribution.geometric(2000, mean=2.0)
        frontier = optimal_frontier(dist, 60)
        for m in (5, 30, 60):
            price = total_recompute(frontier.schedule(m), dist)
            assert price == pytest.approx(frontier.costs[m], rel=1e-12)

    def test_it_is_deterministic(self):
        dist = OverlapDistribution.uniform(500)
        first, second = optimal_frontier(dist, 9), optimal_frontier(dist, 9)
        assert all(first.schedule(m) == second.schedule(m) for m in range(10))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_budget": -1}, ValueError, "max_budget must be at least 0, got -1"),
        ({"max_budget": 10**400}, ValueError, "max_budget must be at most 9007199254740992, got 1"),
        ({"max_budget": 2.0}, TypeError, "max_budget must be an integer, got 2.0"),
        ({"align": 0}, ValueError, "align must be at least 1, got 0"),
        ({"align": 10**30}, ValueError, "align must be at most 9007199254740992"),
        ({"distribution": [0.5, 0.5]}, TypeError, "distribution must be an OverlapDistribution"),
        ({"prefill_cost": [0, 1]}, ValueError, "prefill_cost must hold length \\+ 1"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        optimal_frontier(
            **{"distribution": OverlapDistribution.uniform(10), "max_budget": 3} | arguments
        )


def test_a_budget_beyond_the_solved_ones_is_refused():
    with pytest.raises(ValueError, match=r"budget must lie in 0\.\.3, got 4"):
        optimal_frontier(OverlapDistribution.uniform(10), 3).schedule(4)


def test_what_would_not_fit_in_memory_is_refused():
    with pytest.raises(ValueError, match="GiB"):
        optimal_frontier(OverlapDistribution.uniform(200_000), 200_000)
    with pytest.raises(ValueError, match=r"max_budget 1000000000000 .* GiB"):
        optimal_frontier(OverlapDistribution.uniform(10), 10**12)


def test_a_million_depths_and_64_checkpoints_fit_in_a_gibibyte():
    count = 1 << 20
    weights = np.random.default_rng(0).integers(1, 100, count)
    tracemalloc.start()  # NumPy reports its arrays to it
    try:
        frontier = optimal_frontier(OverlapDistribution(np.arange(count), weights, count), 64)
        assert len(frontier.schedule(64)) == 64
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 4 * 64 * count < peak < 2**30
