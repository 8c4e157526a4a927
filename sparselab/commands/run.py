"""``sparselab run``: one notebook with given parameters, kept in a folder of its own."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

SUMMARY = "run a notebook with parameters; keep the notebook, a page and its results"

EPILOG = """example:
  sparselab run notebooks/01_checkpoint_placement.ipynb -p budget 8 -p source mooncake_conversation
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab run``."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("notebook", metavar="NOTEBOOK", help="the notebook's file")
    parser.add_argument(
        "-p",
        "--parameter",
        dest="parameters",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter of the notebook; lists as 1,2,4 (may be repeated)",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="the run's folder (default: a new one in runs/)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="the longest that one cell may take (default: 600)",
    )
    parser.add_argument(
        "--live", action="store_true", help="leave the notebook's parameter `live` as it is"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the notebook's parameters and run nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the run's record as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the notebook; the exit code is 1 if the run failed."""
    from contextlib import suppress
    from dataclasses import asdict

    from sparselab.batch.notebook import read_runnable
    from sparselab.batch.parameters import parse_text, read_parameters
    from sparselab.batch.run import DEFAULT_TIMEOUT_S, run_notebook
    from sparselab.batch.worker import skip_slow_import
    from sparselab.validation import check_number

    skip_slow_import()
    notebook = Path(arguments.notebook)
    parameters = read_parameters(read_runnable(notebook))
    if arguments.list:
        _print_parameters(list(parameters.values()), arguments.json)
        return 0
    given = parse_text(parameters, arguments.parameters)
    timeout_s = DEFAULT_TIMEOUT_S if arguments.timeout is None else arguments.timeout
    check_number("timeout_s", timeout_s, above=0)
    folder = Path(arguments.out) if arguments.out else _new_folder(notebook)
    try:
        record = run_notebook(notebook, folder, given, live=arguments.live, timeout_s=timeout_s)
    except BaseException:
        if not arguments.out:
            with suppress(OSError):  # made for this run; where that came to its end, kept
                os.removedirs(folder)
        raise
    if arguments.json:
        print(json.dumps(asdict(record) | {"folder": str(folder)}, indent=2))
    else:
        for name, number in record.numbers.items():
            print(f"{name}: {number['value']:,.6g} {number['unit']}".rstrip())
        outcome = "completed" if record.completed else f"failed ({record.error})"
        page = folder / record.page
        shown = page if page.exists() else folder
        print(f"{notebook.name} {outcome} in {record.duration_s:.1f} s: see {shown}")
    return 0 if record.completed else 1


def _print_parameters(parameters: list, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": p.name, "type": p.type_name, "default": p.default, "help": p.help}
            for p in parameters
        ]
        print(json.dumps(rows, indent=2))
        return
    for p in parameters:
        print(f"{p.name}: {p.type_name} = {p.default!r}  # {p.help}")


def _new_folder(notebook: Path) -> Path:
    """Return ``runs/<notebook>/<time>``, numbered where that one is taken."""
    from datetime import datetime

    base = Path("runs") / notebook.stem / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    number, folder = 1, base
    while True:
        try:
            folder.mkdir(parents=True)  # made at once, so that no other run takes the same
            return folder
        except FileExistsError:
            number += 1
            folder = base.with_name(f"{base.name}_{number}")
