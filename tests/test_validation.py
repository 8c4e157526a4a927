"""Messages about arguments: one sentence with the name, the value and what is allowed."""

import numpy as np
import pytest

from sparselab.validation import check_choice, check_integer, check_number, nearest


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3)])
def test_integers_of_any_kind_become_python_integers(value):
    assert type(check_integer("n", value, 0, 5)) is int


@pytest.mark.parametrize("value", [3.0, "3", None, True, np.float64(3)])
def test_anything_else_is_no_integer(value):
    with pytest.raises(TypeError, match="n must be an integer, got"):
        check_integer("n", value)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"minimum": 5}, r"n must be at least 5, got 4\."),
        ({"maximum": 3}, r"n must be at most 3, got 4\."),
        ({"minimum": 0, "maximum": 3}, r"n must lie in 0\.\.3, got 4\."),
    ],
)
def test_integers_outside_the_bounds_are_refused(bounds, message):
    with pytest.raises(ValueError, match=message):
        check_integer("n", 4, **bounds)


def test_numbers_within_the_bounds_become_floats():
    assert check_number("x", np.float32(0.5), above=0, below=1) == 0.5
    assert type(check_number("x", 1, minimum=1, maximum=1)) is float


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (0, {"above": 0}, "x must be greater than 0, got 0"),
        (-1, {"minimum": 0}, "x must be at least 0, got -1"),
        (2, {"maximum": 1}, "x must be at most 1, got 2"),
        (1, {"below": 1}, "x must be less than 1, got 1"),
        (float("nan"), {}, "x must be finite, got nan"),
        (float("-inf"), {}, "x must be finite, got -inf"),
    ],
)
def test_numbers_outside_the_bounds_are_refused(value, bounds, message):
    with pytest.raises(ValueError, match=message):
        check_number("x", value, **bounds)


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_anything_else_is_no_number(value):
    with pytest.raises(TypeError, match="x must be a number"):
        check_number("x", value)


def test_an_unknown_choice_comes_with_the_nearest_and_all_known():
    assert check_choice("colour", "red", ["red", "green"]) == "red"
    with pytest.raises(
        ValueError, match=r"unknown colour 'gren' \(did you mean 'green'\?\); known: red, green\."
    ):
        check_choice("colour", "gren", ["red", "green"])


def test_nothing_near_is_not_suggested():
    assert nearest("zzz", ["red", "green"]) == ""
    assert nearest("RED", ["red", "green"]) == " (did you mean 'red'?)"
