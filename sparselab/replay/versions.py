"""The transformers versions that replay works with; checked before anything of theirs is used."""

from __future__ import annotations

import transformers
from packaging.version import Version

# What the tests ran with: cache classes are renamed from one minor version to the next.
OLDEST, NEWEST = "5.24", "5.25"


def check_transformers(version: str = transformers.__version__) -> None:
    """Raise ``ImportError`` where the installed transformers is outside the supported range."""
    if not Version(OLDEST) <= Version(Version(version).base_version) < Version(NEWEST):
        raise ImportError(
            f"transformers {version} is installed, but replay supports {OLDEST} <= version < "
            f"{NEWEST}: pip install 'transformers>={OLDEST},<{NEWEST}'."
        )
