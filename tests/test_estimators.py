"""Estimators against plain sums over the history, and the bounds against what they bound."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselab.estimators import (
    DecayedHistogram,
    EntryAware,
    Histogram,
    drift_bound,
    expected_ks,
    expected_tv,
    ks_quantile,
    loss_bound,
    sample_loss_bound,
    tv_quantile,
)
from sparselab.optimal import optimal_frontier
from sparselab.overlap import OverlapDistribution
from sparselab.placement import place
from sparselab.recompute import expected_recompute, recompute

observations = st.lists(
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=30
)


def distribution_of(weights: dict[int, float], length: int) -> OverlapDistribution:
    return OverlapDistribution(list(weights), list(weights.values()), length)


def plain_weights(history, length, relative, beyond, gamma=1.0) -> dict[int, float]:
    """Sum up the history observation by observation: no state, no cleverness."""
    weights: dict[int, float] = {}
    for age, (depth, of) in enumerate(reversed(history)):
        if relative:
            depth = math.floor(Fraction(depth, of) * length)
        elif depth > length and beyond == "drop":
            continue
        depth = min(depth, length)
        weights[depth] = weights.get(depth, 0.0) + gamma**age
    return weights


class TestHistogram:
    @pytest.mark.parametrize(
        ("relative", "beyond"), [(False, "count"), (False, "drop"), (True, "count")]
    )
    @given(observations, st.integers(1, 40))
    def test_counts_every_observation_once(self, relative, beyond, history, length):
        histogram = Histogram(relative, beyond)
        for depth, of in history:
            histogram.observe(depth, of)
        expected = plain_weights(history, length, relative, beyond)
        found = histogram.distribution(length)
        if expected:
            assert found == distribution_of({d: int(w) for d, w in expected.items()}, length)
            assert found.weights.dtype == np.int64
        else:
            assert found == OverlapDistribution.uniform(length)

    def test_a_depth_beyond_the_entry_counts_at_its_length_or_is_dropped(self):
        count, drop = Histogram(beyond="count"), Histogram(beyond="drop")
        for histogram in (count, drop):
            histogram.observe(5, 100)
            histogram.observe(80, 100)
        assert count.distribution(50) == OverlapDistribution([5, 50], [1, 1], 50)
        assert drop.distribution(50) == OverlapDistribution([5], [1], 50)

    def test_relative_depth_scales_with_the_entry_and_is_floored(self):
        histogram = Histogram(relative=True)
        histogram.observe(1, 3)
        assert histogram.distribution(100) == OverlapDistribution([33], [1], 100)
        assert histogram.distribution(3) == OverlapDistribution([1], [1], 3)

    def test_relative_depth_is_exact_up_to_the_longest_entry(self):
        histogram = Histogram(relative=True)
        histogram.observe(2**31 - 1, 2**31)
        assert histogram.distribution(2**31 - 2).depths.tolist() == [2**31 - 3]

    def test_is_uniform_before_anything_was_seen_so_that_optimal_is_balanced(self):
        unknown = Histogram().distribution(99)
        assert unknown == OverlapDistribution.uniform(99)
        optimal = place("optimal", 99, 4, unknown)
        balanced = place("balanced", 99, 4)
        assert expected_recompute(optimal, unknown) == expected_recompute(balanced, unknown)

    def test_is_global_the_group_does_not_matter(self):
        histogram = Histogram()
        histogram.observe(3, 9, group="a")
        assert histogram.distribution(9, group="b") == OverlapDistribution([3], [1], 9)


class TestDecayedHistogram:
    @given(observations, st.integers(1, 40), st.booleans(), st.floats(0.05, 1.0))
    def test_weighs_by_age(self, history, length, relative, gamma):
        histogram = DecayedHistogram(gamma, relative)
        for depth, of in history:
            histogram.observe(depth, of)
            histogram.distribution(length)  # asking in between changes nothing
        expected = plain_weights(history, length, relative, "count", gamma)
        found = histogram.distribution(length)
        if expected:
            assert found.depths.tolist() == sorted(expected)
            assert found.weights == pytest.approx([expected[d] for d in sorted(expected)], rel=1e-9)

    def test_the_smallest_gamma_keeps_only_the_newest(self):
        histogram = DecayedHistogram(gamma=5e-324)
        for depth in range(5):
            histogram.observe(depth, 9)
        assert histogram.distribution(9).probabilities()[-1] == 1.0

    def test_newest_weighs_one_and_the_total_is_the_effective_number_of_samples(self):
        histogram = DecayedHistogram(gamma=0.9)
        for depth in range(20):
            histogram.observe(depth, 50)
        found = histogram.distribution(50)
        assert found.weights[-1] == 1.0
        assert found.total == pytest.approx((1 - 0.9**20) / (1 - 0.9))

    def test_long_histories_stay_finite(self):
        histogram = DecayedHistogram(gamma=0.5)
        for i in range(3000):
            histogram.observe(i % 7, 10)
        found = histogram.distribution(10)
        newest_first = [(2999 - age) % 7 for age in range(7)]
        weight = {d: 0.5**age / (1 - 0.5**7) for age, d in enumerate(newest_first)}
        assert found.weights == pytest.approx([weight[d] for d in range(7)])

    def test_gamma_one_forgets_nothing(self):
        plain, decayed = Histogram(), DecayedHistogram(gamma=1.0)
        for depth in (3, 1, 3, 7):
            plain.observe(depth, 9)
            decayed.observe(depth, 9)
        assert decayed.distribution(9) == plain.distribution(9)

    def test_what_has_faded_to_nothing_is_nothing(self):
        histogram = DecayedHistogram(gamma=0.01, beyond="drop")
        histogram.observe(1, 100)
        for _ in range(400):
            histogram.observe(90, 100)
        assert histogram.distribution(10) == OverlapDistribution.uniform(10)


class TestEntryAware:
    def test_adds_own_counts_to_strength_times_the_prior(self):
        estimator = EntryAware(Histogram(), strength=0.5)
        for group, depth in [("a", 10), ("a", 10), ("b", 40), ("b", 20)]:
            estimator.observe(depth, 50, group)
        found = estimator.distribution(50, "a")
        # The prior holds 10 twice, 20 and 40 once: probabilities 0.5, 0.25, 0.25.
        assert found.depths.tolist() == [10, 20, 40]
        assert found.weights == pytest.approx([2 + 0.25, 0.125, 0.125])

    @pytest.mark.parametrize("group", [None, "never seen"])
    def test_is_the_prior_alone_where_the_group_is_unknown(self, group):
        estimator = EntryAware(Histogram(), strength=3.0)
        estimator.observe(7, 9, "a")
        assert estimator.distribution(9, group) == OverlapDistribution([7], [1], 9)

    def test_own_depths_beyond_the_entry_count_at_its_length_whatever_the_prior_does(self):
        estimator = EntryAware(Histogram(beyond="drop"), strength=0.0)
        estimator.observe(80, 100, "a")
        assert estimator.distribution(50, "a") == OverlapDistribution([50], [1], 50)

    def test_tells_apart_what_a_global_histogram_mixes(self):
        own, mixed = EntryAware(Histogram(), 0.05), Histogram()
        for _ in range(10):
            for group, depth in [("short", 100), ("long", 900)]:
                own.observe(depth, 1000, group)
                mixed.observe(depth, 1000, group)
        for group, depth in [("short", 100), ("long", 900)]:
            place_one = lambda e, g=group: place("optimal", 1000, 1, e.distribution(1000, g))  # noqa: E731
            assert place_one(own).positions.tolist() == [depth]
        assert place("optimal", 1000, 1, mixed.distribution(1000)).positions.tolist() == [900]


class TestBadInput:
    @pytest.mark.parametrize(
        ("make", "error", "sentence"),
        [
            (lambda: Histogram(relative=1), TypeError, "relative must be True or False, got 1"),
            (lambda: Histogram(beyond="forget"), ValueError, "unknown beyond 'forget'"),
            (
                lambda: DecayedHistogram(relative=True, beyond="drop"),
                ValueError,
                "beyond must be 'count' where relative is True, got 'drop'",
            ),
            (lambda: DecayedHistogram(gamma=0), ValueError, "gamma must be greater than 0, got 0"),
            (lambda: DecayedHistogram(1.5), ValueError, "gamma must be at most 1, got 1.5"),
            (lambda: EntryAware(None), TypeError, "prior must be an estimator"),
            (lambda: EntryAware(Histogram), TypeError, "prior must be an estimator .*, got <class"),
            (lambda: expected_ks(10**400), ValueError, "samples must be at most 9007199254740992"),
            (lambda: expected_tv(3, 10**400), ValueError, "support must be at most"),
            (lambda: loss_bound(5, 5), TypeError, "planned must be an OverlapDistribution"),
            (lambda: EntryAware(Histogram(), -1), ValueError, "strength must be at least 0"),
            (lambda: Histogram().observe(9, 8), ValueError, r"depth must lie in 0\.\.8, got 9"),
            (lambda: Histogram().observe(0, 0), ValueError, "length must be at least 1, got 0"),
            (lambda: Histogram().distribution(2.5), TypeError, "length must be an integer"),
            (lambda: Histogram().observe(1, 2**53 + 1), ValueError, "length must be at most 9007"),
            (
                lambda: Histogram(relative=True).distribution(2**32),
                ValueError,
                "length must be at most 2147483648, got 4294967296",
            ),
            (lambda: expected_tv(0, 3), ValueError, "samples must be at least 1, got 0"),
            (lambda: ks_quantile(5, 1.0), ValueError, "alpha must be less than 1, got 1"),
            (lambda: drift_bound(9, 1.0, 0, 3, 5), ValueError, "gamma must be less than 1"),
            (lambda: drift_bound(9, 0.9, -0.1, 3, 5), ValueError, "drift must be at least 0"),
        ],
    )
    def test_one_sentence_names_what_is_wrong(self, make, error, sentence):
        with pytest.raises(error, match=sentence):
            make()

    def test_bounds_compare_only_equal_lengths(self):
        with pytest.raises(ValueError, match="planned is for entries of 5 tokens and actual for 6"):
            loss_bound(OverlapDistribution.uniform(5), OverlapDistribution.uniform(6))


@st.composite
def two_distributions(draw):
    length = draw(st.integers(2, 25))
    weights = st.lists(st.integers(0, 9), min_size=length + 1, max_size=length + 1).filter(any)
    depths = range(length + 1)
    return tuple(OverlapDistribution(depths, draw(weights), length) for _ in range(2))


def variation(schedule, cost):
    """``V = sum_t |r(t+1) - r(t)|``, how much the sawtooth of a schedule rises and falls."""
    return np.abs(np.diff(recompute(schedule, np.arange(schedule.length + 1), cost))).sum()


class TestLossBound:
    @settings(max_examples=200, deadline=None)
    @given(two_distributions(), st.integers(0, 5), st.booleans())
    def test_no_plan_loses_more(self, pair, budget, quadratic):
        planned, actual = pair
        cost = (lambda x: x + x**2) if quadratic else None
        chosen = optimal_frontier(planned, budget, prefill_cost=cost).schedule(budget)
        best = optimal_frontier(actual, budget, prefill_cost=cost).schedule(budget)
        loss = expected_recompute(chosen, actual, cost) - expected_recompute(best, actual, cost)
        bound = loss_bound(planned, actual, cost)
        for_these_two = (variation(chosen, cost) + variation(best, cost)) * planned.ks(actual)
        slack = 1e-9 * (1 + loss)
        assert loss <= bound.tv + slack
        assert loss <= for_these_two + slack
        assert for_these_two <= bound.ks + slack
        assert bound.smaller == min(bound.tv, bound.ks)

    def test_is_the_formula(self):
        p, q = OverlapDistribution.point(10, 2), OverlapDistribution([2, 6], [1, 1], 10)
        bound = loss_bound(p, q)
        assert bound.tv == pytest.approx(2 * 10 * 0.5)
        assert bound.ks == pytest.approx(4 * 10 * 0.5)


class TestSampleBounds:
    """Measured on many draws with a fixed seed: means and quantiles stay below the bounds."""

    def distances(self, truth: OverlapDistribution, n: int, repeats: int = 400):
        samples = [
            OverlapDistribution.from_samples(truth.sample(n, seed), truth.length)
            for seed in range(repeats)
        ]
        return (
            np.array([truth.tv(sample) for sample in samples]),
            np.array([truth.ks(sample) for sample in samples]),
        )

    @pytest.mark.parametrize("n", [5, 50, 500])
    @pytest.mark.parametrize("length", [3, 200])
    def test_hold_in_expectation_and_with_confidence(self, n, length):
        tv, ks = self.distances(OverlapDistribution.uniform(length), n)
        assert tv.mean() <= expected_tv(n, length + 1)
        assert ks.mean() <= expected_ks(n)
        for alpha in (0.5, 0.1):
            assert (ks > ks_quantile(n, alpha)).mean() <= alpha
            assert (tv > tv_quantile(n, length + 1, alpha)).mean() <= alpha

    def test_tv_form_needs_more_samples_than_depths_and_ks_form_does_not(self):
        few, many = sample_loss_bound(100, 10, 1000), sample_loss_bound(100, 10_000, 1000)
        assert few.ks == many.ks
        assert many.tv == 2 * 1000  # the samples say nothing: TV may be 1
        assert few.smaller == few.tv
        assert many.smaller == many.ks

    def test_are_the_formulas(self):
        bound = sample_loss_bound(400, 16, 100)
        assert bound.tv == pytest.approx(2 * 100 * 0.5 * math.sqrt(16 / 400))
        assert bound.ks == pytest.approx(4 * 100 * math.sqrt(math.pi / 800))
        sure = sample_loss_bound(400, 16, 100, alpha=0.05)
        assert sure.ks == pytest.approx(4 * 100 * math.sqrt(math.log(40) / 800))
        assert sure.tv == pytest.approx(
            2 * 100 * (0.5 * math.sqrt(16 / 400) + math.sqrt(math.log(20) / 800))
        )


class TestDriftBound:
    @given(st.integers(1, 300), st.floats(0.01, 0.999))
    def test_the_variance_is_that_of_the_sum_of_squared_weights(self, n, gamma):
        weights = gamma ** np.arange(n)
        weights /= weights.sum()
        variance = drift_bound(n, gamma, drift=0.0, support=7, length=5).variance
        assert variance == pytest.approx(0.5 * math.sqrt(7 * (weights**2).sum()))

    def test_is_the_formula(self):
        bound = drift_bound(50, 0.9, 0.01, 40, 1000, replan_every=5)
        assert bound.bias == pytest.approx(0.01 / 0.1 + 0.01 * 4)
        spread = 0.1 * (1 + 0.9**50) / (1.9 * (1 - 0.9**50))
        assert bound.variance == pytest.approx(0.5 * math.sqrt(40 * spread))
        assert bound.loss == pytest.approx(2000 * (bound.bias + bound.variance))

    def test_gamma_trades_bias_for_variance(self):
        bounds = [drift_bound(500, gamma, 0.001, 20, 100) for gamma in (0.5, 0.9, 0.99)]
        assert sorted(b.bias for b in bounds) == [b.bias for b in bounds]
        assert sorted((b.variance for b in bounds), reverse=True) == [b.variance for b in bounds]

    def test_bias_and_variance_of_a_drifting_estimate_stay_below(self):
        """A two-point distribution whose weight moves by a fixed TV at each request."""
        n, gamma, drift, repeats = 60, 0.9, 0.01, 300
        share = 0.2 + drift * np.arange(n + 1)  # of depth 8; TV between neighbours is `drift`
        weights = gamma ** np.arange(n)[::-1]
        mean = (weights * share[:n]).sum() / weights.sum()
        generator = np.random.default_rng(1)
        deviations = []
        for _ in range(repeats):
            histogram = DecayedHistogram(gamma)
            for deep in generator.random(n) < share[:n]:
                histogram.observe(8 if deep else 2, 10)
            deviations.append(abs(histogram.distribution(10).pmf()[8] - mean))
        bound = drift_bound(n, gamma, drift, 2, 10)
        assert abs(mean - share[n]) <= bound.bias
        assert np.mean(deviations) <= bound.variance
