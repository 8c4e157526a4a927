"""PlacementExplorer without a browser: parameters, code, a schedule of one's own, long use."""

import contextlib
import datetime
import gc
import io
import random

import ipywidgets
import psutil
import pytest

import sparselab as sl
from widgets import PlacementExplorer
from widgets.live_figure import _equal
from widgets.overlap_source import HAND, HAND_BINS
from widgets.theme import OWN

ALL = ("no_cache", "kv_only", "balanced", "block", "sqrt", "log", "last", "optimal", OWN)


def all_widgets(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from all_widgets(child)


def control(panel, label):
    return next(
        w for w in all_widgets(panel.view) if getattr(w, "description", "").startswith(label)
    )


@pytest.mark.parametrize("source", ["uniform", "mixture", "quality", HAND])
@pytest.mark.parametrize("cost", ["tokens", "qwen3.5-0.8b"])
def test_the_code_prints_the_tables_numbers(source, cost):
    panel = PlacementExplorer(
        source=source, length=2048, budget=5, align=16, cost=cost, policies=ALL, own="700,1600"
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(panel.code(panel.parameters()), {})
    numbers = [float(line.rsplit(" ", 1)[1]) for line in printed.getvalue().splitlines()]
    assert numbers == pytest.approx([row.expected for row in panel.result.rows], rel=1e-12)
    assert len(numbers) == len(ALL)


def test_static_and_live_draw_the_same():
    panel = PlacementExplorer(length=2048)
    assert panel.view
    for live, plain in zip(panel.figure.data, panel.static().data, strict=True):
        drawn = live.to_plotly_json()
        drawn.pop("uid")
        assert _equal(drawn, plain.to_plotly_json())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"own": "12, soon"}, "got 'soon'"),
        ({"policies": ("optimum",)}, "did you mean 'optimal'"),
        ({"cost": "qwen3.5-1b"}, "unknown preset"),
        ({"budget": -1}, "budget must be at least 0, got -1"),
        ({"source": "my own file"}, "path is empty"),
    ],
)
def test_bad_settings_are_named_and_the_next_good_ones_work(change, sentence):
    panel = PlacementExplorer()
    assert panel.view
    (name, value), before = *change.items(), panel.parameters()
    with pytest.raises((ValueError, TypeError, OSError)):
        setattr(panel, name, value)
    assert sentence in panel.error
    setattr(panel, name, before[name])
    assert panel.error == ""


def test_only_the_parameters_of_the_family_are_shown():
    panel = PlacementExplorer(source="zipf")
    assert control(panel, "Zipf").layout.display != "none"
    assert control(panel, "Beta a").layout.display == "none"
    panel.source = "beta"
    assert control(panel, "Zipf").layout.display == "none"
    assert control(panel, "Beta a").layout.display != "none"
    panel.policies = ("log",)
    assert control(panel, "Block size").layout.display == "none"
    panel.policies = ("log", "block")
    assert control(panel, "Block size").layout.display != "none"


def test_drawing_by_hand_moves_the_optimum():
    panel = PlacementExplorer(source=HAND, length=1200, budget=1, policies=("optimal",))
    bars = [
        w
        for w in all_widgets(panel.view)
        if isinstance(w, ipywidgets.FloatSlider) and w.orientation == "vertical"
    ]
    assert len(bars) == HAND_BINS
    for bar in bars[1:]:
        bar.value = 0.0
    bars[9].value = 1.0
    bars[0].value = 0.0
    assert 900 <= panel.result.row("optimal").schedule.positions[0] <= 1000


def test_weights_given_in_python_are_drawn_and_kept():
    weights = (5, *[1] * (HAND_BINS - 1))
    panel = PlacementExplorer(source=HAND, length=1200, weights=weights)
    bars = [w for w in all_widgets(panel.view) if getattr(w, "orientation", "") == "vertical"]
    assert [bar.value for bar in bars] == list(weights)
    bars[1].value = 0.5
    assert panel.weights == (5, 0.5, *weights[2:])
    panel.weights = tuple(range(HAND_BINS))
    assert [bar.value for bar in bars] == list(range(HAND_BINS))


def test_an_uploaded_table_is_used():
    panel = PlacementExplorer(length=100, policies=("optimal",), budget=1)
    upload = next(w for w in all_widgets(panel.view) if isinstance(w, ipywidgets.FileUpload))
    upload.value = [
        {
            "name": "mine.csv",
            "type": "text/csv",
            "size": 25,
            "content": memoryview(b"depth,requests\n60,5\n"),
            "last_modified": datetime.datetime.now(),
        }
    ]
    panel.source = "my own file"
    assert panel.result.row("optimal").schedule.positions.tolist() == [60]
    assert "mine.csv, 5 requests" in panel.figure.layout.title.text


def test_your_own_checkpoints_by_text_and_button():
    panel = PlacementExplorer(length=1000, budget=3, own="")
    control(panel, "Your checkpoints").value = "100; 900"
    assert panel.result.row(OWN).schedule.positions.tolist() == [100, 900]
    control(panel, "Copy the optimum").click()
    assert panel.result.row(OWN).expected == panel.result.row("optimal").expected
    assert panel.result.row(OWN).excess == 0
    control(panel, "Clear").click()
    assert len(panel.result.row(OWN).schedule) == 0


def test_copying_the_optimum_mends_positions_that_cannot_be_read(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    panel = PlacementExplorer(length=1000, budget=3, own="soon")
    copy = control(panel, "Copy the optimum")
    assert "got 'soon'" in panel.error
    copy.click()
    assert panel.error == ""
    assert panel.result.row(OWN).excess == 0


def test_a_click_that_fails_says_why(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    panel = PlacementExplorer(length=1000, source="my own file")
    copy = control(panel, "Copy the optimum")
    panel.error = ""
    copy.click()
    assert panel.error.startswith("path is empty")


def test_your_own_checkpoints_beyond_a_shorter_entry_are_left_out_and_counted():
    panel = PlacementExplorer(length=1000, own="100, 2000, 3000")
    assert panel.result.row(OWN).schedule.positions.tolist() == [100]
    assert "2 of your own checkpoints beyond N left out" in panel.result.source
    assert panel.own == "100, 2000, 3000"


def test_your_own_checkpoints_that_the_grid_moves_or_merges_are_counted():
    panel = PlacementExplorer(own="1500, 3000, 300, 3050", align=512)
    assert panel.result.row(OWN).schedule.positions.tolist() == [1024, 2560]
    moved = "; 4 of your own checkpoints moved to multiples of 512"
    assert panel.result.source.endswith(f"{moved}, which leaves 2 in all")
    panel.own = "1500, 3000, 4096"
    assert panel.result.source.endswith("; 2 of your own checkpoints moved to multiples of 512")
    panel.policies = ("optimal",)
    assert "your own" not in panel.result.source


def test_a_panel_opened_with_bad_settings_gets_its_clicks_once_they_are_good(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    panel = PlacementExplorer(length=1000, own="soon")
    assert panel.view
    assert "got 'soon'" in panel.error
    panel.own = "500"
    TestInThePicture().drag(panel, 0, 600.0)
    assert panel.own == "600"


class TestInThePicture:
    """Messages as the page sends them."""

    @pytest.fixture
    def panel(self):
        panel = PlacementExplorer(length=1000, own="200, 800")
        assert panel.view
        return panel

    def drag(self, panel, handle, to, rows=0.0):
        row = len(panel.result.rows) - 1
        panel.figure.set_state(
            {
                "_js2py_relayout": {
                    "relayout_data": {
                        f"shapes[{handle}].xanchor": to,
                        f"shapes[{handle}].yanchor": row + rows,
                    },
                    "source_view_id": "page",
                }
            }
        )

    def click(self, panel, index):
        add = panel.figure.data[3]
        panel.figure.set_state(
            {
                "_js2py_pointsCallback": {
                    "event_type": "plotly_click",
                    "points": {
                        "xs": [int(add.x[index])],
                        "ys": [int(add.y[index])],
                        "point_indexes": [index],
                        "trace_indexes": [3],
                    },
                    "device_state": {
                        "alt": False,
                        "ctrl": False,
                        "meta": False,
                        "shift": False,
                        "button": 0,
                        "buttons": 0,
                    },
                    "selector": None,
                }
            }
        )
        return int(add.x[index])

    def test_a_click_in_the_row_adds_a_checkpoint(self, panel):
        added = self.click(panel, 100)
        assert panel.own == f"200, {added}, 800"
        assert [shape.xanchor for shape in panel.figure.layout.shapes] == [200, added, 800]

    def test_a_click_still_works_after_policies_were_added(self, panel):
        panel.policies = ALL
        added = self.click(panel, 0)
        assert panel.own == f"{added}, 200, 800"

    def test_a_drag_moves_it_to_the_nearest_token(self, panel):
        self.drag(panel, 0, 333.4)
        assert panel.own == "333, 800"
        assert panel.result.row(OWN).schedule.positions.tolist() == [333, 800]

    def test_a_drag_past_the_end_stops_there_and_the_handle_follows(self, panel):
        self.drag(panel, 1, 1800.0)
        assert panel.own == "200, 1000"
        self.drag(panel, 1, 1900.0)
        assert panel.own == "200, 1000"
        assert panel.figure.layout.shapes[1].xanchor == 1000

    def test_a_drag_out_of_the_row_removes_it(self, panel):
        self.drag(panel, 0, 210.0, rows=1.5)
        assert panel.own == "800"
        assert len(panel.figure.layout.shapes) == 1
        self.drag(panel, 0, 210.0, rows=1.5)
        assert panel.own == ""
        assert len(panel.figure.layout.shapes) == 0

    def test_a_drag_leaves_the_text_of_the_others_as_it_was(self, panel):
        with panel.together():
            panel.align = 128
            panel.own = "200, 500, 1010"
        self.drag(panel, 0, 300.0)
        assert panel.own == "256, 500, 1010"
        self.drag(panel, 1, 390.0, rows=1.5)
        assert panel.own == "256, 1010"

    def test_a_drag_moves_all_that_the_grid_has_merged(self, panel):
        with panel.together():
            panel.align = 128
            panel.own = "130, 140, 1001"
        self.drag(panel, 0, 390.0)
        assert panel.own == "384, 1001"

    def test_a_click_adds_a_checkpoint_where_it_can_stand(self, panel):
        panel.align = 64
        added = self.click(panel, 100)
        assert panel.own == f"200, {round(added / 64) * 64}, 800"

    def test_a_drag_moves_only_after_dropping_near_the_row(self, panel):
        self.drag(panel, 0, 250.0, rows=0.3)
        assert panel.own == "250, 800"
        assert panel.figure.layout.shapes[0].yanchor == len(panel.result.rows) - 1


def test_two_thousand_changes_neither_leak_nor_leave_the_picture_behind():
    panel = PlacementExplorer(length=8192, policies=("balanced", "block", "optimal", OWN))
    budget, a = control(panel, "Budget"), control(panel, "Beta a")
    choose = random.Random(1)
    process = psutil.Process()

    def drag(changes):
        for _ in range(changes):
            if choose.random() < 0.8:
                budget.value = choose.randint(0, 32)
            else:
                a.value = choose.randint(1, 400) / 20
        gc.collect()
        return process.memory_info().rss

    before = drag(200)  # caches are full and code is compiled from here on
    grown = drag(1800) - before
    assert grown < 50 * 2**20, f"{grown / 2**20:.0f} MiB more after 1,800 changes"
    best = sl.place("optimal", 8192, budget.value, sl.OverlapDistribution.beta(8192, a.value, 5.0))
    optimal = next(t for t in panel.figure.data if t.name == "optimal" and t.yaxis == "y3")
    assert set(best.positions) <= set(optimal.x)
    assert panel.result.row("optimal").schedule == best
