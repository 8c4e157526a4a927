"""Messages about arguments: one sentence with the name, the value and what is allowed."""

import numpy as np
import pytest

from sparselab.validation import (
    check_choice,
    check_counts,
    check_integer,
    check_integers,
    check_number,
    check_token_count,
    nearest,
)


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


@pytest.mark.parametrize("value", [10**400, 10**5000, [1] * 1000], ids=["long", "longer", "list"])
def test_what_came_is_shown_in_short(value):
    with pytest.raises((TypeError, ValueError)) as caught:
        check_integer("n", value, maximum=3)
    assert len(str(caught.value)) < 100


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


@pytest.mark.parametrize("value", ["1", b"1", None, True, np.bool_(True), [1], 1j])
def test_anything_else_is_no_number(value):
    with pytest.raises(TypeError, match="x must be a number"):
        check_number("x", value)


def test_a_number_that_no_double_holds_is_refused():
    with pytest.raises(ValueError, match=r"x must fit in a double, got 1000\S+\.\.\."):
        check_number("x", 10**400)


def test_tokens_are_counted_from_one_to_what_doubles_hold():
    assert check_token_count("n", 2**53) == 2**53
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        check_token_count("n", 0)
    with pytest.raises(ValueError, match="n must be at most 9007199254740992, got 1000"):
        check_token_count("n", 10**30)


class TestIntegerArrays:
    def test_they_are_not_copied_where_they_fit_already(self):
        array = np.arange(3)
        assert check_integers("ids", array) is array
        assert check_integers("ids", [1, 2]).dtype == np.int64
        assert check_integers("ids", np.array([7], np.uint64)).dtype == np.int64
        assert check_integers("ids", []).tolist() == []

    @pytest.mark.parametrize("values", [[1.0], [True], ["1"], [None], [1, "a"]])
    def test_other_things_are_refused(self, values):
        with pytest.raises(TypeError, match="ids must be integers, got"):
            check_integers("ids", values)

    @pytest.mark.parametrize("values", [3, [[1]], [[1], [1, 2]]])
    def test_other_shapes_are_refused(self, values):
        with pytest.raises(ValueError, match="ids must be one-dimensional, got"):
            check_integers("ids", values)

    @pytest.mark.parametrize("values", [[1, 2**64], np.array([2**63], np.uint64)])
    def test_what_64_bits_do_not_hold_is_refused(self, values):
        with pytest.raises(ValueError, match=r"ids must be less than 2\*\*63, got"):
            check_integers("ids", values)

    def test_nor_what_lies_below_them(self):
        with pytest.raises(ValueError, match=r"ids must be at least -2\*\*63, got -1000"):
            check_integers("ids", [1, -(10**30)])

    def test_python_integers_kept_as_objects_are_integers(self):
        assert check_integers("ids", np.array([1, 2], object)).dtype == np.int64


class TestCounts:
    def test_they_may_have_any_shape(self):
        assert check_counts("n", 3).shape == ()
        assert check_counts("n", [[1, 2]]).tolist() == [[1, 2]]
        assert check_counts("n", []).dtype == np.int64

    @pytest.mark.parametrize("value", [-1, [0, 2**53 + 1]])
    def test_others_than_doubles_count_are_refused(self, value):
        with pytest.raises(ValueError, match=r"n must lie in 0\.\.9007199254740992, got"):
            check_counts("n", value)

    @pytest.mark.parametrize("value", [1.0, [True], "3", None])
    def test_other_things_are_refused(self, value):
        with pytest.raises(TypeError, match="n must be integers, got"):
            check_counts("n", value)

    def test_ragged_lists_are_refused(self):
        with pytest.raises(ValueError, match="n must be a number or an array, got"):
            check_counts("n", [[1], [1, 2]])


def test_an_unknown_choice_comes_with_the_nearest_and_all_known():
    assert check_choice("colour", "red", ["red", "green"]) == "red"
    with pytest.raises(
        ValueError, match=r"unknown colour 'gren' \(did you mean 'green'\?\); known: red, green\."
    ):
        check_choice("colour", "gren", ["red", "green"])


def test_nothing_near_is_not_suggested():
    assert nearest("zzz", ["red", "green"]) == ""
    assert nearest("RED", ["red", "green"]) == " (did you mean 'red'?)"
