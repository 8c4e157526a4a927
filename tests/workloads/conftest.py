"""What the tests of the loaders share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes records as JSON lines into a temporary file."""

    def write(*records: Any, name: str = "file.jsonl") -> Path:
        path = tmp_path / name
        lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    return write
