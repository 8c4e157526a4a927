"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sparselab.files import check_writable
from sparselab.overlap import OverlapDistribution
from sparselab.placement import Policy, place, policies
from sparselab.validation import check_choice


def add_placement_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--length``, ``--budget``, ``--align``, ``--overlap``, ``--option`` and ``--json``."""
    parser.add_argument(
        "--length", type=int, help="tokens in the entry (default: the overlap table's, or 4096)"
    )
    parser.add_argument("--budget", type=int, default=8, help="checkpoints allowed (default: 8)")
    parser.add_argument(
        "--align", type=int, default=1, help="positions are multiples of it (default: 1)"
    )
    parser.add_argument(
        "--overlap",
        default="uniform",
        metavar="NAME-or-CSV",
        help="a shipped table, a CSV with the header depth,requests, or uniform (default)",
    )
    add_policy_option_argument(parser)
    add_json_argument(parser)


def add_policy_option_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--option NAME=VALUE``, the policy's own options."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the policy, e.g. block_size=256; may be repeated",
    )


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, which prints one JSON object for scripts."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def check_output(path: str | Path | None, *suffixes: str) -> None:
    """Raise ``ValueError`` or ``OSError`` where ``--out`` cannot be written, before long work."""
    if path is None:
        return
    if Path(path).suffix not in suffixes:
        raise ValueError(f"--out must end in {' or '.join(suffixes)}, got {str(path)!r}.")
    check_writable(path)


def overlap_distribution(source: str, length: int | None) -> OverlapDistribution:
    """Return the distribution that ``--overlap`` and ``--length`` name.

    A table that is longer than ``length`` is restricted to it (deeper requests count at the
    length), with a notice on standard error.
    """
    from sparselab.shipped_data import datasets, load_overlap

    if source == "uniform":
        return OverlapDistribution.uniform(4096 if length is None else length)
    shipped = datasets()
    is_file = Path(source).suffix or "/" in source or Path(source).is_file()
    if source not in shipped and is_file:
        table = OverlapDistribution.from_csv(source)
    else:
        table = load_overlap(check_choice("--overlap", source, ["uniform", *shipped]))
    if length is None or length == table.length:
        return table
    restricted = table.restrict(length)
    deeper = table.weights[table.depths > length].sum()
    if deeper > 0:
        print(
            f"notice: {source} reaches depth {table.length}; {deeper:,g} of its {table.total:,g} "
            f"requests are deeper than --length {length} and count at {length}.",
            file=sys.stderr,
        )
    return restricted


def parse_options(pairs: list[str], function: Callable[..., Any]) -> dict[str, Any]:
    """Return ``--option NAME=VALUE`` pairs as keyword arguments, values as Python literals.

    They are for ``function``, whose own arguments no option may set.
    """
    own = inspect.signature(function).parameters
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.isidentifier():
            raise ValueError(f"--option must be NAME=VALUE, got {pair!r}.")
        if name in own:
            raise ValueError(f"--option must not set {name!r}: it is no option, got {pair!r}.")
        try:
            options[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            options[name] = text
    return options


def options_by_policy(pairs: list[str], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return ``--option NAME=VALUE`` pairs by policy: each of ``names`` gets those that it has.

    Raises ``ValueError`` for an unknown policy, and for an option that none of them has.
    """
    given = parse_options(pairs, place)
    known = {name: policies()[check_choice("policy", name, policies())].options for name in names}
    for option in given:
        check_choice(
            "option", option, sorted({own for options in known.values() for own in options})
        )
    return {
        name: {option: value for option, value in given.items() if option in options}
        for name, options in known.items()
    }


def comparable_policies() -> dict[str, Policy]:
    """Return the policies that a length, a budget and overlaps suffice for."""
    return {name: policy for name, policy in policies().items() if not policy.required_options}


def print_json(value: Any) -> None:
    """Print ``value`` as one JSON object; infinities become null, as JSON has none."""
    print(json.dumps(finite(value), indent=2, ensure_ascii=False))


def finite(value: Any) -> Any:
    """Return ``value`` with NumPy scalars as Python's and non-finite floats as ``None``."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    if isinstance(value, float) and value - value != 0:
        return None
    return value
