"""``sparselab replay``: what notebook 04 does, from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.commands.arguments import (
    add_json_argument,
    add_policy_option_argument,
    check_output,
    options_by_policy,
    overlap_distribution,
    print_json,
)
from sparselab.placement import Schedule
from sparselab.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

    from sparselab.replay import Calibration, ReplayModel, VerifyReport

MOST_REPEATS = 10_000
NOTHING_RESUMED = (
    "Nothing was resumed, so exactness was not checked: no policy has a checkpoint within the "
    "overlaps tried."
)
SUMMARY = "resume a live model under each policy: exactness, time measured and predicted, bytes"


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
        "--policies",
        nargs="+",
        default=["balanced"],
        help="see `sparselab policies` (default: balanced)",
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
        help="what `optimal` plans on: a shipped table, a CSV, or uniform (default)",
    )
    add_policy_option_argument(parser)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case (default: 3)")
    parser.add_argument("--chunk", type=int, default=512, help="tokens a call (default: 512)")
    parser.add_argument(
        "--align", type=int, default=1, help="positions are multiples of it (default: 1)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of weights, tokens and order (default: 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="save the measurements: .csv or .parquet (default: nowhere)",
    )
    add_json_argument(parser)
    parser.epilog = (
        "example: sparselab replay --model qwen3.5-0.8b-group --length 2048 "
        "--policies balanced optimal block --budgets 1 4 8"
    )


def run(arguments: argparse.Namespace) -> int:
    """Verify, calibrate and measure, save and print; exit code 1 where a resume was not exact.

    Where nothing was resumed it says so, and the exit code is 0. Interrupted, it keeps and shows
    what is finished, and the exit code is 130.
    """
    check_output(arguments.out, ".csv", ".parquet")
    check_integer("repeats", arguments.repeats, maximum=MOST_REPEATS)
    check_integer("seed", arguments.seed, maximum=2**63 - 1)  # as PyTorch's generators take
    options = options_by_policy(arguments.option, arguments.policies)
    distribution = overlap_distribution(arguments.overlap, arguments.length)
    from transformers import logging

    from sparselab import replay
    from sparselab.replay.measurement import make_cases, plan_trials
    from sparselab.replay.savings import has_cold

    cases = make_cases(
        arguments.length,
        arguments.policies,
        arguments.budgets,
        distribution,
        arguments.align,
        options,
    )
    trials = plan_trials(
        arguments.length, len(cases), arguments.depths, arguments.repeats, arguments.seed
    )
    depths = sorted({depth for _, depth, _ in trials})
    replay.calibration_lengths(arguments.length)  # refuses a prompt too short to fit a cost on
    # Its notes on optional kernels would come between the results.
    logging.set_verbosity_error()
    model = replay.load_model(arguments.model, arguments.device, arguments.dtype, arguments.seed)
    reports, calibration, capture_cost = before_timing(model, arguments, cases, depths)
    # Last, and saved at once: an interruption loses no run that was timed.
    table = replay.measure(
        model,
        arguments.length,
        arguments.policies,
        arguments.budgets,
        depths,
        arguments.repeats,
        distribution,
        arguments.align,
        arguments.chunk,
        arguments.seed,
        options,
        show_progress=not arguments.json,
    )
    if arguments.out is not None and not table.empty:
        write_table(table, arguments.out)
    if not has_cold(table):
        print("interrupted before a cold run was timed: nothing to compare with.", file=sys.stderr)
        return 130
    report = result(model, table, reports, calibration, capture_cost)
    if arguments.json:
        print_json(report)
    else:
        show(report)
    if report["interrupted"]:
        return 130
    return 1 if report["exact"] is False else 0


def before_timing(
    model: ReplayModel,
    arguments: argparse.Namespace,
    cases: Sequence[tuple[Schedule, int | None]],
    depths: Sequence[int],
) -> tuple[dict[tuple[int, int], VerifyReport], Calibration, pd.DataFrame]:
    """Verify every resume, fit the cost model, and time capturing each case's checkpoints."""
    from sparselab import replay

    how = {"chunk": arguments.chunk, "seed": arguments.seed, "show_progress": not arguments.json}
    reports = replay.verify_resumes(model, [schedule for schedule, _ in cases], depths, **how)
    how |= {"repeats": arguments.repeats}
    calibration = replay.calibrate(model, *replay.calibration_lengths(arguments.length), **how)
    captures = {
        label(schedule, budget): schedule.positions.tolist()
        for schedule, budget in cases
        if len(schedule)
    }
    return reports, calibration, replay.measure_capture(model, arguments.length, captures, **how)


def label(schedule: Schedule, budget: int | None) -> str:
    """Return what a case is called in the table of capture costs."""
    return schedule.policy if budget is None else f"{schedule.policy}, M = {budget}"


def result(
    model: ReplayModel,
    table: pd.DataFrame,
    reports: dict[tuple[int, int], VerifyReport],
    calibration: Calibration,
    capture_cost: pd.DataFrame,
) -> dict[str, Any]:
    """Return what is printed, as one object ready for JSON."""
    from sparselab.replay import can_fit, fit_savings, predict, prediction_error, summarise

    medians = predict(summarise(table), calibration.cost_model)
    resumed = bool((medians["resume_point"] > 0).any())
    return {
        "setting": {
            name: table[name].iloc[0]
            for name in ("model", "weights", "device", "dtype", "torch", "transformers", "seed")
        },
        "checkpoint_bytes": model.checkpoint_bytes,
        "kv_bytes_per_token": model.kv_bytes_per_token,
        "exact": all(report.exact for report in reports.values()) if reports else None,
        "exactness": [
            {
                "depth": depth,
                "resume_point": point,
                "bit_identical": report.bit_identical,
                "one_shot_difference": report.max_abs_diff_one_shot,
                "tolerance": report.tolerance,
                "control_differs": report.control_differs,
                "verdict": report.verdict,
            }
            for (depth, point), report in reports.items()
        ],
        "cost_model": vars(calibration.cost_model),
        "calibration": calibration.table.to_dict("records"),
        "prediction_error": calibration.worst_error,
        "medians": medians.to_dict("records"),
        "resume_prediction": vars(prediction_error(medians)) if resumed else None,
        "savings_fit": vars(fit_savings(table)) if can_fit(table) else None,
        "capture": capture_cost.to_dict("records"),
        "interrupted": table.attrs["interrupted"],
    }


def show(report: dict[str, Any]) -> None:
    """Print the result for a person."""
    import pandas as pd

    setting, cost, fit = report["setting"], report["cost_model"], report["savings_fit"]
    print(
        f"{setting['model']}, {setting['weights']} weights, {setting['dtype']}, "
        f"{setting['device']}, torch {setting['torch']}, transformers {setting['transformers']}\n"
    )
    for row in report["exactness"]:
        print(f"overlap {row['depth']:,}: {row['verdict']}")
    if report["exact"] is None:
        print(NOTHING_RESUMED)
    print(
        f"\nprefill of x tokens = {cost['overhead_ms']:.3g} ms + {cost['linear_ms']:.3g} ms x + "
        f"{cost['quadratic_ms']:.3g} ms x^2; off by at most {report['prediction_error']:.0%} on "
        "lengths that it was not fitted on"
    )
    medians = pd.DataFrame(report["medians"])
    columns = ["policy", "budget", "depth", "resume_point", "recomputed_tokens", "load_ms"]
    columns += ["total_ms", "predicted_ms", "saved_ms", "speedup", "load_share"]
    show_table("a request, medians", medians[columns])
    print(prediction_text(report["resume_prediction"]))
    if fit is not None:
        print(
            f"time saved = {fit['intercept_ms']:.1f} ms + {fit['ms_per_token']:.3f} ms a token "
            f"saved (R^2 = {fit['r_squared']:.3f}, {fit['points']} points)"
        )
    show_table("capturing against a plain prefill", pd.DataFrame(report["capture"]))
    columns = ["policy", "budget", "checkpoints", "checkpoint_bytes", "kv_bytes"]
    show_table("memory of one entry", medians[columns].drop_duplicates())
    print(
        f"one checkpoint: {report['checkpoint_bytes']:,} bytes; "
        f"KV of one token: {report['kv_bytes_per_token']:,} bytes"
    )
    if report["interrupted"]:
        print("interrupted: only the runs that were finished are shown.")


def prediction_text(found: dict[str, Any] | None) -> str:
    """Return how well resumes were predicted, in words."""
    from sparselab.replay import PredictionError

    if found is None:
        return "no request resumed from a checkpoint, so no resume was predicted"
    return PredictionError(**found).verdict


def show_table(title: str, table: pd.DataFrame) -> None:
    """Print a table under its title, numbers to three digits and bytes in full."""
    formats: Any = {name: "{:,}".format for name in table if str(name).endswith("_bytes")}
    text = table.to_string(
        index=False, float_format="{:.3g}".format, formatters=formats, na_rep="-"
    )
    print(f"\n{title}:\n{text}")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write the measurements, whole or not at all."""
    from sparselab.files import atomic_path

    with atomic_path(path) as temporary:
        if path.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)
