"""Regret against a clairvoyant found by trying every placement."""

import itertools
import random

import pytest

from sparselab.regret import clairvoyant_cost, overlap_cost, regret
from sparselab.simulator import simulate
from sparselab.workloads import Request, Workload


def random_workload(seed: int) -> Workload:
    rng = random.Random(seed)
    prompts = [[rng.randint(0, 1) for _ in range(rng.randint(1, 8))] for _ in range(12)]
    return Workload("random", [Request("g", p) for p in prompts], "made up", synthetic=True)


def best_by_trying(result, budget: int, align: int, cost) -> float:
    """Return the least cost over every set of at most ``budget`` positions of every entry."""
    rows = result.requests[result.requests["measured"]].to_dict("records")
    total = 0
    for entry in result.requests.to_dict("records"):
        depths = [
            min(row["overlap"], row["length"] - 1)
            for row in rows
            if row["matched"] == entry["request"]
        ]
        positions = range(align, entry["length"] + 1, align)
        total += min(
            sum(cost(d) - cost(max([0] + [p for p in chosen if p <= d])) for d in depths)
            for size in range(budget + 1)
            for chosen in itertools.combinations(positions, size)
        )
    return total


@pytest.mark.parametrize("align", [1, 2])
@pytest.mark.parametrize("cost", [None, lambda x: x + x**2], ids=["tokens", "quadratic"])
def test_clairvoyant_is_the_best_of_all_placements(align, cost):
    for seed in range(8):
        for budget in (0, 1, 2):
            result = simulate(
                random_workload(seed),
                "balanced",
                budget,
                capture="full",
                align=align,
                warmup=0.25,
                prefill_cost=cost,
            )
            least = best_by_trying(result, budget, align, cost or (lambda x: x))
            assert clairvoyant_cost(result) == least
            assert regret(result) == overlap_cost(result) - least


def test_overlap_cost_counts_what_could_have_been_resumed():
    prompts = [Request("g", [1, 2, 3, 4]), Request("g", [1, 2, 3, 4]), Request("g", [1, 2, 9, 9])]
    result = simulate(Workload("three", prompts, "made up"), "block", block_size=2)
    # The second could have resumed at 3 (its last token is computed anyway) and did at 2.
    assert overlap_cost(result) == 1


def test_a_policy_without_budget_is_held_against_as_many_checkpoints_as_it_stored():
    prompts = [Request("g", [1, 2, 3, 4, 5, 6]), Request("g", [1, 2, 3, 9]), Request("g", [1, 8])]
    result = simulate(Workload("three", prompts, "made up"), "block", block_size=4)
    # The entry that both others match stored one checkpoint, at 4, which neither can use.
    assert result.requests["matched"].tolist() == [-1, 0, 1]
    assert overlap_cost(result) == 3 + 1
    assert clairvoyant_cost(result) == 0  # one checkpoint each, at 3 and at 1
    assert clairvoyant_cost(result, budget=0) == 4
