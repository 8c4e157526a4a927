"""Capture: one prefill that keeps the states asked for, and nothing else."""

import numpy as np
import pytest
import torch

import sparselab as sl
from sparselab import replay
from sparselab.replay import devices, state
from sparselab.replay.prefill import prefill


def test_an_entry_holds_exactly_what_was_asked_for(tiny, prompt, entry):
    assert entry.tokens.tolist() == prompt.tolist()
    assert entry.positions.tolist() == [1, 40, 64, 65, 100, 160]
    assert entry.cuts == (1, 40, 64, 65, 100, 128, 160)
    assert {tensor.shape[2] for tensor in entry.kv.values()} == {160}
    assert entry.logits.shape == (tiny.vocab_size,)


def test_every_token_is_computed_once(tiny, prompt, monkeypatch):
    computed = []
    forward = tiny.forward

    def counting(tokens, cache, start):
        computed.extend(range(start, start + tokens.numel()))
        return forward(tokens, cache, start)

    monkeypatch.setattr(tiny, "forward", counting)
    replay.capture(tiny, prompt, [3, 50, 64, 159], chunk=64)
    assert computed == list(range(160))


def test_a_checkpoint_is_the_state_of_a_run_that_ends_there(tiny, prompt, entry):
    cache = state.new_cache(tiny.config)
    prefill(tiny, cache, prompt[:100], 0, (1, 40, 64, 65, 100))
    expected = state.read_state(cache)
    found = entry.checkpoints[100]
    assert set(found) == set(expected)
    for name in expected:
        assert torch.equal(found[name], expected[name])


def test_checkpoints_do_not_share_memory_with_one_another(entry):
    pointers = [t.data_ptr() for state in entry.checkpoints.values() for t in state.values()]
    assert len(set(pointers)) == len(pointers)


def test_bytes_are_measured_and_agree_with_the_formula(models):
    for name in ("tiny", "qwen3.5-0.8b-group"):
        for dtype, size in (("float32", 4), ("bfloat16", 2)):
            model = models(name, dtype)
            formula = sl.HybridArchitecture.from_config(model.config, 4, size)
            prompt = replay.random_tokens(70, model.vocab_size, seed=1)
            entry = replay.capture(model, prompt, [10, 70])
            assert entry.bytes["kv"] == 70 * formula.kv_bytes_per_token
            assert entry.bytes["recurrent"] == 2 * 3 * formula.recurrent_state_bytes
            assert entry.bytes["conv"] == 2 * 3 * formula.conv_state_bytes
            assert entry.checkpoint_bytes == 2 * formula.checkpoint_bytes
            assert model.checkpoint_bytes == formula.checkpoint_bytes
            assert model.kv_bytes_per_token == formula.kv_bytes_per_token
            assert entry.bytes["total"] == entry.bytes["kv"] + entry.checkpoint_bytes


def test_the_recurrent_state_stays_in_float32(models):
    model = models("tiny", "bfloat16")
    entry = replay.capture(model, replay.random_tokens(20, 512, seed=0), [10])
    dtypes = {state.kind(name): tensor.dtype for name, tensor in entry.checkpoints[10].items()}
    assert dtypes == {"recurrent": torch.float32, "conv": torch.bfloat16}


def test_a_schedule_is_taken_as_positions(tiny, prompt):
    schedule = sl.place("balanced", 160, 3)
    entry = replay.capture(tiny, prompt, schedule)
    assert entry.positions.tolist() == schedule.positions.tolist()


def test_the_prompt_may_be_read_only_and_is_not_changed(tiny, prompt):
    frozen = prompt.copy()
    frozen.setflags(write=False)
    replay.capture(tiny, frozen, [10])
    assert np.array_equal(frozen, prompt)


def test_keep_drops_checkpoints_without_copying(entry):
    kept = entry.keep([40, 100])
    assert kept.positions.tolist() == [40, 100]
    assert kept.checkpoints[40] is entry.checkpoints[40]
    assert kept.cuts == entry.cuts
    with pytest.raises(ValueError, match=r"among the entry's checkpoints \[1, 40.*got 41"):
        entry.keep([41])


@pytest.mark.parametrize(
    ("tokens", "positions", "chunk", "error", "message"),
    [
        ([], [], 64, ValueError, "empty prompt"),
        ([[1, 2]], [], 64, ValueError, "no batches"),
        ([1, 512], [], 64, ValueError, "token ids must lie in 0..511"),
        ([1, 2, 3], [0], 64, ValueError, "position must lie in 1..3, got 0"),
        ([1, 2, 3], [4], 64, ValueError, "position must lie in 1..3, got 4"),
        ([1, 2, 3], [1.5], 64, TypeError, "position must be an integer, got 1.5"),
        ([1, 2, 3], 5, 64, TypeError, "positions must be a sequence .* or a Schedule, got 5"),
        ([1, 2, 3], None, 64, TypeError, "positions must be a sequence .* got None"),
        ([1, 2, 3], [1], 0, ValueError, "chunk must be at least 1, got 0"),
        ([1, 2, 3], [1], 2.5, TypeError, "chunk must be an integer"),
    ],
)
def test_bad_input_is_named(tiny, tokens, positions, chunk, error, message):
    with pytest.raises(error, match=message):
        replay.capture(tiny, tokens, positions, chunk=chunk)


def test_what_does_not_fit_is_refused_with_the_number(tiny, prompt, monkeypatch):
    monkeypatch.setattr(devices, "available_bytes", lambda device: 20_000)
    with pytest.raises(ValueError, match=r"an entry of 160 tokens with 0 .* GiB on cpu"):
        replay.capture(tiny, prompt, [])
    with pytest.raises(ValueError, match="an entry of 20 tokens with 2 checkpoints needs"):
        replay.capture(tiny, prompt[:20], [3, 10])


def test_kv_and_checkpoints_must_fit_together_where_both_are_in_host_memory(
    tiny, prompt, monkeypatch
):
    kv, states = 160 * tiny.kv_bytes_per_token, 2 * tiny.checkpoint_bytes
    monkeypatch.setattr(devices, "available_bytes", lambda device: max(kv, states) + 1)
    with pytest.raises(ValueError, match="an entry of 160 tokens with 2 checkpoints needs"):
        replay.capture(tiny, prompt, [3, 10])
