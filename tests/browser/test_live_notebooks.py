"""Every notebook as it is committed: opened in JupyterLab, run from top to bottom, live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jupyter_lab import REPOSITORY, Notebook, PanelPage

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_live_and_its_panels_are_drawn(
    open_notebook: Callable[..., Notebook], file: Path
) -> None:
    notebook = open_notebook(file=file)
    assert notebook.errors() == []
    panels = notebook.page.locator(".sparselab-panel").count()
    assert panels >= 1
    for index in range(panels):
        panel = PanelPage(notebook, index)
        panel.wait_until_drawn()
        assert panel.error() == ""
        panel.screenshot(f"{file.stem}-panel-{index}")
