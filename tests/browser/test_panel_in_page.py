"""A panel in a page that scrolls, changes its width, runs cells again and is loaded anew."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_lab import Notebook, PanelPage
from playwright.sync_api import expect

PANEL = "from widgets import PlacementExplorer\npanel = PlacementExplorer(length=4096)\npanel"
# The figures that the kernel would send to a page that is loaded anew.
COUNT = """
from ipywidgets.widgets.widget import _instances
from widgets.live_figure import LiveFigure
print(sum(isinstance(widget, LiveFigure) for widget in _instances.values()), "figures")
"""
LONG = "print('a line\\n' * 300)"

# The picture is as wide as its panel, which has a width.
FITS = """() => {
  const panel = document.querySelector('.sparselab-panel');
  const drawn = panel.querySelector('.main-svg');
  return panel.clientWidth > 0 && Math.abs(drawn.clientWidth - panel.clientWidth) < 3;
}"""


def test_a_picture_follows_the_width_of_its_page(open_panel: Callable[[str], PanelPage]) -> None:
    panel = open_panel(PANEL)
    wide = panel.root.evaluate("panel => panel.clientWidth")
    panel.page.wait_for_function(FITS)
    panel.notebook.command("application:toggle-left-area")
    panel.page.wait_for_function(
        "wide => document.querySelector('.sparselab-panel').clientWidth < wide - 100", arg=wide
    )
    panel.page.wait_for_function(FITS)


def test_a_picture_that_was_drawn_out_of_sight_fits_once_it_is_seen(
    open_notebook: Callable[..., Notebook],
) -> None:
    notebook = open_notebook(LONG, LONG, PANEL)
    panel = PanelPage(notebook)
    panel.root.scroll_into_view_if_needed()
    panel.wait_until_drawn()
    panel.page.wait_for_function(FITS)


def test_a_panel_comes_back_and_those_of_earlier_runs_of_its_cell_are_gone(
    open_notebook: Callable[..., Notebook],
) -> None:
    notebook = open_notebook(PANEL, COUNT)
    notebook.run_cell(0)
    notebook.run_cell(0)
    notebook.run_cell(1)
    assert notebook.page.locator(".jp-OutputArea-output", has_text="1 figures").count() == 1
    panel = PanelPage(notebook)
    panel.wait_until_drawn()
    panel.press("Budget M", "ArrowRight")
    moved = panel.value("Budget M")
    assert moved != "8"
    notebook.save_and_reload()
    panel.wait_until_drawn()
    assert panel.value("Budget M") == moved


LAYOUT = "from widgets import CheckpointLayout\npanel = CheckpointLayout()\npanel"
UNNAMED = """
panel => [...panel.querySelectorAll('[role="slider"], button, .widget-readout')]
  .filter(part => !part.getAttribute('aria-label') && !part.innerText.trim())
  .map(part => part.outerHTML)
"""


def test_handles_and_buttons_have_names_and_a_narrow_page_scrolls_the_figure_alone(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(LAYOUT)
    assert panel.root.evaluate(UNNAMED) == []
    expect(panel.root.get_by_role("slider", name="Budget M (checkpoints)")).to_be_visible()
    expect(panel.root.get_by_role("button", name="Play or pause")).to_be_visible()

    panel.page.set_viewport_size({"width": 560, "height": 900})
    panel.settle()
    figure = panel.root.locator(".js-plotly-plot")
    assert figure.evaluate("figure => figure._fullLayout.width") == 760
    assert figure.evaluate("figure => figure.parentElement.clientWidth") < 560
    assert panel.root.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
