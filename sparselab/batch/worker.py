"""The process that a sweep starts for each of its runs: ``python -m sparselab.batch.worker``.

It reads one line of JSON, the arguments of :func:`sparselab.batch.run.run_notebook`, from its
standard input and runs it. The sweep holds the other end of that pipe open; when the sweep dies,
however it dies, the pipe closes, and the worker ends so that nothing is left running. It does so
in order, as at SIGTERM: the kernel is shut down and the unfinished folder removed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from sparselab.batch.run import run_notebook
from sparselab.termination import TERMINATED, Terminated, orderly_termination

ORPHAN_GRACE_S = 10.0  # a busy kernel is given 5 seconds to end by itself


def read_line() -> str:
    """Return the first line of standard input, read byte by byte so that nothing is buffered."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode("utf-8")


def exit_when_orphaned() -> None:
    """Wait for standard input to close, then end this process, in order if that takes not long."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_S)
    os._exit(1)


def skip_slow_import() -> None:
    """Keep jsonschema, which nbformat imports, from building a grammar of addresses at import.

    That takes seconds of each worker, and the schema of notebooks has no addresses to check. To
    jsonschema the package then seems not to be installed, which it allows for.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def main() -> int:
    arguments = json.loads(read_line())
    skip_slow_import()
    try:
        with orderly_termination():
            threading.Thread(target=exit_when_orphaned, daemon=True).start()
            run_notebook(**arguments)
    except Terminated:
        return TERMINATED
    return 0


if __name__ == "__main__":
    sys.exit(main())
