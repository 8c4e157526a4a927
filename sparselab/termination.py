"""A process that is asked to end (SIGTERM) ends in order: it first lets go of what it holds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: The exit code of a process that SIGTERM ended, as shells count: 128 and the signal's number.
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM came. What is undone at Ctrl-C, which this is a kind of, is undone at this too."""


@contextmanager
def orderly_termination() -> Iterator[threading.Event]:
    """Let SIGTERM raise :class:`Terminated` meanwhile; the event given tells whether it came.

    Only the first one does: while things are put in order, further ones are ignored. Outside the
    main thread, where Python takes no signals, nothing changes.
    """
    came = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(*_signal: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        came.set()
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
