"""WorkloadExplorer in JupyterLab: what only it does. What all panels do: `test_panels.py`."""

CHAT = (
    "from widgets import WorkloadExplorer\n"
    "panel = WorkloadExplorer(workload='append_only_chat', align=1)\n"
    "panel"
)


def test_a_click_on_a_point_shows_its_entries(open_panel):
    panel = open_panel(CHAT)
    before = panel.picture()
    # The traces of the frontier come first, in the order of the families; `last` is the third.
    point = panel.root.locator(".scatterlayer .trace").nth(2).locator(".point").first
    box = point.bounding_box()
    panel.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel.page.wait_for_timeout(200)
    panel.page.mouse.down()
    panel.page.mouse.up()
    panel.wait_until_changed(before)
    panel.settle()
    assert panel.value("Entries of") == "last"
