"""Verify: is a resumed run what a cold run would have been?

Three comparisons, since each alone can mislead. With the same cut plan the bits must be equal. In
one shot only rounding may differ, which catches a model whose state is ignored in both runs. With
the state zeroed the result must differ clearly, which catches a check that cannot fail.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from sparselab.placement import Schedule
from sparselab.progress import progress
from sparselab.replay import state
from sparselab.replay.capture import CHUNK, capture
from sparselab.replay.entry import Entry
from sparselab.replay.measurement import capture_all, request_tokens
from sparselab.replay.models import ReplayModel
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.resume import continue_greedily, restore_at, resume
from sparselab.replay.state import Tensors
from sparselab.replay.tokens import Tokens, as_tokens, diverging, random_tokens

if TYPE_CHECKING:
    import pandas as pd

CONTINUATION = 8
# Rounding allowed against a one-shot run, in units of the dtype's epsilon times the largest value
# of the tensor kind. Cutting differently reorders sums over thousands of terms.
ROUNDINGS = {torch.float32: 256, torch.bfloat16: 8, torch.float16: 16}
# The control must differ by more than this many times what rounding does.
CONTROL_FACTOR = 4.0


@dataclass(frozen=True)
class Comparison:
    """One kind of tensor (``logits``, ``recurrent``, ``conv`` or ``kv``) in the runs.

    Differences are the largest absolute ones to the one-shot cold run. ``control`` is that of the
    run with zeroed states, ``None`` where nothing was resumed. ``scale`` is the largest absolute
    value in the one-shot run, ``tolerance`` what ``one_shot`` is held to.
    """

    kind: str
    bit_identical: bool
    one_shot: float
    tolerance: float
    control: float | None
    scale: float

    @property
    def tolerance_used(self) -> float:
        """The share of the tolerance that the one-shot difference takes; 1 is all of it."""
        return self.one_shot / max(self.tolerance, sys.float_info.min)


@dataclass(frozen=True)
class VerifyReport:
    """What :func:`verify` found; :attr:`verdict` says it in words."""

    resume_point: int
    tokens: int
    comparisons: tuple[Comparison, ...]
    same_continuation: bool
    dtype: torch.dtype = field(repr=False)

    @property
    def bit_identical(self) -> bool:
        """Whether every tensor equals the cold run with the same cut plan (``torch.equal``)."""
        return all(c.bit_identical for c in self.comparisons)

    @property
    def max_abs_diff_one_shot(self) -> float:
        """Largest difference of the logits to a cold run in one call."""
        return self.comparisons[0].one_shot

    @property
    def tolerance(self) -> float:
        """What :attr:`max_abs_diff_one_shot` is held to."""
        return self.comparisons[0].tolerance

    @property
    def within_tolerance(self) -> bool:
        """Whether every kind of tensor is within its tolerance of the one-shot run."""
        return all(c.one_shot <= c.tolerance for c in self.comparisons)

    @property
    def clearest_kind(self) -> Comparison:
        """The kind of tensor in which the control differs most for its size; logits without one."""
        return max(self.comparisons, key=lambda c: (c.control or 0.0) / c.scale if c.scale else 0.0)

    @property
    def control_differs(self) -> bool | None:
        """Whether zeroed states show: in some kind over four times the one-shot difference.

        The logits may forget a state thousands of tokens back; keys and values just after it
        do not. ``None`` where nothing was resumed, so that there is no control.
        """
        if not self.resume_point:
            return None
        return any(
            c.control is not None and c.control > CONTROL_FACTOR * c.one_shot
            for c in self.comparisons
        )

    @property
    def exact(self) -> bool:
        """Whether everything that could be checked holds."""
        return (
            self.bit_identical
            and self.within_tolerance
            and self.same_continuation
            and self.control_differs is not False
        )

    @property
    def verdict(self) -> str:
        """The report in one sentence."""
        failures = [
            text
            for failed, text in (
                (not self.bit_identical, "bits differ from a cold run with the same cuts"),
                (not self.within_tolerance, "a one-shot run differs by more than rounding"),
                (not self.same_continuation, "the greedy continuation differs"),
                (self.control_differs is False, "zeroing the state does not show"),
            )
            if failed
        ]
        if failures:
            return f"NOT exact: {'; '.join(failures)}."
        rounding = (
            f"logits within {self.max_abs_diff_one_shot:.1e} of a one-shot run "
            f"(tolerance {self.tolerance:.1e})"
        )
        if not self.resume_point:
            return f"Cold: nothing was resumed, so there is no control; {rounding}."
        return (
            f"Exact: resumed at {self.resume_point:,} of {self.tokens:,} tokens, bit-identical to "
            f"a cold run with the same cuts; {rounding}; zeroing the state shows."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per kind of tensor."""
        import pandas as pd

        return pd.DataFrame([vars(c) for c in self.comparisons])

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, float_format="{:.2e}".format)
        return f"<p>{self.verdict}</p>{table}"


def verify(model: ReplayModel, entry: Entry, tokens: Any) -> VerifyReport:
    """Resume ``tokens`` from ``entry`` and compare with cold runs and with a control.

    The same cut plan means: up to the resume point cut as the capture was, after it as the resume
    is. Costs one resume, one more from zeroed states, and two cold prefills.
    """
    tokens = as_tokens(tokens, model.vocab_size)
    resumed = resume(model, entry, tokens)
    point = resumed.resume_point
    resumed_cuts = cut_plan(point, tokens.size, entry.chunk)
    same_cuts = tuple(cut for cut in entry.cuts if cut <= point) + resumed_cuts
    same_logits, same_cache = _cold(model, tokens, same_cuts)
    one_logits, one_cache = _cold(model, tokens, (tokens.size,))
    control = _control(model, entry, tokens, point, resumed_cuts) if point else None
    comparisons = _compare(
        _outputs(resumed.logits, resumed.cache),
        _outputs(same_logits, same_cache),
        _outputs(one_logits, one_cache),
        control,
        ROUNDINGS[model.dtype] * torch.finfo(model.dtype).eps,
    )
    # Last, since continuing extends the caches that were compared.
    ours = continue_greedily(model, resumed.logits, resumed.cache, tokens.size, CONTINUATION)
    theirs = continue_greedily(model, same_logits, same_cache, tokens.size, CONTINUATION)
    return VerifyReport(point, tokens.size, comparisons, bool((ours == theirs).all()), model.dtype)


def verify_depths(
    model: ReplayModel,
    schedule: Schedule,
    depths: Iterable[int],
    chunk: int = CHUNK,
    seed: int = 0,
) -> dict[int, VerifyReport]:
    """Capture a random prompt with a schedule's checkpoints and verify requests of equal length.

    Returns a report for each overlap depth. Tokens depend on ``seed`` alone.
    """
    return dict(verifications(model, schedule, depths, chunk, seed))


def verifications(
    model: ReplayModel,
    schedule: Schedule,
    depths: Iterable[int],
    chunk: int = CHUNK,
    seed: int = 0,
) -> Iterator[tuple[int, VerifyReport]]:
    """Yield what :func:`verify_depths` returns, one depth at a time, after one capture."""
    prompt = random_tokens(schedule.length, model.vocab_size, seed)
    entry = capture(model, prompt, schedule, chunk)
    for depth in depths:
        tokens = diverging(prompt, depth, prompt.size, model.vocab_size, seed + 1)
        yield int(depth), verify(model, entry, tokens)


def verify_resumes(
    model: ReplayModel,
    schedules: Sequence[Schedule],
    depths: Iterable[int],
    chunk: int = CHUNK,
    seed: int = 0,
    show_progress: bool = True,
) -> dict[tuple[int, int], VerifyReport]:
    """Verify every resume that :func:`~sparselab.replay.measure` times for these schedules.

    As there, one prompt is captured once with the checkpoints of all ``schedules``, of equal
    length, and requests share its first ``depth`` tokens. Where two schedules resume a request at
    the same checkpoint, they run the same calls on the same state: that is verified once. Cold
    runs have nothing to verify.

    Returns a report for each overlap depth and resume point, increasing; none where no schedule
    has a checkpoint within an overlap. Reports on standard error how far it is.
    """
    entry = capture_all(model, schedules[0].length, schedules, chunk, seed)
    resumes: dict[tuple[int, int], tuple[Entry, Tokens]] = {}
    for depth in depths:
        tokens = request_tokens(model, entry, depth, seed, repeat=0)
        for kept in map(entry.keep, schedules):
            resumes[int(depth), kept.resume_point(tokens)] = kept, tokens
    wanted = sorted((depth, point) for depth, point in resumes if point)
    return {
        key: verify(model, *resumes[key])
        for key in progress(wanted, "verify", enabled=show_progress)
    }


def _cold(
    model: ReplayModel, tokens: Tokens, cuts: tuple[int, ...]
) -> tuple[torch.Tensor, DynamicCache]:
    cache = state.new_cache(model.config)
    logits, _ = prefill(model, cache, tokens, 0, cuts)
    return logits, cache


def _control(
    model: ReplayModel, entry: Entry, tokens: Tokens, point: int, cuts: tuple[int, ...]
) -> Tensors:
    """Resume with the right KV but states that remember nothing."""
    cache = restore_at(
        model, entry, point, state.without(entry.checkpoints[point], *state.STATE_KINDS)
    )
    logits, _ = prefill(model, cache, tokens, point, cuts)
    return _outputs(logits, cache)


def _outputs(logits: torch.Tensor, cache: DynamicCache) -> Tensors:
    return {"logits": logits} | state.read_state(cache) | state.read_kv(cache)


def _compare(
    resumed: Tensors, same: Tensors, one_shot: Tensors, control: Tensors | None, epsilon: float
) -> tuple[Comparison, ...]:
    """Compare kind by kind, logits first."""
    kinds = {"logits": None} | {state.kind(name): None for name in resumed}
    return tuple(
        _compare_kind(
            kind,
            [name for name in resumed if state.kind(name) == kind],
            resumed,
            same,
            one_shot,
            control,
            epsilon,
        )
        for kind in kinds
    )


def _compare_kind(
    kind: str,
    names: list[str],
    resumed: Tensors,
    same: Tensors,
    one_shot: Tensors,
    control: Tensors | None,
    epsilon: float,
) -> Comparison:
    scale = max(one_shot[name].abs().max().item() for name in names)
    return Comparison(
        kind=kind,
        bit_identical=all(torch.equal(resumed[name], same[name]) for name in names),
        one_shot=_difference(resumed, one_shot, names),
        tolerance=epsilon * scale,
        control=None if control is None else _difference(control, one_shot, names),
        scale=scale,
    )


def _difference(first: Tensors, second: Tensors, names: list[str]) -> float:
    return max((first[n].float() - second[n].float()).abs().max().item() for n in names)
