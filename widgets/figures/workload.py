"""Figures of workloads: their overlaps, what every policy saves of them, and one run's entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

import sparselab as sl
from sparselab.simulator import SimulationResult
from widgets import theme
from widgets.figures import checkpoint_axis
from widgets.workload_study import (
    ENTRY_AWARE,
    HISTOGRAM,
    WorkloadStudy,
    computed_share,
    held_gib,
    not_dominated,
)

#: A trace as plain data.
Trace = dict[str, Any]

BINS = 60
ENTRIES_SHOWN = 12
GIB_TICKS = tuple(digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5))

STYLES = {
    HISTOGRAM: theme.policy_style("optimal"),
    ENTRY_AWARE: theme.Style(theme.VERMILLION, "solid", "cross", width=3.0),
}


def workload_spec(
    study: WorkloadStudy,
    architecture: sl.HybridArchitecture,
    x: str,
    run: str,
    result: SimulationResult,
) -> dict[str, Any]:
    """Return the frontier, the overlaps, and below the entries of ``run``, as plain data.

    ``result`` is the simulation of that run, ``x`` is ``"checkpoints"`` (a new entry, on average)
    or ``"GiB"`` (held at once). The traces of the frontier come first, one a family in the order of
    the study, with the runs' names in ``customdata``.
    """
    return {
        "data": [
            *frontier_traces(study, architecture, x),
            _chosen_trace(study, architecture, x, run),
            _overlap_trace(study.overlaps, "x2", "y2"),
            *_entry_traces(result, "x3", "y3"),
        ],
        "layout": {
            "template": theme.TEMPLATE,
            "autosize": True,
            "height": 780,
            "hovermode": "closest",
            "legend": {"orientation": "h", "x": 0, "y": 1.015, "yanchor": "bottom"},
            "margin": {"l": 70, "r": 12, "t": 108, "b": 48},
            "title": {"text": _title(study), "y": 0.988, "yanchor": "top"},
            "shapes": [_floor_line(study)],
            "annotations": [_floor_text(study)],
            **_axes(study, architecture, x, run),
        },
    }


def _axes(
    study: WorkloadStudy, architecture: sl.HybridArchitecture, x: str, run: str
) -> dict[str, Any]:
    """Return the axes of the frontier (1), the overlaps (2) and the entries of a run (3)."""
    return {
        "xaxis": {
            **_memory_axis(study, architecture, x),
            "domain": [0, 0.6],
            "anchor": "y",
        },
        "yaxis": {**_share_axis(study), "domain": [0.42, 1]},
        "xaxis2": {
            "title": {"text": "overlap depth (tokens)"},
            "domain": [0.69, 1],
            "anchor": "y2",
        },
        "yaxis2": {
            "title": {"text": "requests"},
            "domain": [0.42, 1],
            "anchor": "x2",
        },
        "xaxis3": {
            "title": {
                "text": f"token position in the entries of “{run}” "
                "(│ checkpoint, × a later request left here)"
            },
            "anchor": "y3",
            "rangemode": "tozero",
        },
        "yaxis3": {
            "title": {"text": "entry of request"},
            "domain": [0, 0.29],
            "dtick": 1,
            "anchor": "x3",
            "autorange": "reversed",
            "type": "category",
            # Or "#332" counts as a number, and the axis forgets the others' names.
            "autotypenumbers": "strict",
            "showgrid": False,
        },
    }


def frontier_figure(
    study: WorkloadStudy, architecture: sl.HybridArchitecture, x: str = "checkpoints"
) -> go.Figure:
    """Return only the frontier of a study."""
    figure = go.Figure(frontier_traces(study, architecture, x))
    figure.update_xaxes(_memory_axis(study, architecture, x))
    figure.update_yaxes(_share_axis(study))
    figure.update_layout(
        shapes=[_floor_line(study)],
        annotations=[_floor_text(study)],
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        margin={"t": 118},
        title={"text": _title(study), "y": 0.98, "yanchor": "top"},
    )
    return theme.apply(figure, height=500)


def overlaps_figure(tables: Mapping[str, sl.OverlapDistribution]) -> go.Figure:
    """Return the overlap histograms of several workloads side by side.

    The keys are titles; they should say what is synthetic. Bars are shares of requests.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(tables), subplot_titles=list(tables))
    for column, table in enumerate(tables.values(), start=1):
        trace = _histogram(table.depths, table.probabilities(), table.length, "share of requests")
        figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(title_text="overlap (tokens)", nticks=5, tickformat="~s")
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(title_text="share of requests", col=1)
    figure.update_layout(showlegend=False, bargap=0)
    figure.update_annotations(font_size=12)
    return theme.apply(figure, height=320)


def shares_figure(shares: pd.DataFrame, overlap: float, title: str) -> go.Figure:
    """Return one bar a row of ``shares`` beside what overlaps.

    Its columns: ``name``, ``share``, and ``family``, which says whose colour the bar has.
    """
    figure = go.Figure(
        go.Bar(
            x=shares["share"],
            y=shares["name"],
            orientation="h",
            marker={
                "color": [_style(family, family).colour for family in shares["family"]],
                "opacity": 0.75,
            },
            text=[f"{share:.1%}" for share in shares["share"]],
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        )
    )
    figure.add_vline(
        overlap,
        line={"color": theme.TEXT, "dash": "dot"},
        annotation={"text": f"overlaps: {overlap:.1%}", "font": {"color": theme.TEXT}},
        annotation_position="top",
    )
    figure.update_xaxes(
        title_text="saved share of prompt tokens",
        tickformat=".0%",
        range=[0, min(1.0, overlap * 1.15)],
    )
    figure.update_yaxes(autorange="reversed")
    label_width = 24 + 7 * int(shares["name"].str.len().max())
    figure.update_layout(margin={"l": label_width, "r": 60, "t": 64})
    return theme.apply(figure, height=150 + 36 * len(shares), title=title)


def measured_frontier_figure(
    counted: pd.DataFrame, measured: pd.DataFrame, title: str
) -> go.Figure:
    """Return recomputed tokens beside measured prefill time, a line a policy, against the budget.

    Both tables have one row a policy and budget: ``label``, ``policy``, ``checkpoints`` (a new
    entry, the median) and ``share`` (of the whole prompts' tokens, or of the time without a cache).
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=1,
        cols=2,
        subplot_titles=("counted: recomputed tokens", "measured: prefill time on the live model"),
        shared_yaxes=True,
    )
    for column, table in enumerate((counted, measured), start=1):
        for label, rows in table.groupby("label", sort=False):
            style = _style(str(label), str(rows["policy"].iloc[0]))
            figure.add_trace(
                go.Scatter(
                    x=checkpoint_axis.position(rows["checkpoints"]),
                    y=rows["share"],
                    customdata=rows["checkpoints"],
                    name=str(label),
                    legendgroup=str(label),
                    showlegend=column == 1,
                    mode="lines+markers",
                    line=style.line(),
                    marker={"symbol": style.marker, "size": 9, "color": style.colour},
                    hovertemplate="%{customdata:.2f} checkpoints: %{y:.1%}"
                    f"<extra>{label}</extra>",
                ),
                row=1,
                col=column,
            )
    largest = max(counted["checkpoints"].max(), measured["checkpoints"].max())
    figure.update_xaxes(
        checkpoint_axis.axis("checkpoints an entry (median, log scale)", float(largest))
    )
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(title_text="share of what no cache takes", col=1)
    figure.update_layout(legend={"orientation": "h", "y": -0.22}, margin={"t": 72})
    figure.update_annotations(font_size=12)
    return theme.apply(figure, height=440, title=title)


# -- the frontier ------------------------------------------------------------------------------


def frontier_traces(
    study: WorkloadStudy, architecture: sl.HybridArchitecture, x: str
) -> list[Trace]:
    """Return one trace a family of runs; what is not dominated has filled markers."""
    runs = study.runs.assign(
        x=_memory_position(study.runs, architecture, x),
        share=computed_share(study.runs),
        best=not_dominated(study.runs, memory(study.runs, architecture, x)),
    )
    return [_family_trace(str(name), rows) for name, rows in runs.groupby("family", sort=False)]


def _family_trace(family: str, rows: pd.DataFrame) -> Trace:
    style = _style(family, str(rows["policy"].iloc[0]))
    symbol = style.marker.removesuffix("-open")
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(rows) > 1 else "markers",
        "name": family,
        # What stands nowhere on the axis has no place in the legend either.
        "showlegend": bool(rows["x"].notna().any()),
        "x": rows["x"].to_numpy(),
        "y": rows["share"].to_numpy(),
        "customdata": np.stack(
            [
                rows["run"],
                rows["checkpoints_per_entry"].map("{:,.2f}".format),
                _extra_words(rows),
            ],
            axis=1,
        ),
        "line": style.line(),
        "marker": {
            "symbol": [symbol if best else f"{symbol}-open" for best in rows["best"]],
            "size": 9,
            "color": style.colour,
            "line": {"width": 1.5, "color": style.colour},
        },
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]} checkpoints an entry<br>"
        "%{y:.1%} of prompt tokens computed%{customdata[2]}<extra></extra>",
    }


def _extra_words(rows: pd.DataFrame) -> list[str]:
    """Return how much of each run's tokens was computed only to capture checkpoints."""
    shares = rows["extra_prefill_tokens"] / rows["prompt_tokens"]
    return [f", {share:.1%} only to capture" if share else "" for share in shares]


def _chosen_trace(
    study: WorkloadStudy, architecture: sl.HybridArchitecture, x: str, run: str
) -> Trace:
    """Return a ring around the run whose entries are shown below."""
    row = study.runs[study.runs["run"] == run]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _memory_position(row, architecture, x),
        "y": computed_share(row),
        "marker": {"symbol": "circle-open", "size": 18, "color": theme.TEXT, "line": {"width": 2}},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _style(label: str, policy: str) -> theme.Style:
    return STYLES.get(label) or theme.policy_style(policy)


def memory(runs: pd.DataFrame, architecture: sl.HybridArchitecture, x: str) -> NDArray[np.float64]:
    """Return each run's ``"checkpoints"`` of a new entry, or the most ``"GiB"`` held at once."""
    if x == "checkpoints":
        return runs["checkpoints_per_entry"].to_numpy()
    return held_gib(runs, architecture)


def _memory_position(
    runs: pd.DataFrame, architecture: sl.HybridArchitecture, x: str
) -> NDArray[np.float64]:
    """Return where runs stand on the memory axis; what holds nothing is left out of a log axis."""
    amount = memory(runs, architecture, x)
    return (
        checkpoint_axis.position(amount) if x == "checkpoints" else np.where(amount, amount, np.nan)
    )


def _memory_axis(study: WorkloadStudy, architecture: sl.HybridArchitecture, x: str) -> Trace:
    if x == "checkpoints":
        largest = float(study.runs["checkpoints_per_entry"].max())
        return checkpoint_axis.axis("checkpoints an entry (mean, log scale)", largest)
    return {
        "title": {
            "text": f"GiB of KV and checkpoints held at once, {architecture.name} "
            "(log scale; no_cache holds none)"
        },
        "type": "log",
        "autorange": True,
        "tickmode": "array",
        "tickvals": list(GIB_TICKS),
        "ticktext": [f"{tick:g}" for tick in GIB_TICKS],
    }


def _share_axis(study: WorkloadStudy) -> dict[str, Any]:
    """Return the axis of tokens computed: more than the prompts, where any may be captured."""
    again = ", also only to capture" if study.runs["extra_prefill_tokens"].any() else ""
    return {
        "title": {"text": f"computed share of prompt tokens{again}"},
        "tickformat": ".0%",
        "range": [0, 1.04 * max(1.0, float(computed_share(study.runs).max()))],
    }


def _title(study: WorkloadStudy) -> str:
    workload = study.workload
    interleaved = "interleaved " if "interleave" in workload.provenance else ""
    synthetic = workload.synthetic and "synthetic" not in workload.name
    return (
        f"{workload.name}: {len(workload):,} {interleaved}{'synthetic ' if synthetic else ''}"
        "requests, simulated; filled: not dominated"
    )


def _floor(study: WorkloadStudy) -> float:
    """Return the share that no policy can save: what does not overlap a retained entry."""
    kv_only = study.runs[study.runs["family"] == "kv_only"].iloc[0]
    return 1.0 - float(kv_only["overlap_share"])


def _floor_line(study: WorkloadStudy) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x domain",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": _floor(study),
        "y1": _floor(study),
        "line": {"color": theme.TEXT, "dash": "dot", "width": 1.5},
    }


def _floor_text(study: WorkloadStudy) -> dict[str, Any]:
    return {
        "xref": "x domain",
        "yref": "y",
        "x": 0.01,
        "y": _floor(study),
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "text": f"{_floor(study):.1%} of tokens overlap no retained entry",
        "font": {"color": theme.TEXT, "size": 11},
    }


# -- overlaps ----------------------------------------------------------------------------------


def _overlap_trace(overlaps: NDArray[np.int64], xaxis: str, yaxis: str) -> Trace:
    trace = _histogram(overlaps, np.ones(overlaps.size), int(overlaps.max(initial=1)), "requests")
    return {**trace, "xaxis": xaxis, "yaxis": yaxis}


def _histogram(depths: NDArray[np.int64], weights: NDArray[Any], length: int, what: str) -> Trace:
    width = max(1, -(-(length + 1) // BINS))
    counts = np.bincount(depths // width, weights, minlength=1)
    start = np.arange(counts.size) * width
    number = ":,.0f" if what == "requests" else ":.1%"
    return {
        "type": "bar",
        "x": start + width / 2,
        "y": counts,
        "width": width,
        "customdata": np.stack([start, start + width - 1], axis=1),
        "marker": {"color": theme.GREY, "opacity": 0.7, "line": {"width": 0}},
        "showlegend": False,
        "hovertemplate": "overlaps of %{customdata[0]:,} to %{customdata[1]:,} tokens: "
        f"%{{y{number}}}<extra></extra>",
    }


# -- the entries of one run --------------------------------------------------------------------


def _entry_traces(result: SimulationResult, xaxis: str, yaxis: str) -> list[Trace]:
    """Return, of the last matched entries: their tokens, checkpoints, and where requests left."""
    rows = result.requests
    used = rows.loc[rows["hit"], "matched"].drop_duplicates(keep="last").tail(ENTRIES_SHOWN)
    shown = rows.iloc[np.sort(used.to_numpy())]
    names = [f"#{request}" for request in shown["request"]]
    later = rows[rows["hit"] & rows["matched"].isin(shown["request"])]
    name_of = dict(zip(shown["request"], names, strict=True))
    common = {"xaxis": xaxis, "yaxis": yaxis, "type": "scatter", "showlegend": False}
    return [
        {
            **common,
            "mode": "lines",
            "name": "KV of every token",
            "x": _interleave([np.zeros(len(shown)), shown["length"].to_numpy()]),
            "y": _interleave_names(names),
            "text": [text for group in shown["group"] for text in (group, group, None)],
            "line": {"color": theme.translucent(theme.GREY, 0.35), "width": 9},
            "hovertemplate": "%{text}<extra>%{y}</extra>",
        },
        {
            **common,
            "mode": "markers",
            "name": "checkpoint",
            "x": np.concatenate([*shown["positions"], []]),
            "y": np.repeat(names, shown["checkpoints"]).tolist(),
            "marker": {
                "symbol": "line-ns-open",
                "size": 13,
                "color": theme.BLUE,
                "line": {"width": 2.5},
            },
            "hovertemplate": "checkpoint at %{x:,}<extra>%{y}</extra>",
        },
        {
            **common,
            "mode": "markers",
            "name": "a later request left here",
            "x": later["overlap"].to_numpy(),
            "y": [name_of[entry] for entry in later["matched"]],
            "customdata": np.stack(
                [later["request"], later["resume_point"], later["checkpoint_miss"]], axis=1
            ),
            "marker": {"symbol": "x", "size": 7, "color": theme.VERMILLION},
            "hovertemplate": "request %{customdata[0]} shares %{x:,} tokens, resumes at "
            "%{customdata[1]:,}, computes %{customdata[2]:,} of them again<extra>%{y}</extra>",
        },
    ]


def _interleave(parts: Sequence[NDArray[Any]]) -> list[float | None]:
    return [value for row in zip(*parts, strict=True) for value in (*map(float, row), None)]


def _interleave_names(names: Sequence[str]) -> list[str | None]:
    return [value for name in names for value in (name, name, None)]
