"""Resuming is exact: bit-identical under the same cuts, rounding in one shot, and a control."""

from __future__ import annotations

import pytest
import torch

import sparselab as sl
from sparselab import replay
from sparselab.replay.devices import choose_dtype

DTYPES = ("float32", "bfloat16")
LENGTH, CHUNK = 96, 32
BUDGETS = range(1, 9)

# overlap, length of the request: each way in which a request can meet an entry of 96 tokens with
# checkpoints at 24, 48 and 72
OVERLAPS = {
    "nothing shared": (0, 96),
    "before the first checkpoint": (20, 96),
    "one token before a checkpoint": (47, 96),
    "on a checkpoint": (48, 96),
    "one token after a checkpoint": (49, 96),
    "all but the last token": (95, 96),
    "the same prompt": (96, 96),
    "shorter, within the entry": (60, 60),
    "shorter, ending on a checkpoint": (48, 48),
    "one token after a checkpoint is all": (72, 73),
    "longer": (50, 140),
    "append-only": (96, 130),
    "a single token": (1, 1),
}


def schedules(alternate=False):
    """Every policy with every budget, unaligned and on a grid of 16; by name, so each once.

    With ``alternate``, odd budgets are on the grid and even ones unaligned, which is half as many.
    """
    overlap = sl.OverlapDistribution.geometric(LENGTH, 30.0)
    options = {"block": {"block_size": 40}, "branch": {"overlap": 37}}
    found = {}
    for name, policy in sl.policies().items():
        for budget in BUDGETS if "budget" in policy.needs else (None,):
            for align in (16 if budget % 2 else 1,) if alternate and budget else (1, 16):
                schedule = sl.place(
                    name,
                    LENGTH,
                    budget,
                    overlap if "distribution" in policy.needs else None,
                    align,
                    **options.get(name, {}),
                )
                found["-".join([name, *map(str, schedule.positions)])] = schedule
    return found


ALL, HALF = schedules(), schedules(alternate=True)

# A CPU that multiplies bfloat16 matrices in software takes so long over those of real dimensions
# (10 s a case) that every eighth case has to do there.
HOST_BFLOAT16 = choose_dtype("auto", torch.device("cpu")) == torch.bfloat16
STEPS = {"float32": 1, "bfloat16": 1 if HOST_BFLOAT16 or torch.cuda.is_available() else 8}


def of_real_dimensions(cases):
    """Each case with each dtype, as parameters for tests of the layer group."""
    return [
        pytest.param(dtype, case, id=f"{name}-{dtype}")
        for dtype, step in STEPS.items()
        for name, case in list(cases.items())[::step]
    ]


def assert_exact(model, entry, tokens, expected_resume_point):
    report = replay.verify(model, entry, tokens)
    assert report.resume_point == expected_resume_point
    assert report.bit_identical, report.verdict
    assert report.within_tolerance, report.verdict
    assert report.same_continuation, report.verdict
    # There is a control wherever something was resumed, and it must show.
    assert report.control_differs is (True if expected_resume_point else None), report.verdict


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("schedule", ALL.values(), ids=ALL)
def test_every_policy_and_budget_resumes_exactly(models, device, dtype, schedule):
    check_schedule(models("tiny", dtype, device), schedule, depths=(35, 83))


# The real dimensions, where a pass costs more: one depth a schedule, half the schedules.
@pytest.mark.parametrize(("dtype", "schedule"), of_real_dimensions(HALF))
def test_every_policy_and_budget_on_the_layer_group_of_real_dimensions(
    models, device, dtype, schedule
):
    check_schedule(models("qwen3.5-0.8b-group", dtype, device), schedule, depths=(83,))


def check_schedule(model, schedule, depths):
    prompt = replay.random_tokens(LENGTH, model.vocab_size, seed=3)
    entry = replay.capture(model, prompt, schedule, chunk=CHUNK)
    assert entry.positions.tolist() == schedule.positions.tolist()
    for depth in depths:
        tokens = replay.diverging(prompt, depth, LENGTH, model.vocab_size, seed=depth)
        assert_exact(model, entry, tokens, int(schedule.resume_point(depth)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", OVERLAPS.values(), ids=OVERLAPS)
def test_every_kind_of_overlap(models, device, dtype, case):
    check_overlap(models("tiny", dtype, device), *case)


@pytest.mark.parametrize(("dtype", "case"), of_real_dimensions(OVERLAPS))
def test_every_kind_of_overlap_on_the_layer_group(models, device, dtype, case):
    check_overlap(models("qwen3.5-0.8b-group", dtype, device), *case)


def check_overlap(model, depth, length):
    prompt = replay.random_tokens(LENGTH, model.vocab_size, seed=5)
    # One checkpoint stands beside the grid of 32 and two stand off it.
    positions = [24, 48, 72]
    entry = replay.capture(model, prompt, positions, chunk=CHUNK)
    tokens = replay.diverging(prompt, depth, length, model.vocab_size, seed=6)
    usable = [0] + [c for c in positions if c <= min(depth, length - 1)]
    assert_exact(model, entry, tokens, usable[-1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_unaligned_schedule_on_the_layer_group(models, device, dtype):
    model = models("qwen3.5-0.8b-group", dtype, device)
    prompt = replay.random_tokens(200, model.vocab_size, seed=8)
    entry = replay.capture(model, prompt, sl.place("balanced", 200, 7), chunk=64)
    assert (entry.positions % 64 != 0).any()
    tokens = replay.diverging(prompt, 170, 200, model.vocab_size, seed=9)
    assert_exact(model, entry, tokens, 150)
