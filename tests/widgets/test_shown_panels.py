"""A panel whose cell was run again is let go, and no other one."""

from __future__ import annotations

from types import SimpleNamespace

import ipywidgets
import pytest

from widgets import shown_panels
from widgets.shown_panels import show_in_cell


@pytest.fixture
def run_cell(monkeypatch):
    """A function that makes the following views those of a cell, in its so-manieth execution."""
    monkeypatch.setattr(shown_panels, "_shown", {})

    def run(cell, execution):
        parent = {"metadata": {"cellId": cell}, "header": {"msg_id": f"{cell} {execution}"}}
        shell = SimpleNamespace(get_parent=lambda: parent)
        monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)

    return run


def view():
    return ipywidgets.VBox([ipywidgets.HBox([ipywidgets.IntSlider()])])


def is_open(widget):
    return widget.comm is not None


def test_running_a_cell_again_closes_what_it_showed_with_all_its_parts(run_cell):
    run_cell("a", 1)
    old = view()
    parts = [old, old.children[0], old.children[0].children[0]]
    show_in_cell(old)
    assert all(map(is_open, parts))
    run_cell("a", 2)
    new = view()
    show_in_cell(new)
    assert not any(map(is_open, parts))
    assert is_open(new)


def test_one_run_may_show_several(run_cell):
    run_cell("a", 1)
    first, second = view(), view()
    show_in_cell(first)
    show_in_cell(second)
    assert is_open(first)
    run_cell("a", 2)
    show_in_cell(view())
    assert not is_open(first)
    assert not is_open(second)


def test_what_another_cell_shows_too_stays(run_cell):
    run_cell("a", 1)
    shared = view()
    show_in_cell(shared)
    run_cell("b", 1)
    show_in_cell(shared)
    run_cell("a", 2)
    show_in_cell(view())
    assert is_open(shared)


def test_the_same_one_shown_again_stays(run_cell):
    run_cell("a", 1)
    same = view()
    show_in_cell(same)
    run_cell("a", 2)
    show_in_cell(same)
    assert is_open(same)


def test_outside_a_notebook_nothing_is_closed():
    first = view()
    show_in_cell(first)
    show_in_cell(view())
    assert is_open(first)
