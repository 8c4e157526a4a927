"""The placement figures draw what they say, with a bounded number of points."""

import numpy as np
import plotly.graph_objects as go
import pytest

import sparselab as sl
from widgets.comparison import compare
from widgets.figures import placement
from widgets.theme import OWN, policy_style

POLICIES = ("no_cache", "balanced", "block", "sqrt", "log", "optimal")


def comparison(length=4096, budget=8, policies=POLICIES, own=(1000, 3000), **options):
    return compare(sl.OverlapDistribution.beta(length, 2, 5), budget, policies, own=own, **options)


def trace(spec, name):
    return next(t for t in spec["data"] if t["name"] == name)


@pytest.mark.parametrize("length", [1, 2, 16, 127, 128, 4096, 10_001, 32_768, 50_000])
def test_the_histogram_holds_every_request_once_in_equal_parts_from_0_to_n(length):
    spec = placement.comparison_spec(comparison(length, own=[1]))
    histogram = trace(spec, "overlaps")
    assert histogram["y"][:-1].sum() == pytest.approx(100, rel=1e-5)
    assert (histogram["x"][0], histogram["x"][-1]) == (0, length)
    widths = np.diff(histogram["x"])
    assert widths == pytest.approx(widths[0])


def test_a_request_counts_in_the_part_where_its_depth_lies():
    # 512 and 30,720 lie on edges of parts of 256: what aligned caches report.
    for length in (16, 1000, 4096, 10_001, 32_768):
        for depth in (0, length // 3, 512, 30_720, length):
            depth = min(depth, length)
            c = compare(sl.OverlapDistribution.point(length, depth), 1, ())
            histogram = trace(placement.comparison_spec(c), "overlaps")
            (part,) = np.flatnonzero(histogram["y"][:-1])
            start, end = histogram["x"][part : part + 2]
            assert start <= depth < end or depth == end == length


@pytest.mark.parametrize(
    ("length", "words"), [(16, "1 token"), (32_768, "256 tokens"), (10_001, "78.1 tokens")]
)
def test_the_axis_says_how_wide_a_part_of_the_histogram_is(length, words):
    title = placement.comparison_spec(comparison(length, own=[1]))["layout"]["yaxis"]["title"]
    assert title["text"] == f"requests (%)<br>per {words}"


def test_only_the_readers_own_row_takes_clicks():
    c = comparison()
    spec = placement.comparison_spec(c)
    add, layout = spec["data"][placement.ADD_TRACE], spec["layout"]
    assert add["xaxis"] + add["yaxis"] == placement.ADD_SUBPLOT
    others = [t for t in spec["data"] if t is not add]
    assert all(t.get("xaxis", "x") != add["xaxis"] for t in others)
    # Its axes cover that row of the strips: half a row above and below the row's index.
    low, high = layout["yaxis2"]["domain"]
    bottom, top = layout["yaxis2"]["range"]
    rows = [bottom + (y - low) / (high - low) * (top - bottom) for y in layout["yaxis6"]["domain"]]
    assert rows == pytest.approx([len(c.rows) - 0.5, len(c.rows) - 1.5])
    assert layout["xaxis4"]["domain"] == layout["xaxis"]["domain"]
    assert layout["xaxis4"]["matches"] == "x"
    assert add["visible"]
    without = placement.comparison_spec(comparison(own=None))
    assert not without["data"][placement.ADD_TRACE]["visible"]


@pytest.mark.parametrize("name", [*POLICIES, OWN])
def test_the_sawtooth_is_r_at_its_corners_and_straight_between(name):
    c = comparison()
    schedule = c.row(name).schedule
    depths, redone, note = placement.sawtooth(c, schedule)
    every = np.arange(c.length + 1)
    assert note == ""
    np.testing.assert_array_equal(np.interp(every, depths, redone), sl.recompute(schedule, every))


def test_a_sawtooth_of_another_cost_has_points_between_its_corners():
    cost = np.arange(4097.0) ** 2
    c = comparison(prefill_cost=cost, unit="FLOPs", policies=("no_cache",))
    depths, redone, _ = placement.sawtooth(c, c.rows[0].schedule)
    assert depths.size > 100
    np.testing.assert_array_equal(redone, cost[depths])


def test_more_teeth_than_pixels_are_drawn_by_their_highest_points_and_say_so():
    c = comparison(options={"block": {"block_size": 8}})
    schedule = c.row("block").schedule
    depths, highest, note = placement.sawtooth(c, schedule)
    assert len(schedule) == 512
    assert depths.size <= placement.MOST_TEETH + 1
    assert note == " (highest in each 33 tokens)"
    assert set(highest[:-1]) == {7}
    labels = placement.comparison_spec(c)["layout"]["yaxis2"]["ticktext"]
    assert labels[POLICIES.index("block")] == "block (512: band)"


def test_hovering_a_depth_says_where_each_policy_resumes_and_what_it_recomputes():
    c = comparison()
    hover = trace(placement.comparison_spec(c), "depth")
    assert hover["x"][0] == 0
    assert hover["x"][-1] == c.length
    for index, row in enumerate(c.rows):
        resume, redone = hover["customdata"][:, 2 * index], hover["customdata"][:, 2 * index + 1]
        np.testing.assert_array_equal(resume, row.schedule.resume_point(hover["x"].astype(int)))
        np.testing.assert_array_equal(redone, hover["x"] - resume)
        assert f"{row.name}: resumes at" in hover["hovertemplate"]


def test_every_checkpoint_is_marked_in_its_policys_row():
    c = comparison()
    marks = placement.comparison_spec(c)["data"][placement.MARKS_TRACE]
    for index, row in enumerate(c.rows):
        np.testing.assert_array_equal(marks["x"][marks["y"] == index], row.schedule.positions)


def test_handles_stand_on_the_readers_own_checkpoints_only():
    c = comparison()
    anchors = [(shape["xanchor"], shape["yanchor"]) for shape in placement.handles(c)]
    assert anchors == [(1000, len(c.rows) - 1), (3000, len(c.rows) - 1)]
    assert placement.handles(comparison(own=None)) == []


def test_the_table_shows_every_policy():
    c = comparison()
    columns = [
        text.split("<br>")[2:] for text in trace(placement.comparison_spec(c), "table")["text"]
    ]
    assert columns[0] == [row.name for row in c.rows]
    assert columns[1] == [f"{len(row.schedule):,}" for row in c.rows]
    assert columns[2] == [placement._amount(row.expected, "tokens") for row in c.rows]
    assert {len(column) for column in columns} == {len(c.rows)}


def test_axes_name_their_units():
    tokens = placement.comparison_spec(comparison())["layout"]
    assert tokens["yaxis3"]["title"]["text"] == "recompute r(t) (tokens)"
    flops = comparison(prefill_cost=np.arange(4097.0) * 1e9, unit="FLOPs")
    assert placement.comparison_spec(flops)["layout"]["yaxis4"]["title"]["text"] == "E[r] (FLOPs)"


def test_the_budget_axis_shows_zero_and_every_policy():
    c = comparison()
    layout = placement.comparison_spec(c)["layout"]["xaxis2"]
    assert layout["ticktext"][:4] == ["0", "1", "2", "4"]
    now = trace(placement.comparison_spec(c), "now")
    assert layout["range"][0] < min(now["x"]) <= max(now["x"]) < layout["range"][1]


def test_plotly_accepts_every_value():
    assert go.Figure(placement.comparison_spec(comparison())).data
    for draw in (placement.layout_figure, placement.frontier_figure):
        assert isinstance(draw(comparison()), go.Figure)


def test_points_are_few_enough_to_move_at_once():
    c = comparison(32_768, 64, options={"block": {"block_size": 64}})
    points = sum(len(t.get("x", [])) for t in placement.comparison_spec(c)["data"])
    assert points < 3_000


def test_the_frontiers_legend_shows_policies_as_they_are_drawn():
    figure = placement.frontier_figure(comparison())
    legend = {t.name: t for t in figure.data if t.showlegend is not False}
    assert list(legend) == [*POLICIES, OWN]
    for name, entry in legend.items():
        assert entry.marker.symbol == policy_style(name).marker
        with_line = name in {"balanced", "optimal"}
        assert entry.mode == ("lines+markers" if with_line else "markers")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1234.4, "tokens", "1,234"),
        (0.25, "tokens", "0.25"),
        (3.0, "tokens", "3"),
        (1.234e13, "FLOPs", "12.3T"),
        (5e9, "FLOPs", "5G"),
    ],
)
def test_amounts_are_short(value, unit, text):
    assert placement._amount(value, unit) == text
