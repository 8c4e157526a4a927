"""Reading a notebook that is to be run: what is none is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparselab.export import read_notebook

if TYPE_CHECKING:
    from nbformat import NotebookNode

#: The kernel of a notebook that names none.
PYTHON3 = {"name": "python3", "display_name": "Python 3", "language": "python"}


def read_runnable(path: str | Path) -> NotebookNode:
    """Return the notebook at ``path``, with a kernel named: ``python3`` unless it names one.

    Raises ``FileNotFoundError`` where there is none and ``ValueError`` for a file that is no
    notebook or is not called ``.ipynb``, as its page and its record are kept beside it.
    """
    import nbformat

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such notebook: {path}.")
    if path.suffix != ".ipynb":
        raise ValueError(f"{path} is not called .ipynb, as a notebook must be.")
    notebook = read_notebook(path)
    notebook.metadata.pop("language_info", None)  # of the kernel that ran it last
    kernel = notebook.metadata.setdefault("kernelspec", nbformat.from_dict(PYTHON3))
    # Parameters are passed in Python, which papermill wants to be told.
    kernel.setdefault("language", "python")
    return notebook
