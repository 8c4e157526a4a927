"""Requests timed on a live model: a sample short enough to time, and what its times say.

The tables are those of :func:`sparselab.replay.measure_workload`, which no function here needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sparselab.validation import check_integer
from sparselab.workloads import Request, Workload
from sparselab.workloads.prefix_index import common_prefix

#: Timed requests below which no verdict is given: so few medians say more about the machine.
VERDICT_REQUESTS = 10
#: Times that count as equal: at most this many times as long.
EQUAL_TIME = 1.05


def live_sample(workload: Workload, requests: int, tokens: int) -> Workload:
    """Return the first requests of the largest groups, their common prefixes shortened.

    Args:
        workload: of token ids.
        requests: the most requests; as many groups as it takes, the largest ones first.
        tokens: what the requests of a group share is cut to its last ``tokens`` tokens.
    """
    requests = check_integer("requests", requests, minimum=1)
    tokens = check_integer("tokens", tokens, minimum=1)
    chosen = set()
    found = 0
    for group, size in Counter(request.group for request in workload).most_common():
        if found < requests:
            chosen.add(group)
            found += size
    taken = [request for request in workload if request.group in chosen][:requests]
    first: dict[Hashable, NDArray[np.int64]] = {}  # group -> its first prompt
    shared: dict[Hashable, int] = {}
    for request in taken:
        opening = first.setdefault(request.group, request.tokens)
        depth = common_prefix(opening, request.tokens)
        shared[request.group] = min(depth, shared.get(request.group, depth))
    shortened = [
        Request(r.group, r.tokens[max(0, shared[r.group] - tokens) :], arrival=r.arrival)
        for r in taken
    ]
    return replace(workload, name=f"{workload.name}, shortened", requests=shortened)


def shares_by_case(
    table: pd.DataFrame, labels: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tokens and times as shares of those of ``no_cache``, which must be in the table.

    Both frames have one row a policy and budget: ``policy``, ``budget``, ``label``, ``share``, and
    ``checkpoints``, all of the median measured request. ``labels`` says what a policy is called
    where its name is not enough: ``optimal`` is drawn by what it planned on.
    """
    columns = ["recomputed_tokens", "total_ms", "checkpoints"]
    cases = table[table["measured"]].groupby(["policy", "budget"], dropna=False)
    medians = cases[columns].median().reset_index()
    medians["label"] = medians["policy"].replace(dict(labels or {}))
    cold = medians[medians["policy"] == "no_cache"].iloc[0]
    counted = medians.assign(share=medians["recomputed_tokens"] / cold["recomputed_tokens"])
    measured = medians.assign(share=medians["total_ms"] / cold["total_ms"])
    return counted, measured


def times_over_blocks(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many times as long as ``block`` each measured request took under ``optimal``.

    One row a request, one column a budget. A request runs under both within a moment, so that a
    machine that is busy for a while slows both.
    """
    measured = table[table["measured"]]
    block = measured[measured["policy"] == "block"].set_index("request")["total_ms"]
    optimal = measured[measured["policy"] == "optimal"]
    times = optimal.pivot(index="request", columns="budget", values="total_ms")
    return times.div(block, axis=0)


def verdict(table: pd.DataFrame) -> str:
    """Say with how many checkpoints the optimal placement reaches block caching's time, if any.

    It does where the median of :func:`times_over_blocks` is at most :data:`EQUAL_TIME`. Of fewer
    than :data:`VERDICT_REQUESTS` measured requests nothing is concluded.
    """
    ratios = times_over_blocks(table)
    if len(ratios) < VERDICT_REQUESTS:
        return (
            f"{len(ratios)} timed requests are too few to say with how many checkpoints it reaches "
            f"the blocks' time ({VERDICT_REQUESTS} at least)"
        )
    medians = ratios.median()
    reached = medians.index[medians <= EQUAL_TIME]
    if len(reached):
        best = reached[0]
        number = "1 checkpoint" if best == 1 else f"{best:.0f} checkpoints"
        head = f"with {number} an entry it reaches the blocks' time"
    else:
        best = medians.idxmin()
        head = (
            f"with up to {medians.index.max():.0f} checkpoints it does not reach the blocks' time"
        )
    low, high = ratios[best].quantile([0.25, 0.75])
    return (
        f"{head}: the median of {len(ratios)} requests takes {medians[best]:.2f} times as long, "
        f"half of them {low:.2f} to {high:.2f} times ({EQUAL_TIME:.2f} counts as equal)"
    )
