"""Reading and writing files so that nothing half-done is left or silently taken.

Everything the lab saves goes through :func:`atomic_path`: the file appears whole or not at all.
Everything it reads goes through :func:`read_json_lines`, :func:`read_csv` or :func:`open_text`,
which name the file and the line that is wrong.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


def _umask() -> int:
    """Return the process's permission mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Read once, before there are threads: for a moment nothing is masked.
UMASK = _umask()


def as_path(name: str, value: Any) -> Path:
    """Return ``value`` as a path; ``TypeError`` where it is neither text nor a path."""
    if not isinstance(value, (str, Path)):
        raise TypeError(f"{name} must be the path of a file or folder, got {value!r}.")
    return Path(value)


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; on success it replaces ``target`` in one step.

    If the body raises, ``target`` keeps what it had and the temporary file is removed. Missing
    parent folders are made; a link is followed. Raises ``ValueError`` where ``target`` is a folder
    or a device, or lies in a file.
    """
    target = Path(target)
    temporary = _temporary_beside(target)
    try:
        yield temporary
        # mkstemp makes the file private; a saved result should have the usual permissions.
        temporary.chmod(0o666 & ~UMASK)
        os.replace(temporary, os.path.realpath(target))
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(target: str | Path) -> None:
    """Raise as :func:`atomic_path` would, before the work that makes what is to be written."""
    _temporary_beside(Path(target)).unlink()


def _temporary_beside(target: Path) -> Path:
    """Make an empty file in the folder of ``target``, following a link, and make that folder."""
    if target.is_dir():
        raise ValueError(f"{target} is a folder, not a file to write.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a device or a pipe, not a file to write.")
    folder = Path(os.path.realpath(target)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{target} cannot be written: a part of its path is a file.") from None
    # The suffix stays last, since writers such as pandas choose a format by it.
    handle, name = tempfile.mkstemp(
        dir=folder, prefix=f".{target.stem}.", suffix="".join(target.suffixes[-2:])
    )
    os.close(handle)
    return Path(name)


def write_text(target: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``target``, whole or not at all."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON to ``target``, whole or not at all."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def sha256(path: str | Path) -> str:
    """Return the SHA-256 checksum of a file in hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def open_text(path: str | Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file for reading, unpacking it where its name ends in ``.gz``.

    Raises ``FileNotFoundError`` or ``ValueError`` with one sentence for a missing file, a folder,
    a broken or truncated gzip and bytes that are not UTF-8, wherever in the reading it shows.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as stream:
            yield stream
    except EOFError:
        raise ValueError(f"{path} is a truncated gzip file.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a readable gzip file ({error}).") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}).") from None


def parse_json(text: str, path: str | Path, line: int = 1) -> Any:
    """Return the value of a JSON text that begins at ``line`` of the file ``path``.

    Raises ``ValueError`` naming the file and line where it is not valid.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        reason = f"{error.msg}, column {error.colno}"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # integers of more digits than Python reads
        reason = str(error).partition(":")[0]
    raise ValueError(f"{path}, line {line}: not valid JSON ({reason}).")


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number from 1, object)`` for each non-blank line of a JSON-lines file.

    Raises ``ValueError`` naming the file and line where a line is no JSON object, and where the
    file has none at all.
    """
    found = False
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            found = True
            value = parse_json(line.rstrip(), path, number)
            if not isinstance(value, dict):
                raise ValueError(
                    f"{path}, line {number}: a JSON object is expected, got {type(value).__name__}."
                )
            yield number, value
    if not found:
        raise ValueError(f"{path} is empty: at least one line is expected.")


def read_csv(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line number, fields)`` for each row of a CSV that is not blank, the header first.

    Raises ``ValueError`` naming the file and line where a row cannot be read.
    """
    with open_text(path) as stream:
        rows = csv.reader(stream)
        try:
            for row in rows:
                if row:
                    yield rows.line_num, row
        except csv.Error as error:
            raise ValueError(f"{path}, line {rows.line_num}: not a CSV row ({error}).") from None
