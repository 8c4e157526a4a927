"""Reading a notebook that is to be run."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from tiny_notebooks import write

from sparselab.batch.notebook import read_runnable


def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"odd\.ipynb is not a readable notebook"):
        read_runnable(path)


def test_a_notebook_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such notebook: .*tiny\.ipynb"):
        read_runnable(tmp_path / "tiny.ipynb")


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.html")
    with pytest.raises(ValueError, match=r"tiny\.html is not called \.ipynb"):
        read_runnable(path)


def test_a_notebook_that_names_no_kernel_gets_python3(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.clear()
    nbformat.write(notebook, path)
    kernel = read_runnable(path).metadata.kernelspec
    assert kernel.name == "python3"
    assert kernel.language == "python"


def test_a_notebook_keeps_the_kernel_that_it_names(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.kernelspec = {"name": "mine", "display_name": "Mine"}
    nbformat.write(notebook, path)
    assert read_runnable(path).metadata.kernelspec.name == "mine"
