"""ResumeLab: resume a live model under several policies, with progress and a stop button."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets as w
import pandas as pd
import plotly.graph_objects as go
from traitlets import Int, Tuple, Unicode

import sparselab as sl
from widgets import controls, resume_study
from widgets.figures import replay as figures
from widgets.panel import Panel
from widgets.resume_study import ResumeStudy, Settings

MODELS = ("tiny", "qwen3.5-0.8b-group", "qwen3.5-0.8b-random")
# Without a state nothing resumes. Nor does it from `last`: requests are as long as the prompt, and
# their last token is always computed.
NEVER_RESUMED = ("no_cache", "kv_only", "last")
# Redrawing takes tens of milliseconds of the time that is being measured elsewhere.
SECONDS_BETWEEN_PICTURES = 0.5


class ResumeLab(Panel):
    """Capture, resume, verify and time on a live model.

    Nothing runs until the button is pressed: a run takes seconds to minutes. It runs beside the
    page, so that it can be stopped, and what is finished by then stays. Changed settings take
    effect at the next run: until then picture, badges and code stay those of the last one, and the
    status says so.

    Attributes:
        model: a random model's name, a folder or a hub id.
        length: tokens of the prompt and of each request.
        policy: whose resumes are verified.
        compare: policies whose resumes are timed too.
        budget: checkpoints, for policies that have a budget.
        block_size: tokens between checkpoints of ``block``.
        repeats: timed runs of each case.
        seed: of weights, tokens and order.
    """

    title = "Resume lab: live replay on a real model"

    model = Unicode("qwen3.5-0.8b-group").tag(parameter=True)
    length = Int(1024).tag(parameter=True)
    policy = Unicode("optimal").tag(parameter=True)
    compare = Tuple(default_value=("balanced", "block")).tag(parameter=True)
    budget = Int(2).tag(parameter=True)
    block_size = Int(256).tag(parameter=True)
    repeats = Int(3).tag(parameter=True)
    seed = Int(0).tag(parameter=True)

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def showing(cls, study: ResumeStudy) -> ResumeLab:
        """Return a panel with a study that was made already."""
        panel = cls(**_parameters(study.settings))
        panel._result, panel._stale = study, False
        return panel

    # -- pure ----------------------------------------------------------------------------------

    def compute(self, parameters: dict[str, Any]) -> ResumeStudy:
        """Make the whole run and return it."""
        return resume_study.run(Settings(**parameters))

    def draw(self, result: ResumeStudy) -> dict[str, Any]:
        """Return exactness, times, savings and memory in one picture."""
        return figures.lab_figure(result)

    def table(self, result: ResumeStudy) -> pd.DataFrame:
        """Return the timed runs, one a row."""
        return result.runs

    def code(self, parameters: dict[str, Any]) -> str:
        """Return the calls that verify and time the same."""
        s = Settings(**parameters)
        policies = list(dict.fromkeys([s.policy, *s.compare]))
        option = f", block_size={s.block_size}" if s.policy == "block" else ""
        verified, timed = (
            resume_study.depths(s.length, shares)
            for shares in (resume_study.VERIFIED, resume_study.TIMED)
        )
        return "\n".join(
            [
                "import sparselab as sl",
                "from sparselab import replay",
                "from widgets import resume_study",
                f"model = replay.load_model({s.model!r}, seed={s.seed})",
                f"overlaps = resume_study.overlaps({s.length})",
                f"schedule = sl.place({s.policy!r}, {s.length}, {s.budget}, overlaps{option})",
                f"reports = replay.verify_depths(model, schedule, {verified}, seed={s.seed})",
                "print(*(report.verdict for report in reports.values()), sep='\\n')",
                f"fit, check = replay.calibration_lengths({s.length})",
                f"costs = replay.calibrate(model, fit, check, {s.repeats}, seed={s.seed})",
                f"runs = replay.measure(model, {s.length}, {policies}, [{s.budget}],",
                f"    {timed}, {s.repeats}, overlaps, seed={s.seed},",
                f"    policy_options={{'block': {{'block_size': {s.block_size}}}}})",
                "print(replay.predict(replay.summarise(runs), costs.cost_model))",
                "print(replay.fit_savings(runs) if replay.can_fit(runs) else 'too few points')",
            ]
        )

    # -- the live view -------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin a run with the present settings, beside the page."""
        if self.running:
            return
        self.error = ""
        self._stop.clear()
        settings = Settings(**self.parameters())
        self._set_running(True)
        self._thread = threading.Thread(target=self._work, args=(settings,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the run after the step under way; what is finished stays on screen."""
        self._stop.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Return once the run has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def controls(self) -> list[w.Widget]:
        """Return the settings, the two buttons with progress, and the badges."""
        self._run_button = controls.button(
            "Run", "Loads the model, verifies, then times; takes seconds to minutes.", self.start
        )
        self._stop_button = controls.button(
            "Stop", "Ends after the step under way and keeps what is finished.", self.stop
        )
        self._stop_button.disabled = True
        self._progress = w.IntProgress(layout=w.Layout(width="220px"))
        self._status = w.HTML()
        self._badges = w.HTML()
        if self._result is not None:
            self._show_progress(self._result)
        self._show_standing()
        return [
            controls.row(*self._settings_controls()),
            controls.several(
                self,
                "compare",
                "Also time",
                "Policies to compare the first one with.",
                policy_choices(),
            ),
            controls.row(self._run_button, self._stop_button, self._progress, self._status),
            self._badges,
        ]

    def _settings_controls(self) -> list[w.Widget]:
        def integer(
            name: str, label: str, text: str, low: int, high: int, step: int = 1, unit: str = ""
        ) -> Any:
            return controls.integer(self, name, label, text, low, high, step, unit, False)

        return [
            controls.choice(
                self,
                "model",
                "Model",
                "Random weights with the real layers: speed and exactness do not depend on the "
                "weights' values. Another model is given in Python: ResumeLab(model=folder).",
                MODELS,
            ),
            controls.choice(
                self,
                "policy",
                "Verified policy",
                "Its resumes are compared bit by bit with cold runs.",
                policy_choices(),
            ),
            integer(
                "length", "Length N", "Of the prompt and each request.", 64, 8192, 64, "tokens"
            ),
            integer(
                "budget", "Budget M", "For policies that have a budget.", 1, 32, 1, "checkpoints"
            ),
            controls.block_size(
                self,
                ["policy", "compare"],
                lambda: "block" in (self.policy, *self.compare),
                32,
                2048,
                continuous=False,
            ),
            integer("repeats", "Repeats", "Timed runs of each case; medians count.", 1, 20),
        ]

    def drawn_parameters(self) -> dict[str, Any]:
        """Return the settings of the run that is shown; before the first, the present ones."""
        return self.parameters() if self._result is None else _parameters(self._result.settings)

    def _refresh(self) -> None:
        """Take note of changed settings; only the button starts a run."""
        if self._view is not None and not self.running:
            self._show_code()
            self._show_standing()

    def _show_standing(self) -> None:
        """Say how far the run that is shown came, and whether the settings are still its own."""
        if self._result is None:
            text = "Nothing has been measured yet: press Run."
        else:
            text = _ending(self._result)
            if self.drawn_parameters() != self.parameters():
                text += (
                    " The settings have changed since: picture and code are of the earlier ones. "
                    "Press Run for the present ones."
                )
        self._status.value = _status(text)

    def _first_picture(self) -> tuple[go.Figure, Exception | None]:
        """Return the picture of the last run, or an empty one, without starting a run."""
        shown = self._result
        if shown is None:
            shown = ResumeStudy(Settings(**self.parameters()))
        return go.Figure(self.draw(shown)), None

    def _work(self, settings: Settings) -> None:
        """Make the steps of a run until it ends, is stopped or fails. Runs in its own thread."""
        before, problem = self._result, None
        self._status.value = _status("Loading the model ...")
        try:
            self._make_steps(settings)
        except Exception as error:
            problem = error
        study = self._result
        finished = study is not before and study.finished
        self._stale = not finished or settings != Settings(**self.parameters())
        self._set_running(False)
        if problem is None:
            self._show_standing()
        else:
            self._status.value = _status(_failure(study, before))
            # Not raised: nobody would see it in a thread.
            self._say(problem)

    def _make_steps(self, settings: Settings) -> None:
        """Make the steps and show each, the last one in the picture too, whatever happens then."""
        drawn = 0.0
        study = None
        try:
            for study in resume_study.steps(settings):
                self._result = study
                self._show_progress(study)
                self._show_code()
                if time.monotonic() - drawn > SECONDS_BETWEEN_PICTURES:
                    self.figure.become(self.draw(study))
                    drawn = time.monotonic()
                if self._stop.is_set():
                    break
        finally:
            if study is not None:
                self.figure.become(self.draw(study))

    def _meanwhile(self) -> str:
        return ""  # The status says it.

    def _set_running(self, running: bool) -> None:
        self._run_button.disabled = running
        self._stop_button.disabled = not running
        if running:
            self._progress.value = 0

    def _show_progress(self, study: ResumeStudy) -> None:
        self._progress.max = study.planned
        self._progress.value = study.done
        self._status.value = _status(f"{study.done} of {study.planned}: {study.doing} ...")
        self._badges.value = badges(study.exactness)

    @property
    def result(self) -> ResumeStudy:
        """What the last run found, be it stopped; without a live view the whole run is made.

        Raises ``ValueError`` where there is a live view but nothing was run yet.
        """
        if self._view is None:
            return super().result
        if self._result is None:
            raise ValueError("nothing has been measured yet: press Run first.")
        return self._result


def policy_choices() -> list[str]:
    """Return the registered policies that can be resumed from and need no option."""
    return [
        name
        for name, policy in sl.policies().items()
        if name not in NEVER_RESUMED and not policy.required_options
    ]


def _parameters(settings: Settings) -> dict[str, Any]:
    """Return settings as a panel's parameters."""
    return vars(settings) | {"compare": tuple(settings.compare)}


def badges(exactness: pd.DataFrame) -> str:
    """Return the verdict of each verified overlap as HTML: three marks and a sentence."""
    marks: tuple[tuple[str, Callable[[Any], bool | None]], ...] = (
        ("same cuts: bit-identical", lambda row: row.bit_identical),
        ("one shot: within rounding", lambda row: row.one_shot <= row.tolerance),
        ("control differs", lambda row: row.control_differs),
    )
    lines = []
    for row in exactness.itertuples():
        texts = [_badge(name, passed(row)) for name, passed in marks]
        title = html.escape(str(row.verdict), quote=True)
        lines.append(
            f'<li title="{title}">overlap {row.depth:,}, resumed at {row.resume_point:,}: '
            f"{' '.join(texts)}</li>"
        )
    return f'<ul class="sparselab-badges" style="margin: 0">{"".join(lines)}</ul>'


def _badge(name: str, passed: bool | None) -> str:
    if passed is None:
        return f'<span class="sparselab-badge">– {html.escape(name)}: nothing was resumed</span>'
    sign, colour = ("✔", "#009E73") if passed else ("✘", "#D55E00")
    return (
        f'<span class="sparselab-badge" style="border: 1px solid {colour}; border-radius: 8px; '
        f'padding: 0 6px">{sign} {html.escape(name)}{"" if passed else ": NO"}</span>'
    )


def _ending(study: ResumeStudy) -> str:
    if study.finished:
        return f"Finished: {len(study.runs)} timed runs."
    return f"Stopped after {study.done} of {study.planned} steps; these are kept."


def _failure(study: ResumeStudy | None, before: ResumeStudy | None) -> str:
    """Say that a run failed, and what picture and code show after it."""
    if study is None:
        return "The run failed before it measured anything."
    if study is before:
        return "The run failed. Picture and code are of the run before."
    return f"The run failed after {study.done} of {study.planned} steps; these are kept."


def _status(text: str) -> str:
    return f'<span role="status">{html.escape(text)}</span>'
