"""A live figure takes over a new drawing with as little as possible."""

import comm
import numpy as np
import plotly.graph_objects as go
import pytest

from widgets.live_figure import LiveFigure


def drawing(*ys, kind="scatter", **layout):
    return {"data": [{"type": kind, "y": y} for y in ys], "layout": layout}


@pytest.fixture
def sent(monkeypatch):
    """The update messages that would go to the page."""
    messages = []
    original = LiveFigure._send_update_msg

    def record(self, restyle_data, relayout_data, trace_indexes=None, **options):
        messages.append((restyle_data, relayout_data, trace_indexes))
        original(self, restyle_data, relayout_data, trace_indexes, **options)

    monkeypatch.setattr(LiveFigure, "_send_update_msg", record)
    return messages


def test_only_what_differs_is_sent_in_one_message(sent):
    figure = LiveFigure(drawing([1, 2], [3, 4], title={"text": "a"}, height=300))
    replaced = figure.become(drawing([1, 2], [5, 6], title={"text": "b"}, height=300))
    assert not replaced
    assert sent == [({"y": [[5, 6]]}, {"title.text": "b"}, [1])]
    assert list(figure.data[1].y) == [5, 6]
    assert figure.layout.title.text == "b"


def test_the_page_hears_of_the_figure_once_it_is_complete(monkeypatch):
    announced = []
    create = comm.create_comm

    def record(**arguments):
        announced.append(arguments["data"]["state"])
        return create(**arguments)

    monkeypatch.setattr(comm, "create_comm", record)
    LiveFigure(drawing([1, 2], title={"text": "a"}), draggable_shapes=True)
    [figure] = [state for state in announced if "_widget_data" in state]
    assert [trace["y"] for trace in figure["_widget_data"]] == [[1, 2]]
    assert figure["_widget_layout"]["title"]["text"] == "a"
    assert figure["_config"]["responsive"]
    assert figure["_config"]["edits"] == {"shapePosition": True}


def test_nothing_is_sent_when_nothing_differs(sent):
    figure = LiveFigure(drawing(np.arange(3)))
    figure.become(drawing(np.arange(3)))
    assert sent == []


def test_figures_and_plain_data_are_the_same(sent):
    plain = drawing([1, 2], height=300)
    figure = LiveFigure(go.Figure(plain))
    figure.become(plain)
    figure.become(go.Figure(drawing([7], height=300)))
    assert list(figure.data[0].y) == [7]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_traces_come_and_go(count):
    figure = LiveFigure(drawing([1], [2]))
    assert figure.become(drawing(*([n] for n in range(count)))) == (count != 2)
    assert [list(trace.y) for trace in figure.data] == [[n] for n in range(count)]


def test_a_trace_of_another_type_is_replaced_and_the_ones_before_it_stay():
    figure = LiveFigure(drawing([1], [2]))
    first = figure.data[0]
    mixed = {"data": [{"type": "scatter", "y": [1]}, {"type": "bar", "y": [3]}], "layout": {}}
    assert figure.become(mixed)
    assert figure.data[0] is first
    assert figure.data[1].type == "bar"


def test_a_property_that_is_gone_is_removed():
    figure = LiveFigure({"data": [{"type": "scatter", "y": [1], "name": "a"}], "layout": {}})
    figure.become(drawing([1]))
    assert figure.data[0].name is None


def test_the_readers_zoom_stays_until_the_drawing_itself_changes_the_axis():
    figure = LiveFigure(drawing([1, 2], xaxis={"range": [0, 10]}))
    figure.plotly_relayout({"xaxis.range": [4, 5]})
    figure.become(drawing([1, 3], xaxis={"range": [0, 10]}))
    assert tuple(figure.layout.xaxis.range) == (4, 5)
    figure.become(drawing([1, 3], xaxis={"range": [0, 20]}))
    assert tuple(figure.layout.xaxis.range) == (0, 20)


def test_shapes_may_grow_shrink_and_vanish():
    def with_shapes(*xs):
        return drawing([1], shapes=[{"type": "line", "x0": x} for x in xs])

    figure = LiveFigure(with_shapes(1))
    for xs in ((1, 2, 3), (2,), (), (4, 5)):
        figure.become(with_shapes(*xs))
        assert [shape.x0 for shape in figure.layout.shapes] == list(xs)


def test_a_forgotten_part_is_sent_again():
    figure = LiveFigure(drawing([1], shapes=[{"type": "line", "x0": 1}]))
    figure.layout.shapes[0].x0 = 9
    figure.become(drawing([1], shapes=[{"type": "line", "x0": 1}]))
    assert figure.layout.shapes[0].x0 == 9
    figure.forget("shapes")
    figure.become(drawing([1], shapes=[{"type": "line", "x0": 1}]))
    assert figure.layout.shapes[0].x0 == 1


def test_a_page_that_connects_later_gets_the_present_state():
    figure = LiveFigure(drawing([1, 2], title={"text": "before"}))
    figure.become(drawing([3, 4], title={"text": "after"}))
    state = figure.get_state()
    assert state["_widget_data"][0]["y"] == [3, 4]
    assert state["_widget_layout"]["title"]["text"] == "after"


def test_the_pages_report_of_defaults_changes_nothing():
    figure = LiveFigure(drawing([1, 2]))
    report = {"trace_deltas": [{"uid": "x", "visible": True}], "trace_edit_id": 0}
    figure.set_state({"_js2py_traceDeltas": report})
    assert figure.data[0].visible is None
