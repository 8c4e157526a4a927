"""WorkloadExplorer: what each policy saves of real requests, for how much memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ipywidgets as w
import pandas as pd
from plotly.graph_objects import FigureWidget
from traitlets import Int, Unicode

import sparselab as sl
from sparselab.simulator import SimulationResult
from sparselab.validation import check_choice
from widgets import controls
from widgets.figures import workload as figures
from widgets.workload_panel import WorkloadPanel
from widgets.workload_study import (
    ENTRY_AWARE,
    WorkloadStudy,
    computed_share,
    families,
    held_gib,
    not_dominated,
    recomputed_share,
    run_arguments,
    run_names,
    study_source,
)

MEMORY_AXES = ("checkpoints", "GiB")


class WorkloadExplorer(WorkloadPanel):
    """Replay a workload under every policy; look at the frontier, and into one run.

    Attributes:
        workload: a loader's name, whose shipped sample or synthetic requests are replayed, or
            ``"my own file"``.
        path: that file; to give one chooses it.
        file_format: what it is, for one that could be read in several ways.
        seed: of the interleaving of groups; requests with arrivals of their own keep those.
        capacity: entries that the cache retains, first in, first out.
        align: checkpoints stand on multiples of it (tokens).
        capture: what can be stored, see :func:`sparselab.simulate`.
        model: whose bytes are counted.
        memory: ``"checkpoints"`` or ``"GiB"`` on the axis.
        run: whose entries are shown; a click on a point of the frontier chooses it.
    """

    title = "Workload explorer"

    seed = Int(42).tag(parameter=True)
    capacity = Int(20).tag(parameter=True)
    align = Int(64).tag(parameter=True)
    capture = Unicode("resumed").tag(parameter=True)
    model = Unicode("qwen3.5-0.8b").tag(parameter=True)
    memory = Unicode("checkpoints").tag(parameter=True)
    run = Unicode(f"{ENTRY_AWARE}, 2").tag(parameter=True)

    def compute(
        self, parameters: dict[str, Any]
    ) -> tuple[WorkloadStudy, sl.HybridArchitecture, str, str, SimulationResult]:
        """Return the study, the model, the axis, the run and its simulation."""
        check_choice("memory", parameters["memory"], MEMORY_AXES)
        check_choice("run", parameters["run"], run_names())
        architecture = sl.HybridArchitecture.preset(parameters["model"])
        study = study_source(
            self.source(parameters),
            parameters["capacity"],
            parameters["align"],
            parameters["capture"],
            run_names(),
        )
        run = parameters["run"]
        return study, architecture, parameters["memory"], run, _simulated(study, run)

    def draw(self, result: Any) -> dict[str, Any]:
        """Return the frontier, the overlaps and the entries of the run."""
        study, architecture, memory, run, simulation = result
        return figures.workload_spec(study, architecture, memory, run, simulation)

    def table(self, result: Any) -> pd.DataFrame:
        """Return one row a run; ``non_dominated`` is about what the axes show."""
        study, architecture, memory, *_ = result
        runs = study.runs.drop(columns="fullest")
        return runs.assign(
            recomputed_share=recomputed_share(runs),
            computed_share=computed_share(runs),
            model=architecture.name,
            held_gib=held_gib(study.runs, architecture),
            non_dominated=not_dominated(runs, figures.memory(study.runs, architecture, memory)),
        )

    def code(self, parameters: dict[str, Any]) -> str:
        """Return the calls that replay the run whose entries are shown."""
        p = parameters
        family, arguments = run_arguments(p["run"])
        given = {"policy": family, **arguments}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return (
            "import sparselab as sl\n"
            "from sparselab.estimators import DecayedHistogram, EntryAware\n"
            f"workload = {self.source(p).code}\n"
            f"result = sl.simulate(workload, {shown}, capacity={p['capacity']}, "
            f"align={p['align']}, capture={p['capture']!r}, architecture={p['model']!r})\n"
            "result.summary"
        )

    def controls(self) -> list[w.Widget]:
        """Return the controls: the requests, the cache, the picture."""
        return [
            controls.row(*self.workload_controls(sl.workloads.loaders())),
            controls.row(*self._cache_controls()),
            controls.row(*self._picture_controls()),
        ]

    def connect(self, figure: FigureWidget) -> None:
        """Let a click on a point of the frontier choose the run below."""
        for trace in figure.data[: len(families())]:
            trace.on_click(self._clicked)

    def _clicked(self, trace: Any, points: Any, _state: Any) -> None:
        if points.point_inds:
            self.run = str(trace.customdata[points.point_inds[0]][0])

    def _cache_controls(self) -> list[w.Widget]:
        return [
            controls.integer(
                self,
                "capacity",
                "Capacity",
                "Prompts that the cache retains; the oldest is evicted first.",
                1,
                1000,
                unit="entries",
                continuous=False,
            ),
            controls.integer(
                self,
                "align",
                "Alignment",
                "Checkpoints stand on multiples of it.",
                1,
                1024,
                unit="tokens",
                continuous=False,
            ),
            controls.choice(
                self,
                "capture",
                "Capture",
                "What can be stored: only states in what was just computed, or any. What is then "
                "computed again only to capture them counts as computed.",
                [("in what is computed", "resumed"), ("anywhere", "full")],
            ),
        ]

    def _picture_controls(self) -> list[w.Widget]:
        return [
            controls.choice(
                self, "memory", "Memory axis", "What the frontier is drawn against.", MEMORY_AXES
            ),
            controls.choice(
                self,
                "model",
                "Model",
                "Whose bytes count on the GiB axis.",
                sl.architecture.presets(),
            ),
            controls.choice(
                self,
                "run",
                "Entries of",
                "The run whose entries are shown below; a click on a point chooses it too.",
                run_names(),
            ),
        ]


@lru_cache(maxsize=16)
def _simulated(study: WorkloadStudy, run: str) -> SimulationResult:
    return study.simulate(run)
