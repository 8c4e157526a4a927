"""Checks of arguments that every part of the lab shares.

Each raises with one sentence that names the argument, the value that came and what is
allowed, so that a reader of the message knows what to change.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from typing import Any


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
        raise TypeError(f"{name} must be an integer, got {value!r}.") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if minimum is not None and maximum is not None and not minimum <= number <= maximum:
        raise ValueError(f"{name} must lie in {minimum}..{maximum}, got {number}.")
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {number}.")
    return number


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
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}.") from None
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
    if value in known:
        return value
    raise ValueError(f"unknown {name} {value!r}{nearest(value, known)}; known: {', '.join(known)}.")


def nearest(value: Any, choices: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest choice, or nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    match = difflib.get_close_matches(str(value).lower(), list(by_lower), n=1, cutoff=0.5)
    return f" (did you mean {by_lower[match[0]]!r}?)" if match else ""
