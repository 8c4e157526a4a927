"""The simulator against a plain reference, request by request, and what holds on every run."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pandas
import pytest
from serving_reference import replay

import sparselab as sl
from sparselab.architecture import HybridArchitecture
from sparselab.estimators import DecayedHistogram, EntryAware, Histogram
from sparselab.regret import clairvoyant_cost, overlap_cost, regret
from sparselab.simulator import capture_positions, simulate
from sparselab.workloads import Request, Workload

MODEL = HybridArchitecture.preset("qwen3.5-0.8b")
OPTIONS = {"block": {"block_size": 3}, "log": {"start": 2}}
POLICIES = sorted(set(sl.policies()))
# Halves and quarters are exact in binary, so both sides break ties between plans alike.
ESTIMATORS = {
    "histogram": Histogram,
    "dropping": lambda: Histogram(beyond="drop"),
    "relative": lambda: Histogram(relative=True),
    "decayed": lambda: DecayedHistogram(gamma=0.5),
    "entry-aware": lambda: EntryAware(Histogram(), strength=0.25),
}


def random_workload(rng: random.Random) -> Workload:
    """Up to 25 short prompts over few tokens, many of which extend or repeat an earlier one."""
    unit = rng.choice([1, 1, 4])
    prompts: list[list[int]] = []
    requests = []
    for _ in range(rng.randint(1, 25)):
        start = rng.choice(prompts) if prompts and rng.random() < 0.7 else []
        start = start[: rng.randint(0, len(start))] if rng.random() < 0.7 else start
        tokens = start + [rng.randint(0, 2) for _ in range(rng.randint(0 if start else 1, 8))]
        prompts.append(tokens)
        length = len(tokens) * unit - rng.randint(0, unit - 1)
        requests.append(Request(rng.choice("ab"), tokens, length))
    return Workload("random", requests, "made up in a test", unit=unit, synthetic=True)


def random_settings(rng: random.Random) -> dict:
    average = 10 * MODEL.kv_bytes_per_token + 2 * MODEL.checkpoint_bytes
    return {
        "budget": rng.randint(0, 4),
        "replan_every": rng.choice([1, 1, 3]),
        "capacity": rng.choice([None, 1, 2, 5]),
        "capacity_bytes": rng.choice([None, None, int(average * rng.uniform(0.2, 6))]),
        "align": rng.choice([1, 1, 2, 3]),
        "architecture": MODEL,
    }


class TestAgainstTheReference:
    @pytest.mark.parametrize("eviction", ["fifo", "lru"])
    @pytest.mark.parametrize("capture", ["resumed", "full"])
    @pytest.mark.parametrize("policy", POLICIES)
    def test_agrees_request_by_request(self, policy, capture, eviction):
        for seed in range(15):
            rng = random.Random(f"{policy} {capture} {eviction} {seed}")
            workload, settings = random_workload(rng), random_settings(rng)
            settings |= {"capture": capture, "eviction": eviction, **OPTIONS.get(policy, {})}
            make = ESTIMATORS[rng.choice(list(ESTIMATORS))]
            found = simulate(workload, policy, estimator=make(), **settings).requests
            expected = replay(workload, policy, make_estimator=make, **settings)
            found["positions"] = [positions.tolist() for positions in found["positions"]]
            assert found[list(expected[0])].to_dict("records") == expected, (seed, settings)

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_agrees_for_every_estimator(self, name):
        make = ESTIMATORS[name]
        for seed in range(30):
            rng = random.Random(f"{name} {seed}")
            workload, settings = random_workload(rng), random_settings(rng)
            found = simulate(workload, "optimal", estimator=make(), **settings).requests
            expected = replay(workload, "optimal", make_estimator=make, **settings)
            assert [p.tolist() for p in found["positions"]] == [r["positions"] for r in expected]


class TestConservation:
    @pytest.mark.parametrize("policy", POLICIES)
    def test_every_token_is_resumed_or_recomputed_and_nothing_resumes_past_its_overlap(
        self, policy
    ):
        for seed in range(10):
            rng = random.Random(f"conservation {policy} {seed}")
            workload, settings = random_workload(rng), random_settings(rng)
            result = simulate(workload, policy, warmup=rng.choice([0.0, 0.4]), **settings)
            frame, summary = result.requests, result.summary
            assert (frame["recomputed"] + frame["resume_point"] == frame["length"]).all()
            assert (frame["resume_point"] <= frame["overlap"]).all()
            assert (frame["recomputed"] >= 1).all()  # the last token is always computed
            assert (frame["overlap"] <= frame["length"]).all()
            total = summary["saved_tokens"] + summary["recomputed_tokens"]
            assert total == summary["prompt_tokens"]
            overlap = summary["saved_tokens"] + summary["checkpoint_miss_tokens"]
            assert overlap == summary["overlap_tokens"]
            if "budget" in sl.policies()[policy].needs:
                assert (frame["checkpoints"] <= settings["budget"]).all()
            for positions in frame["positions"]:
                assert (positions % settings["align"] == 0).all()

    @pytest.mark.parametrize("policy", POLICIES)
    def test_no_policy_beats_the_clairvoyant(self, policy):
        for seed in range(10):
            rng = random.Random(f"regret {policy} {seed}")
            workload, settings = random_workload(rng), random_settings(rng)
            for cost in (None, lambda x: 2 * x + x**2):
                assert regret(simulate(workload, policy, prefill_cost=cost, **settings)) >= 0

    def test_clairvoyant_never_recomputes_more_with_a_larger_budget(self):
        for seed in range(20):
            workload = random_workload(random.Random(seed))
            result = simulate(workload, "kv_only", capture="full")
            costs = [clairvoyant_cost(result, budget) for budget in range(8)]
            assert costs == sorted(costs, reverse=True)
            assert costs[0] == overlap_cost(result)  # nothing placed, all recomputed

    def test_overlap_never_falls_with_capacity_under_fifo(self):
        for seed in range(20):
            workload = random_workload(random.Random(seed))
            by_entries = [
                simulate(workload, "kv_only", capacity=c).summary["overlap_tokens"]
                for c in range(1, 12)
            ]
            by_bytes = [
                simulate(
                    workload,
                    "kv_only",
                    capacity_bytes=c * 7 * MODEL.kv_bytes_per_token,
                    architecture=MODEL,
                ).summary["overlap_tokens"]
                for c in range(1, 30)
            ]
            assert by_entries == sorted(by_entries)
            assert by_bytes == sorted(by_bytes)

    def test_under_a_known_distribution_no_schedule_beats_the_frontier(self):
        known = sl.OverlapDistribution([0, 7, 20, 21, 40, 64], [3, 1, 5, 2, 4, 1], 64)
        frontier = sl.optimal_frontier(known, 64)
        for policy in POLICIES:
            options = {"overlap": 20} if policy == "branch" else {}
            schedule = sl.place(policy, 64, 3, known, **options)
            best = frontier.expected[len(schedule)]
            assert sl.expected_recompute(schedule, known) >= best - 1e-12


def workload_of(*prompts: str, **options) -> Workload:
    """One request a text, a letter a token, all in group "g"."""
    requests = [Request("g", [ord(letter) for letter in prompt]) for prompt in prompts]
    return Workload("letters", requests, "made up in a test", **options)


class TestOneRequest:
    def test_resumes_at_the_deepest_checkpoint_within_the_overlap(self):
        frame = simulate(workload_of("abcdefgh", "abcdefXY"), "block", block_size=2).requests
        second = frame.iloc[1]
        assert (second["overlap"], second["resume_point"], second["recomputed"]) == (6, 6, 2)
        frame = simulate(workload_of("abcdefgh", "abcdefXY"), "block", block_size=4).requests
        second = frame.iloc[1]
        assert (second["overlap"], second["resume_point"], second["checkpoint_miss"]) == (6, 4, 2)

    def test_the_last_token_is_computed_even_if_the_whole_prompt_is_known(self):
        frame = simulate(workload_of("abcd", "abcd", "ab"), "block", block_size=1).requests
        assert frame["overlap"].tolist() == [0, 4, 2]
        assert frame["resume_point"].tolist() == [0, 3, 1]

    def test_append_only_chat_needs_the_last_state_alone(self):
        chat = workload_of("ab", "abcd", "abcdef", "abcdefgh")
        last = simulate(chat, "last").summary
        assert last["saved_tokens"] == last["overlap_tokens"] == 2 + 4 + 6
        assert last["checkpoints_per_entry"] == 1

    def test_the_longest_overlap_wins_whatever_the_group_and_ties_go_to_the_newest(self):
        requests = [Request("a", [1, 2, 3]), Request("b", [1, 2, 9]), Request("a", [1, 2, 4])]
        workload = Workload("ties", requests, "made up in a test")
        assert simulate(workload, "last").requests["matched"].tolist() == [-1, 0, 1]

    def test_branch_stores_the_observed_point_of_divergence(self):
        frame = simulate(workload_of("abcdef", "abcXYZ", "abcQ"), "branch").requests
        assert [p.tolist() for p in frame["positions"]] == [[], [3], [3]]
        assert frame["resume_point"].tolist() == [0, 0, 3]

    def test_branch_stores_the_token_before_the_last_of_a_prompt_that_was_all_shared(self):
        frame = simulate(workload_of("abcdef", "abcdef", "abcdef"), "branch").requests
        assert [p.tolist() for p in frame["positions"]] == [[], [5], [5]]
        assert frame["resume_point"].tolist() == [0, 0, 5]

    def test_lru_keeps_what_is_used_and_fifo_does_not(self):
        again = workload_of("aaa", "bbb", "aaX", "aaa")
        assert simulate(again, "last", capacity=2).requests["overlap"].tolist() == [0, 0, 2, 2]
        lru = simulate(again, "last", capacity=2, eviction="lru").requests
        assert lru["overlap"].tolist() == [0, 0, 2, 3]

    def test_hashed_traces_count_whole_blocks_and_no_more_than_either_prompt_has(self):
        requests = [Request("g", [7, 8], 20), Request("g", [7, 8], 18), Request("g", [7, 9], 30)]
        workload = Workload("blocks", requests, "made up in a test", unit=16)
        assert simulate(workload, "last").requests["overlap"].tolist() == [0, 18, 16]


class TestCapture:
    held = np.array([10, 20, 30])

    def test_resumed_drops_what_lies_before_the_resume_point_unless_it_is_held(self):
        stored, again = capture_positions(np.array([5, 20, 50]), self.held, 30, None, "resumed")
        assert (stored.tolist(), again.tolist()) == ([20, 50], [])

    def test_free_slots_go_to_the_deepest_held_checkpoints(self):
        stored, _ = capture_positions(np.array([5, 20, 50]), self.held, 30, 3, "resumed")
        assert stored.tolist() == [20, 30, 50]
        stored, _ = capture_positions(np.array([50]), self.held, 30, 8, "resumed")
        assert stored.tolist() == [10, 20, 30, 50]

    def test_full_counts_each_token_that_is_computed_again_once(self):
        # 12 and 15 are reached from 10, 15 on the way; 25 from 20; 50 lies in what is computed.
        wanted = np.array([12, 15, 20, 25, 50])
        stored, again = capture_positions(wanted, self.held, 30, 5, "full")
        assert (stored.tolist(), again.tolist()) == (wanted.tolist(), [[10, 15], [20, 25]])

    def test_full_captures_for_free_what_is_computed_anyway(self):
        assert capture_positions(np.array([50]), self.held, 30, 1, "full")[1].size == 0

    def test_what_is_computed_again_costs_what_those_tokens_do(self):
        shallow = [f"ab{letter * 6}" for letter in "PQRSTU"]
        prompts = workload_of("abcdefgh", "abcdefXX", *shallow, "abcdefXZ")
        cost = 10 * np.arange(9)
        result = simulate(prompts, "optimal", 1, Histogram(), capture="full", prefill_cost=cost)
        # It resumes at 6, but most requests leave at 2: the first two tokens are computed again.
        last = result.requests.iloc[-1]
        assert (last["resume_point"], last["positions"].tolist()) == (6, [2])
        assert (last["extra_prefill"], last["extra_cost"]) == (2, 20)
        assert result.summary["extra_cost"] == result.requests["extra_cost"].sum()


class TestEstimates:
    def test_the_callers_estimator_counts_but_stays_as_it_is(self):
        estimator = Histogram()
        estimator.observe(3, 9)
        result = simulate(workload_of("abcdefghi", "abXX"), "optimal", 1, estimator=estimator)
        assert result.requests["positions"][0].tolist() == [3]
        assert estimator.distribution(9) == sl.OverlapDistribution([3], [1], 9)

    def test_nothing_is_learnt_between_two_plans(self):
        prompts = workload_of("abcdefgh", "abXXXXXX", "abcdYYYY", "abZZZZZZ")
        frame = simulate(
            prompts, "optimal", 1, Histogram(), replan_every=3, capture="full"
        ).requests
        # Nothing is known for requests 0 to 2; request 3 knows the overlaps 2, 4 and 2.
        ignorant = sl.place("optimal", 8, 1, sl.OverlapDistribution.uniform(8)).positions.tolist()
        assert [p.tolist() for p in frame["positions"]] == [ignorant] * 3 + [[2]]

    def test_own_overlap_is_known_when_a_requests_entry_is_planned(self):
        prompts = workload_of("abcdefgh", "abcXXXXX")
        frame = simulate(prompts, "optimal", 1, Histogram(), capture="full").requests
        assert frame["positions"][1].tolist() == [3]

    @pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
    def test_a_prompt_that_is_sent_again_is_planned_for_to_where_it_can_resume(self, make):
        prompts = workload_of(*["abcdefgh"] * 6)
        for capture in ("resumed", "full"):
            frame = simulate(prompts, "optimal", 1, make(), capture=capture).requests
            # The last token is always computed, so a checkpoint after it would serve nobody.
            assert [p.tolist() for p in frame["positions"][1:]] == [[7]] * 5
            assert frame["resume_point"].tolist()[2:] == [7] * 4


class TestPrefillCost:
    def test_costs_are_differences_of_g_and_the_plan_minimises_them(self):
        prompts = workload_of("abcdefgh", "abcdXXXX", "abcdefYY")
        tokens = simulate(prompts, "block", block_size=3)
        squared = simulate(prompts, "block", block_size=3, prefill_cost=lambda x: x**2)
        lengths, starts = (tokens.requests[name] for name in ("length", "resume_point"))
        assert squared.requests["resume_point"].tolist() == starts.tolist()
        assert squared.requests["cost"].tolist() == (lengths**2 - starts**2).tolist()
        assert tokens.summary["cost"] == tokens.summary["recomputed_tokens"]

    def test_optimal_weighs_tokens_by_their_cost(self):
        seen = Histogram()
        for depth in [2, 2, 2, 6]:
            seen.observe(depth, 8)
        one = workload_of("abcdefgh")
        cheap = simulate(one, "optimal", 1, seen).requests["positions"][0]
        steep = simulate(one, "optimal", 1, seen, prefill_cost=lambda x: x**3).requests[
            "positions"
        ][0]
        assert (cheap.tolist(), steep.tolist()) == ([2], [6])


class TestBytes:
    def test_entries_weigh_their_kv_and_checkpoints_and_no_cache_weighs_nothing(self):
        prompts, weight = workload_of("abcd", "xyz"), MODEL.checkpoint_bytes
        frame = simulate(prompts, "block", block_size=2, architecture="qwen3.5-0.8b").requests
        assert frame["kv_bytes"].tolist() == [4 * 12288, 3 * 12288]
        assert frame["checkpoint_bytes"].tolist() == [2 * weight, weight]
        assert frame["retained_kv_bytes"].tolist() == [4 * 12288, 7 * 12288]
        nothing = simulate(prompts, "no_cache", architecture=MODEL).summary
        assert (nothing["kv_bytes"], nothing["checkpoint_bytes"]) == (0, 0)
        kv_only = simulate(prompts, "kv_only", architecture=MODEL).summary
        assert (kv_only["kv_bytes"], kv_only["checkpoint_bytes"]) == (7 * 12288, 0)

    def test_without_an_architecture_bytes_are_unknown_not_zero(self):
        result = simulate(workload_of("abcd"), "last")
        assert result.summary["kv_bytes"] is None
        assert "kv_bytes" not in result.requests

    def test_an_entry_that_is_too_large_pushes_out_all_and_is_not_kept(self):
        prompts = workload_of("ab", "abcdefgh", "ab")
        room = 4 * MODEL.kv_bytes_per_token
        frame = simulate(prompts, "kv_only", capacity_bytes=room, architecture=MODEL).requests
        assert frame["retained_entries"].tolist() == [1, 0, 1]
        assert frame["overlap"].tolist() == [0, 2, 0]


class TestResult:
    def test_at_least_one_request_is_measured_however_long_the_warmup(self):
        prompts = workload_of(*["abcdefgh"] * 10)
        for share, skipped in [(0.0, 0), (0.39, 3), (0.9, 9), (1 - 1e-12, 9)]:
            assert simulate(prompts, "last", warmup=share).summary["warmup_requests"] == skipped

    def test_warmup_is_replayed_but_not_measured(self):
        prompts = workload_of("abcd", "abcX", "abXX", "aXXX", "abcd")
        result = simulate(prompts, "block", block_size=1, warmup=0.6)
        assert result.requests["measured"].tolist() == [False] * 3 + [True] * 2
        assert result.summary["requests"] == 2
        assert result.summary["warmup_requests"] == 3
        assert result.summary["saved_tokens"] == 1 + 3

    def test_parquet_keeps_rows_summary_and_provenance(self, tmp_path):
        result = simulate(workload_of("abcd", "abcX"), "balanced", 2)
        result.to_parquet(tmp_path / "run.parquet")
        back = pandas.read_parquet(tmp_path / "run.parquet")
        assert back["resume_point"].tolist() == result.requests["resume_point"].tolist()
        assert [list(p) for p in back["positions"]] == [
            list(p) for p in result.requests["positions"]
        ]
        assert back.attrs["summary"] == result.summary
        assert back.attrs["parameters"]["policy"] == "balanced"
        assert "numpy" in back.attrs["versions"]
        assert result.requests.attrs == {}

    def test_parameters_are_values_that_json_has(self, tmp_path):
        given = {"block_size": np.int64(2), "capacity": np.int64(3), "align": np.int32(2)}
        result = simulate(workload_of("abcd", "abcX"), "block", warmup=np.float64(0.5), **given)
        assert json.loads(json.dumps(result.parameters)) == result.parameters
        assert result.parameters["policy_options"] == {"block_size": 2}
        assert result.parameters["capacity"] == 3
        result.to_parquet(tmp_path / "run.parquet")
        back = pandas.read_parquet(tmp_path / "run.parquet")
        assert back.attrs["parameters"] == result.parameters

    def test_shows_itself_in_a_notebook(self):
        shown = simulate(workload_of("abcd", "abcX"), "block", block_size=1)._repr_html_()
        assert "&#x27;block&#x27; on &#x27;letters&#x27;" in shown
        assert "<td>saved_tokens</td>" in shown
        assert "kv_bytes" not in shown  # unknown without an architecture

    def test_says_what_it_is(self):
        assert "'balanced' on 'letters': 2 requests" in repr(
            simulate(workload_of("a", "b"), "balanced")
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"policy": "optimum"}, "unknown policy 'optimum' .did you mean 'optimal'"),
        ({"budget": -1}, "budget must be at least 0, got -1"),
        ({"replan_every": 0}, "replan_every must be at least 1, got 0"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"capacity_bytes": 10}, "capacity_bytes needs an architecture"),
        ({"eviction": "random"}, "unknown eviction 'random'"),
        ({"align": 0}, "align must be at least 1, got 0"),
        ({"warmup": 1.0}, "warmup must be less than 1, got 1"),
        ({"capture": "fully"}, "unknown capture 'fully' .did you mean 'full'"),
        ({"architecture": "qwen"}, "unknown preset 'qwen'"),
        ({"policy": "block", "size": 3}, "policy 'block' has no option 'size'"),
        ({"prefill_cost": [0, 1]}, "prefill_cost must hold length"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        simulate(workload_of("abcd", "abce"), **arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"workload": [[1, 2]]}, "workload must be a Workload, got list"),
        ({"estimator": "histogram"}, "estimator must be an estimator with observe"),
        ({"estimator": DecayedHistogram}, "estimator must be an estimator with observe"),
        ({"budget": 1.5}, "budget must be an integer, got 1"),
        ({"architecture": 3}, "architecture must be a HybridArchitecture, got int"),
    ],
)
def test_wrong_types_get_one_sentence(arguments, sentence):
    with pytest.raises(TypeError, match=sentence):
        simulate(**{"workload": workload_of("abcd"), **arguments})


# -- real requests -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference_data() -> Path:
    folder = os.environ.get("SPARSELAB_REFERENCE_DATA")
    if not folder:
        pytest.skip("set SPARSELAB_REFERENCE_DATA to the folder of reference data to run this")
    return Path(folder)


def saved_share(workload, policy, **arguments) -> float:
    common = {"align": 64, "warmup": 0.6, "capture": "full"}
    return simulate(workload, policy, **{**common, **arguments}).summary["saved_share"]


@pytest.mark.reference_data
def test_quality_reaches_the_known_shares(reference_data):
    """15 articles with 202 questions, 20 retained entries, the last 40 % measured."""
    path = reference_data / "leval_quality.jsonl"
    quality = sl.workloads.load("quality", path=path).interleave(42)
    count = {"estimator": DecayedHistogram(0.99), "replan_every": 10}
    drop = {"estimator": DecayedHistogram(0.99, beyond="drop"), "replan_every": 10}
    aware = {"estimator": EntryAware(DecayedHistogram(0.99), strength=0.05)}
    share = {
        "balanced 1": saved_share(quality, "balanced", budget=1, capacity=20),
        "drop 1": saved_share(quality, "optimal", budget=1, capacity=20, **drop),
        "count 1": saved_share(quality, "optimal", budget=1, capacity=20, **count),
        "entry-aware 1": saved_share(quality, "optimal", budget=1, capacity=20, **aware),
        "balanced 8": saved_share(quality, "balanced", budget=8, capacity=20),
        "count 8": saved_share(quality, "optimal", budget=8, capacity=20, **count),
        "block 512": saved_share(quality, "block", capacity=20, block_size=512),
        "log 768": saved_share(quality, "log", capacity=20, start=768),
    }
    known = {
        "balanced 1": 0.445,
        "drop 1": 0.75,
        "count 1": 0.83,
        "entry-aware 1": 0.88,
        "balanced 8": 0.79,
        "count 8": 0.88,
        "block 512": 0.84,
        "log 768": 0.57,
    }
    assert share == pytest.approx(known, abs=0.03)
    # The order is what matters; the two best are known to be equal.
    ascending = sorted(known, key=known.__getitem__)
    assert sorted(share, key=share.__getitem__)[:-2] == ascending[:-2]


@pytest.mark.reference_data
def test_system_prompts_need_to_know_the_entry(reference_data):
    """96 prompts of unlike lengths, 20 queries each: absolute depth of others says little."""
    prompts = sl.workloads.load(
        "system_prompts",
        path=reference_data / "system_prompts_tokens.jsonl",
        queries=reference_data / "mt_bench_question.jsonl",
        queries_per_prompt=20,
    ).interleave(42)
    of_overlap = {}
    for name, policy, estimator in [
        ("balanced", "balanced", None),
        ("drop", "optimal", DecayedHistogram(0.99, beyond="drop")),
        ("count", "optimal", DecayedHistogram(0.99)),
        ("entry-aware", "optimal", EntryAware(DecayedHistogram(0.99), strength=0.05)),
    ]:
        result = simulate(
            prompts,
            policy,
            1,
            estimator,
            replan_every=1 if name == "entry-aware" else 10,
            capacity=200,
            align=64,
            warmup=0.6,
            capture="full",
        ).summary
        of_overlap[name] = result["saved_tokens"] / result["overlap_tokens"]
    known = {"balanced": 0.5, "drop": 0.49, "count": 0.56, "entry-aware": 0.99}
    assert of_overlap == pytest.approx(known, abs=0.03)
