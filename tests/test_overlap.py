"""Overlap distributions: what they hold, how they are made, how far apart they are."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparselab import OverlapDistribution

FAMILIES = {
    "uniform": OverlapDistribution.uniform(200),
    "point": OverlapDistribution.point(200, 120),
    "geometric": OverlapDistribution.geometric(200, mean=15.0),
    "zipf": OverlapDistribution.zipf(200, exponent=1.2),
    "beta": OverlapDistribution.beta(200, a=2.0, b=5.0),
    "mixture": OverlapDistribution.mixture(
        [OverlapDistribution.point(200, 10), OverlapDistribution.uniform(100)], [0.25, 0.75]
    ),
}

tables = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=12).filter(
    lambda rows: any(weight for _, weight in rows)
)


def of(rows, length=20):
    depths, weights = zip(*rows, strict=True)
    return OverlapDistribution(depths, weights, length)


class TestWhatItHolds:
    def test_depths_are_sorted_merged_and_free_of_zero_weights(self):
        dist = OverlapDistribution([5, 0, 5, 3], [2, 1, 4, 0], length=8)
        assert dist.depths.tolist() == [0, 5]
        assert dist.weights.tolist() == [1, 6]
        assert dist.total == 7

    def test_integer_counts_stay_integers_and_nothing_is_renormalised(self):
        assert OverlapDistribution([1], [3], 4).weights.dtype == np.int64
        assert OverlapDistribution([1], [0.5], 4).total == 0.5

    def test_pmf_is_dense_and_sums_to_one(self):
        pmf = OverlapDistribution([1, 3], [1, 3], length=4).pmf()
        assert pmf.tolist() == [0, 0.25, 0, 0.75, 0]

    def test_it_is_immutable_and_leaves_its_input_alone(self):
        depths, weights = np.array([3, 1, 3]), np.array([1, 2, 3])
        dist = OverlapDistribution(depths, weights, 4)
        assert depths.tolist() == [3, 1, 3]
        assert weights.tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="read-only"):
            dist.weights[0] = 9
        with pytest.raises(AttributeError):
            dist.length = 9

    def test_read_only_and_strided_input_is_taken(self):
        depths = np.arange(10)[::2]
        depths.setflags(write=False)
        assert OverlapDistribution(depths, np.ones(10, int)[::2], 9).depths.tolist() == [
            0,
            2,
            4,
            6,
            8,
        ]

    @given(tables, st.randoms())
    def test_the_order_of_the_rows_does_not_matter(self, rows, random):
        shuffled = random.sample(rows, len(rows))
        assert of(rows) == of(shuffled)
        assert hash(of(rows)) == hash(of(shuffled))

    def test_nor_does_it_where_many_roundings_add_up(self):
        rng = np.random.default_rng(0)
        weights, order = 10.0 ** rng.uniform(-9, 9, 300), rng.permutation(300)
        depths = np.arange(300) % 4
        assert OverlapDistribution(depths, weights, 9) == OverlapDistribution(
            depths[order], weights[order], 9
        )

    def test_huge_weights_neither_overflow_nor_vanish(self):
        dist = OverlapDistribution([0, 1], [1e308, 1e308], 1)
        assert dist.pmf().tolist() == [0.5, 0.5]
        assert OverlapDistribution([0], [5e-324], 1).probabilities().tolist() == [1.0]


class TestFamilies:
    @pytest.mark.parametrize("name", FAMILIES)
    def test_each_covers_its_length_and_has_probabilities(self, name):
        dist = FAMILIES[name]
        assert dist.length == 200
        assert dist.probabilities().sum() == pytest.approx(1.0)
        assert (dist.weights > 0).all()

    def test_uniform_weighs_every_depth_from_zero_to_the_length(self):
        assert OverlapDistribution.uniform(3).pmf().tolist() == [0.25] * 4

    def test_geometric_has_the_stated_mean_where_truncation_does_not_bite(self):
        assert OverlapDistribution.geometric(5000, mean=15.0).mean() == pytest.approx(15.0)

    def test_geometric_of_the_smallest_mean_is_all_at_zero(self):
        assert OverlapDistribution.geometric(9, mean=5e-324) == OverlapDistribution([0], [1.0], 9)

    def test_zipf_weighs_depth_t_by_a_power_of_t_plus_one(self):
        assert OverlapDistribution.zipf(3, 2.0).weights == pytest.approx([1, 1 / 4, 1 / 9, 1 / 16])

    def test_beta_weighs_each_depth_by_its_cell_of_the_distribution_function(self):
        cells = np.diff(stats.beta(2.0, 5.0).cdf(np.linspace(0, 1, 202)))
        assert FAMILIES["beta"].pmf() == pytest.approx(cells, abs=1e-15)

    def test_mixture_normalises_its_parts_and_keeps_the_total_of_the_shares(self):
        dist = FAMILIES["mixture"]
        assert dist.total == pytest.approx(1.0)
        assert dist.pmf()[10] == pytest.approx(0.25 + 0.75 / 101)

    def test_samples_are_counted_and_the_deepest_is_the_length(self):
        dist = OverlapDistribution.from_samples([4, 0, 4])
        assert (dist.length, dist.depths.tolist(), dist.weights.tolist()) == (4, [0, 4], [1, 2])
        assert OverlapDistribution.from_samples([0, 0]).length == 1

    def test_sampling_is_seeded_and_follows_the_weights(self):
        dist = OverlapDistribution([2, 7], [1, 3], 9)
        draws = dist.sample(20_000, seed=5)
        assert (draws == dist.sample(20_000, seed=5)).all()
        assert (draws == 7).mean() == pytest.approx(0.75, abs=0.02)


class TestDistances:
    @given(tables, tables)
    def test_tv_and_ks_agree_with_the_dense_formulas(self, first, second):
        p, q = of(first), of(second)
        difference = p.pmf() - q.pmf()
        assert p.tv(q) == pytest.approx(0.5 * np.abs(difference).sum(), abs=1e-12)
        assert p.ks(q) == pytest.approx(np.abs(np.cumsum(difference)).max(), abs=1e-12)
        assert p.ks(q) <= p.tv(q) + 1e-12

    @given(tables)
    def test_scaling_the_weights_moves_nothing(self, rows):
        scaled = of([(depth, weight * 3) for depth, weight in rows])
        assert of(rows).tv(scaled) == pytest.approx(0.0, abs=1e-15)

    def test_disjoint_supports_of_different_lengths_are_at_distance_one(self):
        near, far = OverlapDistribution.point(10, 3), OverlapDistribution.point(1000, 900)
        assert near.tv(far) == near.ks(far) == 1.0


class TestRestrict:
    def test_deeper_depths_count_at_the_new_length(self):
        dist = OverlapDistribution([2, 5, 9], [1, 2, 3], 10).restrict(5)
        assert (dist.depths.tolist(), dist.weights.tolist()) == ([2, 5], [1, 5])

    def test_or_are_forgotten(self):
        dist = OverlapDistribution([2, 5, 9], [1, 2, 3], 10).restrict(5, beyond="drop")
        assert (dist.depths.tolist(), dist.weights.tolist()) == ([2, 5], [1, 2])

    def test_a_longer_entry_keeps_every_depth(self):
        dist = OverlapDistribution([2], [1], 10).restrict(50)
        assert (dist.length, dist.depths.tolist()) == (50, [2])

    def test_dropping_everything_is_refused(self):
        with pytest.raises(ValueError, match="leaves no depth"):
            OverlapDistribution([9], [1], 10).restrict(5, beyond="drop")


class TestTables:
    def test_counts_and_floats_survive_a_round_trip(self, tmp_path):
        for weights in ([1, 20], [0.125, 1 / 3]):
            dist = OverlapDistribution([3, 8], weights, 8)
            dist.to_csv(tmp_path / "table.csv")
            again = OverlapDistribution.from_csv(tmp_path / "table.csv")
            assert again == dist
            assert again.weights.dtype == dist.weights.dtype

    @pytest.mark.parametrize(
        "text",
        [
            b"\xef\xbb\xbfdepth,requests\n4,2\n",
            b"depth,requests\r\n4,2\r\n",
            b'"depth","requests"\n"4","2"\n',
            b"Depth, Weight\n\n 4, 2\n\n",
        ],
        ids=["byte order mark", "carriage returns", "quotes", "blanks"],
    )
    def test_tables_as_spreadsheets_write_them_are_read(self, tmp_path, text):
        (tmp_path / "table.csv").write_bytes(text)
        dist = OverlapDistribution.from_csv(tmp_path / "table.csv")
        assert (dist.depths.tolist(), dist.weights.tolist()) == ([4], [2])

    def test_what_is_written_packed_is_read_back(self, tmp_path):
        dist = OverlapDistribution([1, 4], [2, 3], 4)
        dist.to_csv(tmp_path / "table.csv.gz")
        assert OverlapDistribution.from_csv(tmp_path / "table.csv.gz") == dist
        with gzip.open(tmp_path / "table.csv.gz", "rt") as stream:
            assert stream.read() == "depth,requests\n1,2\n4,3\n"

    def test_gzip_is_read(self, tmp_path):
        with gzip.open(tmp_path / "table.csv.gz", "wt") as stream:
            stream.write("depth,requests\n4,2\n")
        assert OverlapDistribution.from_csv(tmp_path / "table.csv.gz").weights.tolist() == [2]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("depth,requests\n", "no rows"),
            ("a,b\n1,2\n", "line 1: the header"),
            ("depth,requests\n1,2\nx,3\n", "line 3"),
            ("depth,requests\n1\n", "line 2"),
            ("depth,requests\n1,nan\n", "line 2"),
            ("depth,requests\n1,-2\n", "line 2"),
            ("depth,requests\n-1,2\n", "line 2: a whole depth in 0..2"),
            ("depth,requests\n1,0\n", "must not all be zero"),
            ("depth,requests\n1,2\n" + "9" * 40 + ",1\n", "line 3: a whole depth in 0..2"),
            ("depth,requests\n1," + "9" * 40 + "\n", "weights must be less than 2..63, got 999"),
            ("depth,requests\n1," + "0" * 200_000 + "\n", "line 2: not a CSV row"),
            ("depth,requests\n1," + "1" * 5000 + "\n", r"line 2: .* got '1,1111\S+\.\.\.\.$"),
        ],
    )
    def test_a_malformed_table_is_refused_with_its_line(self, tmp_path, text, message):
        path = tmp_path / "table.csv"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            OverlapDistribution.from_csv(path)

    def test_a_missing_file_and_a_truncated_gzip_are_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"):
            OverlapDistribution.from_csv(tmp_path / "none.csv")
        path = tmp_path / "cut.csv.gz"
        path.write_bytes(gzip.compress(b"depth,requests\n" + b"1,2\n" * 1000)[:-20])
        with pytest.raises(ValueError, match="truncated gzip"):
            OverlapDistribution.from_csv(path)


@pytest.mark.parametrize(
    ("depths", "weights", "length", "error", "message"),
    [
        ([1], [-1], 4, ValueError, "weights must be finite and not negative, got -1"),
        ([1], [float("nan")], 4, ValueError, "weights must be finite"),
        ([1], [float("inf")], 4, ValueError, "weights must be finite"),
        ([1, 2], [0, 0], 4, ValueError, "weights must not all be zero"),
        ([], [], 4, ValueError, "weights must not all be zero"),
        ([5], [1], 4, ValueError, "depths must lie in 0..4, got 5"),
        ([-1], [1], 4, ValueError, "depths must lie in 0..4, got -1"),
        ([1.5], [1], 4, ValueError, "whole numbers of tokens, got 1.5"),
        (["a"], [1], 4, TypeError, "depths must be integers"),
        ([1], ["x"], 4, TypeError, "weights must be numbers"),
        ([1, 2], [1], 4, ValueError, "equally long, got 2 depths and 1 weights"),
        ([1], [1], 0, ValueError, "length must be at least 1, got 0"),
        ([1], [1], 2.0, TypeError, "length must be an integer, got 2.0"),
        ([[1]], [1], 4, ValueError, "one-dimensional"),
        ([[1], [1, 2]], [1], 4, ValueError, "depths must be one-dimensional"),
        ([10**30], [1], 4, ValueError, "depths must be less than 2..63"),
        ([9.5e18], [1], 2**53, ValueError, "depths must lie in 0..9007199254740992"),
        ([1], [10**30], 4, ValueError, "weights must be less than 2..63, got 1000"),
        ([1, 1], [1e308, 1e308], 4, ValueError, "equal depths must add up to a finite number"),
        ([1], [1], 2**53 + 1, ValueError, "length must be at most 9007199254740992"),
        ([True], [1], 4, TypeError, "depths must be integers, got bool"),
        ([0, 1], [2**62, 2**62], 4, ValueError, "less than 2\\*\\*63"),
    ],
)
def test_bad_input_is_named(depths, weights, length, error, message):
    with pytest.raises(error, match=message):
        OverlapDistribution(depths, weights, length)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OverlapDistribution.point(10, 11), "depth must lie in 0..10, got 11"),
        (lambda: OverlapDistribution.geometric(10, 0), "mean must be greater than 0, got 0"),
        (lambda: OverlapDistribution.beta(10, -1, 2), "a must be greater than 0"),
        (lambda: OverlapDistribution.zipf(10, float("inf")), "exponent must be finite"),
        (lambda: OverlapDistribution.mixture([], []), "at least one, got 0 parts"),
        (lambda: OverlapDistribution.from_samples([]), "at least one sample"),
        (lambda: OverlapDistribution.uniform(10).restrict(5, "count it"), "unknown beyond"),
        (lambda: OverlapDistribution.uniform(10).restrict(10**30), "length must be at most 90071"),
        (lambda: OverlapDistribution.uniform(10**12), "length must be at most 134217728 for a fam"),
        (lambda: OverlapDistribution.from_samples([9.5e18]), "depths must lie in 0..90071"),
        (lambda: OverlapDistribution.uniform(10).sample(1, seed=-1), "seed must be at least 0"),
    ],
)
def test_bad_family_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda dist: dist.tv([1]), "other must be an OverlapDistribution, got list"),
        (lambda dist: dist.mixture([[1]], [1]), "parts must be an OverlapDistribution, got list"),
        (lambda dist: dist.from_csv(3), "path must be the path of a file or folder, got 3"),
    ],
)
def test_things_of_another_kind_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(OverlapDistribution.uniform(10))
