"""Where a panel's overlaps come from: a family, a shipped table, a file, or drawn by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import sparselab as sl
from sparselab.validation import check_choice, nearest

FILE = "my own file"
HAND = "drawn by hand"
HAND_BINS = 12

#: The families and the parameters that each looks at.
FAMILIES: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "beta": ("a", "b"),
    "geometric": ("mean",),
    "zipf": ("exponent",),
    "point": ("depth",),
    "mixture": ("share", "depth", "a", "b"),
}


@dataclass(frozen=True)
class OverlapSource:
    """Overlaps with their origin.

    Attributes:
        distribution: the overlaps, for an entry of the length asked for.
        words: one line for the picture, which says if they are synthetic.
        code: the Python expression that makes them.
    """

    distribution: sl.OverlapDistribution
    words: str
    code: str


def sources() -> list[str]:
    """Return every source by name: families, shipped tables, own file, drawn by hand."""
    return [*FAMILIES, *sl.datasets(), FILE, HAND]


def overlap_source(name: str, length: int, settings: Mapping[str, Any]) -> OverlapSource:
    """Return the overlaps called ``name`` for an entry of ``length`` tokens.

    Args:
        name: one of :func:`sources`.
        length: tokens in the entry; deeper requests of a table count at the length.
        settings: ``a``, ``b``, ``mean`` (tokens), ``exponent``, ``depth`` and ``share`` (fractions
            of 1) for the families, ``path`` for a file, ``weights`` for those drawn by hand.

    Raises:
        ValueError, TypeError, OSError: for settings or a file that make no distribution.
    """
    if name in FAMILIES:
        return _family(name, length, tuple(settings[key] for key in FAMILIES[name]))
    if name == HAND:
        return _by_hand(length, tuple(settings["weights"]))
    if name == FILE:
        return _table(str(settings["path"]), length)
    check_choice("source", name, sources())
    table = sl.load_overlap(name)
    words = f"{name} ({sl.datasets()[name].source})"
    return _restricted(table, length, words, f"sl.load_overlap({name!r})")


@lru_cache(maxsize=4)
def _family(name: str, length: int, values: tuple[float, ...]) -> OverlapSource:
    make = sl.OverlapDistribution
    if name == "point":
        values = (round(values[0] * length),)
    if name == "mixture":
        share, depth, a, b = values
        at = round(depth * length)
        return OverlapSource(
            make.mixture([make.point(length, at), make.beta(length, a, b)], [share, 1 - share]),
            f"{share:.0%} of requests at depth {at:,}, the rest beta({a:g}, {b:g}); synthetic",
            f"sl.OverlapDistribution.mixture(\n"
            f"    [sl.OverlapDistribution.point({length}, {at}), "
            f"sl.OverlapDistribution.beta({length}, {a!r}, {b!r})],\n"
            f"    [{share!r}, {1 - share!r}],\n)",
        )
    shown = ", ".join(f"{value:g}" for value in values)
    arguments = "".join(f", {value!r}" for value in values)
    return OverlapSource(
        getattr(make, name)(length, *values),
        (f"{name}({shown})" if values else name) + "; synthetic",
        f"sl.OverlapDistribution.{name}({length}{arguments})",
    )


@lru_cache(maxsize=4)
def _by_hand(length: int, weights: tuple[float, ...]) -> OverlapSource:
    """Let every depth weigh as much as the bar drawn over it, each over an equal part of them."""
    if not any(weight > 0 for weight in weights):
        raise ValueError("weights must not all be zero: raise at least one of the drawn bars.")
    bars, depths = len(weights), length + 1
    part = np.arange(depths) * bars // depths
    return OverlapSource(
        sl.OverlapDistribution(np.arange(depths), np.asarray(weights, dtype=float)[part], length),
        f"drawn by hand in {bars} bars; synthetic",
        f"sl.OverlapDistribution(\n"
        f"    range({depths}),\n"
        f"    [{list(weights)}[t * {bars} // {depths}] for t in range({depths})],\n"
        f"    {length},\n)",
    )


def _table(path: str, length: int) -> OverlapSource:
    if not path.strip():
        raise ValueError("path is empty: name a CSV or trace, or upload one.")
    file = Path(path.strip()).expanduser()
    if not file.exists():
        raise FileNotFoundError(f"no such file: {file}{nearest(file, sources())}.")
    table, code = _measured(str(file), file.stat().st_mtime_ns)
    return _restricted(table, length, file.name, code)


@lru_cache(maxsize=2)
def _measured(path: str, _changed: int) -> tuple[sl.OverlapDistribution, str]:
    """Read a table or measure a trace, once for each version of the file."""
    if path.endswith((".csv", ".csv.gz")):
        return (
            sl.OverlapDistribution.from_csv(path),
            f"sl.OverlapDistribution.from_csv({path!r})",
        )
    kind = sl.workloads.recognise(path)
    samples = sl.workloads.load(kind, path=path).overlap_samples()
    return (
        sl.OverlapDistribution.from_samples(samples),
        f"sl.OverlapDistribution.from_samples(\n"
        f"    sl.workloads.load({kind!r}, path={path!r}).overlap_samples()\n)",
    )


def _restricted(table: sl.OverlapDistribution, length: int, words: str, code: str) -> OverlapSource:
    deeper = table.weights[table.depths > length].sum()
    words += f", {table.total:,g} requests"
    if deeper:
        words += f", {deeper:,g} deeper than {length:,} count there"
    return OverlapSource(table.restrict(length), words, f"{code}.restrict({length})")
