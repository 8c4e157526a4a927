"""What is kept about a run: ``run.json``, and which files beside it belong to the run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, get_origin, get_type_hints

from sparselab.batch.results import Number, check_name, check_unit
from sparselab.files import open_text, parse_json, write_json
from sparselab.validation import check_number, shorten

RECORD_FILE = "run.json"
TRACEBACK_FILE = "traceback.txt"
RESULTS_FOLDER = "results"
STATUSES = ("completed", "failed")


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` says about a run.

    ``parameters`` are all of the notebook's, ``given`` those that were set for this run (``live``
    apart). ``seed`` repeats the parameter of that name where it is an integer. ``status`` is
    ``"completed"`` or ``"failed"``; ``error`` is then one line. ``numbers`` maps the name of a
    published number to its value and unit. ``fingerprint`` identifies notebook and parameters,
    ``code`` the source of the lab when the run began.
    """

    notebook: str
    title: str
    status: str
    parameters: dict[str, Any]
    given: dict[str, Any]
    seed: int | None
    started: str
    duration_s: float
    fingerprint: str
    code: str
    error: str | None = None
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        """Whether every cell ran and everything was kept."""
        return self.status == "completed"

    @property
    def page(self) -> str:
        """The file name of the run's page."""
        return f"{Path(self.notebook).stem}.html"

    @classmethod
    def load(cls, folder: str | Path) -> RunRecord | None:
        """Return the record in ``folder``, or ``None`` where there is no such file.

        Raises ``ValueError`` for a file that is not a run's record: unreadable, with other keys,
        or with a value of another type.
        """
        path = Path(folder) / RECORD_FILE
        if not path.is_file():
            return None
        try:
            with open_text(path) as stream:
                record = cls(**parse_json(stream.read(), path))
            _check(record)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a run's record ({error}).") from None
        return record

    def save(self, folder: str | Path) -> None:
        """Write ``run.json`` into ``folder``."""
        write_json(Path(folder) / RECORD_FILE, asdict(self))

    def missing_files(self, folder: str | Path) -> list[str]:
        """Return the files that this run left and that are not in ``folder``, relative to it.

        A failed run promises its traceback only, as it may have failed anywhere.
        """
        if not self.completed:
            files = [TRACEBACK_FILE]
        else:
            tables = [*self.tables, "numbers"] if self.numbers else self.tables
            files = [self.notebook, self.page, *(f"{RESULTS_FOLDER}/{t}.parquet" for t in tables)]
        return [name for name in files if not (Path(folder) / name).is_file()]


def _check(record: RunRecord) -> None:
    """Raise ``ValueError`` or ``TypeError`` for a value that no run records."""
    for name, hint in get_type_hints(RunRecord).items():
        value = getattr(record, name)
        kind = hint if isinstance(hint, UnionType) else get_origin(hint) or hint
        kind = int | float if kind is float else kind
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"{name} is {shorten(value)}")
    if record.status not in STATUSES:
        raise ValueError(f"status is {record.status!r}")
    if (record.error is None) != record.completed:
        raise ValueError(f"a {record.status} run with the error {record.error!r}")
    if Path(record.notebook).name != record.notebook:
        raise ValueError(f"notebook is {record.notebook!r}, which is no file name")
    for name in record.tables:
        check_name(name)
    for name, content in record.numbers.items():
        check_name(name)
        number = Number(**content)
        check_number(name, number.value)
        check_unit(number.unit)
