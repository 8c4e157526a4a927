"""Where a panel's requests come from: a loader's name or a file, and the order they arrive in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import sparselab as sl
from sparselab.workloads import Workload


@dataclass(frozen=True, eq=False)
class WorkloadSource:
    """Requests in the order in which they are replayed, with the Python expression for them.

    The same object stands for the same requests, so that results may be kept by it.
    """

    workload: Workload
    code: str


def workload_source(name: str, path: str, seed: int) -> WorkloadSource:
    """Return the requests of a loader by its name, or of a file where ``path`` is not blank.

    Requests with arrivals of their own keep that order. The others stand document after document
    in their files, which no server ever sees; their groups are interleaved with ``seed``.

    Raises ``ValueError``, ``TypeError`` or ``OSError`` for what cannot be loaded.
    """
    path = path.strip()
    if not path:
        return _loaded(name, "", seed, ())
    file = Path(path).expanduser()
    if not file.exists():
        raise FileNotFoundError(f"no such file: {file}.")
    return _loaded("", str(file), seed, tuple(_versions(file)))


def _versions(place: Path) -> Iterator[tuple[str, int]]:
    """Yield what changes when a file is edited, or a file of a folder (two levels deep)."""
    for file in (place, *sorted(place.glob("*")), *sorted(place.glob("*/*"))):
        yield str(file), file.stat().st_mtime_ns


@lru_cache(maxsize=4)
def _loaded(
    name: str, path: str, seed: int, _versions: tuple[tuple[str, int], ...]
) -> WorkloadSource:
    """Load once for each version of the file."""
    if path:
        name = sl.workloads.recognise(path)
        workload = sl.workloads.load(name, path=path)
        code = f"sl.workloads.load({name!r}, path={path!r})"
    else:
        workload = sl.workloads.load(name)
        code = f"sl.workloads.load({name!r})"
    if workload.has_arrivals:
        return WorkloadSource(workload, code)
    return WorkloadSource(workload.interleave(seed), f"{code}.interleave({seed})")
