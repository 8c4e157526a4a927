"""One progress helper for all long work.

At a terminal it rewrites one line; in a log, a notebook or a pipe it prints a line every ten
per cent, so that neither a log nor an exported page fills up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TextIO, TypeVar

Item = TypeVar("Item")


def collect(
    items: Iterable[Item], label: str, total: int | None = None, enabled: bool = True
) -> tuple[list[Item], bool]:
    """Return the items until their end or an interruption (Ctrl-C), and whether there was one.

    Arguments as for :func:`progress`, which reports meanwhile.
    """
    finished: list[Item] = []
    try:
        for item in progress(items, label, total, enabled=enabled):
            finished.append(item)
    except KeyboardInterrupt:
        return finished, True
    return finished, False


def progress(
    items: Iterable[Item],
    label: str,
    total: int | None = None,
    stream: TextIO | None = None,
    enabled: bool = True,
) -> Iterator[Item]:
    """Yield ``items`` and report on ``stream`` (standard error unless given) how far one is.

    ``total`` is needed only where ``items`` has no length. An interruption passes through: what
    the caller has finished is the caller's.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if not enabled or not total:
        yield from items
        return
    stream = sys.stderr if stream is None else stream
    live = stream.isatty()
    started = time.monotonic()
    shown = -1
    for done, item in enumerate(items, start=1):
        yield item
        step = 100 * done // total if live else 10 * (10 * done // total)
        if step != shown and (live or step > max(shown, 0)):
            shown = step
            seconds = time.monotonic() - started
            text = f"{label}: {100 * done // total:3d} % ({done} of {total}, {seconds:.1f} s)"
            stream.write(f"\r{text}\x1b[K" if live else f"{text}\n")
            stream.flush()
    if live:
        stream.write("\n")
