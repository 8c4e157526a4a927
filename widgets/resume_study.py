"""A live replay step by step, as plain data: what the resume panel and its notebook draw.

The steps are slow (seconds to minutes), so they come as a generator of ever more complete studies:
whoever iterates may stop at any time and keeps the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

import sparselab as sl
from sparselab.progress import progress
from sparselab.validation import check_integer

if TYPE_CHECKING:
    from sparselab.replay import Calibration, ReplayModel

# Overlaps as shares of the prompt's length. Before the first checkpoint a request runs cold: that
# is verified once, and cold runs are timed anyway.
VERIFIED = (0.25, 0.5, 0.75, 1.0)
TIMED = (0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Settings:
    """What to run.

    Attributes:
        model: for :func:`sparselab.replay.load_model`.
        length: tokens of the prompt and of each request.
        policy: whose resumes are verified.
        compare: more policies whose resumes are timed.
        budget: checkpoints, for policies that have a budget.
        block_size: tokens between checkpoints of ``block``.
        repeats: runs of each case.
        seed: of weights, tokens and order.
    """

    model: str = "qwen3.5-0.8b-group"
    length: int = 1024
    policy: str = "optimal"
    compare: Sequence[str] = ("balanced", "block")
    budget: int = 2
    block_size: int = 256
    repeats: int = 3
    seed: int = 0


@dataclass(frozen=True, eq=False)
class ResumeStudy:
    """What has been found so far.

    Attributes:
        settings: what was asked for.
        model: what it runs on, once it is loaded.
        schedules: policy -> checkpoints.
        exactness: one row an overlap of the verified policy: ``depth``, ``resume_point``,
            ``bit_identical`` (same cut plan, every tensor), ``one_shot`` with its ``tolerance`` and
            ``control`` (largest differences, both in the ``kind`` of tensor where the control
            shows most), ``control_differs``, ``exact``, ``verdict``; ``tolerance_used``: the
            largest share of its tolerance that any kind's one-shot difference takes.
        calibration: cold prefills and the cost model fitted on them.
        runs: one row a timed run, see :func:`sparselab.replay.measure`, with ``predicted_ms``.
        done, planned: steps.
        doing: what comes next, in words.
    """

    settings: Settings
    model: ReplayModel | None = None
    schedules: Mapping[str, sl.Schedule] = field(default_factory=dict)
    exactness: pd.DataFrame = field(default_factory=pd.DataFrame)
    calibration: Calibration | None = None
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    done: int = 0
    planned: int = 1
    doing: str = "load the model"

    @property
    def finished(self) -> bool:
        """Whether all steps were made."""
        return self.done == self.planned


def overlaps(length: int) -> sl.OverlapDistribution:
    """What ``optimal`` plans on: half of the requests share three quarters, the others anything."""
    parts = [sl.OverlapDistribution.point(length, 3 * length // 4)]
    parts.append(sl.OverlapDistribution.uniform(length))
    return sl.OverlapDistribution.mixture(parts, [0.5, 0.5])


def depths(length: int, shares: Sequence[float]) -> list[int]:
    """Return overlaps of a prompt in whole tokens."""
    return [round(share * length) for share in shares]


def run(settings: Settings, show_progress: bool = False) -> ResumeStudy:
    """Make all steps and return the finished study; report them on standard error if told."""
    made = steps(settings)
    planned = next(made).planned
    return list(progress(made, "study", total=planned - 1, enabled=show_progress))[-1]


def steps(settings: Settings) -> Iterator[ResumeStudy]:
    """Yield the study after loading, each verified overlap, calibrating and each timed run."""
    from sparselab import replay
    from sparselab.replay.measurement import make_cases, measurements, plan_trials
    from sparselab.replay.verify import verifications

    length = check_integer("length", settings.length, minimum=16)
    policies = list(dict.fromkeys([settings.policy, *settings.compare]))
    options = {"block": {"block_size": settings.block_size}}
    cases = make_cases(length, policies, [settings.budget], overlaps(length), 1, options)
    verified, timed = depths(length, VERIFIED), depths(length, TIMED)
    trials = plan_trials(length, len(cases), timed, settings.repeats, settings.seed)
    model = load(settings.model, settings.seed)
    study = ResumeStudy(
        settings,
        model=model,
        schedules={schedule.policy: schedule for schedule, _ in cases},
        done=1,
        planned=1 + len(verified) + 1 + len(trials),
        doing="verify",
    )
    yield study
    rows = []
    schedule = study.schedules[settings.policy]
    for depth, report in verifications(model, schedule, verified, seed=settings.seed):
        rows.append(exactness_row(depth, report))
        study = _advance(study, exactness=pd.DataFrame(rows))
        yield study
    study = replace(study, doing="time cold prefills")
    calibration = replay.calibrate(
        model,
        *replay.calibration_lengths(length),
        settings.repeats,
        seed=settings.seed,
        show_progress=False,
    )
    study = _advance(study, calibration=calibration, doing="time resumes")
    yield study
    measured = []
    for row in measurements(model, length, cases, trials, seed=settings.seed):
        measured.append(row)
        runs = replay.predict(pd.DataFrame(measured), calibration.cost_model)
        study = _advance(study, runs=runs)
        yield study


def exactness_row(depth: int, report: Any) -> dict[str, Any]:
    """Return the row of one verified overlap."""
    return {
        "depth": depth,
        "resume_point": report.resume_point,
        "bit_identical": report.bit_identical,
        "kind": report.clearest_kind.kind,
        "one_shot": report.clearest_kind.one_shot,
        "tolerance": report.clearest_kind.tolerance,
        "control": report.clearest_kind.control,
        "tolerance_used": max(c.tolerance_used for c in report.comparisons),
        "control_differs": report.control_differs,
        "exact": report.exact,
        "verdict": report.verdict,
    }


@lru_cache(maxsize=2)
def load(name: str, seed: int) -> ReplayModel:
    """Load a model once a session."""
    from sparselab import replay

    return replay.load_model(name, seed=seed)


def _advance(study: ResumeStudy, **found: Any) -> ResumeStudy:
    return replace(study, done=study.done + 1, **found)
