"""What only PlacementExplorer has: hovering, a schedule of one's own, floods of changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jupyter_lab import PanelPage, Server

CODE = """
from widgets import PlacementExplorer
panel = PlacementExplorer(source="quality", length=8192)
panel
"""


@pytest.fixture(scope="module")
def opened(open_shared_panel: Callable[[str], PanelPage]) -> PanelPage:
    return open_shared_panel(CODE)


@pytest.fixture
def panel(opened: PanelPage) -> PanelPage:
    """The panel with two checkpoints of the reader's own, whatever the test before did."""
    opened.choose("Overlaps", "quality")
    opened.write("Your checkpoints", "2048, 6144")
    opened.wait_for_no_error()
    opened.settle()
    return opened


def own(panel: PanelPage) -> list[int]:
    return [int(text) for text in panel.value("Your checkpoints").split(",") if text.strip()]


def handle(panel: PanelPage, index: int) -> tuple[float, float]:
    """Return where the ring of one of the reader's checkpoints is in the page."""
    box = panel.root.locator(".shapelayer path").nth(index).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def wait_for_other_than(panel: PanelPage, before: list[int]) -> None:
    panel.wait_until(lambda: own(panel) != before, f"checkpoints other than {before}")
    panel.settle()


def drag(panel: PanelPage, index: int, right: float, down: float) -> None:
    before = own(panel)
    x, y = handle(panel, index)
    mouse = panel.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + right, y + down, steps=6)
    mouse.up()
    wait_for_other_than(panel, before)


def test_own_checkpoints_are_moved_removed_and_added_with_the_pointer(panel: PanelPage) -> None:
    drag(panel, 0, right=100, down=2)
    moved, other = own(panel)
    assert 2048 < moved < 6144 == other

    drag(panel, 0, right=5, down=80)
    assert own(panel) == [6144]

    x, y = handle(panel, 0)
    panel.page.mouse.move(x - 90, y, steps=5)
    panel.page.wait_for_timeout(300)
    panel.page.mouse.click(x - 90, y)
    wait_for_other_than(panel, [6144])
    added, kept = own(panel)
    assert added < kept == 6144
    assert panel.root.locator(".shapelayer path").count() == 2


def test_only_the_row_of_the_readers_own_takes_clicks_and_a_double_click_is_one(
    panel: PanelPage,
) -> None:
    x, y = handle(panel, 0)
    mouse = panel.page.mouse
    for subplot in ("xy", "xy2", "xy3"):
        box = panel.root.locator(f".draglayer .{subplot} .nsewdrag").first.bounding_box()
        assert box is not None
        mouse.move(x + 60, box["y"] + 10, steps=5)
        panel.page.wait_for_timeout(300)
        mouse.click(x + 60, box["y"] + 10)
        mouse.dblclick(x + 60, box["y"] + 10)
        panel.settle()
        assert own(panel) == [2048, 6144], subplot

    x, y = handle(panel, 0)
    mouse.move(x + 60, y, steps=5)
    panel.page.wait_for_timeout(300)
    mouse.dblclick(x + 60, y)
    wait_for_other_than(panel, [2048, 6144])
    assert len(own(panel)) == 3


def test_a_typed_length_is_taken_to_the_token(panel: PanelPage) -> None:
    number = panel.control("Length N").locator(".widget-readout").first
    for typed in ("8191", "8192"):
        drawn = panel.picture()
        number.click()
        panel.page.keyboard.press("Control+a")
        panel.page.keyboard.type(typed)
        panel.page.keyboard.press("Enter")
        panel.wait_until_changed(drawn)
        panel.settle()
        assert panel.value("Length N") == typed
        assert f"restrict({typed})" in panel.root.locator(".sparselab-code").inner_text()


def test_own_checkpoints_are_edited_with_the_keyboard(panel: PanelPage) -> None:
    drawn = panel.picture()
    panel.write("Your checkpoints", "1000, 3000, 7000")
    panel.wait_until_changed(drawn)
    assert panel.root.locator(".shapelayer path").count() == 3
    panel.write("Your checkpoints", "1000, later")
    panel.wait_for_error("got 'later'")
    panel.write("Your checkpoints", "1000")
    panel.wait_for_no_error()


def test_hovering_a_depth_says_what_each_policy_does_there(panel: PanelPage) -> None:
    sawtooth = panel.root.locator(".draglayer .xy3 .nsewdrag").first
    sawtooth.scroll_into_view_if_needed()
    box = sawtooth.bounding_box()
    assert box is not None
    for part in (0.4, 0.45, 0.5):
        panel.page.mouse.move(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
        panel.page.wait_for_timeout(150)
    label = panel.root.locator(".hoverlayer .hovertext", has_text="optimal: resumes at").first
    label.wait_for()
    text = label.text_content() or ""
    for policy in ("no_cache", "balanced", "block", "log", "optimal", "your own"):
        assert f"{policy}: resumes at" in text


def test_a_flood_of_key_presses_ends_with_the_picture_of_the_last_value(panel: PanelPage) -> None:
    panel.press("Budget M", "Home")
    panel.press("Budget M", "ArrowRight", times=48)
    panel.page.wait_for_function(
        "() => [...document.querySelectorAll('.sparselab-panel .widget-readout')]"
        ".some(readout => readout.innerText.trim() === '48')"
    )

    def drawn() -> list[int]:
        now = next(x for name, x, _ in panel.drawn_data() if name == "now")
        return [round(2**position - 1) for position in now]

    panel.wait_until(lambda: 48 in drawn(), "balanced stands at 48 checkpoints on the frontier")
    panel.settle()
    assert 48 in drawn()


def test_policies_come_and_go(panel: PanelPage) -> None:
    drawn = panel.picture()
    panel.root.locator(
        "label.widget-label-basic, .widget-checkbox label", has_text="sqrt"
    ).first.click()
    panel.wait_until_changed(drawn)
    panel.settle()
    assert "sqrt" in panel.shown_numbers()


def test_a_table_is_uploaded(panel: PanelPage, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("depth,requests\n4000,7\n")
    panel.choose("Overlaps", "my own file")
    panel.wait_for_error("path is empty")
    with panel.page.expect_file_chooser() as chooser:
        panel.root.get_by_role("button", name="Upload").click()
    chooser.value.set_files(table)
    panel.wait_for_no_error()
    panel.root.locator(".gtitle", has_text="mine.csv, 7 requests").wait_for()


@pytest.mark.parametrize("kind", ["CSV", "HTML", "SVG"])
def test_the_figure_is_saved(panel: PanelPage, lab: Server, kind: str) -> None:
    file = lab.root / "exports" / f"PlacementExplorer.{kind.lower()}"
    panel.choose("Save as", kind)
    panel.root.get_by_role("button", name="Save", exact=True).click()
    panel.root.get_by_text(f"Saved {file}").wait_for()
    start = {"CSV": "policy,checkpoints", "HTML": "<!doctype html>", "SVG": "<svg"}[kind]
    assert file.read_text(encoding="utf-8").startswith(start)


def test_the_benchmark_can_time_a_key_press(panel: PanelPage) -> None:
    before = panel.picture()
    assert panel.time_key("Budget M", "ArrowRight") > 0
    assert panel.picture() != before
