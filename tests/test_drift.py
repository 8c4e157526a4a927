"""Regret under drift: against costs computed one by one, and below the bounds of the theory."""

import numpy as np
import pytest

from sparselab.drift import (
    Drift,
    PlanningRule,
    measure_gammas,
    measure_regret,
    plans_over_time,
    standard_rules,
    theorem_4,
)
from sparselab.estimators import DecayedHistogram, Histogram
from sparselab.optimal import optimal_frontier
from sparselab.overlap import OverlapDistribution
from sparselab.recompute import expected_recompute

FIRST = OverlapDistribution([10, 20, 30], [1, 2, 1], 100)
SECOND = OverlapDistribution([30, 70, 90], [1, 1, 2], 100)


@pytest.fixture
def drift() -> Drift:
    return Drift(FIRST, SECOND, swing=40, requests=200)


def truth(drift: Drift, request: int) -> OverlapDistribution:
    """The distribution of a request, mixed anew from the definition."""
    phase = request % (2 * drift.swing)
    share = min(phase, 2 * drift.swing - phase) / drift.swing
    if share in (0, 1):
        return SECOND if share else FIRST
    return OverlapDistribution.mixture([FIRST, SECOND], [1 - share, share])


class Prior:
    """An estimator that learns nothing: it answers what it was given."""

    def __init__(self, answer: OverlapDistribution) -> None:
        self.answer = answer

    def observe(self, depth, length, group=None):
        """Take in nothing."""

    def distribution(self, length, group=None):
        """Return the answer."""
        return self.answer


class TestDrift:
    def test_swings_there_and_back_by_equal_steps(self, drift):
        assert drift.shares[[0, 20, 40, 60, 80, 120]].tolist() == [0, 0.5, 1, 0.5, 0, 1]
        for request in (0, 13, 39, 40, 77):
            step = truth(drift, request).tv(truth(drift, request + 1))
            assert step == pytest.approx(drift.step)

    def test_samples_follow_the_shares(self):
        fast = Drift(FIRST, SECOND, swing=1, requests=20_000)
        overlaps = fast.sample(seed=3)
        for part, distribution in [(overlaps[::2], FIRST), (overlaps[1::2], SECOND)]:
            found = OverlapDistribution.from_samples(part, 100)
            assert found.tv(distribution) < 0.02
        assert (fast.sample(3) == overlaps).all()
        assert (fast.sample(4) != overlaps).any()

    def test_least_cost_is_the_optimum_of_each_request(self, drift):
        least = drift.least_cost(2)
        for request in (0, 7, 40, 93, 199):
            optimum = optimal_frontier(truth(drift, request), 2).expected[2]
            assert least[request] == pytest.approx(optimum)


class TestPlans:
    def test_frozen_plans_once_on_the_first_window(self, drift):
        overlaps = drift.sample(0)
        plans = plans_over_time(drift, 2, standard_rules(0.9, 10, 50)["frozen"], overlaps)
        assert [start for start, _, _ in plans] == [0, 50]
        assert plans[1][2] == OverlapDistribution.from_samples(overlaps[:50], 100)

    def test_periodic_rests_on_the_last_window_alone(self, drift):
        overlaps = drift.sample(0)
        plans = plans_over_time(drift, 2, standard_rules(0.9, 10, 50)["periodic"], overlaps)
        assert [start for start, _, _ in plans] == [0, 50, 100, 150]
        assert plans[3][2] == OverlapDistribution.from_samples(overlaps[100:150], 100)

    def test_decayed_rests_on_all_before_with_fading_weights(self, drift):
        overlaps = drift.sample(0)
        plans = plans_over_time(drift, 2, standard_rules(0.9, 25, 50)["decayed"], overlaps)
        assert [start for start, _, _ in plans] == list(range(0, 200, 25))
        expected = DecayedHistogram(0.9)
        for depth in overlaps[:75].tolist():
            expected.observe(depth, 100)
        found = plans[3][2]
        assert found.depths.tolist() == expected.distribution(100).depths.tolist()
        assert found.weights == pytest.approx(expected.distribution(100).weights)


class TestRegret:
    def test_is_the_excess_over_the_optimum_request_by_request(self, drift):
        rules = standard_rules(0.9, 10, 30)
        table = measure_regret(drift, 2, rules, repeats=1, seed=5)
        for name, rule in rules.items():
            found = table[table["rule"] == name].set_index("request")
            plans = plans_over_time(drift, 2, rule, drift.sample(5))
            for request in (0, 29, 30, 58, 101, 199):
                _, schedule, estimate = [plan for plan in plans if plan[0] <= request][-1]
                p = truth(drift, request)
                regret = expected_recompute(schedule, p) - optimal_frontier(p, 2).expected[2]
                assert found["regret"][request] == pytest.approx(regret, abs=1e-9)
                if estimate is None:
                    assert np.isnan(found["tv"][request])
                else:
                    assert found["tv"][request] == pytest.approx(estimate.tv(p))
                    assert found["ks"][request] == pytest.approx(estimate.ks(p))

    @pytest.mark.parametrize("added", ["uniform", "shallow", "deep", "between"])
    def test_an_estimate_may_have_depths_that_never_come(self, drift, added):
        prior = {
            "uniform": OverlapDistribution.uniform(100),
            "shallow": OverlapDistribution([0, 3], [1, 1], 100),
            "deep": OverlapDistribution([95, 100], [1, 3], 100),
            "between": OverlapDistribution([10, 25, 89], [1, 1, 1], 100),
        }[added]
        rule = PlanningRule(lambda: Prior(prior), 25)
        table = measure_regret(drift, 2, {"prior": rule}, repeats=1)
        assert (table["regret"][25:] <= table["loss_bound"][25:]).all()
        for request in (25, 60, 199):
            assert table["tv"][request] == pytest.approx(prior.tv(truth(drift, request)))
            assert table["ks"][request] == pytest.approx(prior.ks(truth(drift, request)))

    def test_stays_below_its_bound_in_every_run(self, drift):
        table = measure_regret(drift, 2, standard_rules(0.95, 10, 30), repeats=5)
        planned = table.dropna()
        assert (planned["regret"] >= -1e-9).all()
        assert (planned["regret"] <= planned["loss_bound"] + 1e-9).all()

    def test_stays_below_theorem_4_on_average(self, drift):
        rules = {"decayed": PlanningRule(lambda: DecayedHistogram(0.95), 10)}
        table = measure_regret(drift, 2, rules, repeats=20)
        for request in range(10, 200, 10):
            bound = theorem_4(drift, 0.95, samples=request, replan_every=10)
            served = table[table["request"].between(request, request + 9)]
            assert served["regret"].max() <= bound.loss
            assert served["tv"].max() <= bound.bias + bound.variance

    def test_without_drift_a_plan_on_all_that_was_seen_gets_ever_better(self):
        still = Drift(FIRST, FIRST, swing=1, requests=800)
        rules = {"all": PlanningRule(Histogram, 10)}
        table = measure_regret(still, 1, rules, repeats=20)
        early = table[table["request"].between(10, 50)]["regret"].mean()
        late = table[table["request"] >= 700]["regret"].mean()
        assert late <= early
        assert late < 0.2


def test_gammas_are_measured_beside_the_bound(drift):
    table = measure_gammas(drift, 2, [0.5, 0.9, 0.99], replan_every=10, repeats=3)
    assert (table["regret"] <= table["theorem_4"]).all()
    assert table["bias"].is_monotonic_increasing
    assert table["variance"].is_monotonic_decreasing
    alone = measure_regret(
        drift, 2, {"r": PlanningRule(lambda: DecayedHistogram(0.9), 10)}, repeats=3
    )
    late = alone[alone["request"] >= 100]["regret"].mean()
    assert table["regret"][1] == pytest.approx(late)
    bounds = [theorem_4(drift, 0.9, request // 10 * 10, 10).loss for request in range(100, 200)]
    assert table["theorem_4"][1] == pytest.approx(np.mean(bounds))


def test_regret_and_bound_are_means_over_the_same_requests(drift):
    """The first plan comes after the second half has begun: what came before it counts nowhere."""
    table = measure_gammas(drift, 2, [0.9], replan_every=160, repeats=3)
    rule = PlanningRule(lambda: DecayedHistogram(0.9), 160)
    alone = measure_regret(drift, 2, {"r": rule}, repeats=3)
    assert table["regret"][0] == pytest.approx(alone["regret"][160:].mean())
    assert table["theorem_4"][0] == pytest.approx(theorem_4(drift, 0.9, 160, 160).loss)


def test_where_no_plan_is_made_there_is_nothing_to_compare(drift):
    table = measure_gammas(drift, 2, [0.5], replan_every=drift.requests, repeats=1)
    assert table.drop(columns="gamma").isna().all(axis=None)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Drift(FIRST, SECOND, 0, 10), "swing must be at least 1, got 0"),
        (lambda: Drift(FIRST, SECOND, 1, 0), "requests must be at least 1, got 0"),
        (
            lambda: Drift(FIRST, OverlapDistribution.uniform(9), 5, 10),
            "first is for entries of 100 tokens and second for 9",
        ),
        (lambda: standard_rules(1.5, 10, 10), "gamma must be at most 1, got 1.5"),
        (lambda: standard_rules(0.9, 0, 10), "replan_every must be at least 1, got 0"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
