"""What a notebook publishes arrives unchanged, and what cannot arrive is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from sparselab.batch import collect, publish, results


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> nbformat.NotebookNode:
    """A notebook to which everything is added that the test publishes."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("")])

    def display(data: dict[str, Any]) -> None:
        output = nbformat.v4.new_output("display_data", data=data)
        notebook.cells[0].outputs.append(output)

    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr("IPython.display.publish_display_data", display)
    return notebook


def through_a_file(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.reads(nbformat.writes(notebook), as_version=4)


def test_numbers_and_tables_come_back_as_they_were(published: nbformat.NotebookNode) -> None:
    table = pd.DataFrame(
        {"policy": ["optimal", "balanced"], "tokens": [3, 4], "share": [0.1, 1 / 3]},
        index=pd.Index([5, 7], name="budget"),
    )
    publish("saved", 1 / 3, unit="of prompt tokens")
    publish("requests", np.int64(12_031))
    publish("table", table)
    publish("columns", {"x": [1, 2]})
    found = collect(through_a_file(published))
    assert found.numbers["saved"] == results.Number(1 / 3, "of prompt tokens")
    assert found.numbers["requests"] == results.Number(12_031)
    assert isinstance(found.numbers["requests"].value, int)
    pd.testing.assert_frame_equal(found.tables["table"], table)
    pd.testing.assert_frame_equal(found.tables["columns"], pd.DataFrame({"x": [1, 2]}))


def test_nothing_of_it_is_shown_in_a_front_end(published: nbformat.NotebookNode) -> None:
    publish("saved", 0.5)
    assert list(published.cells[0].outputs[0].data) == [results.RESULT_MIME]


def test_save_writes_a_parquet_file_for_each_table_and_one_for_the_numbers(
    published: nbformat.NotebookNode, tmp_path: Path
) -> None:
    publish("saved", 0.5, unit="of prompt tokens")
    publish("rows", {"x": [1, 2]})
    paths = collect(published).save(tmp_path)
    assert sorted(path.name for path in paths) == ["numbers.parquet", "rows.parquet"]
    numbers = pd.read_parquet(tmp_path / "numbers.parquet")
    assert numbers.to_dict("records") == [
        {"name": "saved", "value": 0.5, "unit": "of prompt tokens"}
    ]


def test_two_values_under_one_name_are_refused(published: nbformat.NotebookNode) -> None:
    publish("saved", 0.5)
    publish("saved", 0.6)
    with pytest.raises(ValueError, match="publishes 'saved' twice"):
        collect(published)


@pytest.mark.parametrize(
    ("unit", "error", "message"),
    [
        (3, TypeError, "unit must be text, got 3"),
        (None, TypeError, "unit must be text, got None"),
        ("x" * 33, ValueError, "unit must be up to 32 printable characters"),
        ("to\nkens", ValueError, "unit must be up to 32 printable characters"),
    ],
)
def test_a_unit_that_is_no_short_text_is_refused(
    unit: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        publish("saved", 0.5, unit=unit)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("saved", float("nan"), ValueError, "saved must be finite"),
        ("saved", float("inf"), ValueError, "saved must be finite"),
        ("saved", "much", TypeError, "saved must be a number or a table, got 'much'"),
        ("saved", True, TypeError, "saved must be a number or a table"),
        ("../saved", 1.0, ValueError, "name must be up to 64 letters"),
        ("numbers", 1.0, ValueError, "not be 'numbers'"),
        ("", 1.0, ValueError, "name must be up to 64 letters"),
        (3, 1.0, TypeError, "name must be text"),
    ],
)
def test_bad_names_and_values_are_refused(
    name: Any, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        publish(name, value)


def test_a_table_that_would_swell_the_notebook_is_refused() -> None:
    noise = np.random.default_rng(0).random(100_000)
    with pytest.raises(ValueError, match="publish a summary of it"):
        publish("noise", {"noise": noise})


def test_outside_a_notebook_the_value_is_checked_and_nothing_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish("saved", 0.5)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (results.Number(12_031, "requests"), "12,031 requests"),
        (results.Number(0.33333333), "0.3333"),
        (results.Number(123456.7, "tokens"), "123,457 tokens"),
        (results.Number(1234.5, "tokens"), "1,234 tokens"),
    ],
)
def test_numbers_are_written_for_readers(number: results.Number, text: str) -> None:
    assert str(number) == text
