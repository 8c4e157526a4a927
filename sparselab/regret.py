"""Regret: what a simulated policy recomputed beyond a clairvoyant one.

The clairvoyant places the checkpoints of each entry knowing which overlaps will actually come to
it: the exact optimum for those depths, with the same number of checkpoints and alignment, free to
put them anywhere. What is computed again only to capture is no part of it.

Which entry a request matches does not depend on where checkpoints stand, so the clairvoyant meets
the same overlaps, and no policy of the same budget can recompute less. Not so where the cache is
limited in bytes: there the number of checkpoints decides what is evicted, and with it which
overlaps a policy meets. Its regret is then over those, and compares with no other policy's.

The clairvoyant of a policy that ignores the budget gets as many checkpoints as each entry stored.
Where that is none (`branch`, before anything was shared) it can do no better: the regret is then 0
however much is recomputed, and compares with no other policy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparselab.optimal import optimal_frontier
from sparselab.overlap import OverlapDistribution

if TYPE_CHECKING:
    import pandas

    from sparselab.simulator import SimulationResult


def overlap_cost(result: SimulationResult) -> int | float:
    """Return what the measured requests recomputed of their overlaps: ``sum G(d) - G(resume)``.

    ``d = min(overlap, length - 1)`` is the deepest point at which a request could have resumed,
    since its last token is always computed. In the unit of the prefill cost.
    """
    rows = _measured_hits(result)
    cost = result.prefill_cost
    return (cost[rows["usable"]] - cost[rows["resume_point"]]).sum().item()


def clairvoyant_cost(result: SimulationResult, budget: int | None = None) -> int | float:
    """Return what the clairvoyant recomputes of the same overlaps, in the same unit.

    Args:
        result: a simulation; its measured requests count.
        budget: checkpoints an entry may hold; by default the budget of the simulation or, where its
            policy ignores the budget, as many as each entry actually stored.
    """
    if budget is None:
        budget = result.parameters["budget"]
    stored, lengths = (result.requests[name].to_numpy() for name in ("checkpoints", "length"))
    total: int | float = 0
    for _, hits in _measured_hits(result).groupby("matched"):
        entry = int(hits["matched"].iloc[0])
        length = int(lengths[entry])
        frontier = optimal_frontier(
            OverlapDistribution.from_samples(hits["usable"].to_numpy(), length),
            # No entry holds more checkpoints than tokens.
            int(stored[entry]) if budget is None else min(budget, length),
            result.parameters["align"],
            result.prefill_cost[: length + 1],
        )
        total += frontier.costs[-1].item()
    return total


def regret(result: SimulationResult) -> int | float:
    """Return :func:`overlap_cost` less :func:`clairvoyant_cost`: at least 0, but for rounding."""
    return overlap_cost(result) - clairvoyant_cost(result)


def _measured_hits(result: SimulationResult) -> pandas.DataFrame:
    """Return of each measured hit its entry, resume point and how deep it could have resumed."""
    frame = result.requests
    rows = frame.loc[frame["measured"] & frame["hit"], ["matched", "resume_point"]].copy()
    usable = np.minimum(frame["overlap"], frame["length"] - 1)
    return rows.assign(usable=usable[rows.index])
