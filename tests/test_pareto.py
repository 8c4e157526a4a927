"""The grid of simulations: what it returns, that it resumes, and where it can run."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparselab.architecture import HybridArchitecture
from sparselab.estimators import EntryAware, Histogram
from sparselab.pareto import non_dominated, pareto
from sparselab.simulator import simulate
from sparselab.workloads import Request, Workload

POLICIES = {
    "balanced": {},
    "own history": {"policy": "optimal", "estimator": EntryAware(Histogram(), 0.1)},
    "blocks of 2": {"policy": "block", "block_size": 2},
}


@pytest.fixture
def workload() -> Workload:
    rng = np.random.default_rng(5)
    requests = []
    for group in range(4):
        document = rng.integers(0, 50, size=20)
        for _ in range(4):
            tail = rng.integers(50, 99, size=3)
            requests.append(Request(group, document[: rng.integers(5, 20)], tail=tail))
    return Workload("documents", requests, "made up in a test", synthetic=True)


def run(workload, **options) -> pandas.DataFrame:
    arguments = {"policies": POLICIES, "budgets": (1, 3), "show_progress": False} | options
    return pareto(workload, **arguments)


class TestGrid:
    def test_has_a_row_a_policy_and_budget_in_order(self, workload):
        frame = run(workload, capacity=3)
        assert frame["label"].tolist() == [
            "balanced",
            "balanced",
            "own history",
            "own history",
            "blocks of 2",
        ]
        assert frame["budget"].fillna(-1).tolist() == [1, 3, 1, 3, -1]
        assert frame["policy"].tolist()[2:] == ["optimal", "optimal", "block"]

    def test_rows_are_the_summaries_of_simulate(self, workload):
        frame = run(workload, capacity=3, architecture="qwen3.5-2b")
        alone = simulate(workload, "balanced", 3, capacity=3, architecture="qwen3.5-2b").summary
        assert {name: frame[name][1] for name in alone} == alone

    def test_runs_are_ranked_by_all_that_they_compute(self, workload):
        frame = run(workload, capture="full")
        assert (frame["extra_cost"] > 0).any()
        everything = frame["recomputed_tokens"] + frame["extra_prefill_tokens"]
        expected = non_dominated(frame["checkpoints_per_entry"], everything)
        assert frame["non_dominated"].tolist() == expected.tolist()
        by_cost_alone = non_dominated(frame["checkpoints_per_entry"], frame["cost"])
        assert expected.tolist() != by_cost_alone.tolist()

    def test_arguments_that_name_a_budget_run_once_with_it(self, workload):
        frame = run(workload, policies={"four": {"policy": "balanced", "budget": 4}, **POLICIES})
        assert frame["label"].tolist()[:3] == ["four", "balanced", "balanced"]
        assert frame["budget"].tolist()[:3] == [4, 1, 3]

    def test_seeds_interleave_the_workload(self, workload):
        frame = run(workload, seeds=(1, 2), capacity=2)
        assert frame["seed"].tolist() == [1] * 5 + [2] * 5
        alone = simulate(workload.interleave(2), "balanced", 1, capacity=2).summary
        assert frame["saved_tokens"][5] == alone["saved_tokens"]
        assert frame.groupby("seed")["non_dominated"].any().all()

    def test_several_seeds_are_refused_where_there_is_one_group(self, workload):
        group = workload.requests[0].group
        alone = replace(workload, requests=[r for r in workload if r.group == group])
        with pytest.raises(ValueError, match="seeds interleave groups, but all requests of"):
            run(alone, seeds=(1, 2))
        assert set(run(alone, seeds=(1,))["seed"]) == {1}

    def test_regret_is_never_negative(self, workload):
        frame = run(workload, prefill_cost=lambda x: x + x**2, capture="full")
        assert (frame["regret"] == frame["overlap_cost"] - frame["clairvoyant_cost"]).all()
        assert (frame["regret"] >= 0).all()

    @pytest.mark.parametrize("model", ["qwen3.5-0.8b", "qwen3.5-27b"])
    def test_the_fullest_moments_hold_the_most_bytes_of_any_model(self, workload, model):
        architecture = HybridArchitecture.preset(model)
        weights = (architecture.kv_bytes_per_token, architecture.checkpoint_bytes)
        frame = run(workload, capacity=3, warmup=0.25)
        for label, policy, budget, moments in frame[
            ["label", "policy", "budget", "fullest"]
        ].itertuples(index=False):
            arguments = {"policy": policy, **POLICIES[label]}
            if not pandas.isna(budget):
                arguments["budget"] = budget
            requests = simulate(
                workload, capacity=3, architecture=architecture, **arguments
            ).requests.iloc[len(workload) // 4 :]
            held = requests["retained_kv_bytes"] + requests["retained_checkpoint_bytes"]
            assert max(np.dot(moments, weights)) == held.max()


class TestWhereItRuns:
    def test_a_cost_function_of_one_policy_travels_too(self, workload, tmp_path):
        policies = {"squared": {"policy": "balanced", "prefill_cost": lambda x: x**2}}
        frame = run(workload, policies=policies, folder=tmp_path, n_jobs=2)
        alone = simulate(workload, "balanced", 3, prefill_cost=lambda x: x**2).summary
        assert frame["cost"][1] == alone["cost"]
        assert run(workload, policies=policies, folder=tmp_path).equals(frame)

    def test_processes_and_dask_give_the_same(self, workload):
        from dask.distributed import LocalCluster

        alone = run(workload)
        assert run(workload, n_jobs=2).equals(alone)
        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            assert run(workload, dask=cluster.scheduler_address, n_jobs=-1).equals(alone)


class TestResume:
    def test_only_what_is_missing_is_run(self, workload, tmp_path, monkeypatch):
        first = run(workload, folder=tmp_path)
        kept = sorted(tmp_path.glob("*.json"))
        assert len(kept) == 5
        times = [path.stat().st_mtime_ns for path in kept]
        kept[2].unlink()
        calls = []

        def counting(*args, **kwargs):
            calls.append(kwargs)
            return simulate(*args, **kwargs)

        monkeypatch.setattr(import_module("sparselab.pareto"), "simulate", counting)
        assert run(workload, folder=tmp_path).equals(first)
        assert len(calls) == 1
        assert sorted(tmp_path.glob("*.json")) == kept
        again = [path.stat().st_mtime_ns for path in kept]
        assert [a == b for a, b in zip(times, again, strict=True)] == [
            True,
            True,
            False,
            True,
            True,
        ]

    @pytest.mark.parametrize(
        "change",
        [
            {"capacity": 2},
            {"seeds": (7,)},
            {"prefill_cost": lambda x: 2 * x},
            {"policies": {**POLICIES, "balanced": {"align": 2}}},
        ],
        ids=["option", "seed", "cost", "policy option"],
    )
    def test_other_arguments_do_not_reuse_a_run(self, workload, tmp_path, change):
        run(workload, folder=tmp_path)
        run(workload, folder=tmp_path, **change)
        # Changing the options of one policy leaves the others' runs as they are.
        assert len(list(tmp_path.glob("*.json"))) == (7 if "policies" in change else 10)

    def test_what_an_estimator_was_taught_counts(self, workload, tmp_path):
        taught = Histogram()
        taught.observe(3, 9)
        for estimator in (Histogram(), taught):
            policies = {"optimal": {"estimator": estimator}}
            pareto(workload, policies, [1], folder=tmp_path, show_progress=False)
        assert len(list(tmp_path.glob("*.json"))) == 2

    def test_other_code_does_not_reuse_a_run(self, workload, tmp_path, monkeypatch):
        run(workload, folder=tmp_path)
        monkeypatch.setattr(import_module("sparselab.pareto"), "CODE", "edited")
        run(workload, folder=tmp_path)
        assert len(list(tmp_path.glob("*.json"))) == 10

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"row": 5}', '{"row": {"label": "x"}}'])
    def test_a_damaged_file_is_reported_and_made_again(self, workload, tmp_path, text):
        first = run(workload, folder=tmp_path)
        kept = next(tmp_path.glob("*.json"))
        kept.write_text(text)
        with pytest.warns(UserWarning, match=rf"{kept.name}.*made again\.") as caught:
            assert run(workload, folder=tmp_path).equals(first)
        assert caught[0].filename == __file__
        assert json.loads(kept.read_text())["row"]["requests"] == len(workload)

    def test_a_kept_run_says_what_made_it(self, workload, tmp_path):
        run(workload, folder=tmp_path)
        record = json.loads(next(tmp_path.glob("*.json")).read_text())
        assert record["row"]["requests"] == len(workload)
        assert "numpy" in record["versions"]


class TestNonDominated:
    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
    def test_is_the_definition(self, points):
        def beaten(p):
            return any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)

        found = non_dominated([p[0] for p in points], [p[1] for p in points])
        assert found.tolist() == [not beaten(p) for p in points]


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"policies": "optimal"}, TypeError, "policies must be a list or a mapping"),
        ({"policies": ["optima"]}, ValueError, "unknown policy 'optima' .did you mean 'optimal'"),
        ({"policies": {"mine": {}}}, ValueError, "unknown policy 'mine'"),
        ({"policies": ["optimal"], "budgets": []}, ValueError, "must not be empty"),
        ({"budgets": [-1]}, ValueError, "budgets must be at least 0, got -1"),
        ({"seeds": [-1]}, ValueError, "seeds must be at least 0, got -1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_arguments_get_one_sentence_before_anything_runs(
    workload, tmp_path, arguments, error, sentence
):
    with pytest.raises(error, match=sentence):
        run(workload, folder=tmp_path, **arguments)
    assert not list(tmp_path.iterdir())
