"""Fixtures that more than one part of the tests uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long a property takes is for the benchmarks to say; a busy machine fails none.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def run_notebook_case(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Callable[[str], Path]:
    """Run a notebook of `notebook_cases.py` headless, once for all processes; return its folder."""
    from filelock import FileLock
    from notebook_cases import CASES, FOLDER

    from sparselab.batch.run import run_notebook

    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent  # the one folder that all workers of pytest-xdist have in common

    def run(stem: str) -> Path:
        folder = shared / "notebooks" / stem
        folder.parent.mkdir(exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                run_notebook(FOLDER / f"{stem}.ipynb", folder, CASES[stem][0], timeout_s=300)
        return folder

    return run
