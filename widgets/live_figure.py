"""A figure that lives in the page and changes in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go
from plotly.basedatatypes import Undefined
from traitlets import Any as AnyTrait

from widgets import theme

#: A figure, or the plain data ``{"data": [...], "layout": {...}}`` of one, which is much faster.
Drawing: TypeAlias = "go.Figure | dict[str, Any]"

#: The parts of a layout that are lists of objects.
OBJECT_LISTS = ("annotations", "images", "selections", "shapes", "sliders", "updatemenus")

_MISSING = object()


class LiveFigure(go.FigureWidget):
    """A ``FigureWidget`` that takes over a newly drawn figure by sending only what differs.

    Three things are added to plotly's widget. :meth:`become` compares the new figure with the one
    drawn before (not with what is on screen, so that a reader's zoom stays). After a reload of the
    page the widget shows its present state: plotly sends the one it was constructed with. And the
    page hears of the figure once it is complete: plotly announces an empty one and sends data,
    layout and settings after it, and a view drawn before they arrive stays empty for good.
    """

    # After each update the page reports every default that plotly.js filled in, a message far
    # larger than the update. Nobody asks for them here.
    _js2py_traceDeltas = AnyTrait(None).tag(sync=True, echo_update=False)
    _js2py_layoutDelta = AnyTrait(None).tag(sync=True, echo_update=False)

    def _handler_js2py_traceDeltas(self, change: Any) -> None:
        """Ignore the report; plotly's own handler would merge it into the traces."""

    def _handler_js2py_layoutDelta(self, change: Any) -> None:
        """Ignore the report, as for traces."""

    #: True while :meth:`become` changes the figure, so that callbacks can tell it from the reader.
    becoming = False

    _is_complete = False

    def __init__(self, figure: Drawing, draggable_shapes: bool = False) -> None:
        self._drawn_data, self._drawn_layout = _plain(figure)
        super().__init__(figure)
        # Without it the figure keeps the width it was given before it had a place in the page.
        self._config = {
            **theme.FIGURE_CONFIG,
            "edits": {"shapePosition": draggable_shapes},
        }
        self._is_complete = True
        self.open()

    def open(self) -> None:
        """Announce the figure to the page, not before it is complete."""
        if self._is_complete:
            super().open()

    def become(self, figure: Drawing) -> bool:
        """Show ``figure``; return whether traces were replaced, which loses their callbacks.

        Traces at the same place and of the same type are changed in place. From the first one
        that is of another type on, or missing on either side, they are deleted and added.
        """
        data, layout = _plain(figure)
        same = _common_start(self._drawn_data, data)
        pairs = zip(self._drawn_data[:same], data[:same], strict=True)
        self.becoming = True
        try:
            if same < len(self._drawn_data):
                self.data = tuple(self.data)[:same]  # type: ignore[has-type]
            self._send_changes(
                [dict(_changes(old, new)) for old, new in pairs],
                dict(_changes(self._drawn_layout, layout)),
            )
            if same < len(data):
                self.add_traces(data[same:])
        finally:
            self.becoming = False
        replaced = same < max(len(self._drawn_data), len(data))
        self._drawn_data, self._drawn_layout = data, layout
        return replaced

    def _send_changes(self, traces: list[dict[str, Any]], layout: dict[str, Any]) -> None:
        """Apply changes by path, to each of the first traces and to the layout, in one message.

        Lists of objects, such as shapes, and new axes go by themselves: plotly keeps an object
        for each, which only an assignment makes.
        """
        objects = [p for p, value in layout.items() if p in OBJECT_LISTS or isinstance(value, dict)]
        for path in objects:
            self.layout[path] = layout.pop(path)
        changed = [index for index, change in enumerate(traces) if change]
        paths = sorted({path for change in traces for path in change})
        self.plotly_update(
            restyle_data={
                path: [traces[index].get(path, Undefined) for index in changed] for path in paths
            },
            relayout_data=layout,
            trace_indexes=changed,
        )

    def forget(self, name: str) -> None:
        """Send the part ``name`` of the layout again at the next :meth:`become`, changed or not.

        For parts that the reader moves in the page, such as shapes: what was drawn last is no
        longer what is on screen.
        """
        self._drawn_layout.pop(name, None)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return the state for a page that (re)connects, with the data and layout of now."""
        state = super().get_state(key, drop_defaults)
        present = {
            "_widget_data": getattr(self, "_data", None),
            "_widget_layout": getattr(getattr(self, "_layout_obj", None), "_props", None),
        }
        for name, value in present.items():
            if name in state and value is not None:
                state[name] = self.trait_metadata(name, "to_json")(value, self)
        return state


def _plain(figure: Drawing) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return traces and layout as plain data, which plotly does not write into."""
    if isinstance(figure, go.Figure):
        return (
            [trace.to_plotly_json() for trace in figure.data],
            figure.layout.to_plotly_json(),
        )
    return list(figure["data"]), dict(figure["layout"])


def _common_start(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> int:
    """Return how many leading traces have the same type."""
    count = 0
    for before, after in zip(old, new, strict=False):
        if before.get("type", "scatter") != after.get("type", "scatter"):
            break
        count += 1
    return count


def _changes(
    old: dict[str, Any], new: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield ``(path, new value)`` for each leaf that differs, ``None`` where it is gone."""
    for key in [*new, *(key for key in old if key not in new)]:
        path, before, after = f"{prefix}{key}", old.get(key, _MISSING), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _changes(before, after, f"{path}.")
        elif not _equal(before, after):
            yield path, after


def _equal(a: Any, b: Any) -> bool:
    """Compare leaves: numbers, text, lists or arrays."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and np.array_equal(a, b)
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    return a is b or bool(a == b)
