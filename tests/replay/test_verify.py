"""Verify: it can fail, and it says in words what failed."""

from dataclasses import replace

import pytest
import torch

from sparselab import replay


def test_the_report_in_words_and_as_a_table(tiny, prompt, entry):
    report = replay.verify(tiny, entry, prompt)
    assert report.exact
    assert report.verdict.startswith("Exact: resumed at 100 of 160 tokens, bit-identical to")
    assert report.comparisons[0].control > 4 * report.max_abs_diff_one_shot
    assert report.max_abs_diff_one_shot <= report.tolerance
    table = report.to_frame()
    assert table["kind"].tolist() == ["logits", "recurrent", "conv", "kv"]
    assert table["bit_identical"].all()
    assert report.verdict in report._repr_html_()


def test_without_a_resume_there_is_no_control_and_it_says_so(tiny, prompt, entry):
    report = replay.verify(tiny, entry, replay.diverging(prompt, 0, 50, 512, seed=2))
    assert report.exact
    assert report.control_differs is None
    assert report.comparisons[0].control is None
    assert report.verdict.startswith("Cold: nothing was resumed, so there is no control")


def tampered(entry, change):
    """The entry with one of its checkpoints changed."""
    state = {name: tensor.clone() for name, tensor in entry.checkpoints[100].items()}
    change(state)
    return replace(entry, checkpoints={**entry.checkpoints, 100: state})


def test_one_flipped_bit_in_a_checkpoint_is_found(tiny, prompt, entry):
    def flip(state):
        tensor = state["recurrent.0.0"]
        flat = tensor.view(torch.int32).reshape(-1)
        flat[int(tensor.abs().argmax())] ^= 1

    report = replay.verify(tiny, tampered(entry, flip), prompt)
    assert not report.bit_identical
    assert report.verdict.startswith("NOT exact: bits differ from a cold run with the same cuts")


def test_a_lost_state_is_found_by_both_comparisons(tiny, prompt, entry):
    def lose(state):
        for tensor in state.values():
            tensor.zero_()

    report = replay.verify(tiny, tampered(entry, lose), prompt)
    assert not report.bit_identical
    assert not report.within_tolerance
    assert report.control_differs is False
    assert "a one-shot run differs by more than rounding" in report.verdict


def test_a_checkpoint_of_another_position_is_found(tiny, prompt, entry):
    shifted = replace(entry, checkpoints={**entry.checkpoints, 100: entry.checkpoints[65]})
    report = replay.verify(tiny, shifted, prompt)
    assert not report.exact
    assert not report.within_tolerance


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_any_grid_is_exact(tiny, prompt, chunk):
    entry = replay.capture(tiny, prompt[:40], [13, 30], chunk=chunk)
    report = replay.verify(tiny, entry, replay.diverging(prompt[:40], 33, 45, 512, seed=1))
    assert report.exact, report.verdict
