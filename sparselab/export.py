"""Executed notebook to one HTML file that needs nothing else: no network, no server, no kernel.

The page carries plotly.js once however many figures it shows, turns mathematics into MathML,
which browsers draw themselves, and follows the reader's light or dark setting. A content security
policy in its head makes the browser refuse any request to outside, so that "works offline" is
enforced and not merely intended.
"""

from __future__ import annotations

import copy
import html
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.files import open_text, parse_json, write_text

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATES = Path(__file__).parent / "templates"

PLOTLY_MIME = "application/vnd.plotly.v1+json"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"

# Inline code and data only. plotly.js builds its WebGL drawing code at run time, hence
# 'unsafe-eval'; its "download plot" button needs blob: and data: images.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)

PLOTLY_JS_HERE = "/* plotly.js goes here */"
DEFAULT_FIGURE_HEIGHT = 450  # plotly's own, in pixels
MISSING_WIDGET = (
    '<p class="note">A live panel stands here in the notebook; open it in JupyterLab to use it.</p>'
)

logger = logging.getLogger(__name__)


def export_html(
    notebook: str | Path | NotebookNode,
    target: str | Path,
    title: str | None = None,
    links: Mapping[str, str] | None = None,
) -> Path:
    """Write ``notebook`` (a path or a node, executed or not) as a self-contained page.

    ``title`` is the page's title; unless given, the notebook's first heading. ``links`` maps the
    file name of a notebook to the address that a link to it should have in the page (a link to
    ``02_drift.ipynb`` may become ``../02_drift/02_drift.html``). Of a link to any other notebook
    only the text stays, since no such file lies beside the page. The file appears whole or not at
    all. Returns its path. Raises ``FileNotFoundError`` or ``ValueError`` where ``notebook`` is no
    readable notebook.
    """
    node = read_notebook(notebook) if isinstance(notebook, (str, Path)) else notebook
    write_text(target, notebook_html(node, title, links))
    return Path(target)


def notebook_html(
    notebook: NotebookNode, title: str | None = None, links: Mapping[str, str] | None = None
) -> str:
    """Return the page of :func:`export_html` as text; ``notebook`` is left as it is."""
    page = _prepare(notebook)
    shows_figures = first_figure(notebook) is not None
    resources = {
        "content_security_policy": CONTENT_SECURITY_POLICY,
        "page_title": title or notebook_title(notebook) or "Notebook",
        "plotly_js": PLOTLY_JS_HERE if shows_figures else "",
        "code_css": _code_css(),
    }
    body, _ = _exporter(links or {}).from_notebook_node(page, resources)
    # Put in last: nbconvert would parse all 5 MB of it.
    return body.replace(PLOTLY_JS_HERE, plotly_js(), 1) if shows_figures else body


def read_notebook(path: str | Path) -> NotebookNode:
    """Return the notebook at ``path``, of which every minor version of format 4 is read.

    Raises ``FileNotFoundError`` where there is none and ``ValueError`` for a file that is no
    notebook.
    """
    import nbformat

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such notebook: {path}.")
    with open_text(path) as stream:
        text = stream.read()
    content = parse_json(text, path)
    reason = _misshapen(content)
    if not reason:
        try:
            # Before it is read, which stumbles over what is no notebook.
            nbformat.validate(content)
            return nbformat.reads(text, as_version=4)
        except nbformat.ValidationError as error:
            reason = str(error).splitlines()[0][:120]
    raise ValueError(f"{path} is not a readable notebook ({reason}).")


def _misshapen(content: Any) -> str | None:
    """Say what in a notebook's JSON would make nbformat's own check stumble, if anything does."""
    if not isinstance(content, dict):
        return f"a JSON object is expected, got {type(content).__name__}"
    major, minor = content.get("nbformat"), content.get("nbformat_minor")
    if type(major) is not int or major != 4:
        return f"nbformat 4 is expected, got {major!r}"
    if type(minor) is not int:
        return f"a whole number is expected as nbformat_minor, got {minor!r}"
    cells = content.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return "cells is no list of objects"
    return None


def notebook_title(notebook: NotebookNode) -> str | None:
    """Return the text of the notebook's first heading without its markup, or ``None``."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if line.startswith("#"):
                    return re.sub(r"[$`*]", "", line.lstrip("#")).strip() or None
    return None


def first_figure(notebook: NotebookNode) -> dict[str, Any] | None:
    """Return the first plotly figure among the outputs (its JSON as a dict), or ``None``."""
    for data in _output_data(notebook):
        if PLOTLY_MIME in data:
            return data[PLOTLY_MIME]
    return None


def plotly_js() -> str:
    """Return the JavaScript of the installed plotly (about 5 MB), without a request."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def figure_html(figure: Mapping[str, Any], thumbnail: bool = False) -> str:
    """Return a placeholder that ``templates/page/figures.js`` draws; ``figure`` is plotly's JSON.

    A ``thumbnail`` is drawn without interaction, once it is scrolled into view.
    """
    layout = figure.get("layout", {})
    height = layout.get("height") or DEFAULT_FIGURE_HEIGHT
    classes = "plotly-figure thumbnail" if thumbnail else "plotly-figure"
    # "<" may not stand in a script element as it could end it; JSON can spell it otherwise.
    text = json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="{classes}" style="min-height:{float(height):g}px">'
        f'<script type="application/json">{text}</script></div>'
    )


def _prepare(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which every figure and live widget is plain HTML."""
    page = copy.deepcopy(notebook)
    page.metadata.pop("widgets", None)
    for data in _output_data(page):
        if PLOTLY_MIME in data:
            data["text/html"] = figure_html(data.pop(PLOTLY_MIME))
        elif data.pop(WIDGET_MIME, None) is not None:
            data["text/html"] = MISSING_WIDGET
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_visible(output)]
    return page


def _is_visible(output: NotebookNode) -> bool:
    """Tell whether a page can show an output; data of a private media type has nothing to show."""
    return "data" not in output or any(not mime.startswith("application/") for mime in output.data)


def _output_data(notebook: NotebookNode) -> list[dict[str, Any]]:
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [output.data for cell in cells for output in cell.outputs if "data" in output]


def _code_css() -> str:
    """Return the colours of highlighted code, for paper and light pages, and for dark ones."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _exporter(links: Mapping[str, str]) -> Any:
    """Return an nbconvert exporter with this project's template, MathML and rewritten links."""
    from jinja2 import pass_context
    from nbconvert.exporters import HTMLExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        """Markdown to HTML with formulas as MathML."""

        def block_math(self, body: str) -> str:
            return mathml(body, display="block")

        def inline_math(self, body: str) -> str:
            return mathml(body, display="inline")

        def latex_environment(self, name: str, body: str) -> str:
            return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", display="block")

        def link(self, text: str, url: str, title: str | None = None) -> str:
            file, sign, section = url.partition("#")
            if file.endswith(".ipynb") and "://" not in file and file not in links:
                return text
            return super().link(text, links.get(file, file) + sign + section, title)

    class Exporter(HTMLExporter):
        @pass_context
        def markdown2html(self, context: Any, source: str) -> str:
            renderer = Renderer(
                escape=False,
                attachments=context.get("cell", {}).get("attachments", {}),
                embed_images=self.embed_images,
                path=context.get("resources", {}).get("metadata", {}).get("path", ""),
                exclude_anchor_links=True,
            )
            return MarkdownWithMath(renderer=renderer).render(source)

    return Exporter(
        extra_template_basedirs=[str(TEMPLATES)],
        extra_template_paths=[str(TEMPLATES / "page")],
        template_name="notebook",
        embed_images=True,
    )


def mathml(latex: str, display: str = "inline") -> str:
    """Return a LaTeX formula as MathML; ``display`` is ``"inline"`` or ``"block"``.

    A formula that cannot be converted is shown as its source and logged as a warning, as
    one odd formula should not cost the reader the page.
    """
    from latex2mathml.converter import convert

    try:
        return convert(html.unescape(latex).strip(), display=display)
    except Exception as error:  # the converter raises many unrelated types
        logger.warning("formula left as LaTeX source, %s: %s", type(error).__name__, latex.strip())
        return f'<code class="formula">{html.escape(latex)}</code>'
