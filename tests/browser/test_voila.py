"""Voila serves notebooks 00 and 01 as pages: the panel is drawn and answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_lab import REPOSITORY, SCREENSHOTS, WIDTH, PanelPage, free_port, keep_inside
from playwright.sync_api import Browser

pytest.importorskip("voila", reason="Voila is not installed")

PATIENCE_S = 120
NOTEBOOKS = ("00_start_here", "01_checkpoint_placement")


@contextmanager
def voila(notebook: Path, folder: Path) -> Iterator[str]:
    """Serve one notebook; give its address."""
    url = f"http://127.0.0.1:{free_port()}/"
    command = [
        sys.executable,
        "-m",
        "voila",
        str(notebook),
        "--no-browser",
        f"--port={url.rstrip('/').rpartition(':')[2]}",
        "--Voila.ip=127.0.0.1",
    ]
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {name: str(folder / name.lower()) for name in folders}
    inherited = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    with (folder / "voila.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=inherited | own | {"PYTHONPATH": path}, stdout=log, stderr=log
        )
        try:
            wait_until_it_listens(url, process, folder / "voila.log")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


def wait_until_it_listens(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            # A page that does not exist: asking for the notebook itself would run it.
            urllib.request.urlopen(f"{url}nowhere", timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("Voila did not start:\n" + log.read_text()[-3000:])


IDLE = """
async () => {
  const config = JSON.parse(document.getElementById('jupyter-config-data').textContent);
  const answer = await fetch(`${config.baseUrl}api/kernels/${config.kernelId}`);
  return (await answer.json()).execution_state === 'idle';
}
"""


class VoilaPage:
    """A notebook as Voila serves it, in one page of the browser."""

    def __init__(self, browser: Browser) -> None:
        self.page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.outside = keep_inside(self.page)

    def kernel_is_idle(self) -> bool:
        """Whether the kernel has nothing to do, which Voila's page does not know but its server."""
        return self.page.evaluate(IDLE)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_voila_serves_the_notebook_with_a_panel_that_answers(
    stem: str, browser: Browser, tmp_path: Path
) -> None:
    with voila(REPOSITORY / "notebooks" / f"{stem}.ipynb", tmp_path) as url:
        served = VoilaPage(browser)
        served.page.goto(url)
        panel = PanelPage(served)
        panel.wait_until_drawn()
        assert served.page.locator("h1").first.inner_text()
        pictures = served.page.locator(".jp-RenderedPlotly, .plotly-graph-div")
        for index in range(pictures.count()):
            pictures.nth(index).locator(".main-svg").first.wait_for(state="attached")

        drawn = panel.picture()
        panel.press("Budget M", "ArrowRight")
        panel.wait_until_changed(drawn)
        assert panel.error() == ""

        SCREENSHOTS.mkdir(exist_ok=True)
        served.page.screenshot(path=SCREENSHOTS / f"voila-{stem}.png", full_page=True)
        # Voila's own template links icons that the lab does not use; the page does without.
        assert [url for url in served.outside if "fortawesome" not in url] == []
        served.page.close()
