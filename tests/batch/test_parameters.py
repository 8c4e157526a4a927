"""What a parameters cell may hold, and which values fit it."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from sparselab.batch import Parameter, check_parameters, parse_text, read_parameters


def notebook(source: str, tags: tuple[str, ...] = ("parameters",)) -> nbformat.NotebookNode:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})
    return nbformat.v4.new_notebook(cells=[cell])


CELL = """\
# What to run.
budget: int = 8  # checkpoints in one entry
gamma: float = 0.99  # decay
overlap: str = "quality # not a comment"  # table or file
seed: int | None = None
sizes: list[int] = [1, 2]  # tokens
live: bool = True  # panels
"""


@pytest.fixture
def known() -> dict[str, Parameter]:
    return read_parameters(notebook(CELL))


def test_reads_name_type_default_and_help_in_order(known: dict[str, Parameter]) -> None:
    assert list(known) == ["budget", "gamma", "overlap", "seed", "sizes", "live"]
    assert known["budget"] == Parameter("budget", "int", False, 8, "checkpoints in one entry")
    assert known["overlap"].default == "quality # not a comment"
    assert known["overlap"].help == "table or file"
    assert known["seed"] == Parameter("seed", "int", True, None, "")
    assert known["seed"].type_name == "int | None"


def test_a_value_in_parentheses_keeps_its_help() -> None:
    found = read_parameters(notebook('overlap: str = (\n    "quality"  # table or file\n)'))
    assert found["overlap"] == Parameter("overlap", "str", False, "quality", "table or file")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("budget = 8", "line 1: 'name: type = literal' is expected"),
        ("budget: int", "'name: type = literal' is expected"),
        ("budget: int = 8\nprint(budget)", "line 2: 'name: type = literal' is expected"),
        ("budget: int = 2 ** 3", "the default of budget must be a literal"),
        ("budget: int = 8.0", "'budget' must be int, got 8.0"),
        ("budget: complex = 8", "type 'complex'; allowed are bool, int"),
        ("budget: int = 8\nbudget: int = 9", "sets 'budget' twice"),
        ("budget: int = = 8", "not valid Python (line 1)"),
    ],
)
def test_refuses_a_cell_that_is_more_than_literals(source: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        read_parameters(notebook(source))
    assert message in str(caught.value)


def test_needs_exactly_one_parameters_cell() -> None:
    with pytest.raises(ValueError, match="exactly one cell tagged 'parameters', this one has 0"):
        read_parameters(notebook("budget: int = 8", tags=()))
    twice = notebook("budget: int = 8")
    twice.cells *= 2
    with pytest.raises(ValueError, match="this one has 2"):
        read_parameters(twice)


def test_an_unknown_name_is_refused_with_the_nearest(known: dict[str, Parameter]) -> None:
    with pytest.raises(ValueError, match=r"no parameter 'bugdet' \(did you mean 'budget'\?\)"):
        check_parameters(known, {"bugdet": 4})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", 4.0),
        ("budget", "4"),
        ("budget", True),
        ("budget", None),
        ("gamma", "0.9"),
        ("gamma", True),
        ("gamma", float("nan")),
        pytest.param("gamma", 10**400, id="beyond a double"),
        pytest.param("gamma", 10**5000, id="beyond what Python writes out"),
        ("overlap", 3),
        ("live", 0),
        ("sizes", 3),
        ("sizes", [1, 2.5]),
        ("seed", "none"),
    ],
)
def test_a_value_of_another_type_is_refused(
    known: dict[str, Parameter], name: str, value: Any
) -> None:
    with pytest.raises(TypeError, match=f"parameter '{name}' must be"):
        check_parameters(known, {name: value})


def test_fitting_values_are_taken_and_a_whole_number_serves_as_float(
    known: dict[str, Parameter],
) -> None:
    given = {"budget": 4, "gamma": 1, "seed": None, "sizes": (5,), "live": False}
    checked = check_parameters(known, given)
    assert checked == {"budget": 4, "gamma": 1.0, "seed": None, "sizes": [5], "live": False}
    assert isinstance(checked["gamma"], float)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("budget", "4", 4),
        ("budget", "16_384", 16384),
        ("gamma", "0.5", 0.5),
        ("gamma", "1e-3", 0.001),
        ("overlap", "8", "8"),
        ("overlap", "none", "none"),
        ("seed", "none", None),
        ("seed", "7", 7),
        ("sizes", "1,2, 4", [1, 2, 4]),
        ("sizes", "[3]", [3]),
        ("sizes", "", []),
        ("live", "false", False),
        ("live", "True", True),
    ],
)
def test_text_is_read_by_the_parameters_type(
    known: dict[str, Parameter], name: str, text: str, value: Any
) -> None:
    assert parse_text(known, [(name, text)]) == {name: value}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("budget", "four"),
        ("budget", "4.0"),
        ("live", "yes"),
        ("sizes", "1,x"),
        ("sizes", "[{[]: 1}]"),
        pytest.param("sizes", "[" * 9999, id="nested too deeply"),
        ("gamma", "inf"),
        pytest.param("gamma", "1" * 400, id="beyond a double"),
        pytest.param("gamma", "1" * 5000, id="beyond an integer's digits"),
    ],
)
def test_text_that_does_not_fit_is_refused(
    known: dict[str, Parameter], name: str, text: str
) -> None:
    with pytest.raises(TypeError, match=f"parameter '{name}' must be"):
        parse_text(known, [(name, text)])


def test_a_name_given_twice_is_refused(known: dict[str, Parameter]) -> None:
    with pytest.raises(ValueError, match="'budget' is given twice"):
        parse_text(known, [("budget", "1"), ("budget", "2")])
