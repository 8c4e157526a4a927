"""The command line: answers for people and for scripts, and one sentence for what is wrong."""

import json
import os
import subprocess
import sys

import pytest

from sparselab import OverlapDistribution, optimal_frontier
from sparselab.cli import COMMANDS, build_parser, main


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "overlaps.csv"
    OverlapDistribution([100, 700, 900], [5, 3, 2], 1000).to_csv(path)
    return str(path)


def run_json(capsys, *argv):
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


class TestPlace:
    def test_it_prints_the_positions_and_what_they_cost(self, capsys, table):
        assert main(["place", "--overlap", table, "--budget", "2"]) == 0
        out = capsys.readouterr().out
        assert "positions: 100 700" in out
        assert "expected recompute: 40.0 tokens a request" in out

    def test_json_says_the_same(self, capsys, table):
        answer = run_json(capsys, "place", "--overlap", table, "--budget", "2")
        assert answer["positions"] == [100, 700]
        assert answer["expected_recompute_tokens"] == 40.0
        assert answer["reduction_factor"] == pytest.approx(440 / 40)

    def test_an_infinite_factor_is_null_as_json_has_no_infinity(self, capsys, table):
        assert run_json(capsys, "place", "--overlap", table)["reduction_factor"] is None

    def test_policies_take_their_options(self, capsys):
        answer = run_json(
            capsys, "place", "--policy", "block", "--length", "100", "--option", "block_size=40"
        )
        assert answer["positions"] == [40, 80]

    def test_what_is_counted_is_named(self, capsys):
        assert main(["place", "--length", "3", "--budget", "99"]) == 0
        priced = capsys.readouterr().out.splitlines()[-3:]
        assert all("of the shared prefix" in line for line in priced)
        assert priced[-1].startswith("reduction factor:   inf (of the shared prefix, ")

    def test_a_policy_that_ignores_the_budget_reports_none(self, capsys):
        argv = ["place", "--length", "5000", "--budget", "3"]
        assert run_json(capsys, *argv, "--policy", "block")["budget"] is None
        assert run_json(capsys, *argv, "--policy", "balanced")["budget"] == 3

    def test_a_table_needs_no_suffix_to_be_found(self, capsys, table, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "measured").write_bytes((tmp_path / "overlaps.csv").read_bytes())
        assert run_json(capsys, "place", "--overlap", "measured", "--budget", "2")["positions"] == [
            100,
            700,
        ]

    def test_a_longer_table_is_restricted_with_a_notice(self, capsys, table):
        assert main(["place", "--overlap", table, "--length", "800", "--budget", "1"]) == 0
        captured = capsys.readouterr()
        assert "2 of its 10 requests are deeper than --length 800 and count at 800" in captured.err
        assert "checkpoints in 800 tokens" in captured.out

    def test_the_notice_counts_weights_that_are_no_whole_numbers(self, capsys, tmp_path):
        table = tmp_path / "weights.csv"
        table.write_text("depth,weight\n10,0.25\n20,0.5\n900,0.75\n")
        assert main(["place", "--overlap", str(table), "--length", "500"]) == 0
        assert "0.75 of its 1.5 requests are deeper" in capsys.readouterr().err


class TestFrontier:
    def test_it_shows_every_budget_beside_the_other_policies(self, capsys, table):
        answer = run_json(capsys, "frontier", "--overlap", table, "--budget", "3")
        expected = optimal_frontier(OverlapDistribution.from_csv(table), 3)
        assert [row["cost"] for row in answer["optimal"]] == expected.costs.tolist()
        for row in answer["policies"]:
            assert row["expected_recompute_tokens"] >= row["optimal_with_as_many"] - 1e-9

    def test_budgets_that_save_nothing_more_are_not_listed(self, capsys, table):
        argv = ["frontier", "--overlap", table, "--policy", "last", "--budget", "100000"]
        answer = run_json(capsys, *argv)
        depths = OverlapDistribution.from_csv(table).depths
        assert len(answer["optimal"]) == (depths > 0).sum() + 1
        assert answer["optimal"][-1]["cost"] == 0
        assert main(argv) == 0
        assert "checkpoints save nothing more" in capsys.readouterr().out

    def test_a_long_entry_needs_no_frontier_as_long_as_its_blocks(self, capsys):
        shown = ["--policy", "block", "--policy", "sqrt", "--policy", "balanced"]
        answer = run_json(capsys, "frontier", "--length", str((1 << 20) - 1), *shown)
        assert [row["checkpoints"] for row in answer["policies"]] == [2047, 1025, 8]
        block, _, balanced = answer["policies"]
        assert block["optimal_with_as_many"] == block["expected_recompute_tokens"] == 511 / 2
        assert balanced["optimal_with_as_many"] == balanced["expected_recompute_tokens"]

    def test_people_get_a_table(self, capsys):
        assert main(["frontier", "--length", "64", "--budget", "1", "--policy", "sqrt"]) == 0
        out = capsys.readouterr().out
        assert "sqrt" in out
        assert "balanced" not in out

    def test_each_policy_takes_its_own_options(self, capsys):
        shown = ["--policy", "block", "--policy", "log", "--policy", "sqrt", "--length", "100"]
        answer = run_json(
            capsys, "frontier", *shown, "--option", "block_size=40", "--option", "start=9"
        )
        counts = {row["policy"]: row["checkpoints"] for row in answer["policies"]}
        assert counts == {"block": 2, "log": 3, "sqrt": 10}

    def test_shipped_tables_go_by_name(self, capsys):
        answer = run_json(capsys, "frontier", "--overlap", "quality", "--budget", "1")
        assert answer["optimal"][1]["cost"] < answer["optimal"][0]["cost"]


def test_policies_lists_the_registry(capsys):
    rows = run_json(capsys, "policies")["policies"]
    assert {"policy": "balanced", "needs": ["budget"], "options": {}}.items() <= rows[2].items()
    assert main(["policies"]) == 0
    assert "block_size=512" in capsys.readouterr().out


def test_doctor_says_what_is_here_and_what_to_do_about_the_rest(capsys, monkeypatch):
    report = run_json(capsys, "doctor")
    assert report["versions"]["numpy"]
    assert report["revision"]
    assert "quality" in report["shipped_datasets"]
    monkeypatch.setattr("sparselab.commands.doctor.find_browser", lambda: None)
    monkeypatch.setattr("sparselab.commands.doctor.PARTS", {"x": (("no_such_module",), "x", "y")})
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert 'x (y) lacks no_such_module: pip install -c constraints.txt -e ".[x]"' in out
    assert "install Chromium" in out


def test_doctor_says_when_the_installed_transformers_is_not_supported(capsys, monkeypatch):
    versions = pytest.importorskip("sparselab.replay.versions")
    monkeypatch.setattr(versions, "NEWEST", "5.0")
    assert any("< 5.0" in hint for hint in run_json(capsys, "doctor")["missing"])


def test_doctor_works_without_the_shipped_data(capsys, monkeypatch):
    def no_description():
        raise FileNotFoundError("no data")

    monkeypatch.setattr("sparselab.shipped_data._description", no_description)
    assert main(["doctor"]) == 0
    assert "missing: the shipped overlap tables" in capsys.readouterr().out


def subparsers():
    (action,) = build_parser()._subparsers._group_actions
    return action.choices


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_has_help_and_every_value_its_default(command):
    for action in subparsers()[command]._actions:
        name = "/".join(action.option_strings) or action.dest
        assert action.help, name
        takes_a_value = action.option_strings and action.nargs != 0
        if takes_a_value and action.default != []:  # may be repeated
            assert "default" in action.help, name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args([command, "--help"])
    assert stop.value.code == 0
    _, _, example = capsys.readouterr().out.partition("example")
    assert f"sparselab {command}" in example


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["place", "--policy", "optmal"], "did you mean 'optimal'"),
        (["place", "--overlap", "qualty"], "did you mean 'quality'"),
        (["place", "--overlap", "unifrom"], "did you mean 'uniform'"),
        (["place", "--overlap", "none.csv"], "no such file: none.csv"),
        (["place", "--overlap", "quality", "--length", "0"], "length must be at least 1, got 0"),
        (["place", "--length", "9" * 20], "length must be at most 9007199254740992, got 999"),
        (["place", "--align", "9" * 20], "align must be at most 9007199254740992, got 999"),
        (["place", "--option", "length=5"], "--option must not set 'length'"),
        (["frontier", "--policy", "log", "--option", "strt=1"], "did you mean 'start'"),
        (["frontier", "--policy", "last", "--option", "x=1"], "unknown option 'x'; known: none"),
        (["frontier", "--length", "99999", "--budget", "9" * 20], "more than the 8 GiB allowed"),
        (["place", "--budget", "-1"], "budget must be at least 0, got -1"),
        (["place", "--length", "0"], "length must be at least 1, got 0"),
        (["place", "--align", "0"], "align must be at least 1, got 0"),
        (["place", "--policy", "block", "--option", "size=3"], "no option 'size'"),
        (["place", "--policy", "block", "--option", "size"], "--option must be NAME=VALUE"),
        (["place", "--policy", "branch"], "needs the option 'overlap'"),
        (["frontier", "--policy", "lst"], "did you mean 'last'"),
        (["frontier", "--budget", "-2"], "frontier: budget must be at least 0, got -2"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(argv, message, capsys):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_number_that_is_none_is_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["place", "--budget", "many"])
    assert stop.value.code == 2
    assert "invalid int value: 'many'" in capsys.readouterr().err


def test_the_traceback_can_be_asked_for():
    with pytest.raises(ValueError, match="unknown policy"):
        main(["--traceback", "place", "--policy", "x"])


def test_importing_the_package_is_light():
    code = (
        "import sys, sparselab; "
        "heavy = {'torch', 'transformers', 'plotly', 'ipywidgets', 'pandas', 'numba', 'scipy'}; "
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_public_names_exist_whatever_was_imported_before():
    code = (
        "import sparselab.pareto, sparselab.simulator, sparselab.shipped_data, sparselab as sl; "
        "missing = [name for name in sl.__all__ if not hasattr(sl, name)]; "
        "assert not missing, missing; "
        "assert callable(sl.pareto) and callable(sl.recompute) and callable(sl.simulate)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reader_that_has_gone_is_no_error():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "sparselab.cli", "policies"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
