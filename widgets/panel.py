"""What all panels share: parameters, one picture, controls, an error line, code and export.

A panel is its parameters (traits), a pure ``compute(parameters) -> result`` and a pure
``draw(result) -> Figure``; this class does the rest. A new panel says what it adds::

    class Squares(Panel):
        title = "Squares"
        count = Int(4).tag(parameter=True)

        def compute(self, parameters):
            return [n * n for n in range(parameters["count"])]

        def draw(self, result):
            return theme.apply(go.Figure(go.Scatter(y=result)), height=300)

        def table(self, result):
            return pd.DataFrame({"square": result})

        def code(self, parameters):
            return f"[n * n for n in range({parameters['count']})]"

        def controls(self):
            return [controls.integer(self, "count", "Count", "How many squares.", 1, 20)]

As the last line of a notebook cell it is live; ``panel.static()`` is the same picture as a plain
figure, and ``panel.show(live)`` picks one of the two.
"""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from traitlets import HasTraits, Unicode

from widgets import theme
from widgets.display import show
from widgets.export import FORMATS, export
from widgets.shown_panels import show_in_cell

if TYPE_CHECKING:
    import ipywidgets
    import pandas as pd

# What bad input raises: said in the error line, and no defect of the lab.
EXPECTED_ERRORS = (ValueError, TypeError, OSError, RuntimeError)

# After so long without a new picture the panel says that it is computing.
PATIENCE_S = 0.4


class Panel(HasTraits):
    """Base of all panels; see the module for an example.

    A change of any trait tagged ``parameter=True`` redraws at once, inside the change itself.
    That is enough against floods: a control in the page sends its next value only when the
    kernel is done with the last one, and then the latest, so that no queue builds up.

    Attributes:
        error: the sentence in the error line, empty when all is well. While there is one, the
            picture shows the last settings that worked, if any did.
    """

    title = "Panel"
    #: Whether the reader may move the shapes of the layout, see :meth:`connect`.
    draggable_shapes = False
    error = Unicode("")

    def __init__(self, **parameters: Any) -> None:
        unknown = sorted(set(parameters) - set(self.trait_names(parameter=True)))
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it has "
                f"{', '.join(sorted(self.trait_names(parameter=True)))}."
            )
        super().__init__(**parameters)
        self._result: Any = None
        self._stale = True
        self._held = False
        self._has_worked = False
        self._view: ipywidgets.VBox | None = None
        self.observe(self._parameter_changed, self.trait_names(parameter=True))

    # -- what a panel says ---------------------------------------------------------------------

    def compute(self, parameters: dict[str, Any]) -> Any:
        """Return all that the picture needs, from parameters alone. Bad ones raise ValueError."""
        raise NotImplementedError

    def draw(self, result: Any) -> go.Figure | dict[str, Any]:
        """Return the picture of a result: a figure, or its plain data, which is much faster.

        Keep the order and types of traces where possible: those are changed in place.
        """
        raise NotImplementedError

    def table(self, result: Any) -> pd.DataFrame:
        """Return the numbers behind the picture, which CSV export saves."""
        raise NotImplementedError

    def code(self, parameters: dict[str, Any]) -> str:
        """Return Python that computes what is on screen with ``import sparselab as sl``."""
        raise NotImplementedError

    def controls(self) -> list[ipywidgets.Widget]:
        """Return the controls, top to bottom; see :mod:`widgets.controls`."""
        raise NotImplementedError

    def connect(self, figure: go.FigureWidget) -> None:
        """Tie clicks and drags in the live figure to the panel; called again for new traces."""

    # -- using one -----------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Return the present value of each parameter."""
        return {name: getattr(self, name) for name in sorted(self.trait_names(parameter=True))}

    def drawn_parameters(self) -> dict[str, Any]:
        """Return the parameters of the picture: the present ones, unless a panel draws later."""
        return self.parameters()

    @property
    def result(self) -> Any:
        """What :meth:`compute` returns for the present parameters."""
        if self._stale:
            self._result = self.compute(self.parameters())
            self._stale = False
        return self._result

    def static(self) -> go.Figure:
        """Return the picture as a plain figure without any widget, for headless runs."""
        return go.Figure(self.draw(self.result))

    def show(self, live: bool) -> None:
        """Display the panel in a notebook: with its controls if ``live``, else its picture."""
        if live:
            from IPython.display import display

            display(self)
        else:
            show(self.static())

    def export(self, path: str | Path) -> Path:
        """Save the picture or its numbers; the ending decides: html, csv, svg or png."""
        return export(self.static(), self.table(self.result), path)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Change several parameters and redraw once at the end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self._refresh()

    # -- the live view -------------------------------------------------------------------------

    @property
    def view(self) -> ipywidgets.VBox:
        """The live view, made at the first use: controls, error line, figure, code and export."""
        if self._view is None:
            self._view = self._build()
        return self._view

    def _repr_mimebundle_(self, **options: Any) -> Any:
        show_in_cell(self.view)
        return self.view._repr_mimebundle_(**options)

    def _build(self) -> ipywidgets.VBox:
        import ipywidgets as w

        from widgets import controls
        from widgets.accessible_names import AccessibleNames
        from widgets.live_figure import LiveFigure
        from widgets.width_watcher import WidthWatcher

        figure, problem = self._first_picture()
        self.figure = LiveFigure(figure, self.draggable_shapes)
        self._error_line = w.HTML()
        self._code_line = w.HTML()
        self.observe(self._show_error, "error")
        self._show_error()
        if problem is None:
            self._has_worked = True
            self.connect(self.figure)
            self._show_code()
        own_controls = self.controls()
        help_items = "".join(
            f"<li>{html.escape(line)}</li>" for c in own_controls for line in controls.help_texts(c)
        )
        view = w.VBox(
            [
                w.HTML(
                    f"<style>{theme.CSS}</style><b>{html.escape(self.title)}</b>"
                    f"<details><summary>What the controls do</summary><ul>{help_items}</ul>"
                    "</details>"
                ),
                *own_controls,
                self._error_line,
                AccessibleNames(),
                WidthWatcher(layout=w.Layout(width="100%", height="0", margin="0")),
                # A box of its own, so that on a narrow page the figure scrolls and nothing else.
                w.VBox([self.figure], layout=w.Layout(width="100%")),
                self._code_line,
                self._export_row(),
            ],
            layout=w.Layout(width="100%"),
        )
        view.add_class("sparselab-panel")
        if problem is not None:
            self._report(problem)
        return view

    def _first_picture(self) -> tuple[go.Figure, Exception | None]:
        """Return the picture, or an empty one and what was wrong with the settings."""
        try:
            return self.static(), None
        except EXPECTED_ERRORS as problem:
            return theme.apply(go.Figure(), height=300), problem

    def _parameter_changed(self, _change: Any) -> None:
        self._stale = True
        if not self._held:
            self._refresh()

    def _refresh(self) -> None:
        """Compute and draw what changed; leave the picture as it is where that fails."""
        if self._view is None or not self._stale:
            return
        try:
            with self._shown_as_computing():
                figure = self.draw(self.result)
        except Exception as problem:
            self._report(problem)
            return
        self.error = ""
        self._has_worked = True
        if self.figure.become(figure):
            self.connect(self.figure)
        self._show_code()

    @contextmanager
    def _shown_as_computing(self) -> Iterator[None]:
        """Dim the picture where the next one takes so long that a reader would wonder."""
        view = self.view
        timer = threading.Timer(PATIENCE_S, view.add_class, [theme.COMPUTING])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            view.remove_class(theme.COMPUTING)

    def guarded(self, action: Callable[..., None]) -> Callable[..., None]:
        """Return ``action``, for a click or a drag, with what it raises said in the error line."""

        def run(*arguments: Any) -> None:
            try:
                action(*arguments)
            except Exception as problem:
                self._report(problem)

        return run

    def _report(self, problem: Exception) -> None:
        """Say a problem in the error line; raise it under test, and always where it is a defect.

        ipywidgets swallows what a callback raises, so that without the line nobody would know.
        """
        self._say(problem)
        if not isinstance(problem, EXPECTED_ERRORS) or "PYTEST_CURRENT_TEST" in os.environ:
            raise problem

    def _say(self, problem: Exception) -> None:
        """Put a problem into the error line."""
        expected = isinstance(problem, EXPECTED_ERRORS)
        self.error = str(problem) if expected else f"{type(problem).__name__}: {problem}"

    def _meanwhile(self) -> str:
        """Return the sentence after a problem: what the picture shows in spite of it."""
        return "The picture shows the last settings that worked." if self._has_worked else ""

    def _show_error(self, _change: Any = None) -> None:
        self._error_line.value = (
            '<div role="alert" class="sparselab-error" style="color: var(--jp-error-color1, '
            f'#d32f2f); font-weight: 600">{html.escape(self.error)} {self._meanwhile()}</div>'
            if self.error
            else '<div role="alert" class="sparselab-error"></div>'
        )

    def _show_code(self) -> None:
        self._code_line.value = (
            "<small>The same in Python (one click selects it all):</small>"
            '<pre class="sparselab-code" tabindex="0" style="user-select: all; margin: 0; '
            f'white-space: pre-wrap">{html.escape(self.code(self.drawn_parameters()))}</pre>'
        )

    def _export_row(self) -> ipywidgets.Box:
        import ipywidgets as w

        from widgets import controls

        kind = w.Dropdown(
            options=[name.upper() for name in FORMATS],
            description="Save as",
            layout=w.Layout(width="180px"),
        )
        message = w.HTML()

        def save() -> None:
            path = Path("exports") / f"{type(self).__name__}.{kind.value.lower()}"
            try:
                text = f"Saved {self.export(path)}"
            except EXPECTED_ERRORS as problem:
                text = str(problem)
            message.value = f'<span role="status">{html.escape(text)}</span>'

        return controls.row(
            kind, controls.button("Save", "Saves into the folder exports/.", save), message
        )
