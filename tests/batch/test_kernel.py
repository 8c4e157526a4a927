"""The kernel of a run: where it listens, and that one which does not start ends the run."""

from __future__ import annotations

import json
import logging
import tempfile
from contextlib import ExitStack
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client.asynchronous import AsyncKernelClient
from nbclient.exceptions import DeadKernelError
from tiny_notebooks import PUBLISH, write

from sparselab.batch import kernel
from sparselab.batch.run import run_notebook


@pytest.fixture
def long_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, with a path that is too long for a socket in it."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.skipif(not Path("/tmp").is_dir(), reason="needs /tmp")
def test_sockets_are_elsewhere_where_the_temporary_folder_has_a_long_path(
    long_folder: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        address = kernel._socket_address(stack)
        assert address is not None
        assert address.startswith("/tmp/sparselab-")
        assert Path(address).parent.stat().st_mode & 0o077 == 0, "nobody else may look in"
    assert not Path(address).parent.exists()

    assert run_notebook(write(tmp_path / "tiny.ipynb", PUBLISH), tmp_path / "run").completed


def test_without_a_short_folder_there_are_no_sockets(
    long_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel.os, "access", lambda path, mode: path != "/tmp")
    with ExitStack() as stack:
        assert kernel._socket_address(stack) is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["sleep", "600"], "the kernel did not start: Kernel didn't respond in 1 seconds"),
        (["false"], "the kernel did not start: Kernel died before replying"),
        (None, "NoSuchKernel: No such kernel named broken"),
    ],
)
def test_a_kernel_that_does_not_start_fails_the_run_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str] | None, message: str
) -> None:
    if command:
        spec = tmp_path / "kernels" / "broken" / "kernel.json"
        spec.parent.mkdir(parents=True)
        spec.write_text(json.dumps({"argv": command, "display_name": "b", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setattr(kernel, "START_TIMEOUT_S", 1)
    path = write(tmp_path / "tiny.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.kernelspec.name = "broken"
    nbformat.write(notebook, path)
    record = run_notebook(path, tmp_path / "run")
    assert str(record.error).startswith(message)
    assert record.duration_s < 30
    assert record.provenance["kernel"] == {"name": "broken", "python": None}


def test_a_kernel_that_is_interrupted_while_it_starts_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(client: AsyncKernelClient, timeout: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AsyncKernelClient, "wait_for_ready", interrupted)
    before = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        run_notebook(write(tmp_path / "tiny.ipynb"), tmp_path / "run")
    assert [child for child in psutil.Process().children() if child not in before] == []


def test_nothing_is_logged_of_a_kernel_that_was_shut_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_notebook(write(tmp_path / "tiny.ipynb"), tmp_path / "run")
    for error in (DeadKernelError("Kernel died"), OSError("disk full")):
        logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=error)
    logged = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(error) for error in logged] == ["disk full"]
