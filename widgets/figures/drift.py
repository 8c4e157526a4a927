"""Figures of drift: overlaps and plans over time, regret beside its bounds, what gamma does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from widgets import theme
from widgets.drift_study import DriftStudy

#: A trace as plain data.
Trace = dict[str, Any]

POINTS = 150
#: Regret below this many tokens is drawn at it, since the axis is logarithmic.
FLOOR = 1.0

RULE_STYLES = {
    "frozen": theme.Style(theme.ORANGE, "dash", "square"),
    "periodic": theme.Style(theme.GREEN, "dot", "diamond"),
    "decayed": theme.Style(theme.BLUE, "solid", "circle", width=3.0),
}
LOSS_BOUND = theme.Style(theme.PURPLE, "dashdot", "triangle-up")
THEOREM_4 = theme.Style(theme.VERMILLION, "longdash", "x")


def drift_spec(study: DriftStudy) -> dict[str, Any]:
    """Return overlaps with the plan's checkpoints over regret and bounds, and gamma beside.

    As plain data, which is quicker than plotly's ``Figure``.
    """
    return {
        "data": [
            *_time_traces(study),
            *_regret_traces(study, "x", "y2"),
            *_gamma_traces(study, "x2", "y3"),
        ],
        "layout": {
            "template": theme.TEMPLATE,
            "autosize": True,
            "height": 640,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "margin": {"l": 76, "r": 12, "t": 104, "b": 48},
            "title": {
                "text": f"Synthetic overlaps drifting by TV {study.drift.step:.2g} a request; "
                f"{study.budget} checkpoints, N = {study.drift.length:,} tokens",
                "y": 0.985,
                "yanchor": "top",
            },
            "xaxis": {"title": {"text": "request"}, "domain": [0, 0.6], "anchor": "y2"},
            "yaxis": {
                "title": {"text": "token position"},
                "domain": [0.6, 1],
                "range": [0, study.drift.length],
            },
            "yaxis2": _cost_axis("regret (tokens, log, from 1)", [0, 0.53], "x"),
            "xaxis2": {
                "title": {"text": "memory 1 / (1 − γ) (requests, log)"},
                "type": "log",
                "dtick": 1,
                "domain": [0.69, 1],
                "anchor": "y3",
            },
            "yaxis3": _cost_axis("mean regret, second half (tokens, log, from 1)", [0, 1], "x2"),
            "shapes": [_present_gamma(study)],
        },
    }


def gamma_figure(study: DriftStudy) -> go.Figure:
    """Return only regret and Theorem 4 against the memory of the decayed histogram."""
    figure = go.Figure([{**trace, "showlegend": True} for trace in _gamma_traces(study, "x", "y")])
    figure.update_xaxes(title_text="memory 1 / (1 − γ) (requests, log)", type="log", dtick=1)
    figure.update_yaxes(_cost_axis("mean regret, second half (tokens, log, from 1)", [0, 1], "x"))
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}, margin={"l": 84}
    )
    return theme.apply(figure, height=420)


def sampling_figure(table: pd.DataFrame) -> go.Figure:
    """Return the regret of plans made on samples beside its two bounds, one plot a distribution.

    ``table`` has one row a distribution and number of samples: ``distribution``, ``samples``,
    ``regret`` (mean, tokens), ``tv_bound`` and ``ks_bound`` (tokens, in expectation).
    """
    from plotly.subplots import make_subplots

    names = table["distribution"].unique().tolist()
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True)
    lines = [
        ("regret, measured", "regret", RULE_STYLES["decayed"]),
        ("bound through TV", "tv_bound", THEOREM_4),
        ("bound through KS", "ks_bound", LOSS_BOUND),
    ]
    for column, name in enumerate(names, start=1):
        rows = table[table["distribution"] == name]
        for label, quantity, style in lines:
            figure.add_trace(
                go.Scatter(
                    x=rows["samples"],
                    y=rows[quantity].clip(lower=FLOOR),
                    customdata=rows[quantity],
                    name=label,
                    showlegend=column == 1,
                    mode="lines+markers",
                    line=style.line(),
                    marker={"symbol": style.marker, "size": 7, "color": style.colour},
                    hovertemplate=f"{label}, %{{x:,}} samples: %{{customdata:,.1f}} tokens"
                    "<extra></extra>",
                ),
                row=1,
                col=column,
            )
    figure.update_xaxes(title_text="samples (log scale)", type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1, exponentformat="none", separatethousands=True)
    figure.update_yaxes(title_text="tokens a request (log, from 1)", col=1)
    figure.update_layout(legend={"orientation": "h", "y": -0.2}, margin={"l": 84, "t": 56})
    figure.update_annotations(font_size=12)
    return theme.apply(figure, height=420)


def _cost_axis(title: str, domain: list[float], anchor: str) -> dict[str, Any]:
    return {
        "title": {"text": title},
        "type": "log",
        "dtick": 1,
        "exponentformat": "none",
        "separatethousands": True,
        "domain": domain,
        "anchor": anchor,
    }


def _time_traces(study: DriftStudy) -> list[Trace]:
    requests = np.arange(study.overlaps.size)
    shown = slice(None, None, max(1, study.overlaps.size // 600))
    x: list[float | None] = []
    y: list[float | None] = []
    served: list[str | None] = []
    ends = [start for start, _ in study.checkpoints[1:]] + [study.overlaps.size]
    for slot in range(study.budget):
        for (start, positions), end in zip(study.checkpoints, ends, strict=True):
            if slot < len(positions):
                x += [start, end]
                y += [positions[slot]] * 2
                served += [f"requests {start:,} to {end - 1:,}"] * 2
        x.append(None)
        y.append(None)
        served.append(None)
    return [
        {
            "type": "scattergl" if study.overlaps.size > 5_000 else "scatter",
            "mode": "markers",
            "name": "overlap",
            "x": requests[shown],
            "y": study.overlaps[shown],
            "marker": {"size": 4, "color": theme.GREY, "opacity": 0.45},
            "hovertemplate": "request %{x:,}: overlap %{y:,} tokens<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "checkpoint, decayed",
            "x": x,
            "y": y,
            "customdata": served,
            "line": {"color": theme.BLUE, "width": 2, "shape": "hv"},
            "hovertemplate": "%{customdata}: checkpoint at %{y:,}<extra></extra>",
        },
    ]


def _regret_traces(study: DriftStudy, xaxis: str, yaxis: str) -> list[Trace]:
    block = max(1, study.drift.requests // POINTS)
    traces = []
    for rule, style in RULE_STYLES.items():
        rows = study.regret[study.regret["rule"] == rule]
        traces.append(_line(rows, "regret", block, rule, style, xaxis, yaxis))
    decayed = study.regret[study.regret["rule"] == "decayed"]
    return [
        *traces,
        _line(decayed, "loss_bound", block, "loss bound (TV or KS)", LOSS_BOUND, xaxis, yaxis),
        _line(decayed, "theorem_4", block, "Theorem 4", THEOREM_4, xaxis, yaxis),
    ]


def _line(
    rows: pd.DataFrame, column: str, block: int, name: str, style: theme.Style, x: str, y: str
) -> Trace:
    """Return means over blocks of requests."""
    means = rows.groupby(rows["request"] // block)[["request", column]].mean().dropna()
    shown = means[column].clip(lower=FLOOR) if column == "regret" else means[column]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": means["request"].to_numpy(),
        "y": shown.to_numpy(),
        "customdata": means[column].to_numpy(),
        "line": style.line(),
        "xaxis": x,
        "yaxis": y,
        "hovertemplate": f"{name}, request %{{x:,.0f}}: %{{customdata:,.1f}} tokens<extra></extra>",
    }


def _gamma_traces(study: DriftStudy, xaxis: str, yaxis: str) -> list[Trace]:
    table, full = study.gammas, 2 * study.drift.length
    memory = 1 / (1 - table["gamma"].to_numpy())
    parts = [
        ("decayed, by γ", table["regret"], RULE_STYLES["decayed"]),
        ("Theorem 4, by γ", table["theorem_4"], THEOREM_4),
        ("bias", full * table["bias"], _part("dot", "triangle-up")),
        ("variance", full * table["variance"], _part("dash", "triangle-down")),
    ]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": memory,
            # The measured regret may be 0, which a log axis does not have.
            "y": (values.clip(lower=FLOOR) if name == "decayed, by γ" else values).to_numpy(),
            "customdata": np.column_stack([table["gamma"], values]),
            "line": style.line(),
            "marker": {"symbol": style.marker, "size": 8, "color": style.colour},
            "xaxis": xaxis,
            "yaxis": yaxis,
            "showlegend": not name.endswith("by γ"),
            "hovertemplate": f"{name}, γ = %{{customdata[0]}}: %{{customdata[1]:,.1f}} tokens"
            "<extra></extra>",
        }
        for name, values, style in parts
    ]


def _part(dash: str, marker: str) -> theme.Style:
    return theme.Style(theme.GREY, dash, marker)


def _present_gamma(study: DriftStudy) -> dict[str, Any]:
    """Return a line at the gamma that the other plots use."""
    memory = 1 / (1 - study.gamma)
    return {
        "type": "line",
        "xref": "x2",
        "yref": "y3 domain",
        "x0": memory,
        "x1": memory,
        "y0": 0,
        "y1": 1,
        "line": {"color": theme.AXIS_LINE, "dash": "dot", "width": 2},
    }
