"""Ctrl-C and SIGTERM through the real command line: the exit code, and that nothing is left."""

from __future__ import annotations

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


def stop(process: subprocess.Popen[str], sent: signal.Signals) -> list[str]:
    """Send a signal; return what was said (kernels say things, too) once all children ended."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(sent)
    _, messages = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == [], "no worker and no kernel outlives the command"
    return messages.splitlines()


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

    assert f"sparselab {command}: {said}" in stop(process, sent)
    assert process.returncode == code
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    kept = {"runs", "runs/slow", "runs/slow/.lock"} if command == "sweep" else set()
    assert left - {"slow.ipynb", "slow.yaml", "started"} <= kept


REQUEST = '{"timestamp": 0, "input_length": 1300, "output_length": 1, "hash_ids": [1, 2, 3]}\n'


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
    # So long that reading it takes seconds: once the file is open, the command is at work.
    log = tmp_path / next(a for a in arguments if a.startswith("log"))
    rows = REQUEST * 400_000
    if log.suffix == ".csv":
        rows = "depth,requests\n" + "".join(f"{depth},1\n" for depth in range(1_500_000))
    log.write_text(rows)
    process = start(*arguments)
    wait_until_open(log, process)
    assert stop(process, sent) == [f"sparselab {arguments[0]}: {said}"]
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == [log]


def wait_until_open(file: Path, process: subprocess.Popen[str]) -> None:
    command = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if str(file) in {opened.path for opened in command.open_files()}:
            return
        time.sleep(0.01)
    raise AssertionError(f"the command does not read: {process.communicate()[1]}")
