"""``sparselab simulate``: the same numbers as the library, for people and for scripts."""

import json

import pandas
import pytest

from sparselab import simulate
from sparselab.cli import main
from sparselab.estimators import DecayedHistogram, EntryAware
from sparselab.workloads import load


@pytest.fixture
def requests_file(tmp_path):
    path = tmp_path / "requests.jsonl"
    prompts = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 9], [7, 7], [1, 2, 3, 4, 8]]
    lines = [json.dumps({"tokens": tokens, "group": "g"}) for tokens in prompts]
    path.write_text("\n".join(lines))
    return path


def test_prints_what_was_saved_of_what_overlapped(capsys, requests_file):
    assert (
        main(["simulate", str(requests_file), "--policy", "block", "--option", "block_size=2"]) == 0
    )
    out = capsys.readouterr().out
    assert "block on " in out
    assert "requests:           4 (2 overlap an entry)" in out
    assert "overlap:            7 tokens (41.2%)" in out
    assert "saved:              6 tokens (35.3%)" in out
    assert "regret:             1 tokens above a clairvoyant placement\n" in out


def test_json_is_the_summary_of_the_library(capsys, requests_file):
    arguments = "--budget 2 --capacity 2 --capture full --eviction lru --align 2 --model qwen3.5-4b"
    estimator = "--estimator entry-aware --gamma 0.5 --strength 0.25 --replan-every 2"
    argv = ["simulate", str(requests_file), *arguments.split(), *estimator.split(), "--json"]
    assert main(argv) == 0
    answer = json.loads(capsys.readouterr().out)
    result = simulate(
        load("jsonl", path=requests_file),
        "optimal",
        2,
        EntryAware(DecayedHistogram(0.5), 0.25),
        replan_every=2,
        capacity=2,
        capture="full",
        eviction="lru",
        align=2,
        architecture="qwen3.5-4b",
    )
    assert {name: answer[name] for name in result.summary} == result.summary
    assert answer["estimator"] == result.parameters["estimator"]
    assert answer["regret"] == answer["overlap_cost"] - answer["clairvoyant_cost"]


def test_estimator_options_that_are_not_given_are_those_of_the_library(capsys, requests_file):
    assert main(["simulate", str(requests_file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    parameters = simulate(load("jsonl", path=requests_file)).parameters
    assert {name: answer[name] for name in parameters} == json.loads(json.dumps(parameters))


def test_out_saves_one_row_a_request(requests_file, tmp_path):
    out = tmp_path / "runs" / "rows.parquet"
    assert main(["simulate", str(requests_file), "--policy", "last", "--out", str(out)]) == 0
    frame = pandas.read_parquet(out)
    assert frame["overlap"].tolist() == [0, 3, 0, 4]
    assert frame.attrs["parameters"]["policy"] == "last"


def test_shipped_samples_go_by_name_and_gib_limit_the_cache(capsys):
    argv = ["simulate", "quality", "--interleave", "1", "--policy", "kv_only", "--json"]
    assert main([*argv, "--model", "qwen3.5-0.8b", "--capacity-gib", "0.05"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 0 < answer["kv_bytes"] <= 0.05 * 2**30


def test_what_is_held_at_once_is_within_the_capacity(capsys):
    argv = ["simulate", "quality", "--interleave", "1", "--policy", "balanced", "--budget", "2"]
    argv += ["--model", "qwen3.5-0.8b", "--capacity-gib", "0.2"]
    assert main(argv) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines()[1:])
    assert "the overlaps of this run, which --capacity-gib makes differ" in lines["regret"]
    together = float(lines["held at most"].split()[0])
    assert 0 < together <= 0.2
    assert "GiB of KV, " in lines["the most of each"]


def test_loaders_take_their_options(capsys):
    options = ["--workload-option", "groups=2", "--workload-option", "requests_per_group=3"]
    assert main(["simulate", "synthetic", *options, "--policy", "last", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["requests"], answer["synthetic"]) == (6, True)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nowhere.jsonl"], "'nowhere.jsonl' is no file and no loader's name"),
        (["quality", "--policy", "optimum"], "unknown policy 'optimum' (did you mean 'optimal'?)"),
        (["qualty"], "did you mean 'quality'?"),
        (["quality", "--capacity-gib", "1"], "--capacity-gib needs --model"),
        (["quality", "--out", "rows.txt"], "--out must end in .parquet, got 'rows.txt'"),
        (["mooncake", "--format", "jsonl"], "'mooncake' is a loader's name"),
        (["quality", "--model", "gpt"], "unknown preset 'gpt'"),
        (
            ["quality", "--estimator", "histogram", "--gamma", "0.5"],
            "--estimator histogram has no --gamma, got 0.5; leave it out",
        ),
        (["quality", "--strength", "0.5"], "--estimator decayed has no --strength, got 0.5"),
        (
            ["quality", "--model", "qwen3.5-4b", "--capacity-gib", "-1"],
            "--capacity-gib must be greater than 0, got -1",
        ),
        (
            ["quality", "--model", "qwen3.5-4b", "--capacity-gib", "1e300"],
            "--capacity-gib must be at most 8.38861e+06, got 1e+300",
        ),
        (["quality", "--align", "9" * 400], "align must be at most 9007199254740992, got 999"),
        (["synthetic", "--workload-option", "groups=" + "9" * 20], "groups must be at most 10000"),
        (["quality", "--policy", "block", "--option", "size=2"], "no option 'size'"),
        (
            ["quality", "--policy", "balanced", "--estimator", "entry-aware"],
            "--policy balanced has no --estimator, since it plans on no observed overlaps",
        ),
        (["quality", "--policy", "block", "--gamma", "0"], "--policy block has no --gamma"),
        (["quality", "--policy", "block", "--strength", "3"], "--policy block has no --strength"),
        (["quality", "--policy", "last", "--relative"], "--policy last has no --relative"),
        (["quality", "--policy", "last", "--beyond", "drop"], "--policy last has no --beyond"),
        (
            ["quality", "--policy", "sqrt", "--replan-every", "9"],
            "--policy sqrt has no --replan-every",
        ),
        (
            ["quality", "--eviction", "lru"],
            "--eviction lru needs --capacity or --capacity-gib: without one nothing is evicted",
        ),
        (
            ["quality", "--relative", "--beyond", "drop"],
            "beyond must be 'count' where relative is True, got 'drop'",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(capsys, argv, sentence):
    assert main(["simulate", *argv]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert len(error) < 400


@pytest.mark.parametrize("budget", ["9" * 20, "9" * 400])
def test_a_budget_beyond_the_tokens_of_any_entry_is_a_checkpoint_a_token(
    capsys, requests_file, budget
):
    assert main(["simulate", str(requests_file), "--budget", budget, "--json"]) == 0
    generous = json.loads(capsys.readouterr().out)
    assert main(["simulate", str(requests_file), "--budget", "6", "--json"]) == 0
    enough = json.loads(capsys.readouterr().out)
    assert generous | {"budget": 6} == enough


def test_a_capacity_of_less_than_a_byte_holds_nothing(capsys):
    argv = ["simulate", "quality", "--model", "qwen3.5-4b", "--capacity-gib", "1e-300", "--json"]
    assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == 0
