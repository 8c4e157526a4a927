"""Synthetic requests whose overlaps follow a given distribution exactly as drawn.

Each group has an anchor, its first request; every later request of the group shares with the anchor
a depth drawn from the distribution, and nothing deeper with anything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparselab.overlap import OverlapDistribution
from sparselab.validation import check_instance, check_integer
from sparselab.workloads.workload import Request, Workload, check_request_count

SUMMARY = "synthetic: groups of random anchors, overlaps drawn from an OverlapDistribution"


def load(
    path: None = None,
    distribution: OverlapDistribution | None = None,
    groups: int = 10,
    requests_per_group: int = 20,
    vocabulary: int = 200_000,
    seed: int = 0,
) -> Workload:
    """Make requests of ``distribution.length`` tokens, group by group; equal seeds give equal ones.

    The distribution is uniform over 4,096 tokens unless given. There is no file to read, so
    ``path`` must be left out. Requests come group by group (see :meth:`Workload.interleave`).
    """
    if path is not None:
        raise ValueError(f"path must be left out for a synthetic workload, got {path!r}.")
    if distribution is None:
        distribution = OverlapDistribution.uniform(4096)
    check_instance("distribution", distribution, OverlapDistribution)
    groups = check_request_count("groups", groups)
    requests_per_group = check_request_count("requests_per_group", requests_per_group)
    total = groups * requests_per_group
    # Every request may need an id of its own where it leaves its anchor.
    vocabulary = check_integer("vocabulary", vocabulary, minimum=1)
    check_integer("vocabulary", vocabulary, maximum=2**31)
    if vocabulary < groups + total:
        raise ValueError(
            f"vocabulary must be at least {groups + total}, groups * (requests_per_group + 1), "
            f"got {vocabulary}."
        )
    rng = np.random.default_rng(check_integer("seed", seed, minimum=0))

    requests = []
    for group in range(groups):
        anchor = rng.integers(vocabulary, size=distribution.length)
        anchor[0] = group  # so that no two groups begin alike
        anchor.setflags(write=False)
        requests.append(Request(f"group {group}", anchor))
        drawn = distribution.sample(requests_per_group - 1, seed=int(rng.integers(2**63)))
        for depth in drawn.tolist():
            fresh = rng.integers(vocabulary, size=distribution.length - depth)
            if fresh.size:
                fresh[0] = _leaving(anchor, depth, groups + len(requests), groups, vocabulary)
            requests.append(Request(f"group {group}", anchor[:depth], tail=fresh))
    return Workload(
        name="synthetic",
        requests=requests,
        source="made up by a random generator",
        synthetic=True,
        provenance={
            "generator": "synthetic",
            "distribution": repr(distribution),
            "groups": groups,
            "requests_per_group": requests_per_group,
            "vocabulary": vocabulary,
            "seed": seed,
        },
    )


def _leaving(
    anchor: NDArray[np.int64], depth: int, number: int, groups: int, vocabulary: int
) -> int:
    """Return the id with which request ``number`` leaves its anchor after ``depth`` tokens.

    It differs from the anchor's, from that of any request that leaves at the same place, and (at
    depth 0, where the first ids of the anchors are ``0..groups-1``) from every other first id.
    """
    if depth == 0:
        return number
    return int((anchor[depth] + number - groups) % vocabulary)
