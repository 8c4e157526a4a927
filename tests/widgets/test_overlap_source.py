"""Every source of overlaps, its words and its code."""

import numpy as np
import pytest

import sparselab as sl
from widgets.overlap_source import FAMILIES, FILE, HAND, overlap_source, sources

SETTINGS = {
    "a": 2.0,
    "b": 5.0,
    "mean": 100.0,
    "exponent": 1.1,
    "depth": 0.75,
    "share": 0.25,
    "weights": (1.0, 0.0, 3.0),
    "path": "",
}


@pytest.mark.parametrize("name", [*FAMILIES, *sl.datasets()])
def test_the_code_makes_the_same_overlaps(name):
    source = overlap_source(name, 512, SETTINGS)
    assert source.distribution.length == 512
    assert eval(source.code, {"sl": sl}) == source.distribution


@pytest.mark.parametrize("name", [*FAMILIES, HAND])
def test_made_up_overlaps_say_that_they_are_synthetic(name):
    assert "synthetic" in overlap_source(name, 512, SETTINGS).words


def test_measured_overlaps_name_their_source_and_what_is_cut():
    source = overlap_source("mooncake_conversation", 2048, SETTINGS)
    assert "Mooncake" in source.words
    assert "requests" in source.words
    assert "deeper than 2,048 count there" in source.words


def test_every_depth_weighs_as_much_as_the_bar_drawn_over_it():
    source = overlap_source(HAND, 29, SETTINGS)
    pmf = source.distribution.pmf()
    np.testing.assert_allclose(pmf[:10], 0.25 / 10)
    np.testing.assert_allclose(pmf[10:20], 0)
    np.testing.assert_allclose(pmf[20:], 0.75 / 10)
    assert eval(source.code, {"sl": sl}) == source.distribution


def test_weights_drawn_by_hand_must_not_all_be_zero():
    with pytest.raises(ValueError, match="raise at least one of the drawn bars"):
        overlap_source(HAND, 100, SETTINGS | {"weights": (0.0, 0.0)})


def test_a_table_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("depth,requests\n10,3\n90,1\n")
    source = overlap_source(FILE, 50, SETTINGS | {"path": str(path)})
    assert source.distribution == sl.OverlapDistribution([10, 50], [3, 1], 50)
    assert source.words == "mine.csv, 4 requests, 1 deeper than 50 count there"
    path.write_text("depth,requests\n20,2\n")
    assert overlap_source(FILE, 50, SETTINGS | {"path": str(path)}).distribution.mean() == 20


def test_a_trace_of_ones_own(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 1300, "output_length": 1, "hash_ids": [1, 2, 3]}\n'
        '{"timestamp": 5, "input_length": 1200, "output_length": 1, "hash_ids": [1, 2, 9]}\n'
    )
    source = overlap_source(FILE, 2048, SETTINGS | {"path": str(path)})
    assert source.distribution == sl.OverlapDistribution([0, 1024], [1, 1], 2048)
    assert eval(source.code, {"sl": sl}) == source.distribution


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "path is empty"),
        ("nowhere/none.csv", "no such file: nowhere/none.csv"),
        ("mooncak", "mooncake_conv"),
    ],
)
def test_a_missing_file_is_named(path, sentence):
    with pytest.raises((ValueError, OSError), match=sentence):
        overlap_source(FILE, 50, SETTINGS | {"path": path})


def test_an_unknown_source_gets_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean 'quality'"):
        overlap_source("qualty", 50, SETTINGS)


def test_sources_lists_them_all():
    assert {"uniform", "quality", FILE, HAND} <= set(sources())
