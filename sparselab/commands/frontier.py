"""``sparselab frontier``: expected recompute against the budget, beside other policies."""

from __future__ import annotations

import argparse

from sparselab.commands.arguments import (
    add_placement_arguments,
    comparable_policies,
    options_by_policy,
    overlap_distribution,
    print_json,
)
from sparselab.optimal import Frontier, least_expected_recompute, optimal_frontier
from sparselab.placement import place
from sparselab.recompute import expected_recompute
from sparselab.validation import check_integer

SUMMARY = "the least expected recompute for every budget, beside the other policies"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab frontier``."""
    parser.add_argument(
        "--policy",
        action="append",
        metavar="POLICY",
        help="a policy to show beside the optimum; may be repeated (default: all that apply)",
    )
    add_placement_arguments(parser)
    parser.epilog = "example: sparselab frontier --overlap mooncake_conversation --budget 16 --json"


def run(arguments: argparse.Namespace) -> int:
    """Solve, compare and print."""
    distribution = overlap_distribution(arguments.overlap, arguments.length)
    budget = check_integer("budget", arguments.budget, minimum=0)
    # No entry holds more checkpoints than tokens, and no budget is listed beyond the useful ones.
    frontier = optimal_frontier(distribution, min(budget, distribution.length), arguments.align)
    useful = len(frontier.schedule(frontier.max_budget))
    names = arguments.policy or [name for name in comparable_policies() if name != "optimal"]
    options = options_by_policy(arguments.option, names)
    others = [_compare(frontier, name, budget, options[name]) for name in names]
    result = {
        "overlap": arguments.overlap,
        "length": distribution.length,
        "align": arguments.align,
        "exact": frontier.exact,
        "optimal": [_optimum(frontier, count) for count in range(useful + 1)],
        "policies": others,
    }
    if arguments.json:
        print_json(result)
    else:
        _print_table(result)
        if useful < budget:
            print(f"\nmore than {useful:,} checkpoints save nothing more")
    return 0


def _optimum(frontier: Frontier, budget: int) -> dict:
    """Return the optimum of one budget."""
    positions = frontier.schedule(budget).positions
    return {
        "budget": budget,
        "checkpoints": positions.size,
        "cost": frontier.costs[budget].item(),
        "expected_recompute_tokens": frontier.expected[budget].item(),
        "positions": positions.tolist(),
    }


def _compare(frontier: Frontier, name: str, budget: int, options: dict) -> dict:
    """Return a policy's number of checkpoints and E[r], beside the optimum's with as many."""
    distribution, align = frontier.distribution, frontier.align
    schedule = place(name, distribution.length, budget, distribution, align, **options)
    count = len(schedule)
    if count <= frontier.max_budget:
        least = frontier.expected[count].item()
    else:  # a frontier that far would take gigabytes for long entries
        least = least_expected_recompute(distribution, count, align)
    return {
        "policy": name,
        "checkpoints": count,
        "expected_recompute_tokens": expected_recompute(schedule, distribution),
        "optimal_with_as_many": least,
    }


def _print_table(result: dict) -> None:
    print(f"overlap {result['overlap']}, {result['length']:,} tokens, align {result['align']}")
    print(f"\n{'budget':>8} {'E[r], tokens':>14}  positions (optimal)")
    for row in result["optimal"]:
        shown = " ".join(map(str, row["positions"][:10]))
        more = f" ... {len(row['positions']) - 10} more" if len(row["positions"]) > 10 else ""
        print(f"{row['budget']:>8} {row['expected_recompute_tokens']:>14,.1f}  {shown}{more}")
    print(f"\n{'policy':>12} {'checkpoints':>12} {'E[r], tokens':>14} {'optimum with as many':>22}")
    for row in result["policies"]:
        print(
            f"{row['policy']:>12} {row['checkpoints']:>12,} "
            f"{row['expected_recompute_tokens']:>14,.1f} {row['optimal_with_as_many']:>22,.1f}"
        )
