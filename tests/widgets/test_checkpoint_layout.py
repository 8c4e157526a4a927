"""CheckpointLayout: each request is shown as the simulation has it, and every control works."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pytest

import sparselab as sl
from sparselab.shipped_data import sample
from widgets import CheckpointLayout
from widgets.checkpoint_layout import WORKLOADS
from widgets.figures.checkpoint_layout import BAR_HEIGHT
from widgets.workload_source import FILE


def traces(panel: CheckpointLayout) -> dict[str, Any]:
    """The traces by the beginning of their name."""
    return {
        trace.get("name", "").split(":")[0]: trace for trace in panel.draw(panel.result)["data"]
    }


def area(trace: dict[str, Any]) -> float:
    """The area of the first rectangle of a filled trace (shoelace formula)."""
    x, y = np.array(trace["x"][:4], float), np.array(trace["y"][:4], float)
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def request_controls(panel: CheckpointLayout) -> tuple[ipywidgets.IntSlider, ipywidgets.Play]:
    widgets = [w for row in panel.controls() for w in row.children]
    return (
        next(w for w in widgets if w.description == "Request"),
        next(w for w in widgets if isinstance(w, ipywidgets.Play)),
    )


@pytest.mark.parametrize("policy", ["balanced", "optimal", "block", "branch", "last", "kv_only"])
def test_skipped_replayed_and_new_tokens_are_the_simulations(policy: str) -> None:
    panel = CheckpointLayout(workload="system_prompts", policy=policy, budget=2, request=76)
    workload = sl.workloads.load("system_prompts").interleave(0)
    row = sl.simulate(workload, policy, 2, architecture=panel.model).requests.iloc[76]
    shown = traces(panel)
    assert shown["skipped"]["x"] == [row["resume_point"]]
    assert shown["replayed"]["x"] == [row["checkpoint_miss"]]
    assert shown["new tokens"]["x"] == [row["length"] - row["overlap"]]
    assert (
        sum(shown[name]["x"][0] for name in ("skipped", "replayed", "new tokens")) == row["length"]
    )


def test_areas_are_bytes_to_one_scale() -> None:
    panel = CheckpointLayout(request=99)
    view = panel.result[1]
    shown = traces(panel)
    kv_bytes = view.entry_length * view.architecture.kv_bytes_per_token
    per_area = kv_bytes / area(shown["attention KV"])
    assert area(shown["checkpoint"]) * per_area == pytest.approx(view.architecture.checkpoint_bytes)
    assert max(shown["checkpoint"]["y"][:4]) <= BAR_HEIGHT + 1e-9


def test_a_request_resumes_at_a_checkpoint_of_the_entry_it_matched() -> None:
    panel = CheckpointLayout(policy="balanced")
    for request in range(90, 110):
        panel.request = request
        view = panel.result[1]
        assert view.resume_point in {0, *view.entry_positions.tolist()}
        assert view.resume_point <= view.overlap <= min(view.length, view.entry_length)


def test_a_policy_that_keeps_nothing_draws_no_bytes() -> None:
    panel = CheckpointLayout(policy="no_cache")
    shown = traces(panel)
    assert set(shown["attention KV"]["x"]) == {0}
    assert shown["checkpoint"]["x"] == []
    assert shown["skipped"]["x"] == [0]


def test_the_first_request_matches_nothing_and_says_so() -> None:
    spec = CheckpointLayout(request=0).static()
    assert "shares no prefix with a retained entry" in spec.layout.title.text
    assert [note.text for note in spec.layout.annotations] == ["no retained entry matches"]


def test_a_request_has_one_number_in_title_code_table_and_picture() -> None:
    panel = CheckpointLayout(request=359)
    assert "<br>Request 359 shares" in panel.static().layout.title.text
    assert ".iloc[359]" in panel.code(panel.parameters())
    row = panel.table(panel.result).iloc[359]
    assert row["request"] == 359
    assert f"entry of request {row['matched']}:" in panel.static().layout.title.text
    ring = panel.static().data[-1]
    assert (ring.x[0], ring.y[0]) == (359, 100 * row["resume_point"] / row["length"])


def test_the_title_says_that_it_is_simulated() -> None:
    for workload in WORKLOADS:
        assert (
            CheckpointLayout(workload=workload).static().layout.title.text.startswith("Simulated")
        )
    assert "synthetic" in CheckpointLayout(workload="synthetic_quality").static().layout.title.text


def test_a_shorter_workload_shows_its_last_request() -> None:
    panel = CheckpointLayout(request=300)
    panel.workload = "quality"
    assert panel.result[1].number == 27


def test_the_controls_and_the_code_say_the_last_request_too_where_there_are_fewer() -> None:
    panel = CheckpointLayout(workload="append_only_chat", request=100)
    assert ".iloc[21]" in panel.code(panel.parameters())
    slider, play = request_controls(panel)
    assert panel.request == slider.value == play.value == slider.max == play.max == 21
    panel.request = 50
    assert panel.request == slider.value == play.value == slider.max == 21


def test_a_panel_whose_first_settings_are_refused_shows_its_controls() -> None:
    panel = CheckpointLayout(path="nowhere.jsonl")
    slider, _play = request_controls(panel)
    panel.workload = "synthetic_quality"
    assert slider.max == 359


def test_play_and_the_slider_move_together_and_know_how_many_requests_there_are() -> None:
    panel = CheckpointLayout(request=3)
    slider, play = request_controls(panel)
    assert slider.max == play.max == 359
    play.value = 4
    assert panel.request == slider.value == 4
    panel.workload = "quality"
    assert slider.max == play.max == 27


def test_the_figure_is_changed_in_place_from_request_to_request() -> None:
    panel = CheckpointLayout(workload="quality", request=5)
    assert panel.view
    before = panel.figure.data
    panel.request = 6
    assert all(a is b for a, b in zip(before, panel.figure.data, strict=True))
    assert panel.error == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "optimel"}, "did you mean 'optimal'"),
        ({"workload": "qualty"}, "did you mean 'quality'"),
        ({"model": "qwen"}, "unknown preset 'qwen'"),
        ({"budget": -1}, "budget must be at least 0"),
        ({"request": -1}, "request must be at least 0"),
        ({"path": "nowhere.jsonl"}, "no such file: nowhere.jsonl"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        CheckpointLayout(**change).static()


def test_the_seed_is_of_the_interleaving() -> None:
    panel = CheckpointLayout(workload="quality", seed=3)
    workload = sl.workloads.load("quality").interleave(3)
    assert panel.table(panel.result)["group"].tolist() == [r.group for r in workload]
    assert ".interleave(3)" in panel.code(panel.parameters())


def test_a_file_of_ones_own_is_replayed_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    rows = [{"group": "a", "tokens": list(range(40))}, {"group": "a", "tokens": list(range(50))}]
    file.write_text("\n".join(map(json.dumps, rows)))
    panel = CheckpointLayout(path=str(file), policy="last", request=1)
    view = panel.result[1]
    assert (view.length, view.overlap, view.resume_point) == (50, 40, 40)


@pytest.mark.parametrize("path", ["", str(sample("requests.jsonl"))])
def test_the_code_prints_the_row_shown(path: str) -> None:
    panel = CheckpointLayout(workload="quality", path=path, policy="block", budget=2, request=20)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(panel.code(panel.parameters()), {})
    view = panel.result[1]
    row = dict(line.split(None, 1) for line in printed.getvalue().splitlines() if " " in line)
    assert int(row["resume_point"]) == view.resume_point
    assert int(row["overlap"]) == view.overlap


def test_a_file_is_chosen_named_and_left_again_in_the_list_of_workloads(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"group": "a", "prompt": "x y", "tokens": [1, 2, 3]}\n')
    panel = CheckpointLayout(path=str(file))
    assert panel.workload == FILE
    assert "Simulated: own.jsonl (read as jsonl)" in panel.static().layout.title.text
    panel.workload = "quality"
    assert "Simulated: sample documents" in panel.static().layout.title.text
    panel.workload = FILE
    panel.file_format = "system_prompts"
    assert "(read as system_prompts)" in panel.static().layout.title.text
    assert "load('system_prompts'" in panel.code(panel.parameters())


def test_file_and_block_size_have_controls_where_they_mean_something() -> None:
    panel = CheckpointLayout()
    shown = {w.description: w for row in panel.controls() for w in row.children}
    of_file = [shown["Your own file"], shown["Format"]]
    assert [control.layout.display for control in of_file] == ["none", "none"]
    assert shown["Block size (tokens)"].layout.display == "none"
    panel.policy = "block"
    panel.workload = FILE
    assert [control.layout.display for control in of_file] == [None, None]
    assert shown["Block size (tokens)"].layout.display is None


def test_the_block_size_is_simulated_and_said() -> None:
    panel = CheckpointLayout(policy="block", block_size=256, request=20)
    assert set(np.diff(panel.result[1].stored)) == {256}
    assert "policy block of 256 tokens" in panel.static().layout.title.text
    assert "block_size=256" in panel.code(panel.parameters())
    panel.policy = "balanced"
    assert "256" not in panel.code(panel.parameters())


def test_the_table_has_a_row_for_each_request() -> None:
    panel = CheckpointLayout(workload="quality")
    table = panel.table(panel.result)
    assert len(table) == 28
    assert {"overlap", "resume_point", "checkpoint_miss", "checkpoint_bytes"} <= set(table)
