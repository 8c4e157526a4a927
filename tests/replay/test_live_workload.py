"""A workload on the live model: the simulator's decisions, run and timed."""

import numpy as np
import pytest

from sparselab import replay, simulate
from sparselab.replay import live_workload
from sparselab.workloads import Request, Workload


@pytest.fixture(scope="module")
def workload():
    """Three documents of 60 tokens with six questions each, in mixed order."""
    generator = np.random.default_rng(0)
    documents = generator.integers(0, 500, (3, 60))
    requests = []
    for number in range(18):
        group = int(generator.integers(3))
        question = generator.integers(0, 500, 12)
        tokens = np.concatenate([documents[group], question])
        requests.append(Request(group, tokens, arrival=float(number)))
    return Workload("documents (synthetic)", requests, "made up", synthetic=True)


@pytest.fixture(scope="module")
def table(tiny, workload):
    return replay.measure_workload(
        tiny,
        workload,
        policies=("no_cache", "balanced", "branch"),
        budgets=(1, 3),
        capacity=2,
        chunk=32,
        warmup=0.2,
        show_progress=False,
    )


def test_every_request_runs_once_under_every_policy_and_budget(table, workload):
    assert len(table) == len(workload) * 4
    counts = table.groupby(["policy", "budget", "request"], dropna=False).size()
    assert (counts == 1).all()
    assert table.attrs["workload"] == "documents (synthetic)"
    assert table.attrs["synthetic"]
    assert table.attrs["tokens_modulo"] is None


@pytest.mark.parametrize(("policy", "budget"), [("balanced", 1), ("balanced", 3), ("branch", None)])
def test_it_runs_what_the_simulator_decides(table, workload, policy, budget):
    decided = simulate(workload, policy, budget or 0, capacity=2, warmup=0.2).requests
    mine = table[(table["policy"] == policy) & (table["budget"].fillna(0) == (budget or 0))]
    assert mine["resume_point"].tolist() == decided["resume_point"].tolist()
    assert mine["checkpoints"].tolist() == decided["checkpoints"].tolist()
    assert mine["measured"].tolist() == decided["measured"].tolist()
    assert mine["resume_point"].sum() > 0


def test_times_are_measured(table):
    assert (table["total_ms"] > 0).all()
    assert np.allclose(table["load_ms"] + table["compute_ms"], table["total_ms"])
    assert (table.loc[table["resume_point"] > 0, "load_ms"] > 0).all()
    cold = table[table["policy"] == "no_cache"]
    assert (cold["recomputed_tokens"] == cold["length"]).all()


def test_ids_outside_the_vocabulary_are_taken_modulo_and_it_says_so(tiny, workload):
    shifted = [Request(r.group, r.tokens + 512 * 7, arrival=r.arrival) for r in workload]
    foreign = Workload("foreign", shifted, "made up")
    fitted = live_workload.within_vocabulary(foreign, tiny.vocab_size)
    pairs = zip(fitted, workload, strict=True)
    assert all(np.array_equal(mine.tokens, theirs.tokens) for mine, theirs in pairs)
    table = replay.measure_workload(tiny, foreign, ("last",), show_progress=False)
    assert table.attrs["tokens_modulo"] == 512


def test_entries_go_once_nothing_resumes_from_them(tiny, workload):
    decided = live_workload._decide(workload, "balanced", 2, {"capacity": 2}, {})
    case = live_workload._Case("balanced", 2, decided)
    for number, request in enumerate(workload):
        live_workload._serve(tiny, case, number, request, 32, 0)
        assert len(case.entries) <= 3
    assert not case.entries


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chunk": 0}, "chunk must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"policy_options": {"blok": {}}}, r"unknown policy 'blok' \(did you mean 'block'\?\)"),
    ],
)
def test_bad_arguments_are_named(tiny, workload, arguments, message):
    with pytest.raises(ValueError, match=message):
        replay.measure_workload(tiny, workload, ("last",), **arguments, show_progress=False)


def test_requests_come_as_a_workload(tiny, workload):
    with pytest.raises(TypeError, match="workload must be a Workload, got list"):
        replay.measure_workload(tiny, list(workload))


def test_a_hashed_trace_has_no_tokens_to_run(tiny):
    trace = Workload("trace", [Request("a", [1, 2], length=1000)], "made up", unit=512)
    with pytest.raises(ValueError, match="ids of blocks of 512 tokens: a live replay needs token"):
        replay.measure_workload(tiny, trace)
