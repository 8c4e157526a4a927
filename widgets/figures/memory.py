"""Figures of memory: what a state is, what a model keeps, and what of it fits.

Every number in them is computed from a model's shape (`sparselab/architecture.py`), none is
measured; the titles say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sparselab.memory import (
    GIB,
    LAYOUTS,
    MIB,
    break_even_length,
    checkpoint_count,
    entry_bytes,
)
from widgets import theme
from widgets.theme import Style

if TYPE_CHECKING:
    import pandas as pd

    from sparselab.architecture import HybridArchitecture

KV_COLOUR = theme.SKY
STATE_COLOUR = theme.VERMILLION
LAYOUT_STYLES = {
    "dense": Style(theme.PURPLE, "dashdot", "triangle-up"),
    "block": theme.policy_style("block"),
    "sparse": theme.policy_style("optimal"),
    "kv_only": theme.policy_style("kv_only"),
}
LAYOUT_NAMES = {"dense": "dense", "block": "block", "sparse": "sparse", "kv_only": "KV only"}
LENGTHS = np.unique(np.geomspace(64, 262_144, 193).astype(np.int64))
LENGTH_TICKS = [2**power for power in range(6, 19, 2)]
BYTE_TICKS = {
    2.0**power: text
    for power, text in (
        (10, "1 KiB"),
        (13, "8 KiB"),
        (16, "64 KiB"),
        (20, "1 MiB"),
        (23, "8 MiB"),
        (26, "64 MiB"),
        (30, "1 GiB"),
        (35, "32 GiB"),
        (40, "1 TiB"),
    )
}


def state_to_scale(architecture: HybridArchitecture) -> go.Figure:
    """Return the numbers that one layer of each kind keeps, as areas to one scale.

    Left, a recurrent layer: a ``d_k x d_v`` matrix for each value head, whatever the length. Right,
    an attention layer: a key and a value vector for each KV head, for **one** token.
    """
    key, value = architecture.linear_key_dim, architecture.linear_value_dim
    columns = int(np.ceil(np.sqrt(architecture.linear_value_heads)))
    gap = 0.12 * value
    figure = go.Figure()
    for head in range(architecture.linear_value_heads):
        left = (head % columns) * (value + gap)
        bottom = (head // columns) * (key + gap)
        _rectangle(figure, left, bottom, left + value, bottom + key, STATE_COLOUR)
    rows = -(-architecture.linear_value_heads // columns)
    width, height = columns * (value + gap), rows * (key + gap)
    start = width + 0.5 * value
    vectors = 2 * architecture.kv_heads
    _rectangle(figure, start, 0, start + vectors, architecture.head_dim, KV_COLOUR)
    state = architecture.linear_value_heads * key * value
    _label(
        figure,
        (width - gap) / 2,
        height - gap,
        f"a recurrent layer: {architecture.linear_value_heads} heads x {key} x {value} = "
        f"{state:,} numbers, at any length",
    )
    _label(
        figure,
        start + vectors,
        architecture.head_dim / 2,
        f"an attention layer: {vectors} vectors x {architecture.head_dim} = "
        f"{vectors * architecture.head_dim:,} numbers<br>for one token, and so many for each more",
        xanchor="left",
    )
    figure.update_xaxes(visible=False, range=[-gap, 2.2 * width])
    figure.update_yaxes(visible=False, range=[-gap, height * 1.12], scaleanchor="x")
    title = f"{architecture.name}: what a layer keeps, drawn to scale (a unit of area is a number)"
    figure.update_layout(margin={"l": 20, "b": 10})
    return theme.apply(figure, height=430, title=title)


def family(table: pd.DataFrame) -> go.Figure:
    """Return KV bytes a token beside bytes of a checkpoint, a model each.

    ``table`` is that of :func:`sparselab.memory.family_table`.
    """
    figure = go.Figure()
    models = [name.replace("-", "<br>", 1) for name in table["model"]]
    parts = (
        ("KV of one token", "kv_bytes_per_token", KV_COLOUR, ""),
        ("one checkpoint", "checkpoint_bytes", STATE_COLOUR, "/"),
    )
    for name, column, colour, pattern in parts:
        figure.add_bar(
            name=name,
            x=models,
            y=table[column],
            marker={"color": colour, "pattern": {"shape": pattern}},
            customdata=[bytes_text(value) for value in table[column]],
            hovertemplate="%{x}: %{customdata}<extra>" + name + "</extra>",
        )
    for model, weight, tokens in zip(
        models, table["checkpoint_bytes"], table["checkpoint_kv_tokens"], strict=True
    ):
        figure.add_annotation(
            x=model,
            y=np.log10(weight),
            text=f"= {tokens:,.0f} tokens",
            showarrow=False,
            yshift=10,
            xshift=14,
        )
    figure.update_yaxes(type="log", range=[3.4, 8.9], title_text="bytes, whole model")
    _byte_ticks(figure)
    figure.update_layout(barmode="group")
    title = "A checkpoint weighs as much as the KV of thousands of tokens (computed)"
    return _finish(figure, 420, title)


def weight_by_length(
    architecture: HybridArchitecture, block_size: int = 512, budget: int = 4
) -> go.Figure:
    """Return what an entry weighs against its length, a line each layout, both axes logarithmic."""
    figure = go.Figure()
    for layout in LAYOUTS:
        count = checkpoint_count(layout, LENGTHS, block_size, budget)
        weight = entry_bytes(architecture, LENGTHS, count)
        figure.add_scatter(
            name=layout_text(layout, block_size, budget),
            x=LENGTHS,
            y=weight,
            mode="lines",
            line=LAYOUT_STYLES[layout].line(),
            customdata=[bytes_text(value) for value in weight],
            hovertemplate="%{x:,} tokens: %{customdata}",
        )
    _length_axis(figure)
    figure.update_yaxes(type="log", title_text="bytes of one retained entry")
    _byte_ticks(figure)
    title = f"{architecture.name}: state after every token dwarfs everything else (computed)"
    return _finish(figure, 440, title)


def layouts_at_length(
    architecture: HybridArchitecture, length: int, block_size: int = 512, budget: int = 4
) -> go.Figure:
    """Return the layouts side by side at one length: KV and checkpoints stacked, in MiB.

    Each layout has an axis of its own, since one weighs hundreds of times what another does.
    """
    names = [LAYOUT_NAMES[layout] for layout in LAYOUTS]
    figure = make_subplots(rows=1, cols=len(LAYOUTS), subplot_titles=names)
    kv = int(entry_bytes(architecture, length, 0))
    for column, layout in enumerate(LAYOUTS, start=1):
        count = int(checkpoint_count(layout, length, block_size, budget))
        states = count * architecture.checkpoint_bytes
        parts = (
            ("attention KV", kv, KV_COLOUR, ""),
            ("checkpoints", states, STATE_COLOUR, "/"),
        )
        for name, weight, colour, pattern in parts:
            figure.add_bar(
                name=name,
                x=[f"{count:,} checkpoints<br><b>{bytes_text(kv + states)}</b>"],
                y=[weight / MIB],
                marker={"color": colour, "pattern": {"shape": pattern}},
                legendgroup=name,
                showlegend=column == 1,
                hovertemplate=f"{name}: {bytes_text(weight)}<extra>{layout}</extra>",
                row=1,
                col=column,
            )
    figure.update_yaxes(title_text="MiB", row=1, col=1)
    title = f"One entry of {length:,} tokens; mind that each axis has its own scale (computed)"
    _finish(figure, 400, title)
    return figure.update_layout(barmode="stack", margin_t=104, legend_y=1.1)


def entries_by_length(
    architecture: HybridArchitecture,
    memory_bytes: int = GIB,
    block_size: int = 512,
    budget: int = 4,
) -> go.Figure:
    """Return how many whole entries fit in ``memory_bytes`` against their length."""
    figure = go.Figure()
    for layout in LAYOUTS:
        count = checkpoint_count(layout, LENGTHS, block_size, budget)
        fitting = memory_bytes // entry_bytes(architecture, LENGTHS, count)
        figure.add_scatter(
            name=layout_text(layout, block_size, budget),
            x=LENGTHS,
            # A logarithm has no place for 0: the line ends where not even one fits.
            y=np.where(fitting > 0, fitting, np.nan),
            mode="lines",
            line=LAYOUT_STYLES[layout].line(),
            hovertemplate="%{y:,} entries of %{x:,} tokens",
        )
    _length_axis(figure)
    figure.update_yaxes(type="log", title_text=f"conversations in {bytes_text(memory_bytes)}")
    title = f"{architecture.name}: how many conversations fit in {bytes_text(memory_bytes)}"
    return _finish(figure, 440, f"{title} (computed)")


def checkpoint_share(
    architecture: HybridArchitecture, budgets: Sequence[int] = (1, 2, 4, 8, 16)
) -> go.Figure:
    """Return the checkpoints' share of an entry's bytes against its length, a line each budget.

    A ring marks the length at which checkpoints and KV weigh the same.
    """
    figure = go.Figure()
    for index, budget in enumerate(budgets):
        colour = theme.HUES[index % len(theme.HUES)]
        count = np.minimum(LENGTHS, budget)
        share = (
            100 * count * architecture.checkpoint_bytes / entry_bytes(architecture, LENGTHS, count)
        )
        figure.add_scatter(
            name=f"M = {budget}",
            x=LENGTHS,
            y=share,
            mode="lines",
            line={"color": colour, "dash": theme.DASHES[index % len(theme.DASHES)], "width": 2},
            hovertemplate="%{y:.1f} % of %{x:,} tokens",
        )
        figure.add_scatter(
            x=[break_even_length(architecture, budget)],
            y=[50],
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": "circle-open", "line": {"width": 2}},
            hovertemplate=f"M = {budget}: equal at " + "%{x:,.0f} tokens<extra></extra>",
            showlegend=False,
        )
    figure.add_hline(y=50, line={"color": theme.GREY, "dash": "dot", "width": 1})
    _length_axis(figure)
    figure.update_yaxes(range=[0, 101], title_text="checkpoints, % of the entry's bytes")
    title = f"{architecture.name}: short entries weigh mostly checkpoints (computed)"
    return _finish(figure, 420, title)


def layout_text(layout: str, block_size: int, budget: int) -> str:
    """Return a layout in words for a legend."""
    return {
        "dense": "dense: after every token",
        "block": f"block: every {block_size:,} tokens",
        "sparse": f"sparse: {budget} checkpoint{'s' * (budget != 1)}",
        "kv_only": "KV only",
    }[layout]


def bytes_text(value: float) -> str:
    """Return bytes for readers, for example ``18.6 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if value >= 100 or value == int(value) else f"{value:.3g} {unit}"


def _finish(figure: go.Figure, height: int, title: str) -> go.Figure:
    """Give the theme, and a row of its own to each of title and legend."""
    figure.update_layout(
        margin={"l": 84, "t": 84},
        title={"y": 0.98, "yanchor": "top", "yref": "container"},
        legend={"orientation": "h", "x": 0, "y": 1.04, "xanchor": "left", "yanchor": "bottom"},
    )
    return theme.apply(figure, height=height, title=title)


def _length_axis(figure: go.Figure) -> None:
    figure.update_xaxes(
        type="log",
        title_text="length of the entry (tokens)",
        tickvals=LENGTH_TICKS,
        ticktext=[f"{length:,}" for length in LENGTH_TICKS],
    )


def _byte_ticks(figure: go.Figure) -> None:
    figure.update_yaxes(tickvals=list(BYTE_TICKS), ticktext=list(BYTE_TICKS.values()))


def _rectangle(figure: go.Figure, x0: float, y0: float, x1: float, y1: float, colour: str) -> None:
    figure.add_shape(
        type="rect",
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        line={"width": 0},
        fillcolor=colour,
    )


def _label(figure: go.Figure, x: float, y: float, text: str, xanchor: str = "center") -> None:
    figure.add_annotation(
        x=x,
        y=y,
        text=text,
        showarrow=False,
        xanchor=xanchor,
        yanchor="bottom" if xanchor == "center" else "middle",
        align=xanchor,
        xshift=0 if xanchor == "center" else 8,
    )
