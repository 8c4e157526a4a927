"""Resume: the deepest usable checkpoint, the rest computed, the entry untouched."""

import numpy as np
import pytest
import torch

from sparselab import replay
from sparselab.replay import state


def snapshot(entry):
    tensors = {f"kv/{name}": t.clone() for name, t in entry.kv.items()}
    for position, held in entry.checkpoints.items():
        tensors |= {f"{position}/{name}": t.clone() for name, t in held.items()}
    return tensors


@pytest.mark.parametrize(
    ("depth", "length", "point"),
    [
        (0, 160, 0),
        (39, 160, 1),
        (40, 160, 40),
        (41, 160, 40),
        (65, 66, 65),
        (65, 65, 64),
        (160, 160, 100),
        (160, 161, 160),
        (160, 200, 160),
        (120, 130, 100),
    ],
)
def test_the_deepest_usable_checkpoint(tiny, prompt, entry, depth, length, point):
    tokens = replay.diverging(prompt, depth, length, tiny.vocab_size, seed=4)
    result = replay.resume(tiny, entry, tokens)
    assert result.resume_point == point
    assert result.recomputed_tokens == length - point
    assert result.overlap == depth
    assert result.cache.get_seq_length() == length


def test_the_logits_are_those_of_the_last_token(tiny, prompt, entry):
    whole = replay.capture(tiny, prompt, [], chunk=160)
    assert torch.allclose(replay.resume(tiny, entry, prompt).logits, whole.logits, atol=1e-4)


def test_the_entry_is_never_modified(tiny, prompt, entry):
    before = snapshot(entry)
    result = replay.resume(tiny, entry, replay.diverging(prompt, 120, 170, 512, seed=1))
    replay.generate(tiny, result, 5)
    replay.verify(tiny, entry, prompt)
    replay.extend(tiny, entry, prompt, [64, 130])
    after = snapshot(entry)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_resuming_twice_gives_the_same_bits(tiny, prompt, entry):
    first, second = (replay.resume(tiny, entry, prompt) for _ in range(2))
    assert torch.equal(first.logits, second.logits)


def test_generate_continues_greedily_and_leaves_the_result_as_it_was(tiny, prompt, entry):
    result = replay.resume(tiny, entry, prompt)
    tokens = replay.generate(tiny, result, 6)
    assert tokens.size == 6
    assert tokens[0] == int(result.logits.argmax())
    assert np.array_equal(replay.generate(tiny, result, 6), tokens)
    assert result.cache.get_seq_length() == 160
    # Each next token is the most likely one after the prompt and those before it.
    grown = np.concatenate([prompt, tokens[:5]])
    assert int(replay.capture(tiny, grown, []).logits.argmax()) == tokens[5]


def test_generate_agrees_with_transformers(tiny, prompt, entry):
    result = replay.resume(tiny, entry, prompt)
    expected = tiny.module.generate(
        torch.from_numpy(prompt)[None], max_new_tokens=6, do_sample=False, eos_token_id=None
    )
    assert replay.generate(tiny, result, 6).tolist() == expected[0, 160:].tolist()


def test_times_add_up(tiny, prompt, entry):
    result = replay.resume(tiny, entry, prompt)
    assert result.load_ms > 0
    assert result.compute_ms > 0
    assert result.total_ms == result.load_ms + result.compute_ms


def test_extend_retains_the_request_in_the_same_pass(tiny, prompt, entry):
    tokens = replay.diverging(prompt, 110, 200, tiny.vocab_size, seed=7)
    result, longer = replay.extend(tiny, entry, tokens, [40, 100, 150])
    assert result.resume_point == 100
    assert longer.positions.tolist() == [40, 100, 150]
    assert longer.checkpoints[40] is entry.checkpoints[40]
    assert torch.equal(result.logits.cpu(), longer.logits)
    # The new entry resumes exactly too, from an inherited checkpoint as from a new one.
    for depth, point in ((90, 40), (180, 150)):
        later = replay.diverging(tokens, depth, 210, tiny.vocab_size, seed=8)
        report = replay.verify(tiny, longer, later)
        assert report.exact, report.verdict
        assert report.resume_point == point


def test_extend_refuses_a_state_that_cannot_be_had(tiny, prompt, entry):
    tokens = replay.diverging(prompt, 110, 200, tiny.vocab_size, seed=7)
    with pytest.raises(ValueError, match="position 50 lies before the resume point 100"):
        replay.extend(tiny, entry, tokens, [50])


def test_an_entry_of_another_model_or_dtype_is_refused(models, tiny, prompt, entry):
    other = replay.load_model("tiny", device="cpu", dtype="float32", seed=1)
    with pytest.raises(ValueError, match="captured with another model than 'tiny'"):
        replay.resume(other, entry, prompt)
    with pytest.raises(ValueError, match=r"captured in torch.float32, but the model runs in"):
        replay.resume(models("tiny", "bfloat16"), entry, prompt)


def test_bad_tokens_are_named(tiny, entry):
    with pytest.raises(ValueError, match="empty prompt"):
        replay.resume(tiny, entry, [])
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        replay.generate(tiny, replay.resume(tiny, entry, [1, 2]), 0)


def test_only_the_model_that_computed_a_result_continues_it(tiny, prompt, entry):
    other = replay.load_model("tiny", device="cpu", dtype="float32", seed=1)
    with pytest.raises(ValueError, match="not computed by this model, 'tiny'"):
        replay.generate(other, replay.resume(tiny, entry, prompt), 3)


def test_a_copied_cache_is_independent(tiny, prompt, entry):
    cache = replay.resume(tiny, entry, prompt).cache
    copy = state.copy_cache(tiny.config, cache, 160)
    before = {name: tensor.clone() for name, tensor in state.read_state(cache).items()}
    tiny.forward(torch.tensor([1, 2, 3]), copy, 160)
    assert all(torch.equal(before[name], t) for name, t in state.read_state(cache).items())
    assert cache.get_seq_length() == 160
