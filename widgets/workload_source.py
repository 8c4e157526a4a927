"""Where a panel's requests come from: a loader's name or a file, and the order they arrive in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import sparselab as sl
from sparselab.validation import check_choice
from sparselab.workloads import Workload
from widgets.overlap_source import FILE

RECOGNISED = "as recognised"
#: What a file may be said to be: recognised from how it begins, or read by the loader named.
FORMATS = (
    RECOGNISED,
    *(name for name in sl.workloads.loaders() if not name.startswith("synthetic")),
)


@dataclass(frozen=True, eq=False)
class WorkloadSource:
    """Requests in the order in which they are replayed, with the Python expression for them.

    The same object stands for the same requests, so that results may be kept by it.
    """

    workload: Workload
    code: str


def workload_source(
    name: str, path: str, seed: int, file_format: str = RECOGNISED
) -> WorkloadSource:
    """Return the requests of a loader by its name, or for ``"my own file"`` those at ``path``.

    Requests with arrivals of their own keep that order. The others stand document after document
    in their files, which no server ever sees; their groups are interleaved with ``seed``.

    Args:
        name: a loader, whose shipped sample or synthetic requests are meant, or ``"my own file"``.
        path: the file or folder, which is looked at for ``"my own file"`` only.
        seed: of the interleaving.
        file_format: one of :data:`FORMATS`.

    Raises:
        ValueError, TypeError, OSError: for what cannot be loaded.
    """
    if name != FILE:
        return _loaded(name, seed)
    check_choice("file_format", file_format, FORMATS)
    if not path.strip():
        raise ValueError("path is empty: name a trace or data set.")
    file = Path(path.strip()).expanduser()
    if not file.exists():
        raise FileNotFoundError(f"no such file: {file}.")
    return _read(str(file), seed, file_format, tuple(_versions(file)))


def _versions(place: Path) -> Iterator[tuple[str, int]]:
    """Yield what changes when a file is edited, or a file of a folder (two levels deep)."""
    for file in (place, *sorted(place.glob("*")), *sorted(place.glob("*/*"))):
        yield str(file), file.stat().st_mtime_ns


@lru_cache(maxsize=4)
def _loaded(name: str, seed: int) -> WorkloadSource:
    return _in_order(sl.workloads.load(name), f"sl.workloads.load({name!r})", seed)


@lru_cache(maxsize=4)
def _read(
    path: str, seed: int, file_format: str, _versions: tuple[tuple[str, int], ...]
) -> WorkloadSource:
    """Read once for each version of the file, which gives the workload its name."""
    name = sl.workloads.recognise(path) if file_format == RECOGNISED else file_format
    workload = replace(
        sl.workloads.load(name, path=path), name=f"{Path(path).name} (read as {name})"
    )
    return _in_order(workload, f"sl.workloads.load({name!r}, path={path!r})", seed)


def _in_order(workload: Workload, code: str, seed: int) -> WorkloadSource:
    if workload.has_arrivals:
        return WorkloadSource(workload, code)
    return WorkloadSource(workload.interleave(seed), f"{code}.interleave({seed})")
