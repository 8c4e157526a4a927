"""The parameters of a notebook: what it takes, of which type, and whether given values fit.

They are read from the cell tagged ``parameters``, one a line::

    budget: int = 8                 # checkpoints in one entry
    overlap: str = "quality"        # overlap table, a name or a CSV file
    seed: int | None = None         # None draws a fresh one

Only literals may stand there, so that the cell can be read without being run. Papermill itself
merely warns of a name that does not exist; here it is refused before anything runs.
"""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparselab.validation import nearest, shorten

if TYPE_CHECKING:
    from nbformat import NotebookNode

# What Python's parser raises for text that is no literal, or is nested too deeply for it.
UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)

SIMPLE_TYPES = ("bool", "int", "float", "str")
TYPES = (*SIMPLE_TYPES, *(f"list[{name}]" for name in SIMPLE_TYPES))


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell.

    ``type`` is one of :data:`TYPES`; ``optional`` tells whether ``None`` is allowed too;
    ``help`` is the line's comment, ``""`` where it has none.
    """

    name: str
    type: str
    optional: bool
    default: Any
    help: str

    @property
    def type_name(self) -> str:
        """The type as it is written in the cell."""
        return f"{self.type} | None" if self.optional else self.type


def read_parameters(notebook: NotebookNode) -> dict[str, Parameter]:
    """Return the parameters of a notebook by name, in the order of the cell.

    Raises ``ValueError`` where the notebook has no cell tagged ``parameters`` or more than one, and
    where a line of it is anything but ``name: type = literal``.
    """
    cells = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise ValueError(
            f"a notebook needs exactly one cell tagged 'parameters', this one has {len(cells)}."
        )
    source = cells[0].source
    try:
        statements = ast.parse(source).body
    except UNREADABLE as error:
        line = getattr(error, "lineno", None)
        where = f"line {line}" if line else "it cannot be parsed"
        raise ValueError(f"the parameters cell is not valid Python ({where}).") from None
    comments = _comments(source)
    parameters = {}
    for statement in statements:
        # A formatter may have put a long line in parentheses, the comment within.
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        parameter = _parameter(statement, " ".join(comments[n] for n in lines if n in comments))
        if parameter.name in parameters:
            raise ValueError(f"the parameters cell sets {parameter.name!r} twice.")
        parameters[parameter.name] = parameter
    return parameters


def check_parameters(
    parameters: Mapping[str, Parameter], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``given`` with every value in its parameter's type (an ``int`` serves as a ``float``).

    Raises ``ValueError`` for a name that the notebook does not have, naming the nearest one it has,
    and ``TypeError`` for a value of another type.
    """
    checked = {}
    for name, value in given.items():
        if name not in parameters:
            raise ValueError(
                f"the notebook has no parameter {name!r}{nearest(name, parameters)}; "
                f"it has: {', '.join(parameters)}."
            )
        checked[name] = _check_value(parameters[name], value)
    return checked


def parse_text(
    parameters: Mapping[str, Parameter], pairs: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Turn ``(name, text)`` pairs of a command line into checked values.

    Text is read by the parameter's type: ``8`` for an ``int``, ``true`` or ``false`` for a
    ``bool``, ``1,2,4`` or ``[1, 2, 4]`` for a list, ``none`` where ``None`` is allowed; for a
    ``str`` it is taken as it stands. Raises as :func:`check_parameters` does, and ``ValueError``
    for a name given twice.
    """
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in given:
            raise ValueError(f"parameter {name!r} is given twice.")
        given[name] = _from_text(parameters[name], text) if name in parameters else text
    return check_parameters(parameters, given)


def _comments(source: str) -> dict[int, str]:
    """Return the comment that ends each line, by line number."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.string.lstrip("#").strip()
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _parameter(statement: ast.stmt, comment: str) -> Parameter:
    where = f"the parameters cell, line {statement.lineno}"
    if not (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.value is not None
    ):
        raise ValueError(f"{where}: 'name: type = literal' is expected.")
    name = statement.target.id
    annotation = ast.unparse(statement.annotation)
    type_name = annotation.removesuffix(" | None")
    if type_name not in TYPES:
        raise ValueError(
            f"{where}: {name} has type {annotation!r}; allowed are {', '.join(TYPES)}, "
            "each with ' | None' or without."
        )
    try:
        default = ast.literal_eval(statement.value)
    except UNREADABLE:
        raise ValueError(f"{where}: the default of {name} must be a literal.") from None
    parameter = Parameter(name, type_name, annotation != type_name, default, comment)
    _check_value(parameter, default)
    return parameter


def _check_value(parameter: Parameter, value: Any) -> Any:
    if value is None and parameter.optional:
        return None
    if parameter.type.startswith("list[") and isinstance(value, (list, tuple)):
        item_type = parameter.type[len("list[") : -1]
        if all(_fits(item_type, item) for item in value):
            return [_convert(item_type, item) for item in value]
    elif _fits(parameter.type, value):
        return _convert(parameter.type, value)
    finite = " and finite" if "float" in parameter.type else ""
    raise TypeError(
        f"parameter {parameter.name!r} must be {parameter.type_name}{finite}, "
        f"got {shorten(value, 80)}."
    )


def _fits(type_name: str, value: Any) -> bool:
    if type_name == "float":
        try:
            return type(value) in (int, float) and math.isfinite(value)
        except OverflowError:  # an integer beyond the largest double
            return False
    # bool is a subclass of int in Python but no number to a reader, so types must be equal.
    return type(value).__name__ == type_name


def _convert(type_name: str, value: Any) -> Any:
    return float(value) if type_name == "float" else value


def _from_text(parameter: Parameter, text: str) -> Any:
    if parameter.optional and text.lower() == "none":
        return None
    if parameter.type == "str":
        return text
    if parameter.type == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    is_list = parameter.type.startswith("list[")
    if is_list and not text.startswith("["):
        items = [item.strip() for item in text.split(",")] if text else []
        item_type = parameter.type[len("list[") : -1]
        return [_from_text(Parameter(parameter.name, item_type, False, None, ""), i) for i in items]
    try:
        return ast.literal_eval(text)
    except UNREADABLE:
        return text
