"""Which panels the cells of a notebook show, so that one that was replaced can be let go.

A panel of a cell that is run again is still in the kernel, figure, buttons and all. Each figure
weighs megabytes, and after a reload of the page the kernel sends every one of them; with a few
the page gives up and shows none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ipywidgets

#: Cell -> the execution of it that showed something last, and the views that it showed.
_shown: dict[str, tuple[str, list[ipywidgets.Widget]]] = {}


def show_in_cell(view: ipywidgets.Widget) -> None:
    """Remember that the running cell shows ``view``; close what its earlier runs alone showed.

    Does nothing where there are no cells to tell apart, as in a terminal or in Voila.
    """
    from IPython.core.getipython import get_ipython

    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)()
    cell = parent.get("metadata", {}).get("cellId")
    if cell is None:
        return
    execution = parent["header"]["msg_id"]
    before, views = _shown.get(cell, (execution, []))
    if before == execution:
        _shown[cell] = (execution, [*views, view])
        return
    _shown[cell] = (execution, [view])
    elsewhere = [other for _, shown in _shown.values() for other in shown]
    for old in views:
        if not any(old is other for other in elsewhere):
            _close(old)


def _close(widget: ipywidgets.Widget) -> None:
    """Close a widget and all that it holds."""
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()
