"""Tiny notebooks that a test can write and run in a second or two."""

from __future__ import annotations

from pathlib import Path

import nbformat

PARAMETERS = """\
size: int = 3  # how many
label: str = "a"  # what they are called
live: bool = True  # panels instead of pictures
"""

PUBLISH = """\
from sparselab.batch import publish
publish("total", 2 * size, unit="tokens")
publish("rows", {"row": list(range(size)), "label": label})
"""

FIGURE = """\
import json
import plotly.graph_objects as go
from IPython.display import display
figure = go.Figure(go.Scatter(y=[1, 3, 2]), layout={"title": {"text": f"Figure of {label}"}})
display({"application/vnd.plotly.v1+json": json.loads(figure.to_json())}, raw=True)
"""


def write(path: Path, *cells: str, parameters: str | None = PARAMETERS) -> Path:
    """Write a notebook: a heading, a parameters cell unless it is None, then code cells."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells.append(nbformat.v4.new_markdown_cell("# A tiny notebook"))
    if parameters is not None:
        tags = {"tags": ["parameters"]}
        notebook.cells.append(nbformat.v4.new_code_cell(parameters, metadata=tags))
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, path)
    return path
