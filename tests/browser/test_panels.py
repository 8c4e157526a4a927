"""What holds for every panel, in JupyterLab in a real browser.

A new panel adds one line to ``PANELS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from jupyter_lab import Notebook, PanelPage


@dataclass(frozen=True)
class Case:
    """One panel: how to make it, a slider that changes its picture, and how to break it.

    ``broken`` is Python that makes settings invalid through ``panel``, ``mended`` Python that
    makes them valid again, and ``sentence`` a part of what the error line then says.
    """

    name: str
    code: str
    slider: str
    broken: str
    mended: str
    sentence: str

    def __str__(self) -> str:
        return self.name


PANELS = [
    Case(
        name="PlacementExplorer",
        code="from widgets import PlacementExplorer\npanel = PlacementExplorer(length=8192)\npanel",
        slider="Budget M",
        broken="panel.own = 'soon'",
        mended="panel.own = '512'",
        sentence="got 'soon'",
    ),
    Case(
        name="DriftExplorer",
        code="from widgets import DriftExplorer\n"
        "panel = DriftExplorer(requests=300, repeats=2)\npanel",
        slider="Budget M",
        broken="panel.requests = 0",
        mended="panel.requests = 400",
        sentence="requests must be at least 1",
    ),
    Case(
        name="WorkloadExplorer",
        code="from widgets import WorkloadExplorer\n"
        "panel = WorkloadExplorer(workload='append_only_chat', align=1, capacity=3)\npanel",
        slider="Capacity",
        broken="panel.workload = 'my own file'",
        mended="panel.workload = 'append_only_chat'",
        sentence="path is empty: name a trace or data set",
    ),
    Case(
        name="CheckpointLayout",
        code="from widgets import CheckpointLayout\npanel = CheckpointLayout()\npanel",
        slider="Request",
        broken="panel.workload = 'my own file'",
        mended="panel.workload = 'synthetic_quality'",
        sentence="path is empty: name a trace or data set",
    ),
]


# What WCAG 2 asks of text at its strictest level.
READABLE = 7.0


@pytest.fixture(params=PANELS, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def test_it_answers_keyboard_and_pointer_in_light_and_dark_and_survives_a_reload(
    open_panel: Callable[[str], PanelPage], case: Case
) -> None:
    panel = open_panel(case.code)
    assert panel.notebook.errors() == []
    panel.notebook.use_theme("light")
    assert panel.contrast() > READABLE
    panel.screenshot(f"{case.name}-light")

    drawn, value = panel.picture(), panel.value(case.slider)
    panel.press(case.slider, "ArrowRight")
    panel.wait_until_changed(drawn)
    assert panel.value(case.slider) != value

    panel.settle()
    drawn = panel.picture()
    panel.drag_slider(case.slider, by=30)
    panel.wait_until_changed(drawn)

    panel.notebook.use_theme("dark")
    assert panel.contrast() > READABLE
    panel.screenshot(f"{case.name}-dark")

    panel.settle()
    data, value = panel.drawn_data(), panel.value(case.slider)
    panel.notebook.save_and_reload()
    panel.wait_until_drawn()
    assert panel.value(case.slider) == value
    assert panel.drawn_data() == data
    picture = panel.picture()
    panel.press(case.slider, "Home")
    panel.wait_until_changed(picture)


def test_it_says_what_is_wrong_keeps_the_picture_and_recovers(
    open_notebook: Callable[..., Notebook], case: Case
) -> None:
    notebook = open_notebook(case.code, case.broken, case.mended)
    panel = PanelPage(notebook)
    panel.wait_until_drawn()
    panel.wait_for_no_error()
    drawn = panel.drawn_data()
    notebook.run_cell(1)
    panel.wait_for_error(case.sentence)
    assert panel.drawn_data() == drawn
    panel.screenshot(f"{case.name}-error")
    notebook.run_cell(2)
    panel.wait_for_no_error()
    assert notebook.errors() == []
