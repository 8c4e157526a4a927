"""``sparselab place``: the positions that one policy chooses, and what they cost."""

from __future__ import annotations

import argparse

from sparselab.commands.arguments import (
    add_placement_arguments,
    overlap_distribution,
    parse_options,
    print_json,
)
from sparselab.placement import place, policies
from sparselab.recompute import expected_recompute, reduction_factor, worst_case_recompute

SUMMARY = "place checkpoints by one policy and price them"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab place``."""
    parser.add_argument(
        "--policy", default="optimal", help="see `sparselab policies` (default: optimal)"
    )
    add_placement_arguments(parser)
    parser.epilog = "example: sparselab place --overlap quality --length 8192 --budget 4 --align 64"


def run(arguments: argparse.Namespace) -> int:
    """Place, price and print."""
    distribution = overlap_distribution(arguments.overlap, arguments.length)
    schedule = place(
        arguments.policy,
        distribution.length,
        arguments.budget,
        distribution,
        arguments.align,
        **parse_options(arguments.option, place),
    )
    result = {
        "policy": schedule.policy,
        "overlap": arguments.overlap,
        "length": schedule.length,
        "budget": arguments.budget if "budget" in policies()[schedule.policy].needs else None,
        "align": arguments.align,
        "positions": schedule.positions.tolist(),
        "expected_recompute_tokens": expected_recompute(schedule, distribution),
        "worst_case_recompute_tokens": worst_case_recompute(schedule),
        "reduction_factor": reduction_factor(schedule, distribution),
    }
    if arguments.json:
        print_json(result)
        return 0
    print(f"{schedule.policy}: {len(schedule)} checkpoints in {schedule.length:,} tokens")
    print("positions:", " ".join(map(str, schedule.positions.tolist())) or "none")
    expected, worst = result["expected_recompute_tokens"], result["worst_case_recompute_tokens"]
    factor = result["reduction_factor"]
    print(f"expected recompute: {expected:,.1f} tokens a request, of the shared prefix")
    print(f"worst case:         {worst:,} tokens of the shared prefix")
    print(f"reduction factor:   {factor:.2f} (of the shared prefix, without a cache / with)")
    return 0
