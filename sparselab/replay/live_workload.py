"""A workload on the live model: what simulated decisions take in milliseconds.

The simulator decides, request by request, which retained entry to resume from and what to keep;
here the same decisions run on a model, so that recomputed tokens become measured times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sparselab.estimators import Estimator
from sparselab.placement import expand
from sparselab.placement import policies as known_policies
from sparselab.progress import collect
from sparselab.replay.capture import CHUNK, capture, extend
from sparselab.replay.entry import Entry
from sparselab.replay.measurement import setting, sizes
from sparselab.replay.models import ReplayModel
from sparselab.simulator import simulate
from sparselab.validation import check_choice, check_instance, check_integer
from sparselab.workloads import Request, Workload

if TYPE_CHECKING:
    import pandas as pd


def measure_workload(
    model: ReplayModel,
    workload: Workload,
    policies: Sequence[str] = ("no_cache", "balanced", "optimal"),
    budgets: Sequence[int] = (1, 4),
    capacity: int = 4,
    estimator: Estimator | None = None,
    align: int = 1,
    warmup: float = 0.0,
    chunk: int = CHUNK,
    seed: int = 0,
    policy_options: Mapping[str, Mapping[str, Any]] | None = None,
    show_progress: bool = True,
) -> pd.DataFrame:
    """Time the prefill of real requests, one after another, through a small cache of entries.

    Every request runs once under each policy and budget, in an order shuffled by ``seed``, before
    the next request comes. A request resumes from the retained entry with which it shares most,
    and is itself retained in the same pass; the times include capturing its checkpoints. Entries
    leave first in, first out.

    Args:
        workload: of token ids (``unit`` 1). Ids outside the model's vocabulary are taken modulo
            its size; ``attrs["tokens_modulo"]`` of the result says so.
        policies, budgets: what to run; policies without a budget run once.
        capacity: entries that are retained.
        estimator, align, warmup, policy_options: see :func:`sparselab.simulate`.
        chunk: tokens a call.

    Returns:
        One row a request, policy and budget: ``request``, ``group``, ``measured`` (not warm-up),
        ``length``, ``overlap``, ``resume_point``, ``recomputed_tokens``, ``load_ms``,
        ``compute_ms``, ``total_ms``, ``checkpoints``, ``checkpoint_bytes``, ``kv_bytes`` (of the
        new entry) and the model's setting. Interrupting keeps the requests that are finished.
    """
    import pandas as pd

    check_instance("workload", workload, Workload)
    if workload.unit != 1:
        raise ValueError(
            f"workload {workload.name!r} has ids of blocks of {workload.unit} tokens: a live "
            "replay needs token ids."
        )
    check_integer("capacity", capacity, minimum=1)
    check_integer("chunk", chunk, minimum=1)
    check_integer("seed", seed, minimum=0)
    for name in policy_options or {}:
        check_choice("policy", name, known_policies())
    fitted = within_vocabulary(workload, model.vocab_size)
    settings = {
        "capacity": capacity,
        "estimator": estimator,
        "align": align,
        "warmup": warmup,
    }
    cases = [
        _Case(policy, budget, _decide(fitted, policy, budget, settings, policy_options or {}))
        for policy, budget in expand(policies, budgets)
    ]
    steps = _steps(model, fitted, cases, chunk, seed)
    finished, interrupted = collect(steps, "workload", len(fitted), show_progress)
    table = pd.DataFrame([row for rows in finished for row in rows])
    table.attrs |= {
        "workload": workload.name,
        "synthetic": workload.synthetic,
        "tokens_modulo": None if fitted is workload else model.vocab_size,
        "interrupted": interrupted,
    }
    return table


def within_vocabulary(workload: Workload, vocab_size: int) -> Workload:
    """Return the workload with ids modulo ``vocab_size``, itself where all are below."""
    if max(int(request.tokens.max()) for request in workload) < vocab_size:
        return workload
    requests = [
        Request(request.group, request.tokens % vocab_size, request.length, request.arrival)
        for request in workload
    ]
    return replace(workload, requests=requests)


@dataclass
class _Case:
    """One policy and budget, its decisions (one row a request), and the entries still needed."""

    policy: str
    budget: int | None
    decisions: pd.DataFrame
    entries: dict[int, Entry] = field(default_factory=dict)

    @cached_property
    def last_use(self) -> dict[int, int]:
        """Request -> the last request that resumes from it, for those that any resumes from."""
        resumed = self.decisions[self.decisions["resume_point"] > 0]
        # Later requests overwrite earlier ones.
        return dict(zip(resumed["matched"].tolist(), resumed.index.tolist(), strict=True))


def _decide(
    workload: Workload,
    policy: str,
    budget: int | None,
    settings: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Simulate one policy; states before a resume point cannot be captured live."""
    return simulate(
        workload,
        policy=policy,
        budget=0 if budget is None else budget,
        capture="resumed",
        **settings,
        **options.get(policy, {}),
    ).requests


def _steps(
    model: ReplayModel, workload: Workload, cases: Sequence[_Case], chunk: int, seed: int
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each request, once it has run under every case."""
    generator = np.random.default_rng(seed)
    first = workload.requests[0].tokens
    capture(model, first[: min(first.size, chunk)], [])
    for number, request in enumerate(workload):
        order = generator.permutation(len(cases))
        yield [_serve(model, cases[i], number, request, chunk, seed) for i in order]


def _serve(
    model: ReplayModel, case: _Case, number: int, request: Request, chunk: int, seed: int
) -> dict[str, Any]:
    """Run one request as decided; retain it if a later one resumes from it."""
    decision = case.decisions.iloc[number]
    matched = int(decision["matched"])
    if matched >= 0 and decision["resume_point"] > 0:
        result, entry = extend(model, case.entries[matched], request.tokens, decision["positions"])
        load_ms, point = result.load_ms, result.resume_point
    else:
        entry = capture(model, request.tokens, decision["positions"], chunk)
        load_ms, point = 0.0, 0
    if point != decision["resume_point"]:
        raise RuntimeError(
            f"request {number} resumed at {point} under {case.policy}, but the simulator decided "
            f"{decision['resume_point']}."
        )
    if number in case.last_use:
        case.entries[number] = entry
    if case.last_use.get(matched) == number:
        del case.entries[matched]
    return {
        "request": number,
        "group": decision["group"],
        "measured": bool(decision["measured"]),
        "policy": case.policy,
        "budget": case.budget,
        "length": request.length,
        "overlap": int(decision["overlap"]),
        "resume_point": point,
        "recomputed_tokens": request.length - point,
        "load_ms": load_ms,
        "compute_ms": entry.capture_ms - load_ms,
        "total_ms": entry.capture_ms,
        **sizes(entry, case.policy),
        **setting(model, seed),
    }
