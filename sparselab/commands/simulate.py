"""``sparselab simulate``: replay a workload through a cache under one policy."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparselab.commands.arguments import (
    add_json_argument,
    add_policy_option_argument,
    check_output,
    parse_options,
    print_json,
)
from sparselab.placement import policies
from sparselab.validation import check_choice, nearest

if TYPE_CHECKING:
    from sparselab.estimators import Estimator
    from sparselab.simulator import SimulationResult
    from sparselab.workloads import Workload

SUMMARY = "replay a workload through a cache of retained prompts under one policy"
MOST_GIB = 2**23  # 2**53 bytes
ESTIMATORS = ("histogram", "decayed", "entry-aware")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab simulate``."""
    parser.add_argument(
        "workload", help="a loader's name (its shipped sample is read) or a file of requests"
    )
    parser.add_argument(
        "--format", metavar="LOADER", help="how to read a file (default: recognised from the file)"
    )
    parser.add_argument(
        "--workload-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the loader, e.g. queries=users.csv; may be repeated",
    )
    parser.add_argument(
        "--interleave",
        type=int,
        metavar="SEED",
        help="let all groups arrive at the same time, at random (default: in the order read)",
    )
    parser.add_argument(
        "--policy", default="optimal", help="see `sparselab policies` (default: optimal)"
    )
    add_policy_option_argument(parser)
    parser.add_argument("--budget", type=int, default=8, help="checkpoints an entry (default: 8)")
    _add_estimator_arguments(parser)
    _add_cache_arguments(parser)
    parser.add_argument(
        "--out", metavar="FILE.parquet", help="save one row a request (default: nowhere)"
    )
    add_json_argument(parser)
    parser.epilog = (
        "example: sparselab simulate quality --interleave 42 --policy balanced --budget 4 "
        "--capacity 20"
    )


def _add_estimator_arguments(parser: argparse.ArgumentParser) -> None:
    # Nothing given is None, so that what was given and can change nothing is refused.
    group = parser.add_argument_group("estimator, for policies that plan on observed overlaps")
    group.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        help="histogram counts all overlaps alike, decayed lets old ones fade, entry-aware counts "
        "those of the entry's own group over decayed as a prior (default: decayed)",
    )
    group.add_argument(
        "--gamma",
        type=float,
        help="share of its weight that an overlap keeps at each request, in decayed and the prior "
        "of entry-aware (default: 0.99)",
    )
    group.add_argument(
        "--strength",
        type=float,
        help="overlaps that the prior of entry-aware is worth (default: 1)",
    )
    group.add_argument(
        "--relative",
        action="store_true",
        default=None,
        help="count depth over entry length (default: in tokens); changes only the prior of "
        "entry-aware",
    )
    group.add_argument(
        "--beyond",
        choices=("count", "drop"),
        help="count a depth beyond an entry at its length, or drop it (default: count); changes "
        "only the prior of entry-aware",
    )
    group.add_argument(
        "--replan-every",
        type=int,
        metavar="REQUESTS",
        help="requests from one plan to the next (default: 1)",
    )


def _add_cache_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cache")
    group.add_argument(
        "--capacity", type=int, metavar="ENTRIES", help="most entries held (default: no limit)"
    )
    group.add_argument(
        "--capacity-gib",
        type=float,
        metavar="GIB",
        help="most GiB held, KV and checkpoints; needs --model (default: no limit)",
    )
    group.add_argument(
        "--eviction",
        choices=("fifo", "lru"),
        help="fifo evicts the oldest entry, lru the one unused for longest; needs a capacity "
        "(default: fifo)",
    )
    group.add_argument(
        "--align",
        type=int,
        default=1,
        metavar="TOKENS",
        help="positions are multiples of it (default: 1)",
    )
    group.add_argument(
        "--capture",
        choices=("resumed", "full"),
        default="resumed",
        help="resumed captures only states after the resume point, full captures any and computes "
        "again what it takes (default: resumed)",
    )
    group.add_argument(
        "--warmup",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of the requests, the first ones, that are not measured (default: 0)",
    )
    group.add_argument(
        "--model", help="whose bytes to count, e.g. qwen3.5-4b (default: none are counted)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate, save and print."""
    from sparselab.regret import clairvoyant_cost, overlap_cost
    from sparselab.simulator import simulate

    check_output(arguments.out, ".parquet")
    if arguments.capacity_gib is not None and arguments.model is None:
        raise ValueError("--capacity-gib needs --model, whose bytes are counted.")
    _check_given_options_matter(arguments)
    result = simulate(
        _workload(arguments),
        arguments.policy,
        arguments.budget,
        _estimator(arguments),
        capacity=arguments.capacity,
        capacity_bytes=_capacity_bytes(arguments.capacity_gib),
        align=arguments.align,
        warmup=arguments.warmup,
        capture=arguments.capture,
        architecture=arguments.model,
        **_given(arguments, "replan_every", "eviction"),
        **parse_options(arguments.option, simulate),
    )
    if arguments.out:
        result.to_parquet(arguments.out)
    actual, least = overlap_cost(result), clairvoyant_cost(result)
    costs = {"overlap_cost": actual, "clairvoyant_cost": least, "regret": actual - least}
    if arguments.json:
        print_json({**result.parameters, **result.summary, **costs})
    else:
        _print(result, costs)
        if arguments.out:
            print(f"wrote {arguments.out}")
    return 0


def _check_given_options_matter(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` for an option that was given and can change nothing here."""
    policy = policies()[check_choice("policy", arguments.policy, policies())]
    if "distribution" not in policy.needs:
        for name in ("estimator", "gamma", "strength", "relative", "beyond", "replan_every"):
            if getattr(arguments, name) is not None:
                raise ValueError(
                    f"--policy {policy.name} has no --{name.replace('_', '-')}, since it plans on "
                    "no observed overlaps; leave it out."
                )
    is_limited = arguments.capacity is not None or arguments.capacity_gib is not None
    if arguments.eviction is not None and not is_limited:
        raise ValueError(
            f"--eviction {arguments.eviction} needs --capacity or --capacity-gib: without one "
            "nothing is evicted; leave it out."
        )


def _workload(arguments: argparse.Namespace) -> Workload:
    from sparselab import workloads

    options = parse_options(arguments.workload_option, workloads.load)
    if arguments.workload in workloads.loaders():
        if arguments.format is not None:
            raise ValueError(
                f"--format says how to read a file, but {arguments.workload!r} is a loader's name "
                f"and reads its shipped sample; leave out --format {arguments.format}."
            )
        workload = workloads.load(arguments.workload, **options)
    else:
        if not Path(arguments.workload).exists():
            hint = nearest(arguments.workload, workloads.loaders())
            raise FileNotFoundError(
                f"{arguments.workload!r} is no file and no loader's name{hint}; loaders: "
                f"{', '.join(workloads.loaders())}."
            )
        name = arguments.format or workloads.recognise(arguments.workload)
        workload = workloads.load(name, arguments.workload, **options)
    return workload if arguments.interleave is None else workload.interleave(arguments.interleave)


def _estimator(arguments: argparse.Namespace) -> Estimator:
    from sparselab.estimators import DecayedHistogram, EntryAware, Histogram

    kind, gamma, strength = arguments.estimator or "decayed", arguments.gamma, arguments.strength
    if kind == "histogram" and gamma is not None:
        raise ValueError(f"--estimator histogram has no --gamma, got {gamma:g}; leave it out.")
    if kind != "entry-aware" and strength is not None:
        raise ValueError(f"--estimator {kind} has no --strength, got {strength:g}; leave it out.")
    if kind == "histogram":
        return Histogram(**_given(arguments, "relative", "beyond"))
    decayed = DecayedHistogram(**_given(arguments, "gamma", "relative", "beyond"))
    return decayed if kind == "decayed" else EntryAware(decayed, **_given(arguments, "strength"))


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those of the named arguments that were given; for the others a default counts."""
    found = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _capacity_bytes(gib: float | None) -> int | None:
    from sparselab.validation import check_number

    if gib is None:
        return None
    gib = check_number("--capacity-gib", gib, above=0.0, maximum=MOST_GIB)
    return math.ceil(gib * 2**30)


def _print(result: SimulationResult, costs: dict[str, Any]) -> None:
    given, found = result.parameters, result.summary
    kind = ", synthetic" if given["synthetic"] else ""
    print(f"{given['policy']} on {given['workload']} (simulated{kind})")
    print(f"requests:           {found['requests']:,} ({found['hits']:,} overlap an entry)")
    print(f"prompt tokens:      {found['prompt_tokens']:,}")
    for label, name in [
        ("overlap", "overlap_tokens"),
        ("saved", "saved_tokens"),
        ("checkpoint miss", "checkpoint_miss_tokens"),
        ("recomputed", "recomputed_tokens"),
        ("extra prefill", "extra_prefill_tokens"),
    ]:
        share = found[name] / found["prompt_tokens"]
        print(f"{label + ':':<19} {found[name]:,} tokens ({share:.1%})")
    regret = f"{costs['regret']:,} tokens above a clairvoyant placement"
    if given["capacity_bytes"] is not None:  # see regret.py
        regret += " for the overlaps of this run, which --capacity-gib makes differ by policy"
    print(f"regret:             {regret}")
    print(f"checkpoints:        {found['checkpoints_per_entry']:.2f} an entry")
    if found["kv_bytes"] is not None:
        rows = result.requests[result.requests["measured"]]
        together = rows["retained_kv_bytes"] + rows["retained_checkpoint_bytes"]
        print(f"held at most:       {together.max() / 2**30:.2f} GiB ({given['architecture']})")
        print(f"the most of each:   {found['kv_bytes'] / 2**30:.2f} GiB of KV", end=", ")
        print(f"{found['checkpoint_bytes'] / 2**30:.2f} GiB of checkpoints")
