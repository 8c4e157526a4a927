"""ResumeLab in JupyterLab: a run beside the page, stopped and to its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jupyter_lab import PATIENCE_MS, PanelPage
from playwright.sync_api import Locator, expect

pytest.importorskip("torch", reason="live replay needs torch: pip install sparselab[replay]")

# One thread: a tiny model gains nothing from more, which would compete with the browser.
CODE = """
import torch
from widgets import ResumeLab
torch.set_num_threads(1)
panel = ResumeLab(model='tiny', length={length}, block_size=64, repeats={repeats})
panel
"""


def status(panel: PanelPage) -> Locator:
    return panel.root.locator('[role="status"]').first


def click(panel: PanelPage, label: str) -> None:
    panel.root.get_by_role("button", name=label, exact=True).click()


def test_run_draws_and_says_that_it_was_exact(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(CODE.format(length=256, repeats=1))
    expect(status(panel)).to_contain_text("Nothing has been measured yet")
    before = panel.picture()
    click(panel, "Run")
    expect(status(panel)).to_contain_text("Finished: 12 timed runs.", timeout=2 * PATIENCE_MS)
    panel.wait_until_changed(before)
    badges = panel.root.locator(".sparselab-badge")
    expect(badges).to_have_count(4 * 3)
    expect(badges.filter(has_text="✘")).to_have_count(0)
    panel.wait_for_no_error()
    # Other settings do not become those of the picture before they are run.
    code = panel.root.locator(".sparselab-code").inner_text()
    panel.press("Budget M", "ArrowRight")
    expect(status(panel)).to_contain_text("The settings have changed since")
    assert panel.root.locator(".sparselab-code").inner_text() == code
    panel.press("Budget M", "ArrowLeft")
    expect(status(panel)).to_have_text("Finished: 12 timed runs.")
    panel.notebook.use_theme("light")
    panel.screenshot("ResumeLab-light")
    panel.notebook.use_theme("dark")
    panel.screenshot("ResumeLab-dark")
    # The page shows the run again after a reload, picture and badges alike.
    drawn = panel.drawn_data()
    panel.notebook.save_and_reload()
    panel.wait_until_drawn()
    assert panel.drawn_data() == drawn
    expect(panel.root.locator(".sparselab-badge")).to_have_count(4 * 3)


def test_stop_keeps_what_is_finished_and_run_begins_anew(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(CODE.format(length=256, repeats=40))
    click(panel, "Run")
    expect(status(panel)).to_contain_text("time resumes ...", timeout=2 * PATIENCE_MS)
    click(panel, "Stop")
    expect(status(panel)).to_contain_text("these are kept", timeout=PATIENCE_MS)
    expect(panel.root.locator(".sparselab-badge")).to_have_count(4 * 3)
    click(panel, "Run")
    expect(status(panel)).to_contain_text("verify ...", timeout=PATIENCE_MS)
    click(panel, "Stop")
    expect(status(panel)).to_contain_text("Stopped after", timeout=PATIENCE_MS)
    assert panel.notebook.errors() == []


def test_what_cannot_be_loaded_is_said_in_the_error_line(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(CODE.format(length=256, repeats=1).replace("'tiny'", "'no-such-model'"))
    click(panel, "Run")
    panel.wait_for_error("model 'no-such-model' cannot be loaded")
