"""Fixtures of the browser tests: one server and one browser a session, a fresh notebook a test.

They skip, with the reason, on a machine without a browser; with ``SPARSELAB_REQUIRE_BROWSER=1``
they fail instead.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from jupyter_lab import (
    Notebook,
    PanelPage,
    Server,
    browser_options,
    chromium,
    write_notebook,
)
from playwright.sync_api import Browser, sync_playwright

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder, and keep it in one process: one server, one browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    if chromium() is None:
        message = "no Chromium or Chrome found on this machine (apt-get install chromium)"
        if os.environ.get("SPARSELAB_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(**browser_options())
        yield running
        running.close()


@pytest.fixture(scope="session")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running JupyterLab."""
    with Server(tmp_path_factory.mktemp("lab")).running() as server:
        yield server


@pytest.fixture
def open_notebook(
    lab: Server, browser: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook file, or one made of code cells, and run all its cells.

    In the end it is asserted that nothing was requested from outside this machine.
    """
    yield from _notebooks(lab, browser, request.node.name)


@pytest.fixture(scope="module")
def open_shared_notebook(
    lab: Server, browser: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """The same for a notebook that all tests of a file use, one after the other."""
    yield from _notebooks(lab, browser, request.node.name)


@pytest.fixture
def open_panel(open_notebook: Callable[..., Notebook]) -> Callable[[str], PanelPage]:
    """Open a panel, given the Python that makes it, and wait until it is drawn."""
    return partial(_panel, open_notebook)


@pytest.fixture(scope="module")
def open_shared_panel(open_shared_notebook: Callable[..., Notebook]) -> Callable[[str], PanelPage]:
    """The same for a panel that all tests of a file use, one after the other."""
    return partial(_panel, open_shared_notebook)


def _panel(open_notebook: Callable[..., Notebook], code: str) -> PanelPage:
    panel = PanelPage(open_notebook(code))
    panel.wait_until_drawn()
    return panel


def _notebooks(lab: Server, browser: Browser, test: str) -> Iterator[Callable[..., Notebook]]:
    opened: list[Notebook] = []

    def start(*cells: str, file: Path | None = None) -> Notebook:
        # A path of its own for each: a path that was open before would get its kernel.
        name = f"{re.sub(r'[^a-zA-Z]+', '-', test)[:40]}-{next(_numbers)}.ipynb"
        if file is not None:
            shutil.copy(file, lab.root / name)
        else:
            write_notebook(lab.root / name, *cells)
        notebook = Notebook(lab, browser, name)
        opened.append(notebook)
        notebook.open()
        notebook.run_all()
        return notebook

    yield start
    outside = [url for notebook in opened for url in notebook.outside]
    for notebook in opened:
        notebook.close()
    assert outside == []
