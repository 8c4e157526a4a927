"""DriftExplorer without a browser: its study, its picture, its code, and what it refuses."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from sparselab.drift import Drift, measure_regret, standard_rules
from widgets import DriftExplorer
from widgets.drift_study import populations, study_drift
from widgets.figures import drift as figures

SMALL = {"requests": 200, "repeats": 2, "swing": 50, "window": 40, "depths": 6}


@pytest.fixture(scope="module")
def study():
    return study_drift(**SMALL)


class TestStudy:
    def test_holds_what_the_library_measures(self, study):
        rules = standard_rules(0.975, 20, 40)
        expected = measure_regret(study.drift, 2, rules, repeats=2)
        for name in rules:
            mine = study.regret[study.regret["rule"] == name]
            theirs = expected[expected["rule"] == name]
            for column in ("regret", "tv", "loss_bound"):
                np.testing.assert_array_equal(mine[column], theirs[column])

    def test_bounds_lie_above_the_regret(self, study):
        decayed = study.regret[study.regret["rule"] == "decayed"].dropna()
        assert len(decayed) == 180  # all but the 20 requests before the first plan
        assert (decayed["regret"] <= decayed["loss_bound"]).all()
        assert (decayed["regret"] <= decayed["theorem_4"]).all()

    def test_populations_are_apart_and_have_as_many_depths_as_asked(self):
        drift = populations(50, 200, 6, 1000)
        assert isinstance(drift, Drift)
        assert drift.first.depths.size == drift.second.depths.size == 6
        assert drift.first.depths.max() < drift.second.depths.min()

    def test_a_single_depth_lies_at_the_centre(self):
        drift = populations(50, 200, 1, 1000)
        assert drift.first.depths.tolist() == [300]
        assert drift.second.depths.tolist() == [750]


class TestFigure:
    def test_has_a_line_a_rule_and_bound_and_units_on_every_axis(self, study):
        figure = go.Figure(figures.drift_spec(study))
        names = [trace.name for trace in figure.data]
        for line in ("frozen", "periodic", "decayed", "loss bound (TV or KS)", "Theorem 4"):
            assert line in names
        axes = ("xaxis", "xaxis2", "yaxis", "yaxis2", "yaxis3")
        titles = [figure.layout[axis].title.text for axis in axes]
        assert all("request" in title or "token" in title for title in titles)

    def test_draws_the_numbers_themselves(self, study):
        figure = go.Figure(figures.drift_spec(study))
        line = next(trace for trace in figure.data if trace.name == "decayed")
        rows = study.regret[study.regret["rule"] == "decayed"]
        assert list(line.customdata) == pytest.approx(rows["regret"].tolist())
        assert list(line.y) == pytest.approx(rows["regret"].clip(lower=figures.FLOOR).tolist())

    def test_says_that_it_is_synthetic(self, study):
        assert "Synthetic" in go.Figure(figures.drift_spec(study)).layout.title.text

    def test_hovering_a_checkpoint_says_which_requests_it_served(self, study):
        line = next(t for t in figures.drift_spec(study)["data"] if t["name"].startswith("check"))
        for (start, positions), (end, _) in zip(
            study.checkpoints, [*study.checkpoints[1:], (study.overlaps.size, ())], strict=True
        ):
            served = [
                y
                for y, said in zip(line["y"], line["customdata"], strict=True)
                if said == f"requests {start:,} to {end - 1:,}"
            ]
            assert sorted(set(served)) == sorted(positions)

    def test_a_regret_of_zero_hovers_as_zero_though_a_log_axis_has_none(self):
        # One depth in each population: every plan finds both.
        figure = figures.gamma_figure(study_drift(**SMALL | {"depths": 1}))
        line = figure.data[0]
        assert line.y.tolist() == [figures.FLOOR] * len(line.y)
        assert [values[1] for values in line.customdata] == [0.0] * len(line.y)
        assert "%{customdata[1]:,.1f} tokens" in line.hovertemplate

    def test_what_gamma_does_stands_alone(self, study):
        figure = figures.gamma_figure(study)
        assert isinstance(figure, go.Figure)
        assert all(trace.name for trace in figure.data)


class TestPanel:
    def test_static_picture_needs_no_widget(self):
        figure = DriftExplorer(**SMALL).static()
        assert figure.layout.title.text.startswith("Synthetic overlaps drifting by TV 0.02")

    def test_a_changed_control_changes_only_its_lines(self):
        panel = DriftExplorer(**SMALL)
        assert panel.view is not None
        before = {trace.name: np.array(trace.y, dtype=float) for trace in panel.figure.data}
        panel.gamma = 0.8
        after = {trace.name: np.array(trace.y, dtype=float) for trace in panel.figure.data}
        changed = {name for name in before if not np.array_equal(before[name], after[name], True)}
        assert "decayed" in changed
        assert "Theorem 4" in changed
        assert not changed & {"frozen", "periodic", "decayed, by γ", "overlap"}

    def test_code_computes_what_is_shown(self):
        panel = DriftExplorer(**SMALL)
        *setup, last = panel.code(panel.parameters()).split("\n")
        names: dict = {}
        exec("\n".join(setup), names)
        table = eval(last, names)
        shown = panel.result.regret
        for rule in ("frozen", "periodic", "decayed"):
            found = table[table["rule"] == rule]["regret"].to_numpy()
            np.testing.assert_array_equal(found, shown[shown["rule"] == rule]["regret"])

    def test_table_is_exported(self, tmp_path):
        path = DriftExplorer(**SMALL).export(tmp_path / "drift.csv")
        assert path.read_text().startswith("rule,request,regret,tv,ks,loss_bound,theorem_4")

    def test_what_is_refused_stands_in_the_error_line(self):
        panel = DriftExplorer(**SMALL)
        assert panel.view is not None
        with pytest.raises(ValueError, match="requests must be at least 1, got 0"):
            panel.requests = 0
        assert panel.error == "requests must be at least 1, got 0."
        panel.requests = 150
        assert panel.error == ""

    def test_a_decay_outside_its_range_is_refused(self):
        with pytest.raises(ValueError, match=r"gamma must be at most 1, got 1\.5"):
            DriftExplorer(gamma=1.5, **SMALL).static()

    @pytest.mark.parametrize("settings", [{"gamma": 0.943}, {"swing": 630}])
    def test_any_value_in_range_has_a_control(self, settings):
        panel = DriftExplorer(**{**SMALL, **settings})
        assert panel.view is not None
        assert {name: getattr(panel, name) for name in settings} == settings


def test_sampling_figure_draws_regret_and_both_bounds():
    table = pd.DataFrame(
        {
            "distribution": ["few", "few", "many"],
            "samples": [4, 16, 4],
            "regret": [10.0, 0.0, 5.0],
            "tv_bound": [90.0, 45.0, 90.0],
            "ks_bound": [80.0, 40.0, 80.0],
        }
    )
    figure = figures.sampling_figure(table)
    assert len(figure.data) == 2 * 3
    assert list(figure.data[0].y) == [10.0, figures.FLOOR]
    assert list(figure.data[0].customdata) == [10.0, 0.0]
