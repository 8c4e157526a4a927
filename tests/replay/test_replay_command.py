"""``sparselab replay``: what it prints and refuses."""

import json

import pandas as pd
import pytest

from sparselab import replay
from sparselab.cli import main

TINY = ["replay", "--model", "tiny", "--device", "cpu", "--dtype", "float32", "--repeats", "1"]


def test_it_prints_exactness_times_and_the_fit(capsys):
    assert main([*TINY, "--length", "120", "--policies", "balanced", "block"]) == 0
    printed = capsys.readouterr().out
    assert "tiny, random (seed 0) weights, float32" in printed
    assert "overlap 60: Exact: resumed at 48 of 120 tokens, bit-identical" in printed
    assert "ms a token saved (R^2 = " in printed
    assert "no_cache" in printed


def test_json_holds_the_same(capsys):
    assert main([*TINY, "--length", "120", "--depths", "30", "90", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["depth"] for row in result["exactness"]] == [30, 90]
    assert all(row["bit_identical"] for row in result["exactness"])
    assert {row["policy"] for row in result["medians"]} == {"balanced", "no_cache"}
    assert result["setting"]["dtype"] == "float32"


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet"])
def test_measurements_are_saved(tmp_path, capsys, name):
    path = tmp_path / name
    assert main([*TINY, "--length", "60", "--out", str(path)]) == 0
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    assert len(table) == 2 * 3
    assert (table["total_ms"] > 0).all()


def test_a_resume_that_is_not_exact_fails(monkeypatch, capsys):
    monkeypatch.setattr(replay.VerifyReport, "bit_identical", property(lambda report: False))
    assert main([*TINY, "--length", "60"]) == 1
    assert "NOT exact: bits differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "runs.txt"], "--out must end in .csv or .parquet, got 'runs.txt'"),
        (["--policies", "balancd"], "unknown policy 'balancd' (did you mean 'balanced'?)"),
        (["--length", "0"], "length must be at least 1, got 0"),
        (["--depths", "99999"], "depth must lie in 0..1024, got 99999"),
        (["--chunk", "0"], "chunk must be at least 1, got 0"),
        (["--model", "no-such-model"], "model 'no-such-model' cannot be loaded"),
        (["--device", "tpu"], "unknown device 'tpu'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, arguments, message):
    assert main([*TINY, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
