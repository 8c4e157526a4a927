"""Checks of arguments that every part of the lab shares.

Each raises with one sentence that names the argument, the value that came and what is
allowed, so that a reader of the message knows what to change.
"""

from __future__ import annotations

import difflib
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: From here on a double no longer holds every integer, so integer results would be rounded.
LARGEST_EXACT_INTEGER = 2**53


def check_integer(
    name: str, value: Any, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return ``value`` as an ``int`` once it is a whole number within the bounds.

    Raises ``TypeError`` for anything that is not an integer (a bool, a float such as 3.0, text),
    ``ValueError`` for one that lies outside ``minimum..maximum``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {shorten(value)}.") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if minimum is not None and maximum is not None and not minimum <= number <= maximum:
        raise ValueError(f"{name} must lie in {minimum}..{maximum}, got {shorten(number)}.")
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {shorten(number)}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {shorten(number)}.")
    return number


def check_token_count(name: str, value: Any) -> int:
    """Return ``value`` as an ``int`` once it is a number of tokens: 1 to 2**53, as doubles count.

    Raises as :func:`check_integer` does.
    """
    number = check_integer(name, value, minimum=1)
    return check_integer(name, number, maximum=LARGEST_EXACT_INTEGER)


def check_number(
    name: str,
    value: Any,
    above: float | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
) -> float:
    """Return ``value`` as a finite ``float`` within the bounds (``above``, ``below``: strict).

    Raises ``TypeError`` where it is no number and ``ValueError`` where it is outside.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {shorten(value)}.")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit in a double, got {shorten(value)}.") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"{name} must be finite, got {number}.")
    if above is not None and not number > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {number:g}.")
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be at least {minimum:g}, got {number:g}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum:g}, got {number:g}.")
    if below is not None and not number < below:
        raise ValueError(f"{name} must be less than {below:g}, got {number:g}.")
    return number


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` once it is one of ``choices``; else ``ValueError`` with the nearest one."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    shown = ", ".join(known) or "none"
    raise ValueError(f"unknown {name} {value!r}{nearest(value, known)}; known: {shown}.")


def check_instance(name: str, value: Any, kind: type) -> None:
    """Raise ``TypeError`` unless ``value`` is an instance of ``kind``."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}.")


def check_vector(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return ``values`` as a one-dimensional array; ``ValueError`` where they are nested."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal lengths
        raise ValueError(f"{name} must be one-dimensional, got {shorten(values)}.") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.")
    return array


def check_integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return ``values`` as a one-dimensional ``int64`` array; no copy where it is one already.

    Raises ``TypeError`` where they are no integers and ``ValueError`` where 64 bits do not hold
    one or they are nested.
    """
    array = check_vector(name, values)
    if not array.size:
        return array.astype(np.int64)
    objects = array.dtype.kind == "O" and all(type(value) is int for value in array)
    if array.dtype.kind not in "iu" and not objects:
        found = array[:1].tolist()[0]
        raise TypeError(f"{name} must be integers, got {array.dtype} values such as {found!r}.")
    if objects or array.dtype.kind == "u":
        least, most = int(array.min()), int(array.max())
        if most >= 2**63:
            raise ValueError(f"{name} must be less than 2**63, got {shorten(most)}.")
        if least < -(2**63):
            raise ValueError(f"{name} must be at least -2**63, got {shorten(least)}.")
    return array.astype(np.int64, copy=False)


def check_counts(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return one count or an array of any shape as ``int64``, each in ``0..2**53``.

    Raises ``TypeError`` where they are no integers and ``ValueError`` where one is outside.
    """
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal lengths
        raise ValueError(f"{name} must be a number or an array, got {shorten(values)}.") from None
    flat = check_integers(name, array.ravel())
    outside = flat[(flat < 0) | (flat > LARGEST_EXACT_INTEGER)]
    if outside.size:
        raise ValueError(f"{name} must lie in 0..{LARGEST_EXACT_INTEGER}, got {outside[0]}.")
    return flat.reshape(array.shape)


def nearest(value: Any, choices: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest choice, or nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    match = difflib.get_close_matches(str(value).lower(), list(by_lower), n=1, cutoff=0.5)
    return f" (did you mean {by_lower[match[0]]!r}?)" if match else ""


def shorten(value: Any, limit: int = 40) -> str:
    """Return a value's ``repr``, cut to ``limit`` characters."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no integer of more than 4,300 digits
        return "a very large integer"
    return text if len(text) <= limit else text[:limit] + "..."
