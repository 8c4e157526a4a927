"""Reading a notebook that is to be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tiny_notebooks import write

from sparselab.batch.notebook import read_runnable


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a JSON object is expected, got list"),
        (None, "a JSON object is expected, got NoneType"),
        ({}, "nbformat 4 is expected, got None"),
        ({"nbformat": 9, "cells": []}, "nbformat 4 is expected, got 9"),
        ({"nbformat": 4, "cells": 5}, "cells is no list of objects"),
        ({"nbformat": 4, "cells": [None]}, "cells is no list of objects"),
        ({"nbformat": 4, "cells": [], "metadata": []}, "metadata is no object"),
        ({"nbformat": 4, "nbformat_minor": 5, "metadata": {}}, "missing an expected key: cells"),
        (
            {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]},
            "missing an expected key",
        ),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_in_one_sentence(
    tmp_path: Path, content: Any, message: str
) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"odd\.ipynb is not a readable notebook") as caught:
        read_runnable(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [("", "not valid JSON"), ("[" * 99999, "nested too deeply")]
)
def test_a_file_that_is_no_json_is_refused_naming_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"odd\.ipynb, line 1: .*{message}"):
        read_runnable(path)


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
