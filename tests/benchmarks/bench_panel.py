"""From key press to redrawn picture: PlacementExplorer in JupyterLab in headless Chromium."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.timing import row

BENCHMARK = "panel, key press to redrawn picture"
LENGTH, BUDGET = 32_768, 16
POLICIES = ("no_cache", "balanced", "block", "sqrt", "log", "optimal")
REPEATS = 40
PAUSE_MS = 300  # between two presses, as a person who looks would leave
CASES = {
    "Budget M": ("ArrowRight", "ArrowLeft"),
    # A longer entry is another problem: the optimum is solved anew at every press.
    "Length N": ("ArrowRight",),
}
AIM_S = {"median": 0.150, "95th percentile": 0.300}
CODE = f"""
from widgets import PlacementExplorer
panel = PlacementExplorer(length={LENGTH}, budget={BUDGET}, policies={POLICIES})
panel
"""


def run() -> list[dict[str, Any]]:
    """Return median and 95th percentile for each control; the baseline is the aim."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
    try:
        from jupyter_lab import chromium
    except ImportError as error:
        return [_skipped(f"{error.name} is not installed")]
    if chromium() is None:
        return [_skipped("no Chromium or Chrome on this machine")]
    return [
        _row(label, statistic, seconds)
        for label, times in _measure().items()
        for statistic, seconds in (
            ("median", statistics.median(times)),
            ("95th percentile", statistics.quantiles(times, n=20)[-1]),
        )
    ]


def _measure() -> dict[str, list[float]]:
    """Return the seconds of each key press, by control."""
    from jupyter_lab import Notebook, PanelPage, Server, browser_options, write_notebook
    from playwright.sync_api import sync_playwright

    seconds: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        Server(Path(folder)).running() as server,
    ):
        browser = playwright.chromium.launch(**browser_options())
        write_notebook(server.root / "panel.ipynb", CODE)
        notebook = Notebook(server, browser, "panel.ipynb")
        notebook.open()
        notebook.run_all()
        panel = PanelPage(notebook)
        panel.wait_until_drawn()
        for label, keys in CASES.items():
            times = []
            for press in range(REPEATS + 5):
                times.append(panel.time_key(label, keys[press % len(keys)]) / 1000)
                notebook.page.wait_for_timeout(PAUSE_MS)
            seconds[label] = times[5:]  # the first ones fill caches
        browser.close()
    return seconds


def _row(label: str, statistic: str, seconds: float) -> dict[str, Any]:
    aim = AIM_S[statistic]
    case = f"{label}, {statistic} of {REPEATS}, N={LENGTH:,}, M={BUDGET}, 6 policies"
    return row(BENCHMARK, case, "the aim", seconds, aim, f"<= {1000 * aim:.0f} ms")


def _skipped(reason: str) -> dict[str, Any]:
    return {
        "benchmark": BENCHMARK,
        "case": f"skipped: {reason}",
        "baseline": "the aim",
        "seconds": None,
        "baseline_seconds": None,
        "ratio": None,
        "aim": "<= 150 ms median, <= 300 ms 95th percentile",
    }
