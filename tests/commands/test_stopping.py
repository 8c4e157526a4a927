"""Ctrl-C and SIGTERM through the real command line: the exit code, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

# A shell starts what runs in the background with interrupts ignored, and its children inherit that.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from sparselab.cli import main; sys.exit(main())"
)

SIGNALS = pytest.mark.parametrize(
    ("sent", "code", "said"),
    [(signal.SIGINT, 130, "interrupted."), (signal.SIGTERM, 143, "terminated.")],
    ids=["Ctrl-C", "SIGTERM"],
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    """Start `sparselab` with the given arguments in ``tmp_path``."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, *arguments]
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, cwd=tmp_path, **streams))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def stop(process: subprocess.Popen[str], sent: signal.Signals) -> str:
    """Send a signal; return the last line of what was said, once all its children have ended."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(sent)
    _, messages = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == [], "no worker and no kernel outlives the command"
    return messages.splitlines()[-1]


@SIGNALS
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_running_notebook_is_ended_and_leaves_nothing(
    start, tmp_path: Path, command: str, sent: signal.Signals, code: int, said: str
) -> None:
    cells = [
        nbformat.v4.new_code_cell("size: int = 3", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("open('started', 'w').close(); __import__('time').sleep(99)"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "slow.ipynb")
    (tmp_path / "slow.yaml").write_text("runs: [{notebook: slow.ipynb}]")
    process = start(command, "slow.ipynb" if command == "run" else "slow.yaml")
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "started").exists()

    assert stop(process, sent) == f"sparselab {command}: {said}"
    assert process.returncode == code
    left = {path.name for path in (tmp_path / "runs" / "slow").iterdir()}
    assert left <= {".lock"}, "no unfinished folder and no empty one"


@SIGNALS
@pytest.mark.parametrize(
    "arguments",
    [
        ("overlap", "log.jsonl", "-o", "made.csv"),
        ("simulate", "log.jsonl", "--out", "made.parquet"),
        ("frontier", "--overlap", "log.csv", "--budget", "2"),
    ],
    ids=["overlap", "simulate", "frontier"],
)
def test_a_command_at_work_is_ended_and_writes_nothing(
    start, tmp_path: Path, arguments: tuple[str, ...], sent: signal.Signals, code: int, said: str
) -> None:
    log = tmp_path / next(a for a in arguments if a.startswith("log"))
    os.mkfifo(log)
    process = start(*arguments)
    silent = open_when_read(log, process)
    try:
        assert stop(process, sent) == f"sparselab {arguments[0]}: {said}"
    finally:
        os.close(silent)
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == [log]


def open_when_read(pipe: Path, process: subprocess.Popen[str]) -> int:
    """Open a pipe for writing once the command reads it: as nothing comes, it stays at work."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            time.sleep(0.05)
    raise AssertionError(f"the command does not read: {process.communicate()[1]}")
