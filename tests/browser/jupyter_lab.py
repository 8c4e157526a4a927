"""A JupyterLab server for tests, and a notebook in it as a person in front of a browser sees it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import nbformat
from contrast import contrast
from playwright.sync_api import Browser, Locator, Page, Route, expect

REPOSITORY = Path(__file__).resolve().parents[2]
SCREENSHOTS = REPOSITORY / "screenshots"
LOCAL = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:", "about:")
WIDTH, HEIGHT = 1366, 900
# Long enough for a machine that is busy with other tests; what holds is seen as soon as it does.
PATIENCE_MS = 90_000

SETTINGS = {
    # The toast that asks about news can be switched off only here.
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    # Every cell stays in the page, wherever it is scrolled to.
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
}


def chromium() -> str | None:
    """Return the path of a Chromium or Chrome on this machine, or ``None``."""
    named = os.environ.get("SPARSELAB_CHROMIUM")
    if named:
        return named
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        found = shutil.which(name)
        if found:
            return found
    return None


def browser_options() -> dict[str, Any]:
    """Return how Playwright starts it."""
    return {
        "executable_path": chromium(),
        "args": ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    }


# Resolves `window.sparselabElapsed` with the time from the next key event to a changed picture.
STOPWATCH = """
timeout => {
  const lines = () => [...document.querySelectorAll('.sparselab-panel path.js-line')]
    .map(path => path.getAttribute('d')).join();
  const before = lines();
  window.sparselabElapsed = new Promise((resolve, reject) => {
    window.addEventListener('keydown', () => {
      const start = performance.now();
      const look = () => {
        const elapsed = performance.now() - start;
        if (lines() !== before) resolve(elapsed);
        else if (elapsed > timeout) reject(new Error('the picture did not change'));
        else requestAnimationFrame(look);
      };
      look();
    }, {capture: true, once: true});
  });
}
"""

IDLE = (
    "() => window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session"
    "?.kernel?.status === 'idle'"
)


class Server:
    """JupyterLab on a free port, with folders and settings of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.token = secrets.token_hex(16)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[Server]:
        """Start it, wait until it answers, and stop it in the end."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(), env=self._environment(), cwd=self.root, stdout=log, stderr=log
            )
            try:
                self._wait()
                yield self
            finally:
                self._process.terminate()
                self._process.wait(timeout=30)

    def api(self, path: str, method: str = "GET") -> Any:
        """Call the server's REST interface; return its JSON, or ``None`` for no content."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def stop_kernel(self, notebook: str) -> None:
        """End the session of a notebook."""
        for session in self.api("sessions"):
            if session["path"] == notebook:
                self.api(f"sessions/{session['id']}", method="DELETE")

    def _wait(self) -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                self.api("status")
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(
            "JupyterLab did not start:\n" + (self.folder / "server.log").read_text()[-3000:]
        )

    def _command(self) -> list[str]:
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--ip=127.0.0.1",
            f"--port={self.port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.root}",
            "--ServerApp.terminals_enabled=False",
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.extension_manager=readonly",
            "--LabApp.expose_app_in_browser=True",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--allow-root")
        return command

    def _environment(self) -> dict[str, str]:
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }
        for name, settings in SETTINGS.items():
            file = self.folder / "settings" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(settings))
        environment = {key: str(self.folder / name) for key, name in folders.items()}
        # The kernel must not think that it is under test: panels raise there.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
        path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return inherited | environment | {"PYTHONPATH": path}


def keep_inside(page: Page) -> list[str]:
    """Let only a page's requests to this machine pass; return the list that the others go to."""
    outside: list[str] = []

    def decide(route: Route) -> None:
        if route.request.url.startswith(LOCAL):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    page.route("**/*", decide)
    return outside


class Notebook:
    """One notebook, open in one page of the browser."""

    def __init__(self, server: Server, browser: Browser, name: str) -> None:
        self.server, self.name = server, name
        self.page: Page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        self.page.set_default_timeout(PATIENCE_MS)
        self.outside = keep_inside(self.page)

    def open(self) -> None:
        """Load the page and wait for the kernel."""
        self.page.goto(
            f"{self.server.url}/lab/workspaces/{self.name.removesuffix('.ipynb')}/tree/{self.name}"
            f"?reset&token={self.server.token}"
        )
        self._wait_for_kernel()
        # Close the file browser: the notebook then has the width that it has on a small screen.
        self.command("application:toggle-left-area")

    def command(self, name: str, **arguments: Any) -> None:
        """Execute a JupyterLab command and wait for it."""
        self.page.evaluate(
            "([name, arguments]) => window.jupyterapp.commands.execute(name, arguments)",
            [name, arguments],
        )

    def run_all(self, patience_ms: int = 300_000) -> None:
        """Run every cell and wait until all are done."""
        self.page.set_default_timeout(patience_ms)
        self.command("notebook:run-all-cells")
        self._wait_for_kernel()
        self.page.set_default_timeout(PATIENCE_MS)

    def run_cell(self, index: int) -> None:
        """Run one cell, counted from 0, and wait until it is done."""
        self.page.evaluate(
            "index => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = index; }",
            index,
        )
        self.command("notebook:run-cell")
        self._wait_for_kernel()

    def save_and_reload(self) -> None:
        """Save, load the page anew and wait for the same kernel."""
        self.command("docmanager:save")
        self.page.goto(self.page.url)
        self._wait_for_kernel()

    def use_theme(self, name: str) -> None:
        """Switch to ``light`` or ``dark``."""
        self.command("apputils:change-theme", theme=f"JupyterLab {name.capitalize()}")
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light",
            arg="true" if name == "light" else "false",
        )

    def errors(self) -> list[str]:
        """Return what cells raised."""
        return self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
              .filter(cell => cell.type === 'code')
              .flatMap(cell => cell.outputs.toJSON())
              .filter(output => output.output_type === 'error')
              .map(output => `${output.ename}: ${output.evalue}`)"""
        )

    def close(self) -> None:
        """Close the page and end the kernel."""
        self.page.close()
        self.server.stop_kernel(self.name)

    def kernel_is_idle(self) -> bool:
        """Whether the kernel has nothing to do."""
        return self.page.evaluate(IDLE)

    def _wait_for_kernel(self) -> None:
        self.page.wait_for_function(IDLE)


class ServedNotebook(Protocol):
    """What a panel is looked at in: a page, and a kernel that is idle or not."""

    page: Page

    def kernel_is_idle(self) -> bool:
        """Whether the kernel has nothing to do."""


Served = TypeVar("Served", bound=ServedNotebook)


class PanelPage(Generic[Served]):
    """A panel in a notebook: its controls, figure and error line."""

    def __init__(self, notebook: Served, index: int = 0) -> None:
        self.notebook, self.page = notebook, notebook.page
        self.root: Locator = self.page.locator(".sparselab-panel").nth(index)

    def wait_until_drawn(self) -> None:
        """Wait for the figure."""
        self.root.locator(".js-plotly-plot .main-svg").first.wait_for()
        deadline = time.monotonic() + PATIENCE_MS / 1000
        figure = self.root.locator(".js-plotly-plot").first
        while not figure.evaluate("figure => figure.calcdata?.length > 0"):
            assert time.monotonic() < deadline, "the figure was not drawn"
            self.page.wait_for_timeout(100)
        self.settle()

    def picture(self) -> str:
        """Return the drawing itself, as SVG text without the hover layer."""
        return self.root.evaluate(
            "root => [...root.querySelectorAll('.js-plotly-plot .main-svg')]"
            ".map(svg => [...svg.children].filter(c => !c.classList.contains('hoverlayer'))"
            ".map(c => c.outerHTML).join('')).join('')"
        )

    def contrast(self) -> float:
        """Return the contrast of the axes' numbers to the page."""
        return contrast(self.root, ".js-plotly-plot .xtick text")

    def drawn_data(self) -> list[list[Any]]:
        """Return what plotly has drawn: name, x and y of each trace."""
        return self.root.locator(".js-plotly-plot").evaluate(
            "figure => figure.data.map(trace => [trace.name ?? '', [...(trace.x ?? [])],"
            " [...(trace.y ?? [])]])"
        )

    def shown_numbers(self) -> list[str]:
        """Return every text in the figure, row by row: labels, ticks and the table's cells."""
        return self.root.evaluate(
            "root => [...root.querySelectorAll('.js-plotly-plot .main-svg text')]"
            ".filter(text => !text.closest('.hoverlayer')).map(text => text.textContent)"
        )

    def wait_until_changed(self, before: str, timeout_ms: int = PATIENCE_MS) -> None:
        """Wait until the drawing is another than ``before``."""
        deadline = time.monotonic() + timeout_ms / 1000
        while self.picture() == before:
            assert time.monotonic() < deadline, "the picture did not change"
            self.page.wait_for_timeout(50)

    def settle(self, quiet_ms: int = 400) -> None:
        """Wait until the drawing has stayed the same, and the kernel idle, for a while."""
        last, since = self.picture(), time.monotonic()
        while (time.monotonic() - since) * 1000 < quiet_ms:
            self.page.wait_for_timeout(80)
            now = self.picture()
            if now != last or not self.notebook.kernel_is_idle():
                last, since = now, time.monotonic()

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until ``holds()``, which says ``what``."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not holds():
            assert time.monotonic() < deadline, f"not so after all: {what}"
            self.page.wait_for_timeout(50)

    def control(self, label: str) -> Locator:
        """Return the control whose label starts with ``label``."""
        return self.root.locator(
            ".jupyter-widgets.widget-inline-hbox",
            has=self.page.locator(f'.widget-label:text-matches("^{label}")'),
        ).first

    def press(self, label: str, key: str, times: int = 1) -> None:
        """Focus the slider or list with this label and press a key."""
        handle = self.control(label).locator(".noUi-handle, select, input").first
        handle.focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def time_key(self, label: str, key: str, timeout_ms: int = PATIENCE_MS) -> float:
        """Press a key on a control and return the milliseconds until its redrawn picture is there.

        Measured inside the page, from the key event to the first animation frame in which the
        lines of the figure are others than before.
        """
        self.control(label).locator(".noUi-handle").first.focus()
        self.page.evaluate(STOPWATCH, timeout_ms)
        self.page.keyboard.press(key)
        return self.page.evaluate("() => window.sparselabElapsed")

    def choose(self, label: str, option: str) -> None:
        """Choose from the drop-down list with this label."""
        self.control(label).locator("select").select_option(label=option)

    def write(self, label: str, text: str) -> None:
        """Replace the text of the field with this label and press Enter."""
        field = self.control(label).locator("input").first
        field.fill(text)
        field.press("Enter")

    def value(self, label: str) -> str:
        """Return what the control shows: a slider's number, a field's text, a list's choice."""
        control = self.control(label)
        if control.locator("select").count():
            return control.locator("select").evaluate("s => s.options[s.selectedIndex].text")
        if control.locator(".widget-readout").count():
            return control.locator(".widget-readout").inner_text().strip()
        return control.locator("input").first.input_value()

    def drag_slider(self, label: str, by: float) -> None:
        """Drag the slider's handle with the mouse by a number of pixels."""
        box = self.control(label).locator(".noUi-handle").first.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + by, y, steps=8)
        self.page.mouse.up()

    def error(self) -> str:
        """Return the sentence in the error line, empty when all is well."""
        return self.root.locator(".sparselab-error").first.inner_text().strip()

    def wait_for_error(self, part: str) -> None:
        """Wait until the error line holds ``part``."""
        self.root.locator(".sparselab-error", has_text=part).first.wait_for()

    def wait_for_no_error(self) -> None:
        """Wait until the error line is empty."""
        expect(self.root.locator(".sparselab-error").first).to_have_text("", timeout=PATIENCE_MS)

    def screenshot(self, name: str) -> None:
        """Save the panel as it looks now, for a person to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        # Tall enough for the whole panel, which the notebook would otherwise scroll.
        self.page.set_viewport_size({"width": WIDTH, "height": 1800})
        self.root.scroll_into_view_if_needed()
        self.settle()
        self.root.screenshot(path=SCREENSHOTS / f"{name}.png")
        self.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, path)


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
