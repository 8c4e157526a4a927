"""``sparselab overlap``: measure how much the requests of a trace or data set overlap."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sparselab.commands.arguments import (
    add_json_argument,
    check_output,
    parse_options,
    print_json,
)

SUMMARY = "measure the overlaps of a trace or data set file into a CSV"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab overlap``."""
    parser.add_argument("file", metavar="FILE", help="trace, data set file or folder of prompts")
    parser.add_argument(
        "-o", "--out", metavar="CSV", help="write the table depth,requests here (default: nowhere)"
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="quality, narrativeqa, system_prompts, append_only_chat, mooncake, qwen_bailian or "
        "jsonl (default: recognised from the file)",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the format, e.g. queries=users.csv or block_size=16; may be repeated",
    )
    add_json_argument(parser)
    parser.epilog = "example: sparselab overlap trace.jsonl --format mooncake -o trace.csv"


def run(arguments: argparse.Namespace) -> int:
    """Load, measure, write and print."""
    from sparselab import workloads
    from sparselab.overlap import OverlapDistribution

    if (
        arguments.out is not None
        and Path(arguments.out).resolve() == Path(arguments.file).resolve()
    ):
        raise ValueError(f"--out must not be the file that is measured, got {arguments.out}.")
    check_output(arguments.out, ".csv", ".gz")
    name = arguments.format or workloads.recognise(arguments.file)
    options = parse_options(arguments.option, workloads.load)
    workload = workloads.load(name, arguments.file, **options)
    overlaps = workload.overlap_samples(show_progress=len(workload) > 50_000)
    table = OverlapDistribution.from_samples(overlaps)
    if arguments.out is not None:
        table.to_csv(arguments.out)

    prompt_tokens, overlap_tokens = int(workload.lengths().sum()), int(overlaps.sum())
    result: dict[str, Any] = {
        "file": arguments.file,
        "format": name,
        "tokenizer": workload.tokenizer,
        "granularity_tokens": workload.unit,
        "requests": len(workload),
        "groups": len({request.group for request in workload}),
        "prompt_tokens": prompt_tokens,
        "overlap_tokens": overlap_tokens,
        "overlap_share": overlap_tokens / prompt_tokens,
        "distinct_depths": int(table.depths.size),
        "deepest_overlap": int(table.depths[-1]),
        "out": arguments.out,
    }
    if arguments.json:
        print_json(result)
        return 0
    grain = f", by blocks of {workload.unit} tokens" if workload.unit > 1 else ""
    print(f"{arguments.file} ({name}{grain}): {len(workload):,} requests")
    print(
        f"{overlap_tokens:,} of {prompt_tokens:,} prompt tokens "
        f"({result['overlap_share']:.1%}) overlap an earlier request"
    )
    print(f"{table.depths.size:,} distinct depths, the deepest {table.depths[-1]:,} tokens")
    if arguments.out is not None:
        print(f"wrote {arguments.out}")
    return 0
