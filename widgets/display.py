"""Displaying a figure where there is no live panel: in headless runs and exported pages."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from sparselab.export import PLOTLY_MIME
from widgets.theme import FIGURE_CONFIG


def mime_bundle(figure: go.Figure) -> dict[str, Any]:
    """Return ``figure`` as plotly JSON, as HTML that leaves plotly.js to the page, and as text.

    plotly's own renderers either vanish on export or put megabytes of JavaScript into each
    notebook; with this bundle a notebook stays small and a page carries plotly.js once.
    """
    title = figure.layout.title.text or "Figure"
    return {
        PLOTLY_MIME: json.loads(figure.to_json()) | {"config": FIGURE_CONFIG},
        "text/html": figure.to_html(
            full_html=False,
            include_plotlyjs=False,
            include_mathjax=False,
            config=FIGURE_CONFIG,
        ),
        "text/plain": f"{title} ({len(figure.data)} traces)",
    }


def show(figure: go.Figure) -> None:
    """Display ``figure`` as the output of a notebook cell, without any widget."""
    from IPython.display import display

    display(mime_bundle(figure), raw=True)
