"""How a notebook hands over its results: :func:`publish` in a cell, :func:`collect` afterwards.

A published value travels inside the notebook as an output of its own media type, which front ends
show nothing of. So it works under plain papermill and in JupyterLab alike, needs no side file,
and an executed notebook can be asked for its results years later.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.files import atomic_path
from sparselab.validation import check_number, shorten

if TYPE_CHECKING:
    import pandas as pd
    from nbformat import NotebookNode

RESULT_MIME = "application/vnd.sparselab.result+json"
MAX_TABLE_BYTES = 256 * 1024  # as Parquet; keeps executed notebooks below 1 MB
MAX_UNIT = 32  # characters; it stands beside a number, in a line


@dataclass(frozen=True)
class Number:
    """A headline number: its value and the unit, ``""`` for a plain ratio or count."""

    value: float | int
    unit: str = ""

    @property
    def digits(self) -> str:
        """The value as readers like it, without the unit: ``12,031`` or ``0.3333``."""
        if isinstance(self.value, int) or abs(self.value) >= 1000:
            return f"{self.value:,.0f}"
        return f"{self.value:.4g}"

    def __str__(self) -> str:
        return f"{self.digits} {self.unit}".strip()


@dataclass(frozen=True)
class Results:
    """What a notebook published: numbers and tables by name."""

    numbers: dict[str, Number] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)

    def save(self, folder: str | Path) -> list[Path]:
        """Write each table to ``<name>.parquet`` in ``folder``, the numbers to ``numbers.parquet``.

        Returns the paths written.
        """
        import pandas as pd

        tables = dict(self.tables)
        if self.numbers:
            rows = [(name, float(n.value), n.unit) for name, n in self.numbers.items()]
            tables["numbers"] = pd.DataFrame(rows, columns=["name", "value", "unit"])
        paths = [Path(folder) / f"{name}.parquet" for name in tables]
        for path, table in zip(paths, tables.values(), strict=True):
            with atomic_path(path) as temporary:
                table.to_parquet(temporary)
        return paths


def publish(name: str, value: Any, unit: str = "") -> None:
    """Hand over a result of this notebook under ``name``.

    ``value`` is a number (a headline, shown on the index page of a sweep; ``unit``, up to 32
    characters of text, goes with it) or a table: a DataFrame, or a mapping or sequence that
    ``pandas.DataFrame`` accepts. ``name`` consists of letters, digits, ``_`` and ``-``, starts
    with a letter, and is used once in a notebook.

    Outside a notebook there is nobody to hand it to, and the value is only checked. Raises
    ``ValueError`` for a bad name, for a number that is not finite and for a table of more than
    256 KiB as Parquet or for a bad unit, ``TypeError`` for a value that is neither and for a name
    or unit that is no text.
    """
    check_name(name)
    check_unit(unit)
    if isinstance(value, (str, bytes, bool)):
        raise TypeError(f"{name} must be a number or a table, got {value!r}.")
    is_table = hasattr(value, "columns") or isinstance(value, (Mapping, list, tuple))
    if is_table and unit:
        raise ValueError(
            f"unit belongs to a number; name the units in the columns of table {name}."
        )
    content = _encode_table(name, value) if is_table else _encode_number(name, value, unit)

    from IPython.core.interactiveshell import InteractiveShell
    from IPython.display import publish_display_data

    if InteractiveShell.initialized():
        publish_display_data({RESULT_MIME: {"name": name, **content}})


def collect(notebook: NotebookNode) -> Results:
    """Return everything that an executed notebook published.

    Raises ``ValueError`` where it published two values under one name, and ``ValueError`` or
    ``TypeError`` for a name that :func:`publish` does not allow (it becomes that of a file).
    """
    import pandas as pd

    results = Results()
    for content in _published(notebook):
        name = content["name"]
        check_name(name)
        if name in results.numbers or name in results.tables:
            raise ValueError(f"the notebook publishes {name!r} twice.")
        if "parquet" in content:
            parquet = base64.b64decode(content["parquet"])
            results.tables[name] = pd.read_parquet(io.BytesIO(parquet))
        else:
            results.numbers[name] = Number(content["value"], content["unit"])
    return results


def _published(notebook: NotebookNode) -> list[dict[str, Any]]:
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    outputs = (output for cell in cells for output in cell.outputs)
    return [o.data[RESULT_MIME] for o in outputs if RESULT_MIME in o.get("data", {})]


def check_name(name: Any) -> None:
    """Raise ``TypeError`` or ``ValueError`` for what cannot be the name of a published value."""
    if not isinstance(name, str):
        raise TypeError(f"name must be text, got {name!r}.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) or name == "numbers":
        raise ValueError(
            f"name must be up to 64 letters, digits, '_' or '-', start with a letter and not be "
            f"'numbers', got {name!r}."
        )


def check_unit(unit: Any) -> None:
    """Raise ``TypeError`` or ``ValueError`` for what cannot be the unit of a published number."""
    if not isinstance(unit, str):
        raise TypeError(f"unit must be text, got {shorten(unit)}.")
    if len(unit) > MAX_UNIT or not unit.isprintable():
        raise ValueError(
            f"unit must be up to {MAX_UNIT} printable characters, got {shorten(unit)}."
        )


def _encode_number(name: str, value: Any, unit: str) -> dict[str, Any]:
    number = check_number(name, value)
    is_whole = (
        not isinstance(value, float) and number == int(number) and hasattr(value, "__index__")
    )
    return {"value": int(value) if is_whole else number, "unit": unit}


def _encode_table(name: str, value: Any) -> dict[str, Any]:
    import pandas as pd

    table = value if isinstance(value, pd.DataFrame) else pd.DataFrame(value)
    buffer = io.BytesIO()
    table.to_parquet(buffer, compression="zstd")
    if buffer.tell() > MAX_TABLE_BYTES:
        raise ValueError(
            f"table {name} takes {buffer.tell()} bytes as Parquet, at most {MAX_TABLE_BYTES} are "
            "allowed; publish a summary of it."
        )
    return {"parquet": base64.b64encode(buffer.getvalue()).decode("ascii")}
