"""Every notebook opened in JupyterLab and run from top to bottom, live.

As it is committed, but for those that measure for a minute: these with the small parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from jupyter_lab import Notebook, PanelPage
from notebook_cases import CASES, NOTEBOOKS
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

SLOW = ("03_workload_frontiers", "04_live_qwen_resume")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_live_and_its_panels_are_drawn(
    open_notebook: Callable[..., Notebook], tmp_path: Path, file: Path
) -> None:
    if file.stem in SLOW:
        small = parameterize_notebook(load_notebook_node(str(file)), CASES[file.stem][0])
        file = tmp_path / file.name
        nbformat.write(small, file)
    notebook = open_notebook(file=file)
    assert notebook.errors() == []
    panels = notebook.page.locator(".sparselab-panel").count()
    assert panels >= 1
    for index in range(panels):
        panel = PanelPage(notebook, index)
        panel.wait_until_drawn()
        assert panel.error() == ""
        panel.screenshot(f"{file.stem}-panel-{index}")
