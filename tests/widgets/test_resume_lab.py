"""The resume lab: runs only when told to, can be stopped, and says whether it was exact."""

from __future__ import annotations

import html

import pandas as pd
import pytest

pytest.importorskip("torch", reason="live replay needs torch: pip install sparselab[replay]")

import sparselab as sl
from widgets import resume_lab, resume_study
from widgets.figures import replay as figures
from widgets.resume_lab import ResumeLab
from widgets.resume_study import ResumeStudy, Settings

SMALL = Settings(model="tiny", length=128, block_size=32, repeats=1)


@pytest.fixture(scope="module")
def study():
    return resume_study.run(SMALL)


def small_lab() -> ResumeLab:
    return ResumeLab(model="tiny", length=128, block_size=32, repeats=1)


# -- the study -----------------------------------------------------------------------------------


def test_a_study_grows_step_by_step():
    seen = list(resume_study.steps(SMALL))
    assert [s.done for s in seen] == list(range(1, seen[-1].planned + 1))
    assert [len(s.exactness) for s in seen[:6]] == [0, 1, 2, 3, 4, 4]
    assert seen[4].calibration is None
    assert seen[5].calibration is not None
    assert [len(s.runs) for s in seen[5:]] == list(range(len(seen) - 5))
    assert [s.finished for s in seen] == [False] * (len(seen) - 1) + [True]


def test_a_study_verifies_and_times_every_policy(study):
    assert study.exactness["exact"].all()
    assert study.exactness["depth"].tolist() == [32, 64, 96, 128]
    assert set(study.runs["policy"]) == {"no_cache", "optimal", "balanced", "block"}
    assert (study.runs["predicted_ms"] > 0).all()
    # Half of the requests share three quarters, so the optimum has a checkpoint there.
    assert 96 in study.schedules["optimal"].positions


# -- its figures ---------------------------------------------------------------------------------


def test_every_point_of_the_lab_figure_is_in_the_tables(study):
    shown = [t for t in figures.lab_figure(study)["data"] if t.get("visible", True)]
    traces = {trace["name"]: trace for trace in reversed(shown)}
    control = study.exactness["control"]
    assert [None if pd.isna(c) else c for c in control] == traces["control: state zeroed"]["y"]
    cold = study.runs[study.runs["policy"] == "no_cache"].groupby("depth")["total_ms"].median()
    assert traces["no_cache"]["y"] == cold.tolist()
    held = study.runs.groupby("policy")["checkpoint_bytes"].first() / 2**20
    assert sorted(traces["checkpoints"]["y"]) == sorted(held)


def test_the_figure_of_an_unfinished_study_has_the_same_traces(study):
    begun = ResumeStudy(Settings(policy="log", compare=()))
    first, last = (figures.lab_figure(s)["data"] for s in (begun, study))
    assert [(t["type"], t.get("meta")) for t in first] == [(t["type"], t.get("meta")) for t in last]
    assert all(len(t["x"]) == 0 for t in first)
    visible = {t["meta"] for t in last if "meta" in t and t["visible"]}
    assert visible == {"no_cache", "optimal", "balanced", "block"}


def test_the_fit_is_named_with_its_r_squared(study):
    from sparselab.replay import fit_savings

    fit = fit_savings(study.runs)
    figure = figures.savings_figure(study.runs, "here")
    names = [trace.name for trace in figure.data]
    assert f"fit: {fit.ms_per_token:.3f} ms a token, R² = {fit.r_squared:.3f}" in names
    assert f"a line explains {fit.r_squared:.1%} of the variance" in figure.layout.title.text


def test_without_points_for_a_line_none_is_drawn_or_claimed(study):
    cold = study.runs[study.runs["policy"] == "no_cache"]
    figure = figures.savings_figure(cold, "here")
    assert figure.layout.title.text == "Time saved against tokens saved<br><sub>here</sub>"
    assert len(figure.data[-1].x) == 0


def test_figures_say_what_was_measured_on(study):
    setting = figures.setting_text(study.runs.iloc[0])
    assert setting.startswith("tiny, random (seed 0) weights, ")
    calibration = study.calibration
    for figure in (
        figures.exactness_figure(study.exactness, setting),
        figures.times_figure(study.runs, setting),
        figures.memory_figure(study.runs, setting),
        figures.calibration_figure(calibration.table, calibration.cost_model, setting),
    ):
        assert setting in figure.layout.title.text


# -- the panel -----------------------------------------------------------------------------------


def test_nothing_runs_before_the_button_is_pressed():
    lab = small_lab()
    _ = lab.view
    lab.budget = 3
    assert not lab.running
    assert "press Run" in lab._status.value
    with pytest.raises(ValueError, match="nothing has been measured yet: press Run first"):
        _ = lab.result


def test_a_run_fills_the_picture_the_badges_and_the_progress():
    lab = small_lab()
    _ = lab.view
    lab.start()
    lab.wait(60)
    assert lab.result.finished
    assert lab._progress.value == lab._progress.max == lab.result.planned
    assert "Finished: 12 timed runs." in lab._status.value
    assert lab._badges.value.count("✔ same cuts: bit-identical") == 4
    assert "✘" not in lab._badges.value
    assert any(len(trace.x) for trace in lab.figure.data)
    assert not lab._run_button.disabled
    assert lab._stop_button.disabled


def test_changed_settings_leave_picture_and_code_of_the_run_and_the_status_says_so(study):
    lab = ResumeLab.showing(study)
    _ = lab.view
    ran, finished = lab._code_line.value, lab._status.value
    lab.budget = 7
    assert lab._code_line.value == ran
    assert "Finished: 12 timed runs. The settings have changed since" in lab._status.value
    assert "picture and code are of the earlier ones" in lab._status.value
    lab.budget = study.settings.budget
    assert lab._status.value == finished


def run_meanwhile(lab, action, monkeypatch):
    """Run to the end; ``action`` is called with each study before the panel has it."""
    original = resume_study.steps

    def steps(settings):
        for study in original(settings):
            action(study)
            yield study

    monkeypatch.setattr(resume_study, "steps", steps)
    lab.start()
    lab.wait(60)


def test_settings_changed_during_a_run_are_not_taken_for_those_of_the_run(monkeypatch):
    lab = small_lab()
    _ = lab.view

    def change(_study):
        lab.budget = 5

    run_meanwhile(lab, change, monkeypatch)
    assert lab.result.settings.budget == 2
    assert "sl.place('optimal', 128, 2, " in html.unescape(lab._code_line.value)
    assert "The settings have changed since" in lab._status.value


def test_a_run_that_fails_to_load_leaves_the_last_one_as_it_was(study):
    lab = ResumeLab.showing(study)
    _ = lab.view
    picture, code, badges = lab.figure.to_dict(), lab._code_line.value, lab._badges.value
    lab.model = "no-such-model"
    lab.start()
    lab.wait(60)
    assert "cannot be loaded" in lab.error
    assert "The run failed. Picture and code are of the run before." in lab._status.value
    assert (lab._code_line.value, lab._badges.value) == (code, badges)
    assert "✔" in badges
    assert lab.figure.to_dict() == picture


def test_stopping_keeps_what_is_finished(monkeypatch):
    lab = small_lab()
    _ = lab.view

    def stop_while_timing(study):
        if len(study.runs) == 3:
            lab.stop()

    run_meanwhile(lab, stop_while_timing, monkeypatch)
    assert len(lab.result.runs) == 3
    assert not lab.result.finished
    assert "Stopped after 9 of 18 steps; these are kept." in lab._status.value
    assert len(lab.table(lab.result)) == 3


def test_a_run_that_fails_partway_says_how_far_it_came(monkeypatch):
    lab = small_lab()
    _ = lab.view

    def fail(study):
        if study.done == 4:
            raise RuntimeError("out of memory.")

    run_meanwhile(lab, fail, monkeypatch)
    assert lab.result.done == 3
    assert "The run failed after 3 of 18 steps; these are kept." in lab._status.value
    control = next(t for t in lab.figure.data if t.name == "control: state zeroed")
    assert len(control.x) == len(lab.result.exactness) == 2
    assert "out of memory." in lab._error_line.value
    assert "The picture shows" not in lab._error_line.value


def test_a_failure_is_said_and_the_next_run_works(monkeypatch):
    lab = ResumeLab(model="no-such-model", length=128, repeats=1)
    _ = lab.view
    lab.start()
    lab.wait(60)
    assert "model 'no-such-model' cannot be loaded" in lab.error
    assert "The run failed before it measured anything." in lab._status.value
    assert "The picture shows" not in lab._error_line.value
    lab.model = "tiny"
    lab.start()
    lab.wait(60)
    assert lab.error == ""
    assert lab.result.finished


def test_a_bad_policy_is_said_before_anything_is_loaded(monkeypatch):
    lab = ResumeLab(model="tiny", policy="balancd")
    _ = lab.view
    monkeypatch.setattr(resume_study, "load", None)
    lab.start()
    lab.wait(60)
    assert "unknown policy 'balancd' (did you mean 'balanced'?)" in lab.error


def test_a_finished_study_is_shown_without_running_again(study):
    lab = ResumeLab.showing(study)
    assert lab.result is study
    assert lab.parameters()["length"] == 128
    assert len(lab.static().data) == len(figures.lab_figure(study)["data"])
    _ = lab.view
    assert "Finished" in lab._status.value
    assert "✔" in lab._badges.value


def test_the_code_on_the_panel_verifies_predicts_and_times_the_same(study, capsys):
    lab = ResumeLab.showing(study)
    names: dict = {}
    exec(lab.code(lab.parameters()), names)
    assert {report.verdict for report in names["reports"].values()} == set(
        study.exactness["verdict"]
    )
    assert names["costs"].table["length"].equals(study.calibration.table["length"])
    keys = ["policy", "depth", "repeat", "resume_point"]
    assert names["runs"][keys].equals(study.runs[keys])
    printed = capsys.readouterr().out
    assert "predicted_ms" in printed
    assert "SavingsFit" in printed


def test_the_code_runs_where_there_are_too_few_points_for_a_line(capsys):
    lab = ResumeLab(model="tiny", length=64, repeats=1, compare=(), budget=1)
    exec(lab.code(lab.parameters()), {})
    assert "too few points" in capsys.readouterr().out


def test_policies_that_can_never_resume_are_not_offered():
    assert "last" not in resume_lab.policy_choices()
    for policy in resume_lab.policy_choices():
        schedule = sl.place(policy, 1024, 2, resume_study.overlaps(1024))
        assert schedule.positions[0] < 1024


def test_a_registered_policy_is_offered(middle):
    assert resume_lab.policy_choices() == ["balanced", "block", "sqrt", "log", "optimal", middle]


def test_a_policy_given_in_python_is_timed_and_can_be_ticked_off():
    lab = ResumeLab(compare=("last", "balanced"))
    boxes = {box.description: box for box in lab.controls()[1].children[1:]}
    boxes["log"].value = True
    assert lab.compare == ("balanced", "log", "last")
    boxes["last"].value = False
    assert lab.compare == ("balanced", "log")


def test_badges_say_what_failed_and_what_could_not_be_checked():
    row = {
        "depth": 5,
        "resume_point": 0,
        "bit_identical": False,
        "one_shot": 2.0,
        "tolerance": 1.0,
        "control_differs": None,
        "verdict": 'bad "one"',
    }
    text = resume_lab.badges(pd.DataFrame([row]))
    assert "✘ same cuts: bit-identical: NO" in text
    assert "✘ one shot: within rounding: NO" in text
    assert "control differs: nothing was resumed" in text
    assert "&quot;one&quot;" in text


def test_an_empty_study_can_be_drawn():
    assert figures.lab_figure(ResumeStudy(SMALL))["layout"]["height"] == 720
