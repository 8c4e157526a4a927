"""``sparselab replay``: what it prints and refuses."""

import json

import pandas as pd
import pytest

from sparselab import replay
from sparselab.cli import main
from sparselab.commands import replay as command
from sparselab.replay import measurement

TINY = ["replay", "--model", "tiny", "--device", "cpu", "--dtype", "float32", "--repeats", "1"]


def test_it_prints_exactness_times_and_the_fit(capsys):
    assert main([*TINY, "--length", "120", "--policies", "balanced", "block"]) == 0
    printed = capsys.readouterr().out
    assert "tiny, random (seed 0) weights, float32" in printed
    assert "overlap 60: Exact: resumed at 48 of 120 tokens, bit-identical" in printed
    assert "ms a token saved (R^2 = " in printed
    assert "no_cache" in printed
    assert "predicted_ms" in printed
    assert "lengths that it was not fitted on" in printed
    assert "balanced, M = 4" in printed.split("capturing against a plain prefill:")[1]
    assert "checkpoint_bytes kv_bytes" in printed.split("memory of one entry:")[1]


def test_json_holds_the_same(capsys):
    assert main([*TINY, "--length", "120", "--depths", "30", "90", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(row["depth"], row["resume_point"]) for row in result["exactness"]] == [
        (30, 24),
        (90, 72),
    ]
    assert all(row["bit_identical"] for row in result["exactness"])
    assert result["exact"] is True
    assert {row["policy"] for row in result["medians"]} == {"balanced", "no_cache"}
    assert result["setting"]["dtype"] == "float32"
    assert all(row["predicted_ms"] > 0 for row in result["medians"])
    held = {row["policy"]: row["checkpoint_bytes"] for row in result["medians"]}
    assert held == {"no_cache": 0, "balanced": 4 * result["checkpoint_bytes"]}
    assert [row["case"] for row in result["capture"]] == ["plain prefill", "balanced, M = 4"]
    assert {row["role"] for row in result["calibration"]} == {"fit", "check"}


def test_every_resume_that_is_timed_is_verified(capsys):
    policies = ["kv_only", "balanced", "block", "last", "--option", "block_size=40"]
    assert main([*TINY, "--length", "120", "--policies", *policies, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    timed = {(row["depth"], row["resume_point"]) for row in result["medians"]}
    verified = [(row["depth"], row["resume_point"]) for row in result["exactness"]]
    assert verified == sorted({(depth, point) for depth, point in timed if point})
    assert {(60, 40), (60, 48)} < set(verified)


def test_where_nothing_is_resumed_nothing_is_called_exact(capsys):
    arguments = [*TINY, "--length", "60", "--policies", "kv_only", "last"]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["exact"], result["exactness"]) == (None, [])
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "Nothing was resumed, so exactness was not checked" in printed
    assert "Exact" not in printed


def test_a_policy_gets_the_options_that_it_has(capsys):
    arguments = ["--length", "120", "--policies", "block", "balanced", "--option", "block_size=40"]
    assert main([*TINY, *arguments, "--json"]) == 0
    medians = json.loads(capsys.readouterr().out)["medians"]
    assert {row["resume_point"] for row in medians if row["policy"] == "block"} == {0, 40, 80}


def interrupt(monkeypatch, after):
    """Let Ctrl-C come once so many resumes were made by measure(), two of which warm up."""
    made = []
    original = measurement.resume

    def resume(*arguments):
        if len(made) == after:
            raise KeyboardInterrupt
        made.append(1)
        return original(*arguments)

    monkeypatch.setattr(measurement, "resume", resume)


@pytest.mark.parametrize("after", [0, 2])
def test_an_interruption_before_the_first_run_is_one_sentence(monkeypatch, capsys, tmp_path, after):
    interrupt(monkeypatch, after)
    assert main([*TINY, "--length", "60", "--out", str(tmp_path / "runs.csv")]) == 130
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("interrupted before a cold run was timed")
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


def test_an_interruption_keeps_what_was_timed(monkeypatch, capsys, tmp_path):
    interrupt(monkeypatch, after=7)
    assert main([*TINY, "--length", "60", "--out", str(tmp_path / "runs.csv")]) == 130
    assert "interrupted: only the runs that were finished are shown" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 5


def test_what_was_measured_is_saved_whatever_comes_after(monkeypatch, tmp_path):
    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "result", fail)
    assert main([*TINY, "--length", "60", "--out", str(tmp_path / "runs.csv")]) == 130
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 2 * 3


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet"])
def test_measurements_are_saved(tmp_path, capsys, name):
    path = tmp_path / name
    assert main([*TINY, "--length", "60", "--out", str(path)]) == 0
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    assert len(table) == 2 * 3
    assert (table["total_ms"] > 0).all()


def test_a_resume_that_is_not_exact_fails(monkeypatch, capsys):
    is_cold = property(lambda report: not report.resume_point)
    monkeypatch.setattr(replay.VerifyReport, "bit_identical", is_cold)
    # The policy that resumes is not the first.
    assert main([*TINY, "--length", "60", "--policies", "kv_only", "balanced"]) == 1
    assert "NOT exact: bits differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "runs.txt"], "--out must end in .csv or .parquet, got 'runs.txt'"),
        (["--policies", "balancd"], "unknown policy 'balancd' (did you mean 'balanced'?)"),
        (["--length", "0"], "length must be at least 1, got 0"),
        (["--length", "2"], "length must be at least 8, got 2"),
        (["--option", "blok=3"], "unknown option 'blok'"),
        (["--depths", "99999"], "depth must lie in 0..1024, got 99999"),
        (["--chunk", "0"], "chunk must be at least 1, got 0"),
        (["--model", "no-such-model"], "model 'no-such-model' cannot be loaded"),
        (["--device", "tpu"], "unknown device 'tpu'"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--seed", "9" * 20], "seed must be at most 9223372036854775807, got 999"),
        (["--repeats", "9" * 20], "repeats must be at most 10000, got 999"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, arguments, message):
    assert main([*TINY, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_timed(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(replay, "load_model", None)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "folder.csv", tmp_path / "file" / "runs.csv"):
        assert main([*TINY, "--length", "60", "--out", str(path)]) == 2
        assert capsys.readouterr().err.startswith("sparselab replay: ")
    assert [path.name for path in (tmp_path / "folder.csv").iterdir()] == []


def test_how_far_predictions_are_off_is_said():
    found = {"median": 0.5, "worst": 0.6, "cold_ratio": 2.0, "relative_median": 0.1, "cases": 3}
    text = command.prediction_text(found)
    assert "off by 50% in the median and 60% at most, over 3 cases" in text
    assert "a cold prefill takes 2.00 times what was predicted" in text
    assert "machine" not in command.prediction_text(found | {"cold_ratio": 1.05})
    assert "no request resumed" in command.prediction_text(None)
