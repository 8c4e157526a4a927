"""Figures of placement: where checkpoints stand, what that costs, and the frontier.

Pure functions of a :class:`widgets.comparison.Comparison`. Points a trace are limited, without
hiding anything: overlaps are shares of equal bins (the axis says how wide), the sawtooth is drawn
by its corners, and what has more teeth or marks than a screen has pixels is drawn as its highest
points or as a band, and the label says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

import sparselab as sl
from widgets import theme
from widgets.comparison import Comparison, Row
from widgets.figures import checkpoint_axis

#: A trace as plain data.
Trace = dict[str, Any]

HISTOGRAM_BINS = 128
HOVER_DEPTHS = 200
MOST_TEETH = 128
CURVE_POINTS = 192

# Lines, since markers would be an element of the page each, invisible or not.
_INVISIBLE = {"mode": "lines", "line": {"color": "rgba(0, 0, 0, 0)", "width": 1}}

_HIDDEN_AXIS = {"visible": False, "fixedrange": True, "range": [0, 1]}

#: Where the columns of the table stand: the first starts there, the others end there.
TABLE_COLUMNS = (0.0, 0.29, 0.455, 0.615, 0.76, 1.0)

#: A handle dragged further than this many rows from its own removes its checkpoint.
REMOVE_DISTANCE = 0.6

# The indices of the traces that a panel ties clicks to, in `comparison_spec`.
MARKS_TRACE = 2
ADD_TRACE = 3
# How plotly.js names the place of the second one in the page.
ADD_SUBPLOT = "x4y6"


def comparison_spec(comparison: Comparison) -> dict[str, Any]:
    """Return overlaps, strips and sawtooth over the token axis, with frontier and table beside.

    As plain data, which takes a tenth of the time: plotly's ``Figure`` checks every value that it
    is given, and a live panel draws too often for that.
    """
    return _spec(
        [
            *_depth_traces(comparison),
            _add_trace(comparison),
            _now_trace(comparison, "x2", "y4"),
            _table_trace(comparison, "x3", "y5"),
            *(
                trace
                for row in comparison.rows
                for trace in (
                    _sawtooth_trace(comparison, row),
                    _frontier_trace(comparison, row, "x2", "y4"),
                )
            ),
        ],
        height=720,
        **_depth_axes(comparison, [0.0, 0.57]),
        **_add_axes(comparison, [0.0, 0.57]),
        xaxis2={**_budget_axis(comparison), "domain": [0.66, 1.0], "anchor": "y4"},
        yaxis4={**_cost_axis(comparison, "E[r]"), "domain": [0.56, 1.0], "anchor": "x2"},
        xaxis3={**_HIDDEN_AXIS, "domain": [0.625, 1.0], "anchor": "y5"},
        yaxis5={**_HIDDEN_AXIS, "domain": [0.0, 0.43], "anchor": "x3"},
    )


def layout_figure(comparison: Comparison) -> go.Figure:
    """Return only the token axis: overlaps, one strip of checkpoints a policy, the sawtooth."""
    teeth = [_sawtooth_trace(comparison, row) for row in comparison.rows]
    axes = _depth_axes(comparison, [0.0, 1.0])
    return go.Figure(_spec([*_depth_traces(comparison), *teeth], height=620, **axes))


def frontier_figure(comparison: Comparison) -> go.Figure:
    """Return only ``E[r]`` against the number of checkpoints, for every policy."""
    lines = [_frontier_trace(comparison, row, "x", "y") for row in comparison.rows]
    return go.Figure(
        _spec(
            [*lines, *_legend_traces(comparison), _now_trace(comparison, "x", "y")],
            height=420,
            hovermode="closest",
            margin={"l": 76},
            xaxis=_budget_axis(comparison),
            yaxis=_cost_axis(comparison, "E[r], expected recompute"),
        )
    )


def _spec(traces: list[Trace], height: int, **layout: Any) -> dict[str, Any]:
    return {
        "data": traces,
        "layout": {"template": theme.TEMPLATE, "autosize": True, "height": height, **layout},
    }


def _scatter(**properties: Any) -> Trace:
    return {"type": "scatter", **properties}


# -- the token axis ----------------------------------------------------------------------------


def _depth_traces(comparison: Comparison) -> list[Trace]:
    return [
        _histogram_trace(comparison.distribution),
        _hover_trace(comparison),
        _marks_trace(comparison),
    ]


def _depth_axes(comparison: Comparison, domain: list[float]) -> dict[str, Any]:
    rows = comparison.rows
    labels = [_row_label(row) for row in rows]
    title = theme.lines(f"Overlaps: {comparison.source}")
    strips = _strips(comparison)
    return {
        "hovermode": "x",
        "hoversubplots": "axis",
        "legend": {
            "orientation": "h",
            "x": domain[0],
            "y": 1.02,
            "xanchor": "left",
            "yanchor": "bottom",
        },
        "margin": {
            "l": max(70, 14 + 7 * max(map(len, labels), default=0)),
            "r": 12,
            "t": 78 + 17 * title.count("<br>"),
            "b": 48,
        },
        "title": {"text": title, "y": 0.985, "yanchor": "top"},
        "xaxis": {
            "domain": domain,
            "anchor": "y3",
            "range": [0, comparison.length],
            "title": {"text": "overlap depth t (tokens)"},
            "tickformat": ",d",
            "showspikes": True,
            "spikemode": "across",
            "spikesnap": "cursor",
            "spikethickness": 1,
            "spikecolor": theme.GREY,
            "spikedash": "solid",
        },
        "yaxis": {
            "domain": [0.81, 1.0],
            "anchor": "x",
            "rangemode": "tozero",
            "title": {"text": f"requests (%)<br>per {_bin_words(comparison.distribution)}"},
            "ticksuffix": "",
        },
        "yaxis2": {
            "domain": strips,
            "anchor": "x",
            "range": [len(rows) - 0.4, -0.6],
            "tickvals": list(range(len(rows))),
            "ticktext": labels,
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis3": {
            "domain": [0.0, strips[0] - 0.04],
            "anchor": "x",
            **_cost_axis(comparison, "recompute r(t)"),
        },
    }


def _strips(comparison: Comparison) -> list[float]:
    """Return where the strips stand: they take what their rows need, the sawtooth the rest."""
    return [0.77 - min(0.32, 0.05 * (len(comparison.rows) + 1)), 0.77]


def _bins(distribution: sl.OverlapDistribution) -> int:
    return min(HISTOGRAM_BINS, distribution.length)


def _histogram_trace(distribution: sl.OverlapDistribution) -> Trace:
    """The share of requests in equal parts of ``0..N``, in per cent, as a filled step line.

    A depth on an edge counts in the part that begins there, N itself in the last one.
    """
    shares, edges = np.histogram(
        distribution.depths,
        _bins(distribution),
        range=(0, distribution.length),
        weights=100 * distribution.probabilities(),
    )
    # One more corner closes the last step.
    return _scatter(
        x=edges,
        y=np.append(shares, shares[-1]).astype(np.float32),
        yaxis="y",
        mode="lines",
        line={"shape": "hv", "width": 1, "color": theme.GREY},
        fill="tozeroy",
        fillcolor=theme.translucent(theme.GREY),
        hovertemplate=f"%{{y:.3g}} % of requests in the {_bin_words(distribution)} from here"
        "<extra></extra>",
        name="overlaps",
        showlegend=False,
    )


def _bin_words(distribution: sl.OverlapDistribution) -> str:
    """Return how wide a part of the histogram is: ``1 token``, ``256 tokens``, ``78.1 tokens``."""
    width = distribution.length / _bins(distribution)
    number = f"{width:,.0f}" if abs(width - round(width)) < 0.05 else f"{width:,.1f}"
    return f"{number} token{'s' * (number != '1')}"


def _hover_trace(comparison: Comparison) -> Trace:
    """Invisible points at evenly spread depths that say what each policy does there."""
    count = min(HOVER_DEPTHS, comparison.length) + 1
    depths = np.linspace(0, comparison.length, count).round().astype(np.int64)
    columns: list[NDArray[Any]] = []
    lines: list[str] = []
    number = ",d" if comparison.unit == "tokens" else ".3s"
    for row in comparison.rows:
        resume = row.schedule.resume_point(depths)
        redone = comparison.cost[depths] - comparison.cost[resume]
        lines.append(
            f"{row.name}: resumes at %{{customdata[{len(columns)}]:,d}}, "
            f"recomputes %{{customdata[{len(columns) + 1}]:{number}}}"
        )
        columns += [resume, redone]
    return _scatter(
        x=depths.astype(np.int32),
        y=np.zeros(count, dtype=np.int8),
        yaxis="y3",
        **_INVISIBLE,
        customdata=np.stack(columns, axis=1) if columns else None,
        hovertemplate="<b>depth %{x:,d}</b><br>" + "<br>".join(lines) + "<extra></extra>",
        hoverlabel={"bgcolor": "#444444", "font": {"color": "#ffffff"}},
        name="depth",
        showlegend=False,
    )


def _row_label(row: Row) -> str:
    count = len(row.schedule)
    if count > MOST_TEETH:
        return f"{row.name} ({count:,}: band)"
    return row.name


def _marks_trace(comparison: Comparison) -> Trace:
    """Every checkpoint as its policy's marker, one row a policy."""
    xs: list[NDArray[Any]] = []
    ys: list[NDArray[Any]] = []
    colours: list[str] = []
    symbols: list[str] = []
    for index, row in enumerate(comparison.rows):
        positions = row.schedule.positions
        if positions.size > MOST_TEETH:
            # More marks than can be told apart: evenly spread ones that touch, a band.
            positions = positions[:: -(-positions.size // MOST_TEETH)]
        style = theme.policy_style(row.name)
        xs.append(positions)
        ys.append(np.full(positions.size, index))
        colours += [style.colour] * positions.size
        symbols += [style.marker] * positions.size
    return _scatter(
        x=np.concatenate(xs).astype(np.int32) if xs else [],
        y=np.concatenate(ys).astype(np.int16) if ys else [],
        yaxis="y2",
        mode="markers",
        marker={"color": colours, "symbol": symbols, "size": 9},
        hoverinfo="skip",
        name="checkpoints",
        showlegend=False,
        cliponaxis=False,
    )


def _add_trace(comparison: Comparison) -> Trace:
    """Invisible points along the reader's own row, to be clicked to add a checkpoint there.

    They have axes of their own, which cover just that row. On the other plots' axis the pointer
    would find them from everywhere, and any click would add a checkpoint.
    """
    count = min(HOVER_DEPTHS, comparison.length)
    depths = np.linspace(0, comparison.length, count + 1).round().astype(np.int32)[1:]
    return _scatter(
        x=depths,
        y=np.zeros(depths.size, dtype=np.int8),
        xaxis="x4",
        yaxis="y6",
        **_INVISIBLE,
        hovertemplate="click: a checkpoint at %{x:,d}<extra></extra>",
        name="add",
        showlegend=False,
        visible=_own_index(comparison) is not None,
    )


def _add_axes(comparison: Comparison, domain: list[float]) -> dict[str, Any]:
    """Return the axes of the reader's own row: the depths again, and the height of the row."""
    low, high = _strips(comparison)
    row = (high - low) / (len(comparison.rows) + 0.2)
    top = high - row * ((_own_index(comparison) or 0) + 0.1)
    return {
        "xaxis4": {
            "domain": domain,
            "anchor": "y6",
            "matches": "x",
            "range": [0, comparison.length],
            "visible": False,
        },
        "yaxis6": {**_HIDDEN_AXIS, "domain": [top - row, top], "anchor": "x4"},
    }


def _own_index(comparison: Comparison) -> int | None:
    """Return which row is the reader's own, or ``None`` where it is not shown."""
    names = [row.name for row in comparison.rows]
    return names.index(theme.OWN) if theme.OWN in names else None


def handles(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a ring around each checkpoint of the reader's own, which can be dragged in a panel.

    A path of a size in pixels has no corners to pull, so that a drag can only move it: its anchor
    is the depth and the row.
    """
    index = _own_index(comparison)
    if index is None:
        return []
    return [
        {
            "type": "path",
            "path": "M -8,0 L 0,-8 L 8,0 L 0,8 Z",
            "xref": "x",
            "yref": "y2",
            "xsizemode": "pixel",
            "ysizemode": "pixel",
            "xanchor": int(position),
            "yanchor": index,
            "line": {"color": theme.VERMILLION, "width": 1.5},
            "fillcolor": theme.translucent(theme.VERMILLION, 0.12),
        }
        for position in comparison.rows[index].schedule.positions
    ]


def _sawtooth_trace(comparison: Comparison, row: Row) -> Trace:
    depths, redone, note = sawtooth(comparison, row.schedule)
    style = theme.policy_style(row.name)
    return _scatter(
        x=depths.astype(np.int32),
        y=redone.astype(np.float64 if redone.dtype.kind == "f" else np.int32),
        yaxis="y3",
        mode="lines",
        line=style.line(),
        hoverinfo="skip",
        name=row.name + note,
        legendgroup=row.name,
    )


def sawtooth(
    comparison: Comparison, schedule: sl.Schedule
) -> tuple[NDArray[np.int64], NDArray[Any], str]:
    """Return depths, ``r`` there, and a note if that is not the whole line.

    Depths are the corners: each checkpoint and the depth before it. Where the cost is not
    linear, evenly spread depths between them show the curve. A line of more teeth than the
    screen can show is given by the highest point of each of many equal spans.
    """
    length = comparison.length
    if len(schedule) > MOST_TEETH:
        every = np.arange(length + 1)
        redone = comparison.cost - comparison.cost[schedule.resume_point(every)]
        span = -(-(length + 1) // MOST_TEETH)
        starts = np.arange(0, length + 1, span)
        highest = np.maximum.reduceat(redone, starts)
        middle = np.minimum(starts + span // 2, length)
        return middle, highest, f" (highest in each {span:,} tokens)"
    positions = schedule.positions
    depths = np.unique(np.concatenate(([0, length], positions, positions - 1)))
    if comparison.unit != "tokens":
        between = np.linspace(0, length, CURVE_POINTS).round().astype(np.int64)
        depths = np.union1d(depths, between)
    return depths, comparison.cost[depths] - comparison.cost[schedule.resume_point(depths)], ""


def _cost_axis(comparison: Comparison, what: str) -> dict[str, Any]:
    tokens = comparison.unit == "tokens"
    return {
        "title": {"text": f"{what} ({comparison.unit})"},
        "rangemode": "tozero",
        "tickformat": ",~r" if tokens else "~s",
    }


# -- the frontier and the table ----------------------------------------------------------------


def _budget_axis(comparison: Comparison) -> dict[str, Any]:
    largest = max(
        [len(row.schedule) for row in comparison.rows]
        + [int(checkpoints.max()) for checkpoints, _ in comparison.curves.values()]
        + [comparison.budget, 1]
    )
    return checkpoint_axis.axis("checkpoints M (log scale)", largest)


def _frontier_trace(comparison: Comparison, row: Row, xaxis: str, yaxis: str) -> Trace:
    """A line over budgets where the policy takes one, else nothing but its place in the legend."""
    checkpoints, expected = comparison.curves.get(
        row.name, (np.array([len(row.schedule)], dtype=np.int32), np.array([row.expected]))
    )
    return _scatter(
        x=checkpoint_axis.position(checkpoints),
        y=expected,
        xaxis=xaxis,
        yaxis=yaxis,
        mode="lines",
        line=theme.policy_style(row.name).line(),
        hoverinfo="skip",
        name=row.name,
        legendgroup=row.name,
        showlegend=False,
    )


def _now_trace(comparison: Comparison, xaxis: str, yaxis: str) -> Trace:
    """Where each policy stands with the present settings."""
    styles = [theme.policy_style(row.name) for row in comparison.rows]
    counts = [len(row.schedule) for row in comparison.rows]
    return _scatter(
        x=checkpoint_axis.position(counts),
        y=np.array([row.expected for row in comparison.rows], dtype=np.float64),
        xaxis=xaxis,
        yaxis=yaxis,
        mode="markers",
        marker={
            "color": [style.colour for style in styles],
            "symbol": [style.marker for style in styles],
            "size": 10,
        },
        text=[
            f"{row.name}: {count:,} checkpoints, E[r] {_amount(row.expected, comparison.unit)}"
            for row, count in zip(comparison.rows, counts, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
        name="now",
        showlegend=False,
    )


def _legend_traces(comparison: Comparison) -> list[Trace]:
    """Nothing but the legend: each policy as it is drawn, a marker, on a line where it has one."""
    return [
        _scatter(
            x=[None],
            y=[None],
            mode="lines+markers" if row.name in comparison.curves else "markers",
            line=theme.policy_style(row.name).line(),
            marker={
                "color": theme.policy_style(row.name).colour,
                "symbol": theme.policy_style(row.name).marker,
                "size": 10,
            },
            name=row.name,
            legendgroup=row.name,
        )
        for row in comparison.rows
    ]


def _table_trace(comparison: Comparison, xaxis: str, yaxis: str) -> Trace:
    """The table as one text a column, its rows the lines of the text.

    plotly's own table lays out every cell by itself, which takes a third of a whole redraw.
    """
    rows, unit = comparison.rows, comparison.unit
    columns = {
        ("policy", ""): [row.name for row in rows],
        ("M", ""): [f"{len(row.schedule):,}" for row in rows],
        ("E[r]", unit): [_amount(row.expected, unit) for row in rows],
        ("worst", unit): [_amount(row.worst, unit) for row in rows],
        ("times", "less"): [_factor(row.reduction) for row in rows],
        ("% above", "best of M"): [_excess(row.excess) for row in rows],
    }
    return _scatter(
        x=TABLE_COLUMNS,
        y=[1.0] * len(columns),
        xaxis=xaxis,
        yaxis=yaxis,
        mode="text",
        text=[
            "<br>".join([f"<b>{first}</b>", f"<b>{second}</b>", *cells])
            for (first, second), cells in columns.items()
        ],
        textposition=["bottom right"] + ["bottom left"] * (len(columns) - 1),
        hoverinfo="skip",
        name="table",
        showlegend=False,
        cliponaxis=False,
    )


def _amount(value: float, unit: str) -> str:
    """Return a cost with three digits or so: ``1,234`` tokens, ``12.3T`` FLOPs."""
    if unit == "tokens":
        return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.2f}"
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:,.3g}{letter}"
    return f"{value:,.3g}"


def _factor(reduction: float) -> str:
    if reduction == float("inf"):
        return "∞"
    return f"{reduction:,.2f}" if reduction < 100 else f"{reduction:,.0f}"


def _excess(excess: float | None) -> str:
    if excess is None:
        return "–"
    if excess == float("inf"):
        return "∞"
    return f"{100 * excess:,.1f}" if excess < 1 else f"{100 * excess:,.0f}"
