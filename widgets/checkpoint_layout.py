"""CheckpointLayout: a simulated cache, request by request, on the token axis of one entry."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ipywidgets as w
import numpy as np
import pandas as pd
from traitlets import Int, Unicode, link

import sparselab as sl
from sparselab.simulator import SimulationResult
from sparselab.validation import check_choice, check_integer
from widgets import controls
from widgets.figures.checkpoint_layout import RequestView, checkpoint_layout_spec
from widgets.panel import EXPECTED_ERRORS
from widgets.workload_panel import WorkloadPanel
from widgets.workload_source import FILE, WorkloadSource

# Shipped samples and synthetic workloads: small, offline, and loaded in a moment.
WORKLOADS = (
    "synthetic_quality",
    "synthetic",
    "quality",
    "system_prompts",
    "append_only_chat",
    "mooncake",
)
LARGEST_BUDGET = 16
PLAY_INTERVAL_MS = 700


class CheckpointLayout(WorkloadPanel):
    """Watch requests meet the checkpoints that earlier requests left behind.

    Attributes:
        workload: one of the shipped samples or synthetic workloads, or ``"my own file"``.
        path: that file; to give one chooses it.
        file_format: what it is, for one that could be read in several ways.
        seed: of the interleaving of groups; requests with arrivals of their own keep those.
        policy: which places the checkpoints.
        budget: checkpoints allowed in an entry, for policies that need a budget.
        block_size: of the policy ``block`` (tokens).
        model: whose bytes are shown.
        request: which request is shown, from 0 as in the table of the simulation; the last one if
            there are fewer.
    """

    title = "Checkpoint layout"

    workload = Unicode(WORKLOADS[0]).tag(parameter=True)
    policy = Unicode("balanced").tag(parameter=True)
    budget = Int(4).tag(parameter=True)
    block_size = Int(512).tag(parameter=True)
    model = Unicode("qwen3.5-0.8b").tag(parameter=True)
    request = Int(100).tag(parameter=True)

    def source(self, parameters: dict[str, Any]) -> WorkloadSource:
        """Return the requests, of one of the workloads that are small and offline, or a file."""
        check_choice("workload", parameters["workload"], (*WORKLOADS, FILE))
        return super().source(parameters)

    def compute(self, parameters: dict[str, Any]) -> tuple[SimulationResult, RequestView]:
        """Return the whole simulation and the view of the one request."""
        check_integer("request", parameters["request"], minimum=0)
        simulated = _simulate(
            self.source(parameters),
            parameters["policy"],
            parameters["budget"],
            parameters["model"],
            **_options(parameters),
        )
        number = min(parameters["request"], len(simulated.requests) - 1)
        return simulated, request_view(simulated, number, _words(simulated))

    def draw(self, result: tuple[SimulationResult, RequestView]) -> dict[str, Any]:
        """Return the picture of the request."""
        return checkpoint_layout_spec(result[1])

    def table(self, result: tuple[SimulationResult, RequestView]) -> pd.DataFrame:
        """Return one row a request of the simulation."""
        return result[0].requests

    def code(self, parameters: dict[str, Any]) -> str:
        """Return the simulation and the row that is shown."""
        source = self.source(parameters)
        shown = min(parameters["request"], len(source.workload) - 1)
        options = "".join(f", {name}={value}" for name, value in _options(parameters).items())
        return "\n".join(
            (
                "import sparselab as sl",
                f"workload = {source.code}",
                f"result = sl.simulate(workload, {parameters['policy']!r}, {parameters['budget']}, "
                f"architecture={parameters['model']!r}{options})",
                f"print(result.requests.iloc[{shown}])",
            )
        )

    def controls(self) -> list[w.Widget]:
        """Return the controls: what is simulated, and which request is shown."""
        return [
            controls.row(*self.workload_controls(WORKLOADS), *self._cache_controls()),
            controls.row(*self._request_controls()),
        ]

    def _cache_controls(self) -> list[w.Widget]:
        return [
            controls.choice(
                self,
                "policy",
                "Policy",
                "Where the checkpoints of a new entry go.",
                list(sl.policies()),
            ),
            controls.integer(
                self,
                "budget",
                "Budget M",
                "Checkpoints allowed in an entry.",
                0,
                LARGEST_BUDGET,
                unit="checkpoints",
            ),
            controls.block_size(self, "policy", lambda: self.policy == "block"),
            controls.choice(
                self,
                "model",
                "Model",
                "Whose bytes of KV and checkpoints are drawn.",
                sl.architecture.presets(),
            ),
        ]

    def _request_controls(self) -> list[w.Widget]:
        """Return a slider over the requests and a button that plays them, kept within them."""
        shown = controls.integer(
            self,
            "request",
            "Request",
            "Which request of the simulation is shown, from 0; the arrow keys step through them.",
            0,
            0,
        )
        play = w.Play(
            min=0,
            interval=PLAY_INTERVAL_MS,
            tooltip="Play the requests one after another.",
        )

        def fit(_change: Any = None) -> None:
            try:
                requests = len(self.result[0].requests)
            except EXPECTED_ERRORS:  # the error line says so
                return
            # A request beyond the last one becomes the last one, as in the picture.
            shown.max = play.max = requests - 1

        fit()
        link((shown, "value"), (play, "value"))
        self.observe(fit, ["workload", "path", "file_format", "request"])
        return [shown, play]


def request_view(simulated: SimulationResult, number: int, words: str) -> RequestView:
    """Return what is to be drawn of request ``number``, counted from 0."""
    frame = simulated.requests
    row = frame.iloc[number]
    entry = None if row["matched"] < 0 else frame.iloc[int(row["matched"])]
    name = simulated.parameters["architecture"]
    return RequestView(
        number=number,
        matched=None if entry is None else int(row["matched"]),
        entry_length=0 if entry is None else int(entry["length"]),
        entry_positions=np.zeros(0, np.int64) if entry is None else entry["positions"],
        entry_keeps_kv=entry is not None and bool(entry["kv_bytes"]),
        length=int(row["length"]),
        overlap=int(row["overlap"]),
        resume_point=int(row["resume_point"]),
        stored=row["positions"],
        overlap_shares=(frame["overlap"] / frame["length"]).to_numpy(),
        saved_shares=(frame["resume_point"] / frame["length"]).to_numpy(),
        architecture=sl.HybridArchitecture.preset(name),
        words=words,
    )


def _words(simulated: SimulationResult) -> str:
    known, total = simulated.parameters, simulated.summary
    budget = "" if known["budget"] is None else f", at most {known['budget']} checkpoints"
    size = known["policy_options"].get("block_size")
    blocks = "" if size is None else f" of {size:,} tokens"
    return (
        f"{known['workload']}, policy {known['policy']}{blocks}{budget}; "
        f"{total['saved_share']:.1%} of all prompt tokens skipped, "
        f"{total['overlap_share']:.1%} overlap"
    )


def _options(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the policy."""
    return {"block_size": parameters["block_size"]} if parameters["policy"] == "block" else {}


@lru_cache(maxsize=16)
def _simulate(
    source: WorkloadSource, policy: str, budget: int, model: str, **options: Any
) -> SimulationResult:
    return sl.simulate(source.workload, policy, budget, architecture=model, **options)
