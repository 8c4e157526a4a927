"""Controls for panels: each is tied to one trait, and has a label, a unit and a help text.

All are ipywidgets that the keyboard reaches with Tab; arrows, Page Up and Page Down move a
slider, and its number can be typed, within the range that its help text names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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


def several(
    panel: HasTraits, trait: str, label: str, help_text: str, options: Sequence[str]
) -> w.Box:
    """Return a check box an option for a trait that holds the tuple of chosen ones, in order.

    What the trait holds besides the options gets a box after theirs.
    """
    boxes: dict[str, w.Checkbox] = {}
    caption, group = w.Label(f"{label}:"), row()

    def take(_change: Any) -> None:
        setattr(panel, trait, tuple(option for option, box in boxes.items() if box.value))

    def show(_change: Any = None) -> None:
        chosen = getattr(panel, trait)
        for option in dict.fromkeys([*options, *chosen]):
            if option not in boxes:
                boxes[option] = _check_box(option)
                boxes[option].observe(take, "value")
        with _unobserved(boxes.values(), take):
            for option, box in boxes.items():
                box.value = option in chosen
        group.children = (caption, *boxes.values())

    show()
    panel.observe(show, trait)
    group.help_text = f"{label}: {help_text}"
    return group


def bars(panel: HasTraits, trait: str, label: str, help_text: str) -> w.Box:
    """Return upright sliders for a trait that holds a tuple of numbers, one for each.

    All reach as high as the largest number that there was yet, and at least 1.
    """
    sliders: list[w.FloatSlider] = []
    caption, group = w.Label(f"{label}:"), row()

    def take(_change: Any) -> None:
        setattr(panel, trait, tuple(slider.value for slider in sliders))

    def show(_change: Any = None) -> None:
        values = getattr(panel, trait)
        if len(sliders) != len(values):
            count = len(values)
            sliders[:] = [_bar(f"{label}: bar {n} of {count}") for n in range(1, count + 1)]
            for slider in sliders:
                slider.observe(take, "value")
        with _unobserved(sliders, take):
            for slider, value in zip(sliders, values, strict=True):
                _make_room(slider, max(values))
                slider.value = value
        group.children = (caption, *sliders)

    show()
    panel.observe(show, trait)
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


def block_size(
    panel: HasTraits,
    traits: str | Sequence[str],
    is_used: Callable[[], bool],
    minimum: int = 64,
    maximum: int = 8192,
    continuous: bool = True,
) -> w.Widget:
    """Return the slider of the trait ``block_size``, in steps of ``minimum``.

    It is shown while ``is_used()``, which depends on ``traits``.
    """
    slider = integer(
        panel,
        "block_size",
        "Block size",
        "Tokens between two checkpoints of the policy block.",
        minimum,
        maximum,
        step=minimum,
        unit="tokens",
        continuous=continuous,
    )
    return visible_while(panel, traits, is_used, slider)


def visible_while(
    panel: HasTraits, traits: str | Sequence[str], holds: Callable[[], bool], control: w.Widget
) -> w.Widget:
    """Return ``control``, shown only while ``holds()``; asked when one of ``traits`` changes."""

    def update(_change: Any = None) -> None:
        control.layout.display = None if holds() else "none"

    update()
    panel.observe(update, traits)
    return control


def _check_box(option: str) -> w.Checkbox:
    return w.Checkbox(
        description=option,
        indent=False,
        layout=w.Layout(width="auto", margin="0 14px 0 0"),
    )


def _bar(tooltip: str) -> w.FloatSlider:
    return w.FloatSlider(
        min=0.0,
        max=1.0,
        step=0.05,
        orientation="vertical",
        readout=False,
        tooltip=tooltip,
        layout=w.Layout(height="110px", width="34px"),
    )


@contextmanager
def _unobserved(widgets: Iterable[w.Widget], take: Callable[[Any], None]) -> Iterator[None]:
    """Let values be shown that come from the panel, so that they do not go back to it."""
    for widget in widgets:
        widget.unobserve(take, "value")
    try:
        yield
    finally:
        for widget in widgets:
            widget.observe(take, "value")


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

    # One that begins without a range gets it from its panel, again and again.
    has_range = hasattr(widget, "max") and widget.min < widget.max
    show(getattr(panel, trait))
    widget.observe(take, "value")
    panel.observe(lambda change: show(change["new"]), trait)
    if has_range:
        widget.tooltip += _range_words(widget)
    widget.help_text = f"{widget.description}: {widget.tooltip}"
    return widget


def _range_words(widget: Any) -> str:
    """Return what a slider takes: a number typed beyond it becomes its nearest end, unsaid."""
    steps = f" in steps of {widget.step:,.10g}" if widget.step > 1 else ""
    return f" From {widget.min:,.10g} to {widget.max:,.10g}{steps}."


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
