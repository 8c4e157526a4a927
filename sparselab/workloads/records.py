"""Reading fields of JSON records with messages that name the file, the line and the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind")

_NAMES = {str: "text", int: "an integer", float: "a number", list: "a list", dict: "an object"}


def get_field(record: Mapping[str, Any], key: str, kind: type[Kind], where: str) -> Kind:
    """Return ``record[key]`` once it is there and of ``kind``.

    ``where`` begins the message, such as ``"trace.jsonl, line 3"``. Raises ``ValueError``.
    """
    if key not in record:
        raise ValueError(f"{where}: the key {key!r} is missing (found: {', '.join(record)}).")
    value = record[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
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
    """Return a field that must be a list of integers, as an array."""
    values = get_field(record, key, list, where)
    if not values:
        return np.zeros(0, dtype=np.int64)
    array = np.asarray(values) if all(type(value) is int for value in values) else np.zeros(1)
    # Integers beyond 64 bits become objects, which no hash or token id needs.
    if array.dtype.kind not in "iu":
        raise ValueError(f"{where}: {key!r} must be a list of integers, got {shorten(values)}.")
    return array.astype(np.int64)


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


def shorten(value: Any, limit: int = 40) -> str:
    """Return a value's ``repr``, cut to ``limit`` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
