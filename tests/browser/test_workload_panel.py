"""WorkloadExplorer in JupyterLab: what only it does. What all panels do: `test_panels.py`."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_lab import PanelPage

CHAT = (
    "from widgets import WorkloadExplorer\n"
    "panel = WorkloadExplorer(workload='append_only_chat', align=1)\n"
    "panel"
)

ENTRIES = """
panel => [...panel.querySelectorAll('.y3tick text')]
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  .map(text => text.textContent)
"""


def test_another_workload_shows_the_names_of_its_entries_from_top_to_bottom(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(CHAT)
    for workload in ("quality", "append_only_chat"):
        before = panel.picture()
        panel.choose("Workload", workload)
        panel.wait_until_changed(before)
        panel.settle(1000)
        # The checkpoints of the last entries matched, in the order of their requests.
        names = next(y for name, _, y in panel.drawn_data() if name == "checkpoint")
        shown = panel.root.evaluate(ENTRIES)
        assert len(shown) == 12
        assert set(names) <= set(shown)
        numbers = [int(name.removeprefix("#")) for name in shown]
        assert numbers == sorted(numbers)


def test_a_click_on_a_point_shows_its_entries(
    open_panel: Callable[[str], PanelPage],
) -> None:
    panel = open_panel(CHAT)
    before = panel.picture()
    # The traces of the frontier come first, in the order of the families; `last` is the third.
    point = panel.root.locator(".scatterlayer .trace").nth(2).locator(".point").first
    box = point.bounding_box()
    assert box is not None
    panel.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel.page.wait_for_timeout(200)
    panel.page.mouse.down()
    panel.page.mouse.up()
    panel.wait_until_changed(before)
    panel.settle()
    assert panel.value("Entries of") == "last"
