"""``sparselab sweep``: many parameter sets over notebooks, in parallel, resumable."""

from __future__ import annotations

import argparse
import json

SUMMARY = "run many parameter sets over notebooks; continue where it was stopped"

EPILOG = """example:
  sparselab sweep notebooks/sweep_budgets.yaml --jobs 2

Start it again after it was stopped or killed: what is complete is kept. The exit code is 1 if any
run failed. The file's format is described at the top of sparselab/batch/sweep.py and by its
example.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab sweep``."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE.yaml", help="what to run")
    parser.add_argument("--out", metavar="FOLDER", help="where to (default: the file's `output`)")
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="runs at a time (default: one a processor, at most 4)",
    )
    parser.add_argument(
        "--rerun",
        choices=("missing", "failed", "changed", "all"),
        default="missing",
        help="what to run: what is missing (the default); failed runs too; also those made by "
        "other code of the lab; everything",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the runs that the file asks for and run nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the records as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing; the exit code is 1 if any run failed."""
    import sys
    from dataclasses import asdict

    from sparselab.batch.index import INDEX_FILE
    from sparselab.batch.sweep import load_sweep, run_sweep
    from sparselab.batch.worker import skip_slow_import

    skip_slow_import()
    sweep = load_sweep(arguments.file, arguments.out)
    if arguments.list:
        _print_plan(sweep.runs, arguments.json)
        return 0

    def report(line: str) -> None:
        print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    records = run_sweep(sweep, arguments.jobs, arguments.rerun, report)
    failed = sum(not record.completed for record in records.values())
    if arguments.json:
        content = {"folder": str(sweep.output), "failed": failed}
        runs = {name: asdict(record) for name, record in records.items()}
        print(json.dumps(content | {"runs": runs}, indent=2))
    else:
        print(
            f"{len(records) - failed} of {len(records)} runs completed, {failed} failed: "
            f"open {sweep.output / INDEX_FILE}"
        )
    return 1 if failed else 0


def _print_plan(runs: tuple, as_json: bool) -> None:
    rows = [{"run": r.name, "notebook": str(r.notebook), "parameters": r.given} for r in runs]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(row["run"])
