"""``sparselab replay``: capture, resume, verify and measure on a live model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.commands.arguments import add_json_argument, overlap_distribution, print_json
from sparselab.placement import place, policies
from sparselab.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from sparselab.replay import VerifyReport

SUMMARY = "resume a live model under each policy: exactness, time and bytes"
FORMATS = (".csv", ".parquet")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab replay``."""
    parser.add_argument(
        "--model",
        default="qwen3.5-0.8b-group",
        help="tiny, qwen3.5-0.8b-group (default), qwen3.5-0.8b-random, a folder or a hub id",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda or mps")
    parser.add_argument(
        "--dtype", default="auto", help="auto (default), float32, bfloat16 or float16"
    )
    parser.add_argument("--length", type=int, default=1024, help="tokens (default: 1024)")
    parser.add_argument(
        "--policies", nargs="+", default=["balanced"], help="see `sparselab policies`"
    )
    parser.add_argument(
        "--budgets", nargs="+", type=int, default=[4], help="checkpoints allowed (default: 4)"
    )
    parser.add_argument(
        "--depths", nargs="+", type=int, help="overlaps to try (default: 1/4, 1/2 and 3/4)"
    )
    parser.add_argument(
        "--overlap",
        default="uniform",
        metavar="NAME-or-CSV",
        help="what `optimal` plans on: a shipped table, a CSV, or 'uniform' (the default)",
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case (default: 3)")
    parser.add_argument("--chunk", type=int, default=512, help="tokens a call (default: 512)")
    parser.add_argument("--align", type=int, default=1, help="positions are multiples of it")
    parser.add_argument("--seed", type=int, default=0, help="of weights, tokens and order")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="save the measurements: .csv or .parquet"
    )
    add_json_argument(parser)
    parser.epilog = (
        "example: sparselab replay --model qwen3.5-0.8b-group --length 2048 "
        "--policies balanced optimal block --budgets 1 4 8"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure every policy, verify the first one, print; exit code 1 where it was not exact."""
    # Refused before a model is loaded and timed for minutes.
    if arguments.out is not None and arguments.out.suffix not in FORMATS:
        raise ValueError(f"--out must end in .csv or .parquet, got {str(arguments.out)!r}.")
    needs = policies()[check_choice("policy", arguments.policies[0], policies())].needs
    distribution = overlap_distribution(arguments.overlap, arguments.length)
    distribution = distribution.restrict(arguments.length)
    from transformers import logging

    from sparselab import replay

    # Its notes on optional kernels would come between the results.
    logging.set_verbosity_error()
    model = replay.load_model(arguments.model, arguments.device, arguments.dtype, arguments.seed)
    table = replay.measure(
        model,
        arguments.length,
        arguments.policies,
        arguments.budgets,
        arguments.depths,
        arguments.repeats,
        distribution,
        arguments.align,
        arguments.chunk,
        arguments.seed,
        show_progress=not arguments.json,
    )
    schedule = place(
        arguments.policies[0],
        arguments.length,
        arguments.budgets[0] if "budget" in needs else None,
        distribution if "distribution" in needs else None,
        arguments.align,
    )
    reports = replay.verify_depths(
        model, schedule, sorted(set(table["depth"])), arguments.chunk, arguments.seed
    )
    if arguments.out is not None:
        write_table(table, arguments.out)
    report = result(model, table, reports)
    if arguments.json:
        print_json(report)
    else:
        show(report)
    return 0 if all(report.exact for report in reports.values()) else 1


def result(model: Any, table: pd.DataFrame, reports: dict[int, VerifyReport]) -> dict[str, Any]:
    """Return what is printed, as one object ready for JSON."""
    from sparselab.replay import fit_savings, summarise

    summary = summarise(table)
    distinct = table["saved_tokens"].nunique()
    return {
        "setting": {
            name: table[name].iloc[0]
            for name in ("model", "weights", "device", "dtype", "torch", "transformers", "seed")
        },
        "checkpoint_bytes": model.checkpoint_bytes,
        "kv_bytes_per_token": model.kv_bytes_per_token,
        "exactness": [
            {
                "depth": depth,
                "resume_point": report.resume_point,
                "bit_identical": report.bit_identical,
                "one_shot_difference": report.max_abs_diff_one_shot,
                "tolerance": report.tolerance,
                "control_differs": report.control_differs,
                "verdict": report.verdict,
            }
            for depth, report in reports.items()
        ],
        "medians": summary.to_dict("records"),
        "savings_fit": vars(fit_savings(table)) if distinct >= 3 else None,
        "interrupted": table.attrs["interrupted"],
    }


def show(report: dict[str, Any]) -> None:
    """Print the result for a person."""
    import pandas as pd

    setting = report["setting"]
    print(
        f"{setting['model']}, {setting['weights']} weights, {setting['dtype']}, "
        f"{setting['device']}, torch {setting['torch']}, transformers {setting['transformers']}"
    )
    print(
        f"one checkpoint {report['checkpoint_bytes'] / 2**20:.2f} MiB, "
        f"KV {report['kv_bytes_per_token'] / 2**10:.2f} KiB a token\n"
    )
    for row in report["exactness"]:
        print(f"overlap {row['depth']:,}: {row['verdict']}")
    columns = ["policy", "budget", "depth", "resume_point", "recomputed_tokens"]
    columns += ["load_ms", "total_ms", "saved_ms", "speedup", "load_share"]
    medians = pd.DataFrame(report["medians"])[columns]
    print("\n" + medians.to_string(index=False, float_format="{:.3g}".format, na_rep="-"))
    fit = report["savings_fit"]
    if fit is not None:
        print(
            f"\ntime saved = {fit['intercept_ms']:.1f} ms + {fit['ms_per_token']:.3f} ms a token "
            f"saved (R^2 = {fit['r_squared']:.3f}, {fit['points']} points)"
        )
    if report["interrupted"]:
        print("interrupted: only the runs that were finished are shown.")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write the measurements, whole or not at all."""
    from sparselab.files import atomic_path

    with atomic_path(path) as temporary:
        if path.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)
