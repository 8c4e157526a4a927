"""How every figure of the lab looks: one colour, dash and marker a policy, on any background.

Hues are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which readers with any of the
usual colour deficiencies can tell apart; dashes and markers repeat the distinction for print.
Figures have no background of their own, and text and grid are greys of the same contrast (about
4.3 to 1) on white and on JupyterLab's dark page.
"""

from __future__ import annotations

import textwrap
import zlib
from dataclasses import dataclass

import plotly.graph_objects as go

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
VERMILLION = "#D55E00"
GREY = "#7f7f7f"

TEXT = "#797979"
GRID = "rgba(127, 127, 127, 0.22)"
AXIS_LINE = "rgba(127, 127, 127, 0.55)"
FILL_ALPHA = 0.28
#: Characters of a title that fit into one line of the narrowest page that is looked after.
LINE_CHARACTERS = 135

HUES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "star", "cross", "x")

# Where a page offers its own text colour (JupyterLab, Voila, exported pages), text takes it and
# has full contrast; anywhere else the grey above stands. On a narrow page figures scroll: any
# narrower, their legends would lie over their titles.
CSS = """
.js-plotly-plot .main-svg text:not(.hoverlayer *) {
  fill: var(--jp-content-font-color1, #797979) !important;
}
.sparselab-panel .js-plotly-plot { min-width: 760px; }
.sparselab-computing { position: relative; }
.sparselab-computing .js-plotly-plot { opacity: 0.4; }
.sparselab-computing::after {
  content: "computing ...";
  position: absolute;
  top: 0;
  right: 12px;
}
"""

#: The class of a panel's view whose next picture takes a while.
COMPUTING = "sparselab-computing"


@dataclass(frozen=True)
class Style:
    """How one policy is drawn: a CSS colour, a plotly dash and a plotly marker symbol."""

    colour: str
    dash: str
    marker: str
    width: float = 2.0

    def line(self) -> dict[str, object]:
        """Return the ``line`` of a plotly trace."""
        return {"color": self.colour, "dash": self.dash, "width": self.width}


OWN = "your own"

POLICY_STYLES = {
    "no_cache": Style(GREY, "dot", "circle-open"),
    "kv_only": Style(GREY, "longdash", "square-open"),
    "balanced": Style(ORANGE, "dash", "square"),
    "block": Style(GREEN, "dot", "diamond"),
    "sqrt": Style(PURPLE, "dashdot", "triangle-up"),
    "log": Style(SKY, "longdash", "triangle-down"),
    "last": Style(PURPLE, "longdashdot", "star"),
    "branch": Style(SKY, "longdashdot", "cross"),
    "optimal": Style(BLUE, "solid", "circle", width=3.0),
    OWN: Style(VERMILLION, "solid", "x"),
}


def policy_style(name: str) -> Style:
    """Return the style of a policy, always the same for the same name.

    A policy that somebody registered gets one by its name: a hue, dash and marker chosen by a
    checksum, so that it looks alike in every figure and session.
    """
    known = POLICY_STYLES.get(name)
    if known is not None:
        return known
    number = zlib.crc32(name.encode())
    hue, rest = number % len(HUES), number // len(HUES)
    dash, rest = rest % len(DASHES), rest // len(DASHES)
    return Style(HUES[hue], DASHES[dash], MARKERS[rest % len(MARKERS)])


def translucent(colour: str, alpha: float = FILL_ALPHA) -> str:
    """Return a ``#rrggbb`` colour as ``rgba`` with the given opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


def lines(text: str) -> str:
    """Return a title in as many lines as it takes beside JupyterLab's file browser at 1,366 px."""
    return "<br>".join(textwrap.wrap(text, LINE_CHARACTERS))


def _axis() -> dict[str, object]:
    return {
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": AXIS_LINE,
        "showline": True,
        "ticks": "outside",
        "tickcolor": AXIS_LINE,
        "title": {"standoff": 6},
    }


#: How every figure is shown. No button sends what it shows to a server.
FIGURE_CONFIG = {"responsive": True, "displaylogo": False, "showSendToCloud": False}

#: The template of every figure, as plain data: ``layout.template``.
TEMPLATE = {
    "layout": {
        "colorway": list(HUES),
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"color": TEXT, "size": 12, "family": "system-ui, sans-serif"},
        "title": {"font": {"size": 13}, "x": 0.01, "xanchor": "left"},
        "legend": {"bgcolor": "rgba(0, 0, 0, 0)"},
        "hoverlabel": {"align": "left", "font": {"size": 12}},
        "margin": {"l": 60, "r": 20, "t": 40, "b": 48},
        "xaxis": _axis(),
        "yaxis": _axis(),
    }
}


def apply(figure: go.Figure, height: int, title: str | None = None) -> go.Figure:
    """Give ``figure`` the template, a height in pixels and the width of its page; return it."""
    # Assigned, since an update would be merged into plotly's own template.
    figure.layout.template = TEMPLATE
    figure.update_layout(height=height, autosize=True)
    if title is not None:
        figure.update_layout(title_text=title)
    return figure
