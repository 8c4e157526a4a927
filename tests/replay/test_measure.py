"""Measuring: which runs are made and how they are tabulated. How fast they are is a benchmark."""

import numpy as np
import pandas as pd
import pytest

import sparselab as sl
from sparselab import replay
from sparselab.recompute import PrefillCostModel
from sparselab.replay import measurement


@pytest.fixture(scope="module")
def table(tiny):
    return replay.measure(
        tiny,
        length=120,
        policies=("balanced", "block", "optimal"),
        budgets=(1, 3),
        depths=(0, 50, 120),
        repeats=2,
        chunk=64,
        policy_options={"block": {"block_size": 40}},
        show_progress=False,
    )


def test_one_row_a_measurement(table):
    cases = 1 + 2 + 1 + 2  # cold, balanced twice, block, optimal twice
    assert len(table) == cases * 3 * 2
    assert set(table["policy"]) == {"no_cache", "balanced", "block", "optimal"}
    assert not table.attrs["interrupted"]
    counts = table.groupby(["policy", "budget", "depth"], dropna=False).size()
    assert (counts == 2).all()


def test_resume_points_are_those_of_the_schedules(table):
    for row in table.itertuples():
        schedules = {
            "no_cache": lambda row: sl.place("no_cache", 120),
            "balanced": lambda row: sl.place("balanced", 120, int(row.budget)),
            "block": lambda row: sl.place("block", 120, block_size=40),
            "optimal": lambda row: sl.place(
                "optimal", 120, int(row.budget), sl.OverlapDistribution.uniform(120)
            ),
        }
        schedule = schedules[row.policy](row)
        # The last token is computed even where all of the prompt was seen before.
        assert row.resume_point == schedule.resume_point(min(row.depth, 119))
        assert row.checkpoints == len(schedule)
        assert row.saved_tokens + row.recomputed_tokens == row.length == 120


def test_every_row_says_what_it_was_measured_on(table, tiny):
    row = table.iloc[0]
    assert (row["model"], row["dtype"], row["seed"]) == ("tiny", "float32", 0)
    assert row["device"].endswith(", 1 thread")
    assert {"torch", "transformers", "weights"} <= set(table)
    assert (table["load_ms"] + table["compute_ms"]).equals(table["total_ms"])
    assert (table["total_ms"] > 0).all()


def test_bytes_by_policy_are_measured(table, tiny):
    cold = table[table["policy"] == "no_cache"]
    assert (cold[["kv_bytes", "checkpoint_bytes"]] == 0).all(axis=None)
    block = table[table["policy"] == "block"]
    assert (block["checkpoint_bytes"] == 3 * tiny.checkpoint_bytes).all()
    assert (block["kv_bytes"] == 120 * tiny.kv_bytes_per_token).all()


def test_schedules_of_ones_own_are_measured_beside_policies(tiny):
    mine = sl.Schedule([10, 40], 60, policy="mine")
    table = replay.measure(
        tiny, 60, ("block", mine, mine), depths=[50], repeats=1, show_progress=False
    )
    assert len(table) == 3  # cold, block and mine: the same schedule again is no other case
    row = table[table["policy"] == "mine"].iloc[0]
    assert (row["budget"], row["checkpoints"], row["resume_point"]) == (2, 2, 40)
    assert row["kv_bytes"] == 60 * tiny.kv_bytes_per_token


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        ([sl.Schedule([10], 50)], "a schedule is for 50 tokens and length is 60"),
        (
            [sl.Schedule([10], 60), sl.Schedule([20], 60)],
            "two schedules are labelled 'custom' and hold 1 checkpoints",
        ),
    ],
)
def test_schedules_that_do_not_fit_together_are_named(tiny, schedules, message):
    with pytest.raises(ValueError, match=message):
        replay.measure(tiny, 60, schedules, show_progress=False)


def test_the_order_is_shuffled_by_the_seed():
    first, again = (measurement.plan_trials(100, 3, None, 2, seed=4) for _ in range(2))
    other = measurement.plan_trials(100, 3, None, 2, seed=5)
    assert first == again != other
    assert sorted(first) == sorted(other)
    assert first != sorted(first)
    assert {depth for _, depth, _ in first} == {25, 50, 75}


def test_an_interruption_keeps_what_is_finished(tiny, monkeypatch):
    finished = []
    original = measurement.resume

    def resume(*arguments):
        finished.append(1)
        # Two runs warm up, so the third measured one is interrupted.
        if len(finished) == 5:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(measurement, "resume", resume)
    table = replay.measure(tiny, 60, repeats=3, show_progress=False)
    assert len(table) == 2
    assert table.attrs["interrupted"]


def made_up_table(slope=0.5, fixed=3.0):
    """Runs of 100 tokens that cost exactly ``fixed + slope`` milliseconds a token."""
    rows = []
    for policy, saved in (("no_cache", 0), ("block", 20), ("block", 50), ("balanced", 80)):
        for repeat in range(3):
            total = fixed + slope * (100 - saved)
            rows.append(
                {
                    "policy": policy,
                    "budget": None,
                    "depth": saved,
                    "repeat": repeat,
                    "length": 100,
                    "resume_point": saved,
                    "saved_tokens": saved,
                    "recomputed_tokens": 100 - saved,
                    "load_ms": 0.1 * total,
                    "compute_ms": 0.9 * total,
                    "total_ms": total,
                    "checkpoints": 1,
                    "checkpoint_bytes": 10,
                    "kv_bytes": 20,
                }
            )
    return pd.DataFrame(rows)


def test_the_savings_line_of_exact_costs():
    fit = replay.fit_savings(made_up_table())
    assert fit.ms_per_token == pytest.approx(0.5)
    assert fit.intercept_ms == pytest.approx(0.0, abs=1e-9)
    assert fit.r_squared == pytest.approx(1.0)
    assert fit.points == 4


def test_the_savings_line_by_hand_where_points_scatter():
    table = made_up_table()
    table.loc[table["saved_tokens"] == 50, "total_ms"] += 6.0
    tokens = np.array([0.0, 20.0, 50.0, 80.0])
    saved = np.array([0.0, 10.0, 19.0, 40.0])
    correlation = np.corrcoef(tokens, saved)[0, 1]
    assert replay.fit_savings(table).r_squared == pytest.approx(correlation**2)


def test_a_summary_has_medians_speedup_and_load_share():
    summary = replay.summarise(made_up_table()).set_index("saved_tokens")
    assert summary.loc[80, "total_ms"] == pytest.approx(13.0)
    assert summary.loc[80, "saved_ms"] == pytest.approx(40.0)
    assert summary.loc[80, "speedup"] == pytest.approx(53.0 / 13.0)
    assert np.allclose(summary["load_share"], 0.1)


def test_predictions_stand_beside_measurements():
    predicted = replay.predict(made_up_table(), PrefillCostModel(3.0, 0.5, 0.0))
    assert np.allclose(predicted["predicted_ms"], predicted["total_ms"])


def test_how_far_predictions_are_off():
    summary = replay.predict(replay.summarise(made_up_table()), PrefillCostModel(3.0, 0.5, 0.0))
    exact = replay.prediction_error(summary)
    assert (exact.median, exact.worst, exact.cold_ratio, exact.cases) == (0.0, 0.0, 1.0, 3)
    assert not exact.machine_changed
    # Twice as slow as when the costs were fitted: every prediction is half of what was measured.
    slow = replay.prediction_error(summary.assign(total_ms=2 * summary["total_ms"]))
    assert (slow.median, slow.worst, slow.cold_ratio) == (0.5, 0.5, 2.0)
    assert slow.machine_changed
    assert slow.relative_median == 0.0
    with pytest.raises(ValueError, match="no case resumed from a checkpoint"):
        replay.prediction_error(summary[summary["policy"] == "no_cache"])


def test_what_cannot_be_fitted_is_refused():
    table = made_up_table()
    assert replay.can_fit(table)
    assert not replay.can_fit(table[table["policy"] != "no_cache"])
    assert not replay.can_fit(table[table["saved_tokens"] < 50])
    assert not replay.can_fit(pd.DataFrame())
    with pytest.raises(ValueError, match="no cold runs"):
        replay.fit_savings(table[table["policy"] != "no_cache"])
    with pytest.raises(ValueError, match="at least 3 different numbers of saved tokens, got 2"):
        replay.fit_savings(table[table["saved_tokens"] < 50])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": ["balancd"]}, r"unknown policy 'balancd' \(did you mean 'balanced'\?\)"),
        ({"depths": [61]}, r"depth must lie in 0..60, got 61"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"length": 1}, "length must be at least 2"),
        ({"policy_options": {"blok": {}}}, "unknown policy 'blok'"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"distribution": "quality"}, "distribution must be an OverlapDistribution, got str"),
    ],
)
def test_bad_arguments_are_named(tiny, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        replay.measure(tiny, **({"length": 60} | arguments), show_progress=False)


def test_calibration_fits_some_lengths_and_checks_others(tiny):
    result = replay.calibrate(tiny, (20, 60, 120), (40, 90), repeats=1, show_progress=False)
    assert result.table["length"].tolist() == [20, 40, 60, 90, 120]
    assert result.table["role"].tolist() == ["fit", "check", "fit", "check", "fit"]
    expected = result.cost_model.predict_ms(0, result.table["length"].to_numpy())
    assert np.allclose(result.table["predicted_ms"], expected)
    check = result.table[result.table["role"] == "check"]
    error = (check["predicted_ms"] / check["measured_ms"] - 1).abs().max()
    assert result.worst_error == pytest.approx(error)
    # One rate for all lengths: proportional to the FLOPs of the architecture.
    flops = sl.HybridArchitecture.from_config(tiny.config).prefill_flops(result.table["length"])
    assert np.allclose(result.table["flops_ms"] / flops, result.table["flops_ms"][0] / flops[0])
    # The cost model is a solver's G.
    uniform = sl.OverlapDistribution.uniform(120)
    sl.place("optimal", 120, 2, uniform, prefill_cost=result.cost_model)


def test_lengths_to_calibrate_on_are_all_different():
    for length in (8, 9, 13, 1000):
        fit, check = replay.calibration_lengths(length)
        assert len({*fit, *check}) == 6
        assert max(fit) == length
    with pytest.raises(ValueError, match="length must be at least 8, got 7"):
        replay.calibration_lengths(7)


def test_no_case_of_capture_cost_takes_the_baselines_place(tiny):
    with pytest.raises(ValueError, match="cases must not be named 'plain prefill'"):
        replay.measure_capture(tiny, 120, {"plain prefill": [30]})


def test_capture_cost_takes_a_schedule(tiny):
    cases = {"mine": sl.Schedule([30, 64], 120)}
    table = replay.measure_capture(tiny, 120, cases, repeats=1, show_progress=False)
    assert table["checkpoints"].tolist() == [0, 2]


def test_capture_cost_compares_with_a_plain_prefill(tiny):
    table = replay.measure_capture(
        tiny, 120, {"two": [30, 64]}, repeats=2, chunk=64, show_progress=False
    )
    assert table["case"].tolist() == ["plain prefill", "two"]
    assert table["checkpoints"].tolist() == [0, 2]
    assert table["calls"].tolist() == [2, 3]
    assert table["overhead"][0] == 0
    assert (table["total_ms"] > 0).all()
