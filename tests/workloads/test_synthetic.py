"""Synthetic workloads: overlaps exactly as drawn, stand-ins in the published shape."""

from __future__ import annotations

import numpy as np
import pytest

from sparselab import OverlapDistribution
from sparselab.workloads import load

DISTRIBUTION = OverlapDistribution([0, 1, 7, 30, 64], [2, 2, 3, 3, 1], length=64)


def test_overlaps_follow_the_distribution_exactly_as_drawn():
    workload = load("synthetic", distribution=DISTRIBUTION, groups=5, requests_per_group=400)
    overlaps = workload.overlap_samples().reshape(5, 400)
    assert (overlaps[:, 0] == 0).all()  # the anchors
    drawn = OverlapDistribution.from_samples(overlaps[:, 1:].ravel(), 64)
    assert set(drawn.depths) == set(DISTRIBUTION.depths)
    # 1,995 draws: by the Dvoretzky-Kiefer-Wolfowitz bound the largest distance of the two
    # distribution functions exceeds this with probability below one in a million.
    assert drawn.ks(DISTRIBUTION) < np.sqrt(np.log(2e6) / (2 * 1995))


def test_overlaps_are_exact_even_with_a_tiny_vocabulary():
    # With few ids, random tokens would often agree by chance; the loader must prevent it.
    workload = load(
        "synthetic", distribution=DISTRIBUTION, groups=2, requests_per_group=50, vocabulary=102
    )
    assert set(workload.overlap_samples()) <= {0, 1, 7, 30, 64}


def test_every_request_has_the_length_of_the_distribution():
    workload = load("synthetic", distribution=DISTRIBUTION)
    assert set(workload.lengths()) == {64}
    assert workload.synthetic


def test_equal_seeds_give_equal_requests():
    tokens = [
        np.concatenate([r.tokens for r in load("synthetic", distribution=DISTRIBUTION, seed=s)])
        for s in (0, 0, 1)
    ]
    assert np.array_equal(tokens[0], tokens[1])
    assert not np.array_equal(tokens[0], tokens[2])


def test_the_quality_stand_in_has_the_published_shape():
    workload = load("synthetic_quality", documents=200)
    lengths = np.array([r._head.size for r in workload])[::18]
    assert len(workload) == 200 * 18
    assert (lengths.min() >= 2000, lengths.max() <= 8000) == (True, True)
    # Four standard errors of the mean of 200 uniform draws.
    assert lengths.mean() == pytest.approx(5000, abs=4 * 6000 / np.sqrt(12 * 200))


def test_the_narrativeqa_stand_in_has_the_counted_lengths():
    from sparselab.workloads.synthetic_narrativeqa import draw_words

    words = draw_words(20_000, np.random.default_rng(0))
    # The document list has 1,572 stories of 3,322 to 430,061 words, 61,563 on average.
    assert words.mean() == pytest.approx(61_563, rel=0.03)
    assert words.min() >= 3_000
    assert words.max() < 431_000
    workload = load("synthetic_narrativeqa", documents=3, tokens_per_word=0.01)
    assert len(workload) == 90


@pytest.mark.parametrize("name", ["synthetic", "synthetic_quality", "synthetic_narrativeqa"])
def test_what_is_made_up_says_so(name):
    size = {"groups": 2} if name == "synthetic" else {"documents": 1}
    workload = load(name, **size)
    assert workload.synthetic
    assert "synthetic" in workload.name
    assert "random generator" in workload.source
    assert "synthetic" in repr(workload)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="path must be left out for a synthetic workload"):
        load("synthetic", "file.jsonl")
    with pytest.raises(ValueError, match="groups must be at least 1, got 0"):
        load("synthetic", groups=0)
    with pytest.raises(ValueError, match=r"vocabulary must be at least 210, .*, got 100"):
        load("synthetic", vocabulary=100)
    with pytest.raises(ValueError, match="vocabulary must be at most 2147483648"):
        load("synthetic", vocabulary=2**40)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("synthetic", "groups"),
        ("synthetic", "requests_per_group"),
        ("synthetic_quality", "documents"),
        ("synthetic_quality", "questions_per_document"),
        ("synthetic_narrativeqa", "documents"),
    ],
)
def test_more_than_a_machine_could_hold_is_refused_at_once(name, option):
    with pytest.raises(ValueError, match=f"{option} must be at most 10000000, got 999"):
        load(name, **{option: 10**20 - 1})
    with pytest.raises(TypeError, match="distribution must be an OverlapDistribution, got str"):
        load("synthetic", distribution="uniform")
    with pytest.raises(ValueError, match="tokens_per_word must be greater than 0"):
        load("synthetic_narrativeqa", tokens_per_word=0.0)
    with pytest.raises(ValueError, match="questions_per_document must be at least 1"):
        load("synthetic_quality", questions_per_document=0)
