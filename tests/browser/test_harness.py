"""The harness sees what the tests rely on: errors in cells, and requests to outside."""

from __future__ import annotations

from jupyter_lab import Notebook, Server, write_notebook
from playwright.sync_api import Browser

OUTSIDE = "http://192.0.2.1/picture.png"  # an address reserved for examples


def test_errors_and_outside_requests_are_noticed(lab: Server, browser: Browser) -> None:
    write_notebook(
        lab.root / "harness.ipynb",
        f"from IPython.display import HTML\nHTML('<img src=\"{OUTSIDE}\">')",
        "1 / 0",
    )
    notebook = Notebook(lab, browser, "harness.ipynb")
    notebook.open()
    notebook.run_all()
    assert any("ZeroDivisionError" in text for text in notebook.errors())
    assert set(notebook.outside) == {OUTSIDE}
    notebook.close()
