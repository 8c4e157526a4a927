"""Executing a notebook in a kernel of its own, which nobody else can talk to."""

from __future__ import annotations

import logging
import os
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

START_TIMEOUT_S = 60  # a kernel imports little; one that is silent for so long will stay so

# The system takes paths of sockets up to 107 bytes on Linux, 103 on macOS.
MAX_SOCKET_PATH = 103


def execute(
    source: NotebookNode, target: Path, passed: Mapping[str, Any], timeout_s: float, cwd: Path
) -> tuple[str | None, str]:
    """Execute ``source`` with the parameters ``passed`` in the folder ``cwd``, into ``target``.

    A cell may take ``timeout_s`` seconds, the kernel's start :data:`START_TIMEOUT_S`. Returns what
    went wrong in one line, if anything did, and the traceback.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError
    from nbconvert.filters import strip_ansi
    from papermill.exceptions import PapermillExecutionError

    # It cannot read annotations such as `str | None`, and warns of parameters that were checked.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    logging.getLogger("asyncio").addFilter(_is_news)
    try:
        with _private_kernel(source.metadata.kernelspec.name) as manager:
            papermill.execute_notebook(
                source,
                # papermill fills in {names} in a path; this one is meant as it stands.
                str(target).replace("{", "{{").replace("}", "}}"),
                parameters=dict(passed),
                progress_bar=False,
                cwd=cwd.resolve(),
                start_timeout=START_TIMEOUT_S,
                execution_timeout=timeout_s,
                km=manager,
            )
    except PapermillExecutionError as error:
        trace = strip_ansi("\n".join(error.traceback))
        return f"cell [{error.exec_count}] raised {error.ename}: {error.evalue}", trace
    except Exception as error:
        first_line = next(iter(str(error).strip().splitlines()), "")
        # Once it has started, what is silent is a dead kernel and no mere RuntimeError.
        started = isinstance(error, DeadKernelError) or not isinstance(error, RuntimeError)
        what = type(error).__name__ if started else "the kernel did not start"
        return f"{what}: {first_line}", traceback.format_exc()
    return None, ""


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a log record is more than that a kernel died which a stopped run shut down.

    Something in nbclient still waits for it then; the run itself learns of a death otherwise.
    """
    from nbclient.exceptions import DeadKernelError

    return not (record.exc_info and isinstance(record.exc_info[1], DeadKernelError))


@contextmanager
def _private_kernel(name: str) -> Iterator[Any]:
    """Give the manager of a kernel that talks through socket files of its own; end it afterwards.

    nbclient would end it too, but not one that is interrupted while it starts.

    TCP ports, the default and on Windows the only way, are chosen before they are bound: kernels
    started at the same moment may pick the same one, and any user of the machine can connect.
    """
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync

    with ExitStack() as stack:
        address = None if os.name == "nt" else _socket_address(stack)
        sockets = {"transport": "ipc", "ip": address} if address else {}
        manager = AsyncKernelManager(kernel_name=name, **sockets)
        try:
            yield manager
        finally:
            if run_sync(manager.is_alive)():
                run_sync(manager.shutdown_kernel)()
            run_sync(manager.cleanup_resources)()


def _socket_address(stack: ExitStack) -> str | None:
    """Return the beginning of a kernel's socket paths, in a new private folder of ``stack``.

    That is in the folder for temporary files, or in ``/tmp`` where the paths would be longer than
    the system takes; ``None`` where neither can be used.
    """
    for parent in (tempfile.gettempdir(), "/tmp"):
        address_length = len(os.fsencode(parent)) + len("/sparselab-12345678/kernel-1")
        if address_length <= MAX_SOCKET_PATH and os.access(parent, os.W_OK | os.X_OK):
            folder = tempfile.TemporaryDirectory(prefix="sparselab-", dir=parent)
            return f"{stack.enter_context(folder)}/kernel"
    return None
