"""Token sequences: what is taken as a prompt, and requests that share a prefix with another."""

import numpy as np
import pytest
import torch

from sparselab.replay.tokens import as_tokens, diverging, random_tokens
from sparselab.workloads.prefix_index import common_prefix


@pytest.mark.parametrize(
    "tokens",
    [[3, 1, 2], (3, 1, 2), np.array([3, 1, 2], dtype=np.uint16), torch.tensor([3, 1, 2])],
    ids=["list", "tuple", "array", "tensor"],
)
def test_any_sequence_of_integers_is_a_prompt(tokens):
    assert as_tokens(tokens, 4).tolist() == [3, 1, 2]
    assert as_tokens(tokens, 4).dtype == np.int64


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([], ValueError, "at least one token, got an empty prompt"),
        ([[1, 2], [3, 4]], ValueError, r"shape \(2, 2\): replay takes no batches"),
        (torch.tensor([[1, 2]]), ValueError, r"shape \(1, 2\)"),
        (5, ValueError, r"shape \(\)"),
        ([1.0, 2.0], TypeError, "tokens must be integers, got float64"),
        (["a"], TypeError, "tokens must be integers"),
        ([True], TypeError, "tokens must be integers, got bool"),
        ([0, 4], ValueError, r"token ids must lie in 0..3, the model's vocabulary, got 4"),
        ([-1], ValueError, "got -1"),
    ],
)
def test_what_is_no_prompt_is_refused(tokens, error, message):
    with pytest.raises(error, match=message):
        as_tokens(tokens, 4)


@pytest.mark.parametrize("vocabulary", [2, 500])
def test_a_diverging_prompt_shares_exactly_the_depth(vocabulary):
    # With two token ids a random continuation would agree by chance half of the time.
    prompt = random_tokens(50, vocabulary, seed=0)
    for depth in range(51):
        for length in {max(depth, 1), 50, 70}:
            other = diverging(prompt, depth, length, vocabulary, seed=depth)
            assert other.size == length
            assert common_prefix(prompt, other) == depth


@pytest.mark.parametrize(("depth", "length"), [(-1, 50), (51, 60), (41, 40)])
def test_a_depth_that_a_prompt_does_not_have_is_refused(depth, length):
    prompt = random_tokens(50, 500, seed=0)
    with pytest.raises(ValueError, match=f"depth must lie in .* got {depth}"):
        diverging(prompt, depth, length, 500, seed=1)


@pytest.mark.parametrize(("seed", "error"), [("a", TypeError), (1.5, TypeError), (-1, ValueError)])
def test_a_seed_is_a_whole_number_from_0(seed, error):
    with pytest.raises(error, match="seed must be"):
        random_tokens(50, 500, seed=seed)
