"""Requests and workloads: what they hold, refuse, measure and how they interleave."""

from __future__ import annotations

import numpy as np
import pytest

from sparselab.workloads import Request, Workload


def workload(*requests: Request, unit: int = 1) -> Workload:
    return Workload("test", requests, "written for the test", unit=unit)


def random_requests(rng: np.random.Generator, count: int) -> list[Request]:
    return [
        Request(group=int(rng.integers(4)), tokens=rng.integers(0, 2, rng.integers(1, 12)))
        for _ in range(count)
    ]


class TestRequest:
    def test_length_is_the_number_of_tokens_unless_given(self):
        assert Request("a", [1, 2, 3]).length == 3
        assert Request("a", [1, 2, 3], length=1100).length == 1100

    def test_a_tail_follows_the_tokens_and_shares_their_memory(self):
        document = np.arange(5)
        document.setflags(write=False)
        request = Request("a", document, tail=[7, 8])
        assert request.tokens.tolist() == [0, 1, 2, 3, 4, 7, 8]
        assert request.length == request.elements == 7
        assert np.shares_memory(request._head, document)

    def test_tokens_are_read_only_and_apart_from_a_writable_input(self):
        mine = np.array([1, 2])
        request = Request("a", mine)
        mine[0] = 9
        assert request.tokens.tolist() == [1, 2]
        with pytest.raises(ValueError, match="read-only"):
            request.tokens[0] = 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"tokens": []}, "tokens of a request of group 'g' must not be empty"),
            ({"tokens": [1.5]}, "tokens must be integers"),
            ({"tokens": [[1]]}, "one-dimensional"),
            ({"tokens": [1], "arrival": -2.0}, "arrival must be at least 0, got -2"),
            ({"tokens": [1], "arrival": float("nan")}, "arrival must be finite"),
            ({"tokens": [1], "length": 0}, "length must be at least 1, got 0"),
            ({"tokens": [2**63]}, "tokens must be less than 2"),
            ({"tokens": [1], "group": ["a"]}, r"group must be hashable, got \['a'\]"),
        ],
    )
    def test_bad_values_are_named(self, arguments, message):
        with pytest.raises((ValueError, TypeError), match=message):
            Request(**{"group": "g"} | arguments)


class TestWorkload:
    def test_needs_a_request(self):
        with pytest.raises(ValueError, match="at least one request"):
            workload()

    def test_arrivals_must_not_fall(self):
        with pytest.raises(ValueError, match=r"request 1 of 'test' arrives at 1\.0 s"):
            workload(Request("a", [1], arrival=2.0), Request("a", [1], arrival=1.0))

    def test_units_must_not_be_mixed(self):
        block = Request("a", [1, 2], length=700)
        token = Request("a", [1, 2, 3])
        assert workload(block, unit=512).unit == 512
        with pytest.raises(ValueError, match="request 1 of 'test' has 3 ids, but its 3 tokens"):
            workload(block, token, unit=512)

    def test_it_holds_requests_only(self):
        with pytest.raises(TypeError, match="request 1 must be a Request, got list"):
            Workload("test", [Request("a", [1]), [1, 2]], "written for the test")

    def test_arrivals_that_are_all_equal_are_none(self):
        untimed = workload(Request("a", [1], arrival=3.0), Request("a", [2], arrival=3.0))
        timed = workload(Request("a", [1]), Request("a", [2], arrival=3.0))
        assert timed.has_arrivals
        assert not untimed.has_arrivals

    def test_lengths_are_in_tokens(self):
        assert workload(Request("a", [1, 2], length=700), unit=512).lengths().tolist() == [700]


class TestOverlapSamples:
    def test_each_request_against_the_best_earlier_one(self):
        measured = workload(
            Request("a", [1, 2, 3, 4]),
            Request("b", [1, 2, 9]),
            Request("a", [1, 2, 3, 5]),
            Request("c", [8]),
            Request("b", [1, 2, 9, 9]),
        ).overlap_samples()
        assert measured.tolist() == [0, 2, 3, 0, 3]

    def test_agrees_with_comparing_all_pairs(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            requests = random_requests(rng, 30)
            plain = [
                max((shared(e.tokens, r.tokens) for e in requests[:i]), default=0)
                for i, r in enumerate(requests)
            ]
            assert workload(*requests).overlap_samples().tolist() == plain

    def test_blocks_count_as_tokens_up_to_the_shorter_prompt(self):
        # The second prompt ends within its second block, and so does what the third can share.
        measured = workload(
            Request("a", [1, 2, 3], length=1500),
            Request("a", [1, 2], length=700),
            Request("a", [1, 2, 3], length=1500),
            Request("b", [4], length=10),
            unit=512,
        ).overlap_samples()
        assert measured.tolist() == [0, 700, 1500, 0]


class TestInterleave:
    def make(self) -> Workload:
        return workload(*[Request(g, [g, i]) for g in range(3) for i in range(10)])

    def test_keeps_the_order_inside_each_group_and_loses_nothing(self):
        mixed = self.make().interleave(seed=1)
        for group in range(3):
            ids = [r.tokens.tolist() for r in mixed if r.group == group]
            assert ids == [[group, i] for i in range(10)]

    def test_mixes_the_groups(self):
        groups = [r.group for r in self.make().interleave(seed=1)]
        assert groups != sorted(groups)
        assert len(set(groups[:10])) == 3

    def test_equal_seeds_give_equal_arrivals(self):
        arrivals = [[r.arrival for r in self.make().interleave(seed=s)] for s in (1, 1, 2)]
        assert arrivals[0] == arrivals[1] != arrivals[2]

    def test_gaps_have_the_mean_asked_for(self):
        one = workload(*[Request("g", [i]) for i in range(4000)])
        gaps = np.diff([r.arrival for r in one.interleave(seed=0, mean_gap_s=3.0)])
        # Four standard errors of the mean of 3,999 exponential gaps.
        assert gaps.mean() == pytest.approx(3.0, abs=4 * 3.0 / np.sqrt(4000))

    def test_requests_of_no_group_are_one_stream_in_their_order(self):
        log = workload(*[Request(None, [i]) for i in range(20)])
        assert [r.tokens[0] for r in log.interleave(seed=1)] == list(range(20))

    def test_arrivals_of_the_requests_own_are_never_replaced(self):
        timed = workload(Request("a", [1], arrival=0.0), Request("b", [2], arrival=5.0))
        with pytest.raises(ValueError, match="arrivals of their own and need no interleaving"):
            timed.interleave(seed=1)
        again = self.make().interleave(seed=1).interleave(seed=2)
        assert len(again) == 30

    def test_leaves_the_original_alone_and_records_the_seed(self):
        original = self.make()
        mixed = original.interleave(seed=5)
        assert all(r.arrival == 0.0 for r in original)
        assert mixed.provenance["interleave"] == {"seed": 5, "mean_gap_s": 1.0}


def shared(a: np.ndarray, b: np.ndarray) -> int:
    """Count equal leading elements, one at a time."""
    depth = 0
    while depth < min(len(a), len(b)) and a[depth] == b[depth]:
        depth += 1
    return depth
