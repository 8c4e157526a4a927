"""Reading fields of JSON records with messages that name the file, the line and the key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparselab.files import read_csv
from sparselab.validation import shorten

Kind = TypeVar("Kind")

#: The source of every workload that ships with the lab.
SAMPLE_SOURCE = "sample written for sparselab"

_NAMES = {str: "text", int: "an integer", float: "a number", list: "a list", dict: "an object"}


def origin(path: str | Path | None, name: str, sample_name: str) -> tuple[str, str]:
    """Return name and source of a workload read from ``path``, or of the shipped sample without."""
    return (sample_name, SAMPLE_SOURCE) if path is None else (name, str(path))


def get_field(record: Mapping[str, Any], key: str, kind: type[Kind], where: str) -> Kind:
    """Return ``record[key]`` once it is there and of ``kind``.

    ``where`` begins the message, such as ``"trace.jsonl, line 3"``. Raises ``ValueError``.
    """
    if key not in record:
        raise ValueError(f"{where}: the key {key!r} is missing (found: {', '.join(record)}).")
    value = record[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(f"{where}: {key!r} is too large, got {shorten(value)}.") from None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where}: {key!r} must be {_NAMES[kind]}, got {shorten(value)}.")
    return value


def get_text(record: Mapping[str, Any], key: str, where: str) -> str:
    """Return a field that must be text with something in it besides blanks."""
    text = get_field(record, key, str, where)
    if not text.strip():
        raise ValueError(f"{where}: {key!r} is empty.")
    return text


def get_ids(record: Mapping[str, Any], key: str, where: str) -> NDArray[np.int64]:
    """Return a field that must be a list of integers of at most 64 bits, as an array.

    Unsigned ones from 2**63 on, as some traces have for hashes, keep their bits.
    """
    values = get_field(record, key, list, where)
    if all(type(value) is int for value in values):
        for dtype in (np.int64, np.uint64):
            try:
                return np.array(values, dtype).astype(np.int64, copy=False)
            except OverflowError:
                continue
    # The first one that is wrong by itself, or all: negative ones beside some from 2**63 on.
    wrong = next((v for v in values if type(v) is not int or not -(2**63) <= v < 2**64), values)
    raise ValueError(
        f"{where}: {key!r} must be a list of integers of at most 64 bits, got {shorten(wrong)}."
    )


def get_tokens(record: Mapping[str, Any], where: str) -> NDArray[np.int64]:
    """Return the field ``tokens``, which must be a list of token ids and not empty."""
    ids = get_ids(record, "tokens", where)
    if not ids.size:
        raise ValueError(f"{where}: 'tokens' is empty.")
    if ids.min() < 0:
        wrong = record["tokens"][int(ids.argmin())]
        raise ValueError(f"{where}: 'tokens' must be token ids in 0..2**63 - 1, got {wrong}.")
    return ids


def get_arrival(record: Mapping[str, Any], key: str, where: str, seconds: float = 1.0) -> float:
    """Return an arrival in seconds; the record counts in units of ``seconds``."""
    value = get_field(record, key, float, where)
    if not 0.0 <= value < float("inf"):
        raise ValueError(f"{where}: {key!r} must be finite and not negative, got {value:g}.")
    return value * seconds


def check_keys(record: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Raise ``ValueError`` where the record has none of the ``allowed`` keys."""
    allowed = list(allowed)
    if not any(key in record for key in allowed):
        found = ", ".join(record) or "none"
        raise ValueError(
            f"{where}: one of the keys {', '.join(allowed)} is needed, found: {found}."
        )


def read_table(path: Path, columns: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ``(place, row)`` of a CSV that must have these columns, and at least one row."""
    columns, rows = list(columns), read_csv(path)
    _, header = next(rows, (1, []))
    for name in columns:
        if name not in header:
            raise ValueError(f"{path}, line 1: the column {name!r} is missing.")
    empty = True
    for number, fields in rows:
        empty = False
        row, where = dict(zip(header, fields, strict=False)), f"{path}, line {number}"
        if not row.keys() >= set(columns):
            raise ValueError(f"{where}: the row is too short.")
        yield where, row
    if empty:
        raise ValueError(f"{path} has a header but no rows.")
