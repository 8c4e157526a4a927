"""Measure: how long resuming takes under each policy, against a cold prefill of the same prompt.

One prompt of ``length`` tokens is captured once with the checkpoints of all schedules. Requests of
the same length share its first ``depth`` tokens and then diverge. So every run ends at the same
token, and what a run saves is what lies before its resume point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from sparselab.overlap import OverlapDistribution
from sparselab.placement import Schedule, expand, place
from sparselab.placement import policies as known_policies
from sparselab.progress import collect
from sparselab.replay.capture import CHUNK, capture
from sparselab.replay.devices import device_name
from sparselab.replay.entry import Entry
from sparselab.replay.models import ReplayModel
from sparselab.replay.resume import ResumeResult, resume
from sparselab.replay.tokens import Tokens, diverging, random_tokens
from sparselab.validation import check_choice, check_instance, check_integer

if TYPE_CHECKING:
    import pandas as pd

COLD = "no_cache"

Case = tuple[Schedule, int | None]


def measure(
    model: ReplayModel,
    length: int = 2048,
    policies: Sequence[str | Schedule] = ("balanced",),
    budgets: Sequence[int] = (4,),
    depths: Sequence[int] | None = None,
    repeats: int = 3,
    distribution: OverlapDistribution | None = None,
    align: int = 1,
    chunk: int = CHUNK,
    seed: int = 0,
    policy_options: Mapping[str, Mapping[str, Any]] | None = None,
    show_progress: bool = True,
) -> pd.DataFrame:
    """Time resumed and cold prefills; return one row a measurement.

    Args:
        model: from :func:`sparselab.replay.load_model`.
        length: tokens of the captured prompt and of each request.
        policies: names in :func:`sparselab.policies`, or schedules for ``length`` tokens, whose
            budget is the number of their checkpoints; cold runs (``no_cache``) are always added.
        budgets: checkpoints, for the policies that have a budget; the others run once.
        depths: overlaps in ``0..length``; by default a quarter, half and three quarters.
        repeats: how often each case is timed. The order of all runs is shuffled by ``seed``, so
            that a change of the machine's speed hits no case alone; one run of each kind warms up.
        distribution: what ``optimal`` plans on; uniform by default.
        align: checkpoints stand on multiples of it.
        chunk: tokens a call.
        seed: of the tokens and of the order.
        policy_options: options by policy, such as ``{"block": {"block_size": 256}}``.
        show_progress: report on standard error.

    Returns:
        Columns ``policy``, ``budget``, ``depth``, ``repeat``, ``length``, ``resume_point``,
        ``saved_tokens`` (= resume point), ``recomputed_tokens``, ``load_ms``, ``compute_ms``,
        ``total_ms``, ``checkpoints``, ``checkpoint_bytes``, ``kv_bytes``, ``model``, ``weights``,
        ``device``, ``dtype``, ``torch``, ``transformers``, ``seed``. Interrupting keeps the rows
        that are finished; ``attrs["interrupted"]`` says so.
    """
    import pandas as pd

    cases = make_cases(length, policies, budgets, distribution, align, policy_options or {})
    trials = plan_trials(length, len(cases), depths, repeats, seed)
    runs = measurements(model, length, cases, trials, chunk, seed)
    rows, interrupted = collect(runs, "measure", len(trials), show_progress)
    table = pd.DataFrame(rows)
    table.attrs["interrupted"] = interrupted
    return table


def plan_trials(
    length: int, cases: int, depths: Sequence[int] | None, repeats: int, seed: int
) -> list[tuple[int, int, int]]:
    """Return ``(case, depth, repeat)`` of every run, in an order shuffled by ``seed``."""
    length = check_integer("length", length, minimum=2)
    repeats = check_integer("repeats", repeats, minimum=1)
    if depths is None:
        depths = (length // 4, length // 2, 3 * length // 4)
    checked = [check_integer("depth", depth, 0, length) for depth in depths]
    trials = [(c, d, r) for r in range(repeats) for c in range(cases) for d in checked]
    order = np.random.default_rng(check_integer("seed", seed, minimum=0)).permutation(len(trials))
    return [trials[i] for i in order]


def measurements(
    model: ReplayModel,
    length: int,
    cases: Sequence[Case],
    trials: Sequence[tuple[int, int, int]],
    chunk: int = CHUNK,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield one row a trial as it is finished: for a caller that may stop at any time."""
    whole = capture_all(model, length, [schedule for schedule, _ in cases], chunk, seed)
    entries = [whole.keep(schedule.positions) for schedule, _ in cases]
    for entry in (whole, whole.keep([])):
        resume(model, entry, request_tokens(model, whole, length // 2, seed, 0))
    for number, depth, repeat in trials:
        schedule, budget = cases[number]
        tokens = request_tokens(model, whole, depth, seed, repeat)
        result = resume(model, entries[number], tokens)
        yield {
            "policy": schedule.policy,
            "budget": budget,
            "depth": depth,
            "repeat": repeat,
            "length": length,
            **timings(result),
            **sizes(entries[number], schedule.policy),
            **setting(model, seed),
        }


def capture_all(
    model: ReplayModel, length: int, schedules: Sequence[Schedule], chunk: int, seed: int
) -> Entry:
    """Capture the prompt that ``seed`` gives, once, with the checkpoints of all schedules."""
    union = sorted({int(c) for schedule in schedules for c in schedule.positions})
    return capture(model, random_tokens(length, model.vocab_size, seed), union, chunk)


def request_tokens(model: ReplayModel, entry: Entry, depth: int, seed: int, repeat: int) -> Tokens:
    """Return the request, as long as the entry, of an overlap: another rest in each repeat."""
    own_seed = int(np.random.SeedSequence([seed, depth, repeat]).generate_state(1)[0])
    return diverging(entry.tokens, depth, entry.length, model.vocab_size, own_seed)


def timings(result: ResumeResult) -> dict[str, Any]:
    """Return the columns about one run."""
    return {
        "resume_point": result.resume_point,
        "saved_tokens": result.resume_point,
        "recomputed_tokens": result.recomputed_tokens,
        "load_ms": result.load_ms,
        "compute_ms": result.compute_ms,
        "total_ms": result.total_ms,
    }


def sizes(entry: Entry, policy: str) -> dict[str, Any]:
    """Return the columns about what an entry holds under a policy, measured from its tensors."""
    return {
        "checkpoints": len(entry.checkpoints),
        "checkpoint_bytes": entry.checkpoint_bytes,
        "kv_bytes": entry.bytes["kv"] if stores_kv(policy) else 0,
    }


def setting(model: ReplayModel, seed: int) -> dict[str, Any]:
    """Return the columns about what a measurement ran on."""
    return {
        "model": model.name,
        "weights": model.weights,
        "device": device_name(model.device),
        "dtype": str(model.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": seed,
    }


def stores_kv(policy: str) -> bool:
    """Whether a policy keeps attention KV at all; a schedule of one's own does."""
    known = known_policies()
    return policy not in known or known[policy].stores_kv


def make_cases(
    length: int,
    policies: Sequence[str | Schedule],
    budgets: Sequence[int],
    distribution: OverlapDistribution | None,
    align: int,
    options: Mapping[str, Mapping[str, Any]],
) -> list[Case]:
    """Return every policy's schedules with their budgets, the cold case first.

    A schedule's budget is the number of its checkpoints. Equal cases are one case.
    """
    for name in options:
        check_choice("policy", name, known_policies())
    if distribution is None:
        distribution = OverlapDistribution.uniform(length)
    check_instance("distribution", distribution, OverlapDistribution)
    cases: dict[tuple[str, int | None], Schedule] = {(COLD, None): place(COLD, length)}
    for policy in policies:
        if isinstance(policy, Schedule):
            _add_schedule(cases, policy, length)
            continue
        for name, budget in expand([policy], budgets):
            needed = distribution if "distribution" in known_policies()[name].needs else None
            given = options.get(name, {})
            cases[name, budget] = place(name, length, budget, needed, align, **given)
    return [(schedule, budget) for (_, budget), schedule in cases.items()]


def _add_schedule(
    cases: dict[tuple[str, int | None], Schedule], schedule: Schedule, length: int
) -> None:
    """Add a schedule under its label, which no other case may have."""
    if schedule.length != length:
        raise ValueError(
            f"a schedule is for {schedule.length} tokens and length is {length}: they must agree."
        )
    case = (schedule.policy, len(schedule))
    if cases.setdefault(case, schedule) != schedule:
        raise ValueError(
            f"two schedules are labelled {schedule.policy!r} and hold {len(schedule)} "
            "checkpoints: give one of them another label, Schedule(..., policy=...)."
        )
