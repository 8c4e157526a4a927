"""Data sets from the Hugging Face hub, through the package ``datasets``.

A path that is ``"hub"`` or begins with ``"hub:"`` names a data set there instead of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparselab.validation import shorten

PREFIX = "hub"


def hub_id(path: str | Path | None, default: str) -> str | None:
    """Return the id of the data set that ``path`` names (``"hub"`` is the default), or ``None``."""
    text = str(path)
    if text == PREFIX:
        return default
    return text[len(PREFIX) + 1 :] if text.startswith(PREFIX + ":") else None


def hub_rows(dataset_id: str, split: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(row number from 1, row)`` of a split.

    Raises ``ValueError`` where the package, the data set or the split cannot be had.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise ValueError(
            f"hub data set {dataset_id!r} needs the package datasets: pip install datasets."
        ) from None
    try:
        rows = load_dataset(dataset_id, split=split)
    except Exception as error:  # the package lets many kinds of network errors through
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(
            f"hub data set {dataset_id!r}, split {split!r}, cannot be had now "
            f"({type(error).__name__}: {reason}); give the path of a local copy instead."
        ) from None
    for number, row in enumerate(rows, start=1):
        yield number, dict(row)


def refuse_split(split: str | None, file: Path) -> None:
    """Raise ``ValueError`` where a ``split`` is asked of a file, which has no parts."""
    if split is not None:
        raise ValueError(
            f"split must be left out for {file}, which is read whole, got {shorten(split)}."
        )
