"""What the tests of panels share."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import plotly.graph_objects as go
import pytest
from traitlets import Int

import sparselab as sl
from sparselab import placement
from widgets import controls, theme
from widgets.panel import Panel


class Squares(Panel):
    """The smallest panel: squares below a number, and 13 is refused."""

    title = "Squares"
    count = Int(4).tag(parameter=True)
    shift = Int(0).tag(parameter=True)

    computed = 0

    def compute(self, parameters):
        self.computed += 1
        if parameters["count"] == 13:
            raise ValueError("count must not be 13, got 13.")
        if parameters["count"] == 14:
            raise KeyError("a defect")
        return [n * n + parameters["shift"] for n in range(parameters["count"])]

    def draw(self, result):
        return theme.apply(go.Figure(go.Scatter(y=result)), height=300)

    def table(self, result):
        return pd.DataFrame({"square": result})

    def code(self, parameters):
        return f"[n * n + {parameters['shift']} for n in range({parameters['count']})]"

    def controls(self):
        return [controls.integer(self, "count", "Count", "How many squares.", 1, 20, unit="pieces")]


@pytest.fixture
def middle() -> Iterator[str]:
    """The name of a policy that somebody registered, with an option that has a default."""

    @sl.register_policy("middle", "one checkpoint in the middle")
    def middle(context, part=2):
        return [context.length // part]

    yield "middle"
    del placement._REGISTRY["middle"]


@pytest.fixture
def squares() -> Squares:
    return Squares()
