"""DriftExplorer: planning on yesterday's overlaps, and what that costs today."""

from __future__ import annotations

from typing import Any

import ipywidgets as w
import pandas as pd
from traitlets import Float, Int

from widgets import controls
from widgets.drift_study import DriftStudy, study_drift
from widgets.figures import drift
from widgets.panel import Panel


class DriftExplorer(Panel):
    """Regret of frozen, periodic and decayed plans while synthetic overlaps drift.

    Attributes:
        swing: requests in which the shallow population gives way to the deep one.
        gamma: decay of the histogram a request.
        replan_every: requests between two plans of the decayed rule.
        window: requests that the frozen and periodic rules plan on.
        budget: checkpoints in the entry.
        depths: overlap depths of each population.
        requests: how many there are.
        repeats: random runs that the regret is averaged over.
        seed: of the first run.
    """

    title = "Drift explorer"

    swing = Int(500).tag(parameter=True)
    gamma = Float(0.975).tag(parameter=True)
    replan_every = Int(20).tag(parameter=True)
    window = Int(100).tag(parameter=True)
    budget = Int(2).tag(parameter=True)
    depths = Int(12).tag(parameter=True)
    requests = Int(1500).tag(parameter=True)
    repeats = Int(4).tag(parameter=True)
    seed = Int(0).tag(parameter=True)

    def compute(self, parameters: dict[str, Any]) -> DriftStudy:
        """Return the study that the parameters describe."""
        return study_drift(**parameters)

    def draw(self, result: DriftStudy) -> dict[str, Any]:
        """Return overlaps, regret and what gamma does."""
        return drift.drift_spec(result)

    def table(self, result: DriftStudy) -> pd.DataFrame:
        """Return one row a rule and request."""
        return result.regret

    def code(self, parameters: dict[str, Any]) -> str:
        """Return the calls behind the regret curves."""
        p = parameters
        return (
            "from sparselab.drift import measure_regret, standard_rules\n"
            "from widgets.drift_study import populations\n"
            f"drift = populations(swing={p['swing']}, requests={p['requests']}, "
            f"depths={p['depths']}, length=4096)\n"
            f"rules = standard_rules(gamma={p['gamma']}, replan_every={p['replan_every']}, "
            f"window={p['window']})\n"
            f"measure_regret(drift, {p['budget']}, rules, repeats={p['repeats']}, seed={p['seed']})"
        )

    def controls(self) -> list[w.Widget]:
        """Return the controls: the drift, the planner, the measurement."""
        return [
            controls.row(*self._drift_controls()),
            controls.row(*self._planner_controls()),
            controls.row(*self._measurement_controls()),
        ]

    def _drift_controls(self) -> list[w.Widget]:
        return [
            controls.integer(
                self,
                "swing",
                "Swing",
                "Requests in which the shallow population gives way to the deep one: fewer is "
                "faster drift.",
                10,
                5000,
                step=10,
                unit="requests",
                continuous=False,
            ),
            controls.integer(
                self,
                "depths",
                "Depths",
                "Distinct overlap depths of each population: more need more samples to know.",
                1,
                100,
                unit="a population",
                continuous=False,
            ),
            controls.integer(
                self,
                "budget",
                "Budget M",
                "Checkpoints in the entry.",
                1,
                16,
                unit="checkpoints",
                continuous=False,
            ),
        ]

    def _planner_controls(self) -> list[w.Widget]:
        return [
            controls.number(
                self,
                "gamma",
                "Decay γ",
                "What the decayed histogram keeps of each weight at every request; 1 / (1 - γ) is "
                "its memory.",
                0.5,
                0.999,
                0.001,
                continuous=False,
                readout_format=".3f",
            ),
            controls.integer(
                self,
                "replan_every",
                "Replan every",
                "Requests between two plans of the decayed rule.",
                5,
                200,
                step=5,
                unit="requests",
                continuous=False,
            ),
            controls.integer(
                self,
                "window",
                "Window",
                "Requests that the frozen rule plans on once, and the periodic rule each time.",
                10,
                500,
                step=10,
                unit="requests",
                continuous=False,
            ),
        ]

    def _measurement_controls(self) -> list[w.Widget]:
        return [
            controls.integer(
                self,
                "repeats",
                "Runs",
                "Random runs that the regret is averaged over: more are smoother and slower.",
                1,
                20,
                continuous=False,
            ),
            controls.integer(self, "seed", "Seed", "Of the first run.", 0, 1000, continuous=False),
        ]
