"""What is timed live, and what is concluded from the times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparselab import export
from sparselab.workloads import Request, Workload
from widgets.measured_frontier import (
    VERDICT_REQUESTS,
    live_sample,
    shares_by_case,
    times_over_blocks,
    verdict,
)


def documents(*sizes: int) -> Workload:
    """Documents of 100 tokens, each with so many questions of 3 tokens, taking turns."""
    requests = [
        Request(group, np.arange(100) + 1000 * group, arrival=float(turn), tail=[turn, 5, 6])
        for group, size in enumerate(sizes)
        for turn in range(size)
    ]
    requests.sort(key=lambda request: request.arrival)
    return Workload("documents", requests, "made up in a test", synthetic=True)


class TestLiveSample:
    def test_takes_the_first_requests_of_the_largest_group(self):
        sample = live_sample(documents(3, 6, 4), requests=4, tokens=10)
        assert [request.group for request in sample] == [1] * 4
        assert [request.arrival for request in sample] == [0.0, 1.0, 2.0, 3.0]
        assert sample.name == "documents, shortened"
        assert sample.synthetic

    def test_takes_more_groups_where_one_is_not_enough(self):
        sample = live_sample(documents(3, 6, 4), requests=9, tokens=10)
        assert {request.group for request in sample} == {1, 2}
        assert len(sample) == 9
        assert len(live_sample(documents(3, 6, 4), requests=99, tokens=10)) == 13

    def test_keeps_the_last_tokens_of_what_a_group_shares(self):
        sample = live_sample(documents(2, 3), requests=5, tokens=10)
        for request in sample:
            start = 90 + 1000 * request.group
            shared = list(range(start, start + 10))
            assert request.tokens.tolist() == [*shared, int(request.arrival), 5, 6]

    def test_longer_than_the_prefix_leaves_it_whole(self):
        sample = live_sample(documents(2), requests=2, tokens=10**6)
        assert [request.length for request in sample] == [103, 103]

    @pytest.mark.parametrize("arguments", [{"requests": 0}, {"tokens": 0}])
    def test_sizes_must_be_positive(self, arguments):
        with pytest.raises(ValueError, match="must be at least 1, got 0"):
            live_sample(documents(2), **{"requests": 2, "tokens": 5, **arguments})


def timings(requests: int, over_blocks: dict[int, float]) -> pd.DataFrame:
    """A table of measurements in which every budget takes so many times the blocks' 10 ms."""
    rows = []
    for request in range(2 * requests):
        busy = 1.0 + request % 3  # a machine that is slower now and then
        cases = [("no_cache", None, 40.0, 400), ("block", None, 10.0, 100)]
        cases += [("optimal", budget, 10.0 * over, 100) for budget, over in over_blocks.items()]
        rows += [
            {
                "request": request,
                "measured": request >= requests,
                "policy": policy,
                "budget": budget,
                # Warm-up is slow, and must not count.
                "total_ms": ms * busy if request >= requests else 1e6,
                "recomputed_tokens": tokens,
                "checkpoints": budget or 0,
            }
            for policy, budget, ms, tokens in cases
        ]
    return pd.DataFrame(rows)


class TestTimes:
    def test_shares_are_of_the_median_request_without_a_cache(self):
        counted, measured = shares_by_case(timings(5, {1: 2.0}))
        share = measured.set_index("policy")["share"]
        assert share.to_dict() == pytest.approx({"no_cache": 1.0, "block": 0.25, "optimal": 0.5})
        assert counted.set_index("policy")["share"]["optimal"] == 0.25

    def test_a_policy_can_have_a_name_that_says_what_it_planned_on(self):
        counted, measured = shares_by_case(timings(5, {1: 2.0}), {"optimal": "optimal, told"})
        for shares in (counted, measured):
            assert shares["label"].tolist() == ["block", "no_cache", "optimal, told"]
            assert shares["policy"].tolist() == ["block", "no_cache", "optimal"]

    def test_a_request_is_compared_with_itself(self):
        ratios = times_over_blocks(timings(6, {1: 2.0, 2: 1.02}))
        assert ratios.index.tolist() == list(range(6, 12))
        np.testing.assert_allclose(ratios, [[2.0, 1.02]] * 6)

    def test_the_verdict_names_the_least_budget_that_reaches_the_blocks_time(self):
        said = verdict(timings(VERDICT_REQUESTS, {1: 2.0, 2: 1.04, 4: 0.9}))
        assert said.startswith("with 2 checkpoints an entry it reaches the blocks' time")
        assert f"the median of {VERDICT_REQUESTS} requests takes 1.04 times as long" in said

        assert verdict(timings(10, {1: 1.0})).startswith("with 1 checkpoint an entry")

    def test_or_that_none_does(self):
        said = verdict(timings(VERDICT_REQUESTS, {1: 2.0, 2: 1.2}))
        assert said.startswith("with up to 2 checkpoints it does not reach the blocks' time")
        assert "1.20 times as long" in said

    def test_of_few_requests_nothing_is_concluded(self):
        said = verdict(timings(VERDICT_REQUESTS - 1, {1: 0.5}))
        assert said.startswith(f"{VERDICT_REQUESTS - 1} timed requests are too few")


def test_the_notebook_says_that_it_does_without_pytorch_where_it_is_missing():
    notebook = Path(__file__).parents[2] / "notebooks" / "03_workload_frontiers.ipynb"
    cells = {cell.id: cell.source for cell in export.read_notebook(notebook).cells}
    names = {"live_model": "tiny", "find_spec": lambda _name: None, "Markdown": str}
    for cell in ("live-measure", "live-figure", "live-saw"):
        exec(cells[cell], names)
    assert "PyTorch is not installed" in names["said"]
