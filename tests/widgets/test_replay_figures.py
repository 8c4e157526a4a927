"""Figures of live replay, from tables made up here."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from widgets.figures import replay as figures

EXACTNESS = pd.DataFrame(
    {
        "depth": [100, 200, 300],
        "bit_identical": [True, True, False],
        "one_shot": [0.0, 3e-7, math.nan],
        "control": [1.5, math.nan, 2.0],
        "tolerance": [1e-4, 1e-4, 1e-4],
    }
)


@pytest.mark.parametrize(
    ("name", "drawn", "said"),
    [
        ("same cuts: identical bits", [figures.FLOOR] * 2 + [None], ["0", "0", None]),
        ("one shot: rounding", [figures.FLOOR, 3e-7, None], ["0", "3.0e-07", None]),
        ("control: state zeroed", [1.5, None, 2.0], ["1.5e+00", None, "2.0e+00"]),
    ],
)
def test_no_difference_stands_on_the_floor_of_a_log_axis_and_hovers_as_zero(
    name: str, drawn: list, said: list
) -> None:
    figure = figures.exactness_figure(EXACTNESS, "tiny, random weights, float32, cpu")
    trace = next(trace for trace in figure.data if trace.name == name)
    assert list(trace.y) == drawn
    assert list(trace.customdata) == said
    assert "%{customdata}" in trace.hovertemplate
