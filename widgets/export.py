"""Saving what a panel shows: the figure as a picture or a page, its numbers as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from sparselab.files import atomic_path, write_text
from sparselab.validation import check_choice
from widgets.theme import FIGURE_CONFIG

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("html", "csv", "svg", "png")
PICTURE_WIDTH = 1200


def export(figure: go.Figure, table: pd.DataFrame, path: str | Path) -> Path:
    """Save to ``path`` in the format that its ending names; return the absolute path.

    ``.html`` is a page that needs no network, ``.csv`` the table, ``.svg`` and ``.png`` pictures.

    Raises:
        ValueError: for another ending.
        RuntimeError: where pictures cannot be made on this machine, with what to install.
    """
    path = Path(path)
    kind = check_choice("format", path.suffix.lower().lstrip("."), FORMATS)
    if kind == "csv":
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)
    elif kind == "html":
        write_text(
            path, figure.to_html(include_plotlyjs=True, full_html=True, config=FIGURE_CONFIG)
        )
    else:
        _save_picture(figure, path, kind)
    return path.resolve()


def _save_picture(figure: go.Figure, path: Path, kind: str) -> None:
    """Let kaleido draw the figure in a headless browser, on white paper."""
    paper = go.Figure(figure.to_dict())
    paper.update_layout(paper_bgcolor="white", plot_bgcolor="white", font_color="#333333")
    try:
        picture = paper.to_image(format=kind, width=PICTURE_WIDTH)
    # kaleido raises its own types for a missing browser, plotly ValueError for missing kaleido;
    # whatever went wrong in the browser, the reader needs the way out and the cause.
    except Exception as error:
        cause = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise RuntimeError(
            f"{kind.upper()} export needs the package kaleido and Chrome or Chromium on this "
            f"machine (pip install kaleido; then plotly_get_chrome, or install chromium); "
            f"HTML and CSV work without. Cause: {type(error).__name__}: {cause}"
        ) from error
    with atomic_path(path) as temporary:
        temporary.write_bytes(picture)
