"""LiveFigure in the page: whatever it becomes, the page draws what the kernel drew."""

from __future__ import annotations

import json
from collections.abc import Callable

from jupyter_lab import Notebook
from playwright.sync_api import expect

FIGURES = """
from widgets.live_figure import LiveFigure


def figure(names):
    return {
        "data": [
            {"type": "scatter", "name": name, "x": [0, 1], "y": [index, len(name)]}
            for index, name in enumerate(names)
        ],
        "layout": {"title": {"text": " ".join(names)}},
    }


live = LiveFigure(figure(["a", "bb", "ccc", "dddd"]))
live
"""

# What plotly has drawn in the page is what is expected, as JSON.
DRAWS = """expected => {
  const figure = document.querySelector('.js-plotly-plot');
  const traces = figure.data.map(trace => [trace.name, [...trace.y]]);
  return JSON.stringify([figure._fullLayout.title.text, ...traces]) === expected;
}"""

BECOMINGS = [
    ["bb", "dddd"],
    ["x", "yy", "zzz", "wwww", "five5"],
    ["other", "names"],
    ["seven77"],
    [],
    ["a", "bb", "ccc"],
]


def test_traces_that_go_come_and_change_their_names_at_once_are_drawn(
    open_notebook: Callable[..., Notebook],
) -> None:
    notebook = open_notebook(FIGURES, *(f"live.become(figure({names!r}))" for names in BECOMINGS))
    notebook.run_cell(0)
    figure = notebook.page.locator(".js-plotly-plot").first
    expect(figure.locator(".legendtext", has_text="dddd")).to_be_visible()
    for number, names in enumerate(BECOMINGS, start=1):
        notebook.run_cell(number)
        expected = [" ".join(names), *([name, [i, len(name)]] for i, name in enumerate(names))]
        notebook.page.wait_for_function(DRAWS, arg=json.dumps(expected, separators=(",", ":")))
    assert notebook.errors() == []


# Every limit on waiting is over at once, as on a machine that is busy for as long.
IMPATIENT = """
const timeout = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = milliseconds => timeout(0);
"""


def test_a_figure_that_takes_long_to_load_hears_of_changes_all_the_same(
    open_notebook: Callable[..., Notebook],
) -> None:
    notebook = open_notebook(FIGURES, "live.become(figure(['late']))")
    notebook.run_cell(0)
    notebook.page.add_init_script(IMPATIENT)
    notebook.save_and_reload()
    notebook.page.locator(".js-plotly-plot .gtitle").first.wait_for()
    notebook.run_cell(1)
    expected = json.dumps(["late", ["late", [0, 4]]], separators=(",", ":"))
    notebook.page.wait_for_function(DRAWS, arg=expected, timeout=20_000)
    assert notebook.errors() == []
