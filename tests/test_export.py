"""Exported pages: everything inside, nothing from outside, and every figure with its data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import plotly.graph_objects as go
import pytest

from sparselab import export

FORMULA = r"""# Placement of $M$ checkpoints

Minimise $E[r] = \sum_t p_t\, r(t; C)$, where

$$dp[m][j] = \min_{1 \le s \le j} dp[m-1][s-1] + w(s, j)$$

\begin{align} a &= b \\ c &= d \end{align}

Next: [drift](02_drift.ipynb), and [a paper](https://arxiv.org/abs/2605.05219).
"""


def notebook(*outputs: dict[str, Any], text: str = FORMULA) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("1 + 1")]
    cells[1].outputs = [nbformat.v4.new_output("display_data", data=data) for data in outputs]
    return nbformat.v4.new_notebook(cells=cells)


def figure_output(title: str) -> dict[str, Any]:
    figure = go.Figure(go.Scatter(y=[1, 3, 2]), layout={"title": {"text": title}})
    return {export.PLOTLY_MIME: json.loads(figure.to_json()), "text/plain": "a figure"}


def without_plotly(page: str) -> str:
    """The page less plotly.js, whose source names addresses that it does not load."""
    return page.replace(export.plotly_js(), "")


def loaded_from_outside(page: str) -> list[str]:
    """What a browser would load while it opens the page."""
    tags = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*>", without_plotly(page))
    imports = re.findall(r"@import[^;]+|\burl\([^)]+\)|\bimport\([^)]*\)", without_plotly(page))
    return [text for text in tags + imports if "//" in text]


def test_plotly_js_is_there_once_however_many_figures_there_are() -> None:
    page = export.notebook_html(notebook(figure_output("first"), figure_output("second")))
    assert page.count(export.plotly_js()) == 1
    assert page.count('class="plotly-figure"') == 2
    assert len(page.encode()) < 7_000_000


def test_a_page_without_figures_has_no_plotly_js() -> None:
    assert len(export.notebook_html(notebook())) < 100_000


def test_a_figure_keeps_its_data_and_cannot_end_its_script_element() -> None:
    title = "</script><b>N < M</b>"
    page = export.notebook_html(notebook(figure_output(title)))
    found = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert [json.loads(text)["layout"]["title"]["text"] for text in found] == [title]


PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
)


def test_nothing_is_loaded_from_outside_and_the_browser_is_told_to_refuse_it() -> None:
    table = pd.DataFrame({"M": [1, 2]}).style.format("{:.1f}").to_html()
    page = export.notebook_html(
        notebook(
            figure_output("first"),
            {"text/html": table, "text/plain": "a table"},
            {"image/png": PICTURE, "text/plain": "a picture"},
            {"text/markdown": FORMULA, "text/plain": "markdown"},
            {"text/latex": "$$x^2$$", "text/plain": "a formula"},
            text=f"{FORMULA}\n![inline](data:image/png;base64,{PICTURE})",
        )
    )
    assert page.count(PICTURE) == 2
    assert "<th" in page
    assert page.count("<math ") == 4 + 4 + 1
    assert loaded_from_outside(page) == []
    for name in ("require.min.js", "MathJax.js", "mermaid.esm", "html-manager"):
        assert name not in without_plotly(page)
    assert 'http-equiv="Content-Security-Policy"' in page
    assert f'content="{export.CONTENT_SECURITY_POLICY}"' in page
    assert "default-src 'none'" in export.CONTENT_SECURITY_POLICY


def test_formulas_become_mathml() -> None:
    page = export.notebook_html(notebook())
    assert page.count("<math ") == 4
    assert "$" not in re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    assert 'display="block"' in page


def test_an_odd_formula_is_shown_as_source_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert export.mathml(r"\left( x < y") == r'<code class="formula">\left( x &lt; y</code>'
    assert "formula left as LaTeX source" in caplog.text


def test_links_to_notebooks_are_rewritten_and_others_left() -> None:
    links = {"02_drift.ipynb": "../02_drift/02_drift.html"}
    page = export.notebook_html(notebook(), links=links)
    assert 'href="../02_drift/02_drift.html"' in page
    assert 'href="https://arxiv.org/abs/2605.05219"' in page


def test_of_a_link_to_a_notebook_that_has_no_page_the_text_stays() -> None:
    page = export.notebook_html(notebook())
    assert ".ipynb" not in page
    assert "Next: drift, and" in page
    elsewhere = notebook(text="[there](https://example.org/a.ipynb)")
    assert 'href="https://example.org/a.ipynb"' in export.notebook_html(elsewhere)


def test_a_link_to_a_section_of_a_notebook_is_one_to_that_notebook() -> None:
    section = notebook(text="[bounds](02_drift.ipynb#bounds)")
    assert ".ipynb" not in export.notebook_html(section)
    page = export.notebook_html(section, links={"02_drift.ipynb": "drift.html"})
    assert 'href="drift.html#bounds"' in page


def test_a_live_widget_leaves_a_note_and_its_state_is_dropped() -> None:
    source = notebook({export.WIDGET_MIME: {"model_id": "x"}, "text/plain": "Panel()"})
    source.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    page = export.notebook_html(source)
    assert export.MISSING_WIDGET in page
    assert "widget-state" not in page


def test_data_of_a_private_media_type_is_left_out() -> None:
    page = export.notebook_html(notebook({"application/vnd.sparselab.result+json": {"name": "x"}}))
    assert "jp-OutputArea-child" not in page.split("<body>")[1]


def test_the_page_follows_light_and_dark_on_screen_and_is_light_on_paper() -> None:
    page = export.notebook_html(notebook())
    assert page.count("prefers-color-scheme: dark") == 2
    assert page.count("@media screen and (prefers-color-scheme: dark)") == 2


def test_the_title_is_the_first_heading_unless_given() -> None:
    assert "<title>Placement of M checkpoints</title>" in export.notebook_html(notebook())
    assert "<title>A &amp; B</title>" in export.notebook_html(notebook(), title="A & B")
    assert "<title>Notebook</title>" in export.notebook_html(notebook(text="no heading"))


def test_the_notebook_is_left_as_it_was() -> None:
    source = notebook(figure_output("first"))
    before = nbformat.writes(source)
    export.notebook_html(source)
    assert nbformat.writes(source) == before


def test_export_html_reads_a_file_and_writes_one(tmp_path: Path) -> None:
    nbformat.write(notebook(figure_output("first")), tmp_path / "a.ipynb")
    page = export.export_html(tmp_path / "a.ipynb", tmp_path / "pages" / "a.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


CODE_CELL = {
    "cell_type": "code",
    "id": "a",
    "metadata": {},
    "source": "1",
    "execution_count": None,
    "outputs": [],
}


def format_4(**changes: object) -> dict[str, object]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []} | changes


def test_a_notebook_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such notebook: .*a\.ipynb"):
        export.read_notebook(tmp_path / "a.ipynb")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "a JSON object is expected, got list"),
        (None, "a JSON object is expected, got NoneType"),
        ({}, "nbformat 4 is expected, got None"),
        (format_4(nbformat=3, worksheets=[]), "nbformat 4 is expected, got 3"),
        (format_4(nbformat=4.0), "nbformat 4 is expected, got 4.0"),
        (format_4(nbformat_minor="5"), "a whole number is expected as nbformat_minor, got '5'"),
        (format_4(nbformat_minor=-1), "v4.-1"),
        (format_4(cells=5), "cells is no list of objects"),
        (format_4(cells=[None]), "cells is no list of objects"),
        (format_4(cells=[{"id": "a"}]), "is not valid"),
        (format_4(cells=[CODE_CELL | {"outputs": 5}]), "5 is not of type 'array'"),
        (format_4(cells=[CODE_CELL | {"source": 5}]), "5 is not valid"),
        (format_4(metadata=[]), "[] is not of type 'object'"),
        (format_4(metadata={"kernelspec": 5}), "5 is not of type 'object'"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_in_one_sentence(
    tmp_path: Path, content: object, reason: str
) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"odd\.ipynb is not a readable notebook") as caught:
        export.read_notebook(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"), [("", "not valid JSON"), ("[" * 99999, "nested too deeply")]
)
def test_a_file_that_is_no_json_is_refused_naming_the_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"odd\.ipynb, line 1: .*{reason}"):
        export.read_notebook(path)


@pytest.mark.parametrize("minor", range(6))
def test_every_minor_version_is_read(tmp_path: Path, minor: int) -> None:
    cell = {key: value for key, value in CODE_CELL.items() if key != "id" or minor == 5}
    cell["source"] = ["a = 1\n", "a"]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(format_4(nbformat_minor=minor, cells=[cell])))
    assert export.read_notebook(path).cells[0].source == "a = 1\na"


def test_the_first_figure_is_found() -> None:
    source = notebook({"text/plain": "1"}, figure_output("first"), figure_output("second"))
    found = export.first_figure(source)
    assert found is not None
    assert found["layout"]["title"]["text"] == "first"
    assert export.first_figure(notebook()) is None
