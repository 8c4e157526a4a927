"""The harness sees what the tests rely on: errors in cells, and requests to outside."""

from __future__ import annotations

import pytest
from contrast import contrast
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


# A text that is replaced by a copy of itself all the time, as a figure's numbers are by redrawing.
REDRAWN = """
<body style="background: #fff"><p style="color: #000">12</p><script>
  const redraw = () => {
    const text = document.querySelector('p');
    text.replaceWith(text.cloneNode(true));
    setTimeout(redraw);
  };
  redraw();
</script></body>
"""


def test_the_contrast_of_a_text_that_is_redrawn_meanwhile(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(REDRAWN)
    measured = [contrast(page.locator("body"), "p") for _ in range(200)]
    page.close()
    assert measured == pytest.approx([21.0] * 200)
