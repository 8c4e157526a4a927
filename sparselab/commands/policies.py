"""``sparselab policies``: the registry of placement policies."""

from __future__ import annotations

import argparse
from typing import Any

from sparselab.commands.arguments import add_json_argument, print_json
from sparselab.placement import REQUIRED, policies

SUMMARY = "list the placement policies, what they need and their options"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab policies``."""
    add_json_argument(parser)
    parser.epilog = "example: sparselab policies"


def run(arguments: argparse.Namespace) -> int:
    """Print a line, or a JSON entry, for each policy."""
    rows: list[dict[str, Any]] = [
        {
            "policy": policy.name,
            "summary": policy.summary,
            "needs": list(policy.needs),
            "options": {
                name: "required" if default is REQUIRED else default
                for name, default in policy.options.items()
            },
        }
        for policy in policies().values()
    ]
    if arguments.json:
        print_json({"policies": rows})
        return 0
    for row in rows:
        options = "".join(f", {name}={value}" for name, value in row["options"].items())
        needs = ", ".join(row["needs"]) or "nothing"
        print(f"{row['policy']:>9}  {row['summary']} [needs {needs}{options}]")
    return 0
