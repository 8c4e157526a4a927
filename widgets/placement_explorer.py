"""PlacementExplorer: where checkpoints go, what each policy recomputes, and your own try."""

from __future__ import annotations

import tempfile
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import ipywidgets as w
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from plotly.graph_objects import FigureWidget
from traitlets import Float, Int, Tuple, Unicode

import sparselab as sl
from sparselab.validation import check_choice
from widgets import controls
from widgets.comparison import Comparison, compare, own_schedule
from widgets.figures import placement
from widgets.overlap_source import FAMILIES, FILE, HAND, HAND_BINS, overlap_source, sources
from widgets.panel import Panel
from widgets.single_clicks import SingleClicks
from widgets.theme import OWN

TOKENS = "tokens"
LARGEST_LENGTH = 131_072
LARGEST_BUDGET = 64
ALIGNMENTS = (1, 16, 32, 64, 128, 256, 512, 1024)


class PlacementExplorer(Panel):
    """Compare policies on one entry, live.

    Attributes:
        source: where the overlaps come from: a family, a shipped table, a file, drawn by hand.
        a, b, mean, exponent, depth, share: parameters of the families (``mean`` in tokens,
            ``depth`` and ``share`` as fractions).
        path: the CSV or trace, for ``"my own file"``.
        weights: one a bar, for ``"drawn by hand"``.
        length: tokens in the entry.
        budget: checkpoints allowed.
        align: checkpoints stand on multiples of it (tokens).
        cost: ``"tokens"``, or the model whose prefill FLOPs are counted.
        policies: which are shown; ``"your own"`` is a row for the reader.
        block_size: of the policy ``block`` (tokens).
        own: positions of your own checkpoints, separated by commas.
    """

    title = "Placement explorer"
    draggable_shapes = True

    source = Unicode("beta").tag(parameter=True)
    a = Float(2.0).tag(parameter=True)
    b = Float(5.0).tag(parameter=True)
    mean = Float(4096.0).tag(parameter=True)
    exponent = Float(1.0).tag(parameter=True)
    depth = Float(0.75).tag(parameter=True)
    share = Float(0.5).tag(parameter=True)
    path = Unicode("").tag(parameter=True)
    weights = Tuple(default_value=(1.0,) * HAND_BINS).tag(parameter=True)
    length = Int(32_768).tag(parameter=True)
    budget = Int(8).tag(parameter=True)
    align = Int(1).tag(parameter=True)
    cost = Unicode(TOKENS).tag(parameter=True)
    policies = Tuple(default_value=("no_cache", "balanced", "block", "log", "optimal", OWN)).tag(
        parameter=True
    )
    block_size = Int(2048).tag(parameter=True)
    own = Unicode("8192, 16384").tag(parameter=True)

    # -- pure ----------------------------------------------------------------------------------

    def compute(self, parameters: dict[str, Any]) -> Comparison:
        """Return the comparison that the parameters describe."""
        length = parameters["length"]
        overlaps = overlap_source(parameters["source"], length, parameters)
        shown = parameters["policies"]
        for name in shown:
            check_choice("policy", name, policy_choices())
        own, beyond = _within(parse_positions(parameters["own"]), length)
        words = overlaps.words
        if OWN in shown:
            words += _own_words(own, beyond, length, parameters["align"])
        if parameters["cost"] != TOKENS:
            words += f"; cost: prefill FLOPs of {parameters['cost']}"
        return compare(
            overlaps.distribution,
            parameters["budget"],
            [name for name in shown if name != OWN],
            parameters["align"],
            _prefill_cost(parameters["cost"], length),
            "tokens" if parameters["cost"] == TOKENS else "FLOPs",
            own if OWN in shown else None,
            {"block": {"block_size": parameters["block_size"]}},
            words,
        )

    def draw(self, result: Comparison) -> dict[str, Any]:
        """Return the picture, with a handle on each checkpoint of your own."""
        spec = placement.comparison_spec(result)
        spec["layout"]["shapes"] = placement.handles(result)
        return spec

    def table(self, result: Comparison) -> pd.DataFrame:
        """Return one row a policy."""
        return result.to_frame()

    def code(self, parameters: dict[str, Any]) -> str:
        """Return the calls that compute the table's E[r]."""
        length, budget, align = (parameters[key] for key in ("length", "budget", "align"))
        overlaps = overlap_source(parameters["source"], length, parameters)
        lines = ["import sparselab as sl", f"overlaps = {overlaps.code}"]
        cost = ""
        if parameters["cost"] != TOKENS:
            lines.append(
                f"flops = sl.HybridArchitecture.preset({parameters['cost']!r}).prefill_flops"
            )
            cost = ", prefill_cost=flops"
        for name in parameters["policies"]:
            if name == OWN:
                positions, _ = _within(parse_positions(parameters["own"]), length)
                grid = own_schedule(positions, length, align).positions.tolist()
                schedule = f"sl.Schedule({grid}, {length})"
            else:
                option = f", block_size={parameters['block_size']}" * (name == "block")
                schedule = (
                    f"sl.place({name!r}, {length}, {budget}, overlaps, align={align}{cost}{option})"
                )
            lines.append(f"print({name!r}, sl.expected_recompute({schedule}, overlaps{cost}))")
        return "\n".join(lines)

    # -- the live view -------------------------------------------------------------------------

    def controls(self) -> list[w.Widget]:
        """Return the controls: what is cached, the overlaps, the policies, your own."""
        family = [
            controls.visible_while(self, "source", partial(self._looks_at, name), control)
            for name, control in self._family_controls().items()
        ]
        return [
            controls.row(*self._entry_controls()),
            controls.row(*family, self._file_controls()),
            self._hand_controls(),
            controls.several(
                self, "policies", "Policies", "Which rows and lines are shown.", policy_choices()
            ),
            controls.row(*self._own_controls()),
            SingleClicks(place=f".sparselab-panel .{placement.ADD_SUBPLOT}"),
        ]

    def _entry_controls(self) -> list[w.Widget]:
        return [
            controls.choice(
                self,
                "source",
                "Overlaps",
                "How deep later requests share this prefix: a family, a measured table, a file of "
                "your own, or bars drawn by hand.",
                sources(),
            ),
            controls.integer(
                self,
                "budget",
                "Budget M",
                "Checkpoints allowed in this entry.",
                0,
                LARGEST_BUDGET,
                unit="checkpoints",
            ),
            controls.integer(
                self,
                "length",
                "Length N",
                "Tokens in the retained prefix; its number can be typed.",
                16,
                LARGEST_LENGTH,
                unit="tokens",
            ),
            controls.steps(
                self,
                "align",
                "Alignment",
                "Checkpoints stand on multiples of it, as kernels and block caches need.",
                ALIGNMENTS,
                unit="tokens",
            ),
            controls.choice(
                self,
                "cost",
                "Prefill cost",
                "What recomputing costs: a token each, or the FLOPs of a model, whose attention "
                "makes late tokens dearer.",
                [TOKENS, *sl.architecture.presets()],
            ),
            controls.block_size(self, "policies", lambda: "block" in self.policies),
        ]

    def _family_controls(self) -> dict[str, w.Widget]:
        def number(
            name: str, label: str, text: str, low: float, high: float, unit: str = ""
        ) -> Any:
            return controls.number(self, name, label, text, low, high, 0.05, unit)

        return {
            "share": number("share", "Share at depth", "Requests at exactly that depth.", 0, 1),
            "depth": number("depth", "Depth", "As a fraction of the length.", 0, 1, "of N"),
            "a": number("a", "Beta a", "Larger: deeper overlaps.", 0.05, 20),
            "b": number("b", "Beta b", "Larger: shallower overlaps.", 0.05, 20),
            "mean": controls.number(
                self,
                "mean",
                "Mean depth",
                "Of the geometric distribution before it is cut at the length.",
                16,
                LARGEST_LENGTH,
                16,
                "tokens",
                readout_format=",.0f",
            ),
            "exponent": number("exponent", "Zipf exponent", "Larger: shallower.", 0.05, 4),
        }

    def _hand_controls(self) -> w.Widget:
        return controls.visible_while(
            self,
            "source",
            lambda: self.source == HAND,
            controls.bars(
                self,
                "weights",
                "Weights, from depth 0 to N",
                "One bar for each equal part of the depths; arrow keys move a bar.",
            ),
        )

    def _looks_at(self, parameter: str) -> bool:
        """Return whether the source is a family that a parameter belongs to."""
        return parameter in FAMILIES.get(self.source, ())

    def _file_controls(self) -> w.Widget:
        upload = w.FileUpload(
            accept=".csv,.jsonl,.json,.gz",
            multiple=False,
            tooltip="A table depth,requests or a trace, read in the kernel and sent nowhere.",
        )
        upload.help_text = "Upload: a CSV with the header depth,requests, or a trace."

        # A folder of its own for each, as the name may come again; all gone with the panel.
        uploads = tempfile.TemporaryDirectory(prefix="sparselab-uploads-")

        def take(_change: Any) -> None:
            if upload.value:
                file = upload.value[0]
                target = Path(tempfile.mkdtemp(dir=uploads.name)) / Path(file["name"]).name
                target.write_bytes(bytes(file["content"]))
                self.path = str(target)

        upload.observe(take, "value")
        path = controls.text(
            self,
            "path",
            "Your own file",
            "Where a CSV or trace lies for the kernel; Enter reads it.",
            "overlaps.csv or trace.jsonl",
        )
        return controls.visible_while(
            self, "source", lambda: self.source == FILE, controls.row(path, upload)
        )

    def _own_controls(self) -> list[w.Widget]:
        def copy_optimum() -> None:
            # Without your own, which may be what is wrong just now.
            solved = self.compute(self.parameters() | {"own": ""})
            self.own = format_positions(solved.frontier.schedule(self.budget).positions)

        def clear() -> None:
            self.own = ""

        positions = controls.text(
            self,
            "own",
            "Your checkpoints",
            "Token positions separated by commas, or in the picture: click in the row 'your own', "
            "and only there, to add one (a double click adds no second one); drag its ring to move "
            "it, drag the ring out of the row to remove it.",
            "for example 4096, 12288",
        )
        positions.layout.width = "520px"
        return [
            positions,
            controls.button(
                "Copy the optimum", "Makes its checkpoints your own.", self.guarded(copy_optimum)
            ),
            controls.button("Clear", "Removes all of your own.", clear),
        ]

    def connect(self, figure: FigureWidget) -> None:
        """Let clicks add a checkpoint of your own, and drags move or remove one."""
        figure.data[placement.ADD_TRACE].on_click(self.guarded(self._clicked))
        figure.layout.on_change(self.guarded(self._dragged), "shapes")

    def _clicked(self, _trace: Any, points: Any, _state: Any) -> None:
        if points.xs:
            mine = parse_positions(self.own)
            self.own = format_positions([*mine, *map(self._nearest, points.xs)])

    def _dragged(self, _layout: Any, shapes: Any) -> None:
        """Take over where a handle was left; the row's index is its height.

        The others keep what was typed for them, which the grid may have moved and the end of a
        shorter entry hidden.
        """
        if self.figure.becoming:
            return
        row = len(self.result.rows) - 1
        mine = parse_positions(self.own)
        for shape, drawn in zip(shapes, self.result.rows[row].schedule.positions, strict=True):
            removed = abs(shape["yanchor"] - row) >= placement.REMOVE_DISTANCE
            if removed or shape["xanchor"] != drawn:
                mine = [position for position in mine if not self._is_at(drawn, position)]
                mine += [] if removed else [self._nearest(shape["xanchor"])]
        # What was drawn last is not what is on screen any more.
        self.figure.forget("shapes")
        before = self.own
        self.own = format_positions(mine)
        if self.own == before:
            self.figure.become(self.draw(self.result))

    def _is_at(self, drawn: int, position: int) -> bool:
        """Return whether ``position`` in the text is the checkpoint that is drawn there."""
        return position <= self.length and position // self.align * self.align == drawn

    def _nearest(self, depth: float) -> int:
        """Return where a checkpoint can stand that is nearest to ``depth``."""
        most = max(self.length // self.align, 1)
        return min(max(round(depth / self.align), 1), most) * self.align


def policy_choices() -> tuple[str, ...]:
    """Return the policies that length, budget and overlaps suffice for, and the reader's own."""
    known = sl.policies().items()
    return (*(name for name, policy in known if not policy.required_options), OWN)


def parse_positions(text: str) -> list[int]:
    """Return the whole numbers in ``"4096, 8192"``; ``ValueError`` names what is none."""
    parts = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal() or int(part) == 0:
            raise ValueError(
                f"your own checkpoints must be positive whole numbers separated by commas, "
                f"got {part!r}."
            )
    return [int(part) for part in parts]


def format_positions(positions: Any) -> str:
    """Return positions as :func:`parse_positions` reads them, sorted and each once."""
    return ", ".join(map(str, sorted({int(position) for position in positions})))


def _within(positions: list[int], length: int) -> tuple[list[int], int]:
    """Return the positions that a shorter entry still holds, and how many lie beyond it."""
    kept = [position for position in positions if position <= length]
    return kept, len(positions) - len(kept)


def _own_words(positions: list[int], beyond: int, length: int, align: int) -> str:
    """Return how many of the reader's checkpoints do not stand where they were asked for."""
    words = f"; {beyond} of your own checkpoints beyond N left out" if beyond else ""
    moved = sum(position % align > 0 for position in set(positions))
    if moved:
        left = len(own_schedule(positions, length, align))
        words += f"; {moved} of your own checkpoints moved to multiples of {align}"
        words += f", which leaves {left} in all" * (left < len(set(positions)))
    return words


@lru_cache(maxsize=2)
def _prefill_cost(name: str, length: int) -> NDArray[np.float64] | None:
    """Return ``G(0..N)`` in FLOPs of a model, or ``None`` for tokens."""
    if name == TOKENS:
        return None
    architecture = sl.HybridArchitecture.preset(name)
    return architecture.prefill_flops(np.arange(length + 1))
