"""Schedules and the policies that make them."""

import numpy as np
import pytest

from sparselab import (
    OverlapDistribution,
    Schedule,
    expected_recompute,
    optimal_frontier,
    place,
    placement,
    policies,
    register_policy,
    worst_case_recompute,
)


class TestSchedule:
    def test_it_resumes_at_the_deepest_checkpoint_within_the_overlap(self):
        schedule = Schedule([2, 5], 6)
        assert schedule.resume_point(np.arange(7)).tolist() == [0, 0, 2, 2, 2, 5, 5]
        assert schedule.resume_point(4) == 2

    def test_without_checkpoints_it_resumes_at_zero(self):
        assert place("no_cache", 6).resume_point([0, 6]).tolist() == [0, 0]

    def test_no_depths_have_no_resume_points(self):
        assert Schedule([2], 6).resume_point([]).tolist() == []

    def test_it_leaves_its_input_writable(self):
        positions = np.array([2, 5])
        Schedule(positions, 6)
        positions[0] = 1

    def test_it_is_a_value(self):
        assert Schedule([2], 6, "a") == Schedule(np.array([2]), 6, "b")
        assert hash(Schedule([2], 6)) == hash(Schedule([2], 6))
        assert Schedule([2], 6) != Schedule([2], 7)
        assert len(Schedule([2, 5], 6)) == 2

    def test_it_shows_itself_as_a_table(self):
        frame = Schedule([2, 5], 6).to_frame()
        assert frame["tokens_since_previous"].tolist() == [2, 3]
        assert "<table" in Schedule([2, 5], 6)._repr_html_()

    @pytest.mark.parametrize(
        ("positions", "message"),
        [
            ([0], "positions must lie in 1..6, got 0"),
            ([7], "positions must lie in 1..6, got 7"),
            ([3, 3], "strictly increasing"),
            ([5, 2], "strictly increasing"),
            ([[1], [2, 3]], "positions must be one-dimensional, got"),
            ([10**30], "positions must be less than 2\\*\\*63, got 1000"),
        ],
    )
    def test_bad_positions_are_refused(self, positions, message):
        with pytest.raises(ValueError, match=message):
            Schedule(positions, 6)

    def test_depths_outside_the_entry_are_refused(self):
        with pytest.raises(ValueError, match=r"t must lie in 0\.\.6, got 7"):
            Schedule([2], 6).resume_point([1, 7])
        with pytest.raises(TypeError, match="t must be integer depths"):
            Schedule([2], 6).resume_point(1.5)


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "options", "positions"),
        [
            ("no_cache", {}, []),
            ("kv_only", {}, []),
            ("balanced", {"budget": 3}, [5, 10, 15]),
            ("block", {"block_size": 8}, [8, 16]),
            ("sqrt", {}, [4, 8, 12, 16]),
            ("log", {}, [1, 2, 4, 8, 16]),
            ("log", {"start": 3}, [4, 8, 16]),
            ("last", {}, [19]),
            ("branch", {"overlap": 13}, [13]),
            ("branch", {"overlap": 0}, []),
        ],
    )
    def test_each_places_where_it_says(self, policy, options, positions):
        assert place(policy, length=19, **options).positions.tolist() == positions

    def test_positions_are_floored_to_the_alignment_without_zero_and_duplicates(self):
        assert place("log", 19, align=4).positions.tolist() == [4, 8, 16]
        assert place("last", 19, align=8).positions.tolist() == [16]
        assert place("last", 7, align=8).positions.tolist() == []

    def test_optimal_optimises_on_the_alignment_grid_instead(self):
        dist = OverlapDistribution([11, 17], [1, 100], 19)
        assert place("optimal", 19, 1, dist, align=4).positions.tolist() == [16]
        assert place("optimal", 19, 9, dist).positions.tolist() == [11, 17]

    def test_a_remainder_does_not_pile_up_at_the_end(self):
        runs = np.diff([0, *place("balanced", 100, 30).positions, 101])
        assert runs.max() - runs.min() <= 1

    def test_a_budget_beyond_the_length_checkpoints_every_token(self):
        assert place("balanced", 5, 99).positions.tolist() == [1, 2, 3, 4, 5]

    def test_a_budget_beyond_all_depths_costs_no_memory(self):
        dist = OverlapDistribution([11, 17], [1, 100], 19)
        assert place("optimal", 19, 10**15, dist).positions.tolist() == [11, 17]

    def test_theorem_1_balanced_is_optimal_for_uniform_overlaps_and_for_the_worst_case(self):
        for length in range(1, 61):
            uniform = OverlapDistribution.uniform(length)
            frontier = optimal_frontier(uniform, length)
            for budget in range(length + 1):
                schedule = place("balanced", length, budget)
                assert len(schedule) == budget
                assert expected_recompute(schedule, uniform) == frontier.expected[budget]
                # M checkpoints leave M + 1 runs of N + 1 depths: no schedule can do better.
                assert worst_case_recompute(schedule) == -(-(length + 1) // (budget + 1)) - 1

    @pytest.mark.parametrize("budget", [1, 2000, 4097])
    def test_balanced_spaces_the_longest_entry_evenly(self, budget):
        length = 2**53
        positions = place("balanced", length, budget).positions
        runs = np.diff(positions, prepend=0, append=length + 1)
        assert positions.tolist() == [
            number * (length + 1) // (budget + 1) for number in range(1, budget + 1)
        ]
        assert runs.max() - runs.min() <= 1


class TestRegistry:
    def test_every_policy_says_what_it_is_and_needs(self):
        listed = policies()
        assert set(listed) >= {
            *(
                "no_cache",
                "kv_only",
                "balanced",
                "block",
                "sqrt",
                "log",
                "last",
                "branch",
                "optimal",
            )
        }
        assert listed["optimal"].needs == ("budget", "distribution")
        assert listed["block"].options == {"block_size": 512}
        assert all(policy.summary for policy in listed.values())

    def test_a_new_policy_needs_no_change_elsewhere(self, monkeypatch):
        monkeypatch.setattr(placement, "_REGISTRY", dict(placement._REGISTRY))

        @register_policy("third", "one checkpoint at a part of the entry")
        def third(context, part=3):
            return [context.length // part]

        assert place("third", 12).positions.tolist() == [4]
        assert place("third", 12, part=2, align=4).positions.tolist() == [4]
        with pytest.raises(ValueError, match="'third' is taken"):
            register_policy("third", "again")

    @pytest.mark.parametrize(
        ("positions", "error", "message"),
        [
            ([2.5], TypeError, "positions of policy 'wrong' must be integers, got float64"),
            ([[2]], ValueError, "positions of policy 'wrong' must be one-dimensional"),
        ],
    )
    def test_what_a_policy_returns_is_checked(self, monkeypatch, positions, error, message):
        monkeypatch.setattr(placement, "_REGISTRY", dict(placement._REGISTRY))
        register_policy("wrong", "returns no positions")(lambda context: positions)
        with pytest.raises(error, match=message):
            place("wrong", 12)

    def test_it_returns_a_copy(self):
        policies().clear()
        assert "optimal" in policies()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"policy": "optmal"},
            ValueError,
            "unknown policy 'optmal' \\(did you mean 'optimal'\\?\\)",
        ),
        ({"policy": "block", "blocksize": 4}, ValueError, "no option 'blocksize' \\(did you mean"),
        ({"policy": "last", "start": 4}, ValueError, "'last' has no option 'start'; it has: none"),
        ({"policy": "branch"}, ValueError, "needs the option 'overlap'"),
        ({"policy": "branch", "overlap": 11}, ValueError, "overlap must lie in 0..10, got 11"),
        ({"policy": "balanced"}, ValueError, "'balanced' needs a budget, got none"),
        ({"policy": "optimal", "budget": 1}, ValueError, "needs a distribution"),
        ({"policy": "balanced", "budget": -1}, ValueError, "budget must be at least 0, got -1"),
        ({"policy": "balanced", "budget": 1.5}, TypeError, "budget must be an integer, got 1.5"),
        ({"policy": "balanced", "budget": True}, TypeError, "budget must be an integer, got True"),
        ({"policy": "last", "align": 0}, ValueError, "align must be at least 1, got 0"),
        ({"policy": "last", "length": 0}, ValueError, "length must be at least 1, got 0"),
        ({"policy": "last", "length": 10**30}, ValueError, "length must be at most 90071"),
        ({"policy": "last", "align": 10**30}, ValueError, "align must be at most 90071"),
        ({"policy": ["last"]}, ValueError, "unknown policy \\['last'\\]"),
        ({"policy": "block", "block_size": 0}, ValueError, "block_size must be at least 1"),
        ({"policy": "last", "distribution": [1]}, TypeError, "must be an OverlapDistribution"),
        (
            {"policy": "last", "distribution": OverlapDistribution.uniform(9)},
            ValueError,
            "entry of 9 tokens and length is 10",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        place(**{"length": 10} | arguments)


def test_a_policy_is_expanded_by_the_budgets_that_it_heeds():
    cases = placement.expand(["balanced", "block"], [1, 4])
    assert cases == [("balanced", 1), ("balanced", 4), ("block", None)]
    assert placement.expand(["balanced"], []) == []
    with pytest.raises(ValueError, match=r"unknown policy 'blok' \(did you mean 'block'\?\)"):
        placement.expand(["blok"], [1])
    with pytest.raises(ValueError, match="budgets must be at least 0, got -1"):
        placement.expand(["block"], [-1])
