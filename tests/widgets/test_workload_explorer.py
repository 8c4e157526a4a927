"""WorkloadExplorer without a browser: its study, its pictures, clicks, code and errors."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import sparselab as sl
from sparselab import placement
from sparselab.estimators import DecayedHistogram
from widgets import WorkloadExplorer, theme
from widgets.figures import workload as figures
from widgets.workload_source import FILE
from widgets.workload_study import (
    BUDGETS,
    ENTRY_AWARE,
    HISTOGRAM,
    OPTIMA,
    families,
    held_gib,
    recomputed_share,
    run_arguments,
    run_names,
    study_workload,
)

MODEL = sl.HybridArchitecture.preset("qwen3.5-4b")
CHAT = {"workload": "append_only_chat", "align": 1}


@pytest.fixture(scope="module")
def study():
    workload = sl.workloads.load("append_only_chat").interleave(3)
    return study_workload(workload, capacity=8, align=1)


class TestStudy:
    def test_has_every_run_once(self, study):
        assert study.runs["run"].tolist() == list(run_names())
        assert study.runs["family"].unique().tolist() == list(families())

    @pytest.mark.parametrize("run", ["balanced, 4", "block 128", f"{HISTOGRAM}, 2", "last"])
    def test_rows_are_what_simulate_gives(self, study, run):
        family, arguments = run_arguments(run)
        given = {"policy": family, **arguments}
        alone = sl.simulate(study.workload, capacity=8, align=1, **given).summary
        row = study.runs.set_index("run").loc[run]
        assert {name: row[name] for name in alone if alone[name] is not None} == {
            name: value for name, value in alone.items() if value is not None
        }
        assert study.simulate(run).summary == alone

    def test_histogram_and_entry_aware_differ_in_their_estimator_alone(self):
        assert isinstance(OPTIMA[HISTOGRAM]["estimator"], DecayedHistogram)
        assert isinstance(OPTIMA[ENTRY_AWARE]["estimator"].prior, DecayedHistogram)

    def test_gib_are_those_of_the_simulator(self, study):
        result = sl.simulate(study.workload, "block", block_size=64, capacity=8, architecture=MODEL)
        gib = dict(zip(study.runs["run"], held_gib(study.runs, MODEL), strict=True))
        rows = result.requests
        bytes_held = rows["retained_kv_bytes"] + rows["retained_checkpoint_bytes"]
        assert gib["block 64"] == pytest.approx(bytes_held.max() / 2**30)
        assert gib["no_cache"] == 0 < gib["kv_only"]

    def test_a_registered_policy_is_among_the_runs(self, middle):
        @sl.register_policy("elsewhere", "needs an option that nobody gives here")
        def elsewhere(context, where):
            return [where]

        try:
            assert list(families()).index(middle) == list(families()).index(HISTOGRAM) - 1
            assert "elsewhere" not in families()
        finally:
            del placement._REGISTRY["elsewhere"]

    def test_unknown_runs_are_refused(self):
        with pytest.raises(ValueError, match="unknown run 'block 63'"):
            run_arguments("block 63")


class TestFigures:
    @pytest.mark.parametrize("memory", ["checkpoints", "GiB"])
    def test_frontier_draws_the_recomputed_share_of_every_run(self, study, memory):
        figure = figures.frontier_figure(study, MODEL, memory)
        assert [trace.name for trace in figure.data] == list(families())
        shown = {
            str(name): y
            for trace in figure.data
            for (name, *_), y in zip(trace.customdata, trace.y, strict=True)
        }
        assert shown == dict(zip(study.runs["run"], recomputed_share(study.runs), strict=True))
        assert memory in figure.layout.xaxis.title.text

    def test_what_is_computed_only_to_capture_is_drawn_and_named(self):
        workload = sl.workloads.load("quality").interleave(3)
        full = study_workload(workload, capacity=8, capture="full")
        figure = figures.frontier_figure(full, MODEL)
        row = full.runs.set_index("run").loc["balanced, 4"]
        trace = next(trace for trace in figure.data if trace.name == "balanced")
        (_, _, words), y = trace.customdata[BUDGETS.index(4)], trace.y[BUDGETS.index(4)]
        computed = row["recomputed_tokens"] + row["extra_prefill_tokens"]
        assert row["extra_prefill_tokens"] > 0
        assert y == pytest.approx(computed / row["prompt_tokens"])
        assert (
            words == f", {row['extra_prefill_tokens'] / row['prompt_tokens']:.1%} only to capture"
        )
        assert "only to capture" in figure.layout.yaxis.title.text
        assert figure.layout.yaxis.range[1] > max(max(trace.y) for trace in figure.data)

    @pytest.mark.parametrize("capture", ["resumed", "full"])
    @pytest.mark.parametrize("memory", ["checkpoints", "GiB"])
    def test_filled_markers_are_the_ones_not_dominated_on_the_axes_shown(self, memory, capture):
        panel = WorkloadExplorer(memory=memory, capture=capture, **CHAT)
        table = panel.table(panel.result)
        x = table["held_gib" if memory == "GiB" else "checkpoints_per_entry"]
        y = table["recomputed_tokens"] + table["extra_prefill_tokens"]
        for best, run, own_x, own_y in zip(table["non_dominated"], table["run"], x, y, strict=True):
            beaten = (x <= own_x) & (y <= own_y) & ((x < own_x) | (y < own_y))
            assert best == (not beaten.any()), run
        symbols = {
            str(name): symbol
            for trace in panel.static().data[: len(families())]
            for (name, *_), symbol in zip(trace.customdata, trace.marker.symbol, strict=True)
        }
        best = table.set_index("run")["non_dominated"]
        assert all(symbols[run].endswith("-open") != best[run] for run in symbols)

    def test_entries_show_checkpoints_and_where_requests_left(self, study):
        run = f"{HISTOGRAM}, 4"
        spec = figures.workload_spec(study, MODEL, "checkpoints", run, study.simulate(run))
        figure = go.Figure(spec)
        by_name = {trace.name: trace for trace in figure.data}
        rows = study.simulate(run).requests
        shown = sorted({int(name.removeprefix("#")) for name in by_name["checkpoint"].y})
        for request in shown:
            marks = [
                x
                for x, y in zip(by_name["checkpoint"].x, by_name["checkpoint"].y, strict=True)
                if y == f"#{request}"
            ]
            assert marks == rows["positions"][request].tolist()
        left = by_name["a later request left here"]
        for x, (request, resume, miss) in zip(left.x, left.customdata, strict=True):
            assert (rows["overlap"][request], rows["resume_point"][request]) == (x, resume)
            assert miss == x - resume

    def test_a_synthetic_workload_is_called_so(self):
        made = sl.workloads.load("synthetic", groups=2, requests_per_group=3)
        assert "synthetic" in figures.frontier_figure(study_workload(made), MODEL).layout.title.text

    def test_histogram_bars_add_up_to_all_requests(self):
        tables = {"one": sl.OverlapDistribution([0, 5, 900], [1, 2, 7], 1000)}
        figure = figures.overlaps_figure(tables)
        assert sum(figure.data[0].y) == pytest.approx(1.0)
        assert figure.data[0].y[0] == pytest.approx(0.3)

    def test_the_measured_frontier_has_counted_and_measured_side_by_side(self):
        rows = pd.DataFrame(
            {
                "label": ["balanced", "balanced", "last"],
                "policy": ["balanced", "balanced", "last"],
                "checkpoints": [1.0, 3.0, 1.0],
                "share": [0.6, 0.4, 0.5],
            }
        )
        figure = figures.measured_frontier_figure(
            rows, rows.assign(share=rows["share"] + 0.1), "two"
        )
        assert [trace.name for trace in figure.data] == ["balanced", "last"] * 2
        assert list(figure.data[0].y) == [0.6, 0.4]
        np.testing.assert_allclose(figure.data[2].y, [0.7, 0.5])

    def test_shares_are_drawn_in_their_order_in_the_colours_of_their_families(self):
        families = ["last", HISTOGRAM, ENTRY_AWARE]
        table = pd.DataFrame({"name": ["a", "b", "c"], "share": 0.25, "family": families})
        (bars,) = figures.shares_figure(table, 0.6, "shares").data
        assert list(bars.y) == ["a", "b", "c"]
        assert list(bars.text) == ["25.0%"] * 3
        purple, blue, vermillion = bars.marker.color
        assert purple == theme.policy_style("last").colour
        assert blue == theme.policy_style("optimal").colour
        assert vermillion == figures.STYLES[ENTRY_AWARE].colour

    def test_a_policy_has_the_same_colour_counted_measured_and_in_bars(self):
        rows = pd.DataFrame(
            {"label": [ENTRY_AWARE], "policy": ["optimal"], "checkpoints": [1.0], "share": [0.5]}
        )
        measured = figures.measured_frontier_figure(rows, rows, "two").data[0]
        assert measured.line.color == figures.STYLES[ENTRY_AWARE].colour

    def test_what_holds_no_memory_is_not_on_the_gib_axis_and_not_in_its_legend(self, study):
        shown = {
            axis: {
                trace.name
                for trace in figures.frontier_figure(study, MODEL, axis).data
                if trace.showlegend
            }
            for axis in ("checkpoints", "GiB")
        }
        assert shown["checkpoints"] - shown["GiB"] == {"no_cache"}


class TestPanel:
    def test_static_picture_needs_no_widget(self):
        figure = WorkloadExplorer(**CHAT).static()
        assert isinstance(figure, go.Figure)
        assert "sample chats" in figure.layout.title.text

    def test_a_click_on_a_point_shows_its_entries(self):
        panel = WorkloadExplorer(**CHAT)
        assert panel.view is not None

        class Points:
            point_inds = (2,)

        trace = next(trace for trace in panel.figure.data if trace.name == "balanced")
        panel._clicked(trace, Points, None)
        assert panel.run == "balanced, 4"
        assert "“balanced, 4”" in panel.figure.layout.xaxis3.title.text

    def test_a_policy_that_was_registered_since_is_replayed_too(self, request):
        panel = WorkloadExplorer(**CHAT)
        before = panel.table(panel.result)
        run = request.getfixturevalue("middle")
        panel = WorkloadExplorer(run=run, **CHAT)
        after = panel.table(panel.result)
        assert set(after["run"]) - set(before["run"]) == {run}
        assert run in [trace.name for trace in panel.static().data]

    def test_models_change_the_bytes_and_nothing_else(self):
        panel = WorkloadExplorer(memory="GiB", **CHAT)
        small = panel.table(panel.result)
        panel.model = "qwen3.5-27b"
        large = panel.table(panel.result)
        assert (large["held_gib"] >= small["held_gib"]).all()
        assert large["held_gib"].max() > 2 * small["held_gib"].max()
        same = small.columns.drop(["model", "held_gib", "non_dominated"])
        pd.testing.assert_frame_equal(small[same], large[same])

    @pytest.mark.parametrize("run", run_names())
    def test_code_replays_the_run_that_is_shown(self, run):
        panel = WorkloadExplorer(run=run, capacity=9, **CHAT)
        *setup, last = panel.code(panel.parameters()).split("\n")
        names: dict = {}
        exec("\n".join(setup), names)
        table = panel.table(panel.result).set_index("run")
        assert eval(last, names)["recomputed_tokens"] == table["recomputed_tokens"][run]

    def test_your_own_file_is_replayed(self, tmp_path):
        file = tmp_path / "mine.jsonl"
        file.write_text('{"tokens": [1, 2, 3, 4]}\n{"tokens": [1, 2, 3, 5]}\n')
        panel = WorkloadExplorer(path=str(file), align=1)
        assert panel.table(panel.result)["prompt_tokens"][0] == 8
        assert panel.workload == FILE
        assert "mine.jsonl (read as jsonl): 2" in panel.static().layout.title.text
        assert repr(str(file)) in panel.code(panel.parameters())

    def test_a_trace_is_replayed_in_its_order_of_arrival(self):
        panel = WorkloadExplorer(workload="mooncake", capacity=5, align=1, run="last")
        trace = sl.workloads.load("mooncake")
        result = sl.simulate(trace, "last", capacity=5)
        pd.testing.assert_frame_equal(panel.result[-1].requests, result.requests)
        assert "interleave" not in panel.code(panel.parameters())
        assert "interleaved" not in panel.static().layout.title.text
        assert "interleaved" in WorkloadExplorer(**CHAT).static().layout.title.text

    def test_what_is_refused_stands_in_the_error_line(self):
        panel = WorkloadExplorer(**CHAT)
        assert panel.view is not None
        with pytest.raises(FileNotFoundError):
            panel.path = "nowhere.jsonl"
        assert panel.error == "no such file: nowhere.jsonl."
        panel.workload = CHAT["workload"]
        assert panel.error == ""
