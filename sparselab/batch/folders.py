"""A run's folder: it appears whole or not at all, and takes the place of nothing but a run.

Until it is complete a run works in a hidden ``.partial-...`` folder beside it. A run that was
killed leaves that behind; :func:`remove_abandoned` tells it from one that somebody works in by a
lock on the folder, which the system drops with the process that holds it, however that ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sparselab.batch.record import RECORD_FILE, RESULTS_FOLDER, TRACEBACK_FILE

PARTIAL_PREFIX = ".partial-"

# What a run leaves beside its notebook and page, and what JupyterLab adds when one is opened.
NAMES_OF_A_RUN = (RECORD_FILE, TRACEBACK_FILE, RESULTS_FOLDER, ".ipynb_checkpoints")

# What macOS adds to a folder that somebody looks at.
NAME_OF_NOTHING = ".DS_Store"


def check_replaceable(folder: str | Path) -> None:
    """Raise ``ValueError`` for a folder that a run may not replace, or for a file.

    A folder may be replaced that is empty or holds a run and nothing else, unless it is the
    working directory or holds that.
    """
    folder = Path(folder)
    if Path.cwd().is_relative_to(folder.resolve()):
        raise ValueError(
            f"the run's folder {folder} is or holds the working directory, which would be "
            "replaced; name another folder."
        )
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError(f"the run's folder {folder} is a file or a link; name another folder.")
    other = _first_other(folder)
    if other is not None:
        raise ValueError(
            f"the run's folder {folder} holds something else than a run: {other}; "
            "name another folder."
        )


def _first_other(folder: Path) -> str | None:
    """Return the name of something in ``folder`` that no run left there, or ``None``."""
    names = sorted(path.name for path in folder.iterdir() if path.name != NAME_OF_NOTHING)
    if RECORD_FILE not in names:
        return names[0] if names else None
    # One notebook and one page are the run's own, whatever they are called.
    notebooks = [name for name in names if name.endswith(".ipynb")]
    pages = [name for name in names if name.endswith(".html")]
    own = {*NAMES_OF_A_RUN, *notebooks[:1], *pages[:1]}
    return next((name for name in names if name not in own), None)


@contextmanager
def complete_folder(target: str | Path) -> Iterator[Path]:
    """Give an empty hidden folder beside ``target`` that becomes ``target`` when the body succeeds.

    An older ``target`` is removed only then. If the body raises, the hidden folder is removed.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _claimed_folder(target) as partial:
        yield partial
        partial.chmod(0o755)
        if target.exists():
            _exchange(partial, target)
        else:
            partial.rename(target)


def _exchange(new: Path, target: Path) -> None:
    """Put the folder ``new`` in the place of the folder ``target``, or leave that where it is."""
    old = new.with_name(f"{new.name}-old")
    # One folder cannot replace another in one step; out of the way first, then in.
    try:
        target.rename(old)
        new.rename(target)
    finally:  # Ctrl-C may come between the two
        if not target.exists():
            old.rename(target)
        shutil.rmtree(old, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the hidden folders in ``parent`` of runs that were killed."""
    for path in parent.glob(f"{PARTIAL_PREFIX}*"):
        # Refused where somebody works in it, and where the file system has no locks: left alone.
        with suppress(OSError), _lock(path, wait=False):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _claimed_folder(target: Path) -> Iterator[Path]:
    """Give a new hidden folder beside ``target``, locked; remove it if it is still there."""
    prefix = f"{PARTIAL_PREFIX}{target.name}-"
    with ExitStack() as held:
        while True:
            partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
            # Where there are no locks, nobody can take the folder for abandoned either.
            with suppress(OSError):
                held.enter_context(_lock(partial, wait=True))
            if partial.exists():  # a sweep that starts may have removed it before it was locked
                break
        try:
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _lock(folder: Path, wait: bool) -> Iterator[None]:
    """Hold the lock of ``folder``; ``OSError`` where that cannot be had (at once, unless ``wait``).

    The handle is not inherited by programs that are started meanwhile.
    """
    handle = os.open(folder, os.O_RDONLY)  # Windows opens no folders: an OSError there
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)
