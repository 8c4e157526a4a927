"""Figures of live replay: exactness, time, what a saved token is worth, and memory.

Pure functions of data frames. Every number in them was measured on the machine that the caller
names in the title's second line; predictions are drawn as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from sparselab.placement import policies as known_policies
from sparselab.replay.measurement import COLD
from sparselab.replay.savings import can_fit, fit_savings, has_cold, summarise
from widgets import theme

if TYPE_CHECKING:
    from sparselab.recompute import PrefillCostModel
    from widgets.resume_study import ResumeStudy

Trace = dict[str, Any]
MIB = 2**20

# Equal bits differ by 0, which a logarithmic axis has no place for: they stand on the floor.
FLOOR = 1e-8

# Open, so that it stays visible around a one-shot difference that is 0 too.
SAME_CUTS = theme.Style(theme.GREEN, "solid", "circle-open")
ONE_SHOT = theme.Style(theme.BLUE, "solid", "square")
CONTROL = theme.Style(theme.VERMILLION, "solid", "x")
PREDICTED = theme.Style(theme.GREY, "dot", "line-ew-open")


def setting_text(setting: pd.Series | dict[str, Any]) -> str:
    """Return in words what a measurement ran on, for a title."""
    return (
        f"{setting['model']}, {setting['weights']} weights, {setting['dtype']}, {setting['device']}"
    )


def exactness_figure(exactness: pd.DataFrame, setting: str) -> go.Figure:
    """Return the three comparisons of each verified overlap, on a logarithmic axis."""
    figure = go.Figure(_exactness_traces(exactness, "x", "y"))
    figure.update_layout(xaxis=_depth_axis(), yaxis=_difference_axis(exactness))
    return _finish(figure, 420, "Is a resumed run what a cold run would have been?", setting)


def times_figure(runs: pd.DataFrame, setting: str) -> go.Figure:
    """Return measured time to the last token's logits a policy and overlap, beside predictions."""
    figure = go.Figure(_time_traces(runs, "x", "y"))
    figure.update_layout(
        xaxis=_depth_axis(),
        yaxis={"title": {"text": "median time (ms)"}, "rangemode": "tozero"},
    )
    return _finish(figure, 420, "Time of a request, measured and predicted", setting)


def savings_figure(runs: pd.DataFrame, setting: str) -> go.Figure:
    """Return time saved over a cold prefill against tokens saved, with the fitted line.

    The title states how well the line fits, where there are points enough for one.
    """
    figure = go.Figure([*_savings_traces(runs, "x", "y"), _fit_trace(runs, "x", "y")])
    figure.update_layout(
        xaxis={"title": {"text": "tokens saved (= resume point)"}},
        yaxis={"title": {"text": "time saved (ms), median"}},
    )
    title = "Time saved against tokens saved"
    if can_fit(runs):
        title += f": a line explains {fit_savings(runs).r_squared:.1%} of the variance"
    return _finish(figure, 420, title, setting)


def calibration_figure(
    table: pd.DataFrame, cost_model: PrefillCostModel, setting: str
) -> go.Figure:
    """Return cold prefill times, the cost model fitted on some of them, and FLOPs at one rate."""
    lengths = np.linspace(0, table["length"].max(), 101)
    figure = go.Figure()
    for role, symbol in (("fit", "circle"), ("check", "circle-open")):
        part = table[table["role"] == role]
        name = "measured, fitted on" if role == "fit" else "measured, held out"
        figure.add_scatter(
            x=part["length"],
            y=part["measured_ms"],
            mode="markers",
            name=name,
            marker={"symbol": symbol, "size": 10, "color": theme.BLUE},
        )
    figure.add_scatter(
        x=lengths,
        y=cost_model.predict_ms(np.zeros(lengths.size), lengths),
        mode="lines",
        name="predicted: a + b x + c x²",
        line={"color": theme.BLUE, "dash": "solid"},
    )
    figure.add_scatter(
        x=table["length"],
        y=table["flops_ms"],
        mode="lines",
        name="predicted: FLOPs at one rate",
        line={"color": theme.ORANGE, "dash": "dash"},
    )
    figure.update_layout(
        xaxis={"title": {"text": "prompt length (tokens)"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "cold prefill (ms), median"}, "rangemode": "tozero"},
    )
    return _finish(figure, 400, "What a prefill costs", setting)


def memory_figure(runs: pd.DataFrame, setting: str) -> go.Figure:
    """Return the bytes of one entry a policy, KV and checkpoints, measured from the tensors."""
    figure = go.Figure(_memory_traces(runs, "x", "y"))
    figure.update_layout(
        barmode="stack",
        xaxis=_category_axis("policy"),
        yaxis={"title": {"text": "one entry (MiB)"}, "rangemode": "tozero"},
    )
    return _finish(figure, 380, "Memory of one entry, measured from its tensors", setting)


def workload_figure(table: pd.DataFrame, setting: str, workload: str) -> go.Figure:
    """Return measured prefill time a request against checkpoint bytes an entry, by policy."""
    measured = table[table["measured"]]
    groups = measured.groupby(["policy", "budget"], dropna=False, sort=False)
    summary = groups[["total_ms", "checkpoint_bytes"]].mean().reset_index()
    figure = go.Figure()
    for policy, part in summary.groupby("policy", sort=False):
        style = theme.policy_style(str(policy))
        ordered = part.sort_values("checkpoint_bytes")
        figure.add_scatter(
            x=ordered["checkpoint_bytes"] / MIB,
            y=ordered["total_ms"],
            mode="lines+markers",
            name=str(policy),
            cliponaxis=False,
            line=style.line(),
            marker={"symbol": style.marker, "size": 11, "color": style.colour},
            customdata=ordered["budget"].map(lambda b: "none" if pd.isna(b) else f"{b:.0f}"),
            hovertemplate=(
                f"{policy}, budget %{{customdata}}<br>%{{y:.1f}} ms a request<br>"
                "%{x:.1f} MiB of checkpoints an entry<extra></extra>"
            ),
        )
    figure.update_layout(
        xaxis={"title": {"text": "checkpoints an entry (MiB), mean"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "prefill a request (ms), mean"}, "rangemode": "tozero"},
    )
    return _finish(figure, 420, f"Measured on a workload: {workload}", setting)


def lab_figure(study: ResumeStudy) -> dict[str, Any]:
    """Return all of a study in one figure, as plain data; parts that are not there yet are empty.

    Every policy that is known has its traces, those that are not timed are invisible. So their
    order and number depend on no setting, and a live figure only ever changes in place.
    """
    names = list(known_policies())
    timed = {COLD, study.settings.policy, *study.settings.compare}
    runs = study.runs
    exactness = study.exactness
    setting = "" if runs.empty else setting_text(runs.iloc[0])
    upper, lower = [0.58, 1.0], [0.0, 0.4]
    left, right = [0.0, 0.46], [0.56, 1.0]
    return {
        "data": [
            *_exactness_traces(exactness, "x", "y"),
            *(
                trace | {"visible": trace["meta"] in timed}
                for trace in (
                    *_time_traces(runs, "x2", "y2", names),
                    *_savings_traces(runs, "x3", "y3", names, legend=False),
                )
            ),
            _fit_trace(runs, "x3", "y3"),
            *_memory_traces(runs, "x4", "y4"),
        ],
        "layout": {
            "template": theme.TEMPLATE,
            "autosize": True,
            "height": 720,
            "barmode": "stack",
            "margin": {"l": 60, "r": 20, "t": 120, "b": 48},
            "title": {
                "text": f"Live replay: {setting}" if setting else "Live replay",
                "y": 0.985,
                "yanchor": "top",
            },
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": _depth_axis() | {"domain": left, "anchor": "y"},
            "yaxis": _difference_axis(exactness) | {"domain": upper, "anchor": "x"},
            "xaxis2": _depth_axis() | {"domain": right, "anchor": "y2"},
            "yaxis2": _axis("time of a request (ms)", upper, "x2"),
            # From a little below 0, where the marks of cold runs are.
            "xaxis3": {**_axis("tokens saved", left, "y3"), "rangemode": "normal"},
            "yaxis3": _axis("time saved (ms)", lower, "x3"),
            "xaxis4": _category_axis("") | {"domain": right, "anchor": "y4"},
            "yaxis4": _axis("one entry (MiB)", lower, "x4"),
        },
    }


# -- traces --------------------------------------------------------------------------------------


def _difference(column: str, value: Any) -> float | None:
    """Return the largest difference that a column of the table of verifications tells of.

    Bits that differ have no number there: the point is missing, and the badge says it.
    """
    if column == "bit_identical":
        return 0.0 if value else None
    return None if pd.isna(value) else float(value)


def _exactness_traces(exactness: pd.DataFrame, x: str, y: str) -> list[Trace]:
    columns = {
        "same cuts: identical bits": ("bit_identical", SAME_CUTS),
        "one shot: rounding": ("one_shot", ONE_SHOT),
        "control: state zeroed": ("control", CONTROL),
    }
    depths = [] if exactness.empty else exactness["depth"].tolist()
    traces = []
    for name, (column, style) in columns.items():
        values: list[float | None] = []
        if not exactness.empty:
            values = [_difference(column, value) for value in exactness[column]]
        traces.append(
            _scatter(
                x,
                y,
                x_values=depths,
                y_values=[None if value is None else max(value, FLOOR) for value in values],
                customdata=[None if v is None else f"{v:.1e}" if v else "0" for v in values],
                name=name,
                mode="markers",
                marker={
                    "symbol": style.marker,
                    "size": 18 if style is SAME_CUTS else 11,
                    "color": style.colour,
                    "line": {"width": 2, "color": style.colour},
                },
                hovertemplate="overlap %{x:,}: %{customdata}<extra>" + name + "</extra>",
            )
        )
    tolerance = [] if exactness.empty else exactness["tolerance"].tolist()
    traces.append(
        _scatter(
            x,
            y,
            x_values=depths,
            y_values=tolerance,
            name="tolerance",
            mode="lines",
            line={"color": ONE_SHOT.colour, "dash": "dot", "width": 1.5},
            hovertemplate="tolerance of one shot: %{y:.1e}<extra></extra>",
        )
    )
    return traces


def _time_traces(
    runs: pd.DataFrame, x: str, y: str, policies: Sequence[str] | None = None
) -> list[Trace]:
    """A marker a policy and overlap for the measured median, a short line for the prediction."""
    traces = []
    for name in _policies(runs, policies):
        style = theme.policy_style(name)
        part = pd.DataFrame() if runs.empty else runs[runs["policy"] == name]
        columns = ["total_ms", "predicted_ms", "resume_point", "load_ms"]
        medians = (
            pd.DataFrame(columns=columns) if part.empty else part.groupby("depth")[columns].median()
        )
        depths = medians.index.tolist()
        detail = np.stack([medians["resume_point"], medians["load_ms"]], axis=1).tolist()
        traces.append(
            _scatter(
                x,
                y,
                x_values=depths,
                y_values=medians["total_ms"].tolist(),
                name=name,
                meta=name,
                mode="lines+markers",
                line=style.line(),
                marker={"symbol": style.marker, "size": 10, "color": style.colour},
                customdata=detail,
                hovertemplate=(
                    f"{name}, overlap %{{x:,}}<br>%{{y:.1f}} ms measured, resumed at "
                    "%{customdata[0]:.0f}<br>of it load %{customdata[1]:.2f} ms<extra></extra>"
                ),
            )
        )
        traces.append(
            _scatter(
                x,
                y,
                x_values=depths,
                y_values=medians["predicted_ms"].tolist(),
                name="predicted",
                meta=name,
                legendgroup="predicted",
                showlegend=name == COLD,
                mode="markers",
                marker={
                    "symbol": PREDICTED.marker,
                    "size": 22,
                    "color": style.colour,
                    "line": {"width": 2, "color": style.colour},
                },
                hovertemplate=f"{name}, overlap %{{x:,}}: %{{y:.1f}} ms predicted<extra></extra>",
            )
        )
    return traces


def _savings_traces(
    runs: pd.DataFrame,
    x: str,
    y: str,
    policies: Sequence[str] | None = None,
    legend: bool = True,
) -> list[Trace]:
    cold = has_cold(runs)
    summary = summarise(runs) if cold else pd.DataFrame(columns=["policy"])
    traces = []
    for name in _policies(runs, policies):
        style = theme.policy_style(name)
        part = summary[summary["policy"] == name]
        traces.append(
            _scatter(
                x,
                y,
                x_values=part["saved_tokens"].tolist() if cold else [],
                y_values=part["saved_ms"].tolist() if cold else [],
                name=name,
                meta=name,
                showlegend=legend,
                mode="markers",
                marker={"symbol": style.marker, "size": 10, "color": style.colour},
                hovertemplate=f"{name}: %{{x:,}} tokens, %{{y:.1f}} ms<extra></extra>",
            )
        )
    return traces


def _fit_trace(runs: pd.DataFrame, x: str, y: str) -> Trace:
    line: dict[str, Any] = {"x_values": [], "y_values": [], "name": "fit"}
    if can_fit(runs):
        fit = fit_savings(runs)
        ends = np.array([0.0, runs["saved_tokens"].max()])
        line = {
            "x_values": ends.tolist(),
            "y_values": (fit.intercept_ms + fit.ms_per_token * ends).tolist(),
            "name": f"fit: {fit.ms_per_token:.3f} ms a token, R² = {fit.r_squared:.3f}",
        }
    return _scatter(
        x,
        y,
        **line,
        mode="lines",
        line={"color": theme.GREY, "dash": "dash"},
        hoverinfo="skip",
    )


def _memory_traces(runs: pd.DataFrame, x: str, y: str) -> list[Trace]:
    entries = (
        pd.DataFrame(columns=["policy", "kv_bytes", "checkpoint_bytes", "checkpoints"])
        if runs.empty
        else runs.drop_duplicates(["policy", "budget"]).sort_values("checkpoint_bytes")
    )
    names = [
        f"{policy} ({count})" if count else str(policy)
        for policy, count in zip(entries["policy"], entries["checkpoints"], strict=True)
    ]
    return [
        {
            "type": "bar",
            "xaxis": x,
            "yaxis": y,
            "x": names,
            "y": (entries[column].astype(float) / MIB).tolist(),
            "name": label,
            "marker": {"color": colour, "pattern": {"shape": pattern}},
            "hovertemplate": f"%{{x}}: %{{y:.2f}} MiB of {label}<extra></extra>",
        }
        for column, label, colour, pattern in (
            ("kv_bytes", "KV", theme.SKY, ""),
            ("checkpoint_bytes", "checkpoints", theme.VERMILLION, "/"),
        )
    ]


# -- small parts ---------------------------------------------------------------------------------


def _policies(runs: pd.DataFrame, given: Sequence[str] | None) -> list[str]:
    if given is not None:
        return list(given)
    return [] if runs.empty else sorted(runs["policy"].unique(), key=lambda name: name != COLD)


def _scatter(x: str, y: str, x_values: list[Any], y_values: list[Any], **properties: Any) -> Trace:
    return {"type": "scatter", "xaxis": x, "yaxis": y, "x": x_values, "y": y_values, **properties}


def _axis(title: str, domain: list[float], anchor: str) -> dict[str, Any]:
    return {"title": {"text": title}, "domain": domain, "anchor": anchor, "rangemode": "tozero"}


def _depth_axis() -> dict[str, Any]:
    return {"title": {"text": "overlap depth (tokens)"}, "rangemode": "tozero"}


def _category_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "type": "category"}


def _difference_axis(exactness: pd.DataFrame) -> dict[str, Any]:
    """A logarithmic axis from the floor, which says what stands on it."""
    largest = 10.0
    if not exactness.empty:
        shown = exactness[["one_shot", "tolerance", "control"]].to_numpy(dtype=float)
        largest = max(largest, float(np.nanmax(shown)))
    powers = list(range(-8, int(np.ceil(np.log10(largest))) + 1, 2))
    return {
        "title": {"text": "largest difference"},
        "type": "log",
        "range": [-8.6, np.log10(largest) + 0.4],
        "tickvals": [10.0**power for power in powers],
        "ticktext": ["0", *(f"1e{power}" if power else "1" for power in powers[1:])],
    }


def _finish(figure: go.Figure, height: int, title: str, setting: str) -> go.Figure:
    theme.apply(figure, height, f"{title}<br><sub>{setting}</sub>")
    figure.update_layout(margin_t=72)
    return figure
