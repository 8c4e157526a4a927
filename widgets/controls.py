"""Controls for panels: each is tied to one trait, and has a label, a unit and a help text.

All are ipywidgets that the keyboard reaches with Tab; arrows, Page Up and Page Down move a
slider, and its number can be typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as w
from traitlets import HasTraits

WIDTH = "385px"
_STYLE = {"description_width": "165px"}


def integer(
    panel: HasTraits,
    trait: str,
    label: str,
    help_text: str,
    minimum: int,
    maximum: int,
    step: int = 1,
    unit: str = "",
    continuous: bool = True,
) -> w.IntSlider:
    """Return a slider for a whole number; ``continuous=False`` reports only when it is let go.

    Use ``continuous=False`` where a redraw takes longer than about 50 ms.
    """
    return _tie(
        panel,
        trait,
        w.IntSlider(
            min=minimum,
            max=maximum,
            step=step,
            continuous_update=continuous,
            **_described(label, unit, help_text),
        ),
    )


def number(
    panel: HasTraits,
    trait: str,
    label: str,
    help_text: str,
    minimum: float,
    maximum: float,
    step: float,
    unit: str = "",
    continuous: bool = True,
    readout_format: str = ".2f",
) -> w.FloatSlider:
    """Return a slider for a real number."""
    return _tie(
        panel,
        trait,
        w.FloatSlider(
            min=minimum,
            max=maximum,
            step=step,
            continuous_update=continuous,
            readout_format=readout_format,
            **_described(label, unit, help_text),
        ),
    )


def choice(
    panel: HasTraits,
    trait: str,
    label: str,
    help_text: str,
    options: Sequence[Any],
    unit: str = "",
) -> w.Dropdown:
    """Return a drop-down list; ``options`` are values or ``(text, value)`` pairs."""
    return _tie(panel, trait, w.Dropdown(options=options, **_described(label, unit, help_text)))


def steps(
    panel: HasTraits,
    trait: str,
    label: str,
    help_text: str,
    options: Sequence[Any],
    unit: str = "",
    continuous: bool = True,
) -> w.SelectionSlider:
    """Return a slider over listed values, for example powers of two."""
    return _tie(
        panel,
        trait,
        w.SelectionSlider(
            options=options,
            continuous_update=continuous,
            **_described(label, unit, help_text),
        ),
    )


def text(panel: HasTraits, trait: str, label: str, help_text: str, placeholder: str = "") -> w.Text:
    """Return a line of text, taken over when Enter is pressed or the field is left."""
    return _tie(
        panel,
        trait,
        w.Text(
            placeholder=placeholder, continuous_update=False, **_described(label, "", help_text)
        ),
    )


def workload(panel: HasTraits, names: Sequence[str]) -> list[w.Widget]:
    """Return the controls of what :func:`widgets.workload_source.workload_source` takes.

    They are tied to the traits ``workload``, one of ``names``, ``path`` and ``seed``.
    """
    return [
        choice(
            panel,
            "workload",
            "Workload",
            "Shipped samples, or synthetic requests made up with the lengths of a dataset.",
            names,
        ),
        text(
            panel,
            "path",
            "Your own file",
            "A trace or data set to replay instead; Enter reads it, empty returns.",
            "trace.jsonl",
        ),
        integer(
            panel,
            "seed",
            "Seed",
            "Of the order in which the groups' requests arrive. A trace with arrivals of its own "
            "keeps them.",
            0,
            1000,
            continuous=False,
        ),
    ]


def several(
    panel: HasTraits, trait: str, label: str, help_text: str, options: Sequence[str]
) -> w.Box:
    """Return a check box an option for a trait that holds the tuple of chosen ones, in order."""
    boxes = {
        option: w.Checkbox(
            value=option in getattr(panel, trait),
            description=option,
            indent=False,
            layout=w.Layout(width="auto", margin="0 14px 0 0"),
        )
        for option in options
    }

    def from_boxes(_change: Any) -> None:
        setattr(panel, trait, tuple(option for option in options if boxes[option].value))

    def to_boxes(change: Any) -> None:
        for option, box in boxes.items():
            # Boxes that already agree do not report, so that this does not come back.
            box.unobserve(from_boxes, "value")
            box.value = option in change["new"]
            box.observe(from_boxes, "value")

    for box in boxes.values():
        box.observe(from_boxes, "value")
    panel.observe(to_boxes, trait)
    group = w.Box(
        [w.Label(f"{label}:"), *boxes.values()],
        layout=w.Layout(flex_flow="row wrap", align_items="center", width="100%"),
    )
    group.help_text = f"{label}: {help_text}"
    return group


def button(label: str, help_text: str, action: Any) -> w.Button:
    """Return a push button that calls ``action()``."""
    push = w.Button(description=label, tooltip=help_text, layout=w.Layout(width="auto"))
    push.help_text = f"{label}: {help_text}"
    push.on_click(lambda _button: action())
    return push


def row(*widgets: w.Widget) -> w.Box:
    """Return widgets side by side, in as many lines as the page needs."""
    return w.Box(
        list(widgets), layout=w.Layout(flex_flow="row wrap", align_items="center", width="100%")
    )


def help_texts(widget: w.Widget) -> list[str]:
    """Return the help texts of ``widget`` and everything inside it, top to bottom."""
    own = [widget.help_text] if getattr(widget, "help_text", "") else []
    children = getattr(widget, "children", ())
    return own + [line for child in children for line in help_texts(child)]


def _described(label: str, unit: str, help_text: str) -> dict[str, Any]:
    description = f"{label} ({unit})" if unit else label
    return {
        "description": description,
        "tooltip": help_text,
        "description_allow_html": False,
        "style": _STYLE,
        "layout": w.Layout(width=WIDTH),
    }


def _tie(panel: HasTraits, trait: str, widget: Any) -> Any:
    """Keep the trait and the control's value the same, the trait's value first.

    A control would silently move a value that it cannot show to the nearest one that it can. So
    it makes room first: what the panel was asked for is what it shows.
    """
    following = False

    def show(value: Any) -> None:
        nonlocal following
        # Making room may select another value for a moment, which must not reach the panel.
        following = True
        try:
            _make_room(widget, value)
            widget.value = value
        finally:
            following = False

    def take(change: Any) -> None:
        if not following:
            setattr(panel, trait, change["new"])

    show(getattr(panel, trait))
    widget.observe(take, "value")
    panel.observe(lambda change: show(change["new"]), trait)
    if not getattr(widget, "help_text", ""):
        widget.help_text = f"{widget.description}: {widget.tooltip}"
    return widget


def _make_room(widget: Any, value: Any) -> None:
    """Widen a slider's range, or add to a list's options, so that it can show ``value``."""
    if hasattr(widget, "max"):
        widget.max, widget.min = max(widget.max, value), min(widget.min, value)
    elif hasattr(widget, "options"):
        known = [option[1] if isinstance(option, tuple) else option for option in widget.options]
        if value not in known:
            added = [*widget.options, value]
            numbers = all(isinstance(option, (int, float)) for option in added)
            widget.options = sorted(added) if numbers else added
