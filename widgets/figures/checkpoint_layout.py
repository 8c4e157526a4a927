"""Figure of one request of a simulation: the entry that it matched, and what it took from it.

Three rows. On top the retained entry over its tokens, with **bytes as areas to one scale**: the
attention KV is a low band over every token, each checkpoint a bar. Below it the request over the
same tokens: what was skipped, what had to be replayed although its KV was there, what was new. At
the bottom every request of the simulation, with a ring on the one shown. Where checkpoints stand
close their bars overlap: each area is right, and what they cover together is less than their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.architecture import HybridArchitecture
from widgets import theme
from widgets.figures.memory import KV_COLOUR, STATE_COLOUR, bytes_text

SKIPPED, REPLAYED, NEW = theme.GREEN, theme.ORANGE, theme.GREY
LANE, KEPT_LANE = 1, 0

# A bar for a checkpoint is at most this many times as high as the KV band, within these widths.
BAR_HEIGHT = 12.0
BAR_WIDTHS = (0.012, 0.05)  # shares of the axis


@dataclass(frozen=True)
class RequestView:
    """What is shown: a request, the entry that it matched and the simulation around it.

    ``number`` counts from 0. ``matched`` is the number of the request whose entry it matched, or
    ``None``; ``entry_length`` (0 without one), ``entry_positions`` and ``entry_keeps_kv`` are that
    entry's. ``overlap``, ``resume_point`` and ``length`` are the request's, in tokens; ``stored``
    are the checkpoints of the entry that it became. ``overlap_shares`` and ``saved_shares`` are of
    every request's prompt, and ``words`` say what was simulated.
    """

    number: int
    matched: int | None
    entry_length: int
    entry_positions: NDArray[np.int64]
    entry_keeps_kv: bool
    length: int
    overlap: int
    resume_point: int
    stored: NDArray[np.int64]
    overlap_shares: NDArray[np.float64]
    saved_shares: NDArray[np.float64]
    architecture: HybridArchitecture
    words: str


def checkpoint_layout_spec(view: RequestView) -> dict[str, Any]:
    """Return the figure as plain data; its traces are always the same ones in the same order."""
    tokens = max(view.entry_length, view.length)
    width, title = _bar_width(view, tokens), _title(view)
    return {
        "data": [
            _band_trace(view),
            _bars_trace(view, width),
            _tops_trace(view, width),
            *_request_traces(view),
            _stored_trace(view),
            *_timeline_traces(view),
        ],
        "layout": {
            "template": theme.TEMPLATE,
            "autosize": True,
            "height": 620,
            "title": {"text": title, "y": 0.97, "yanchor": "top", "yref": "container"},
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.01,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "margin": {"l": 92, "r": 16, "t": 112 + 17 * title.count("<br>"), "b": 44},
            "barmode": "stack",
            "hovermode": "closest",
            "shapes": _lines(view),
            "annotations": _notes(view),
            **_axes(view, tokens, width),
        },
    }


def _axes(view: RequestView, tokens: int, width: float) -> dict[str, Any]:
    """Return the axes of the three rows: bytes and request over tokens, and all requests."""
    return {
        "xaxis": {
            "domain": [0, 1],
            "anchor": "y2",
            "range": [0, 1.02 * tokens],
            "tickformat": ",d",
            "title": {"text": "position (tokens)"},
        },
        "yaxis": {
            "domain": [0.68, 1.0],
            "anchor": "x",
            "range": [0, 1.1 * max(1.0, view.architecture.checkpoint_kv_tokens / width)],
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "title": {"text": "bytes as areas"},
        },
        "yaxis2": {
            "domain": [0.36, 0.6],
            "anchor": "x",
            "range": [-0.6, 1.6],
            "tickvals": [LANE, KEPT_LANE],
            "ticktext": ["this request", "it leaves"],
            "showgrid": False,
            "zeroline": False,
        },
        "xaxis2": {
            "domain": [0, 1],
            "anchor": "y3",
            "range": [-0.5, view.saved_shares.size - 0.5],
            "title": {"text": "request of the simulation"},
        },
        "yaxis3": {
            "domain": [0.0, 0.22],
            "anchor": "x2",
            "range": [0, 105],
            "title": {"text": "% of prompt"},
        },
    }


def _bar_width(view: RequestView, tokens: int) -> float:
    """Return how many tokens wide a checkpoint's bar is, so that its area is its bytes."""
    narrow, wide = (share * tokens for share in BAR_WIDTHS)
    return float(np.clip(view.architecture.checkpoint_kv_tokens / BAR_HEIGHT, narrow, wide))


def _title(view: RequestView) -> str:
    if view.matched is None:
        words = f"shares no prefix with a retained entry: all {view.length:,} tokens computed"
    else:
        words = (
            f"shares {view.overlap:,} of its {view.length:,} tokens with the entry of request "
            f"{view.matched}: {view.resume_point:,} skipped, "
            f"{view.overlap - view.resume_point:,} replayed, {view.length - view.overlap:,} new"
        )
    request = theme.lines(f"Request {view.number} {words}")
    return f"{theme.lines(f'Simulated: {view.words}')}<br>{request}"


def _band_trace(view: RequestView) -> dict[str, Any]:
    length = view.entry_length if view.entry_keeps_kv else 0
    weight = bytes_text(length * view.architecture.kv_bytes_per_token)
    return {
        "type": "scatter",
        "name": f"attention KV: {bytes_text(view.architecture.kv_bytes_per_token)} a token",
        "x": [0, length, length, 0, 0],
        "y": [0, 0, 1, 1, 0],
        "mode": "lines",
        "line": {"width": 0, "color": KV_COLOUR},
        "fill": "toself",
        "fillcolor": KV_COLOUR,
        "hoveron": "fills",
        "text": f"KV of {length:,} tokens: {weight}",
        "hoverinfo": "text",
    }


def _bars_trace(view: RequestView, width: float) -> dict[str, Any]:
    height = view.architecture.checkpoint_kv_tokens / width
    # Each rectangle ends with a gap, so that they are filled one by one.
    x = [
        value
        for position in view.entry_positions.tolist()
        for value in (position - width, position, position, position - width, None)
    ]
    return {
        "type": "scatter",
        "name": f"checkpoint: {bytes_text(view.architecture.checkpoint_bytes)} each",
        "x": x,
        "y": [0, 0, height, height, None] * view.entry_positions.size,
        "mode": "lines",
        "line": {"width": 1, "color": STATE_COLOUR},
        "fill": "toself",
        "fillcolor": theme.translucent(STATE_COLOUR, 0.7),
        "hoverinfo": "skip",
    }


def _tops_trace(view: RequestView, width: float) -> dict[str, Any]:
    """What the pointer finds: the right edge of each bar is the checkpoint's position."""
    height = view.architecture.checkpoint_kv_tokens / width
    return {
        "type": "scatter",
        "x": view.entry_positions,
        "y": np.full(view.entry_positions.size, height),
        "mode": "markers",
        "marker": {"color": STATE_COLOUR, "size": 7, "symbol": "triangle-down"},
        "hovertemplate": "checkpoint after token %{x:,}<extra></extra>",
        "showlegend": False,
    }


def _request_traces(view: RequestView) -> list[dict[str, Any]]:
    parts = (
        ("skipped", view.resume_point, SKIPPED, ""),
        (
            "replayed: shared, but its state is missing",
            view.overlap - view.resume_point,
            REPLAYED,
            "/",
        ),
        ("new tokens", view.length - view.overlap, NEW, "."),
    )
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "x": [tokens],
            "y": [LANE],
            "yaxis": "y2",
            "width": 0.8,
            "marker": {"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
            "hovertemplate": f"{tokens:,} tokens {name}<extra></extra>",
        }
        for name, tokens, colour, pattern in parts
    ]


def _stored_trace(view: RequestView) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": view.stored,
        "y": np.full(view.stored.size, KEPT_LANE),
        "yaxis": "y2",
        "mode": "markers",
        "marker": {
            "size": 12,
            "symbol": "line-ns",
            "line": {"width": 3, "color": STATE_COLOUR},
        },
        "hovertemplate": "its own entry has a checkpoint after token %{x:,}<extra></extra>",
        "showlegend": False,
    }


def _timeline_traces(view: RequestView) -> list[dict[str, Any]]:
    numbers = np.arange(view.saved_shares.size)
    lines = (
        ("overlap", view.overlap_shares, REPLAYED, 0.35),
        ("skipped", view.saved_shares, SKIPPED, 0.6),
    )
    return [
        *(
            {
                "type": "scatter",
                "x": numbers,
                "y": 100 * shares,
                "xaxis": "x2",
                "yaxis": "y3",
                "mode": "lines",
                "line": {"shape": "hvh", "width": 1, "color": colour},
                "fill": "tozeroy",
                "fillcolor": theme.translucent(colour, alpha),
                "hovertemplate": f"request %{{x}}: %{{y:.0f}} % {name}<extra></extra>",
                "showlegend": False,
            }
            for name, shares, colour, alpha in lines
        ),
        {
            "type": "scatter",
            "x": [view.number],
            "y": [100 * view.saved_shares[view.number]],
            "xaxis": "x2",
            "yaxis": "y3",
            "mode": "markers",
            "marker": {
                "color": theme.VERMILLION,
                "size": 12,
                "symbol": "circle-open",
                "line": {"width": 3},
            },
            "hovertemplate": "the request shown<extra></extra>",
            "showlegend": False,
        },
    ]


def _lines(view: RequestView) -> list[dict[str, Any]]:
    if view.matched is None:
        return []
    marks = ((view.resume_point, SKIPPED, "solid"), (view.overlap, REPLAYED, "dot"))
    return [
        {
            "type": "line",
            "x0": x,
            "x1": x,
            "y0": 0.36,
            "y1": 1.0,
            "yref": "paper",
            "line": {"color": colour, "dash": dash, "width": 2},
        }
        for x, colour, dash in marks
    ]


def _notes(view: RequestView) -> list[dict[str, Any]]:
    if view.matched is None:
        return [_note(0.5, "no retained entry matches", "center", xref="paper")]
    tokens = max(view.length, view.entry_length)
    if view.overlap - view.resume_point < 0.12 * tokens:
        return [_beside(view.overlap, "resume point, overlap", tokens)]
    resume = _note(view.resume_point, "resume point", "left")
    return [resume, _beside(view.overlap, "overlap", tokens)]


def _beside(x: int, text: str, tokens: int) -> dict[str, Any]:
    """Write to that side of ``x`` where there is room."""
    return _note(x, text, "right" if x > 0.5 * tokens else "left")


def _note(x: float, text: str, anchor: str, xref: str = "x") -> dict[str, Any]:
    return {
        "x": x,
        "xref": xref,
        "y": 0.665,
        "yref": "paper",
        "text": text,
        "showarrow": False,
        "xanchor": anchor,
        "yanchor": "top",
        "xshift": {"left": 4, "center": 0, "right": -4}[anchor],
    }
