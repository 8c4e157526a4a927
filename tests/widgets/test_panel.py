"""What every panel does: draws, redraws, says what is wrong, recovers, exports."""

import json
import time

import plotly.graph_objects as go
import pytest

from widgets import theme
from widgets.display import PLOTLY_MIME


def test_static_is_a_plain_figure(squares):
    figure = squares.static()
    assert type(figure) is go.Figure
    assert list(figure.data[0].y) == [0, 1, 4, 9]


def test_an_unknown_parameter_is_refused_by_name(squares):
    with pytest.raises(TypeError, match="no parameter 'size'; it has count, shift"):
        type(squares)(size=3)


def test_nothing_is_computed_before_it_is_needed(squares):
    squares.count = 5
    squares.count = 6
    assert squares.computed == 0
    assert squares.result[-1] == 25
    assert squares.computed == 1


def test_a_change_redraws_in_place(squares):
    _ = squares.view
    trace = squares.figure.data[0]
    squares.count = 6
    assert squares.figure.data[0] is trace
    assert list(trace.y) == [0, 1, 4, 9, 16, 25]


def test_control_and_parameter_follow_each_other(squares):
    slider = next(child for child in squares.view.children if hasattr(child, "min"))
    slider.value = 7
    assert squares.count == 7
    squares.count = 3
    assert slider.value == 3
    assert slider.description == "Count (pieces)"
    assert "How many squares." in squares.view.children[0].value


def test_several_changes_together_redraw_once(squares):
    _ = squares.view
    before = squares.computed
    with squares.together():
        squares.count = 2
        squares.shift = 10
    assert squares.computed == before + 1
    assert list(squares.figure.data[0].y) == [10, 11]


def test_a_picture_that_takes_long_is_dimmed_until_it_is_there(squares, monkeypatch):
    view, compute, dimmed = squares.view, squares.compute, []

    def slow(parameters):
        deadline = time.monotonic() + 10
        while theme.COMPUTING not in view._dom_classes and time.monotonic() < deadline:
            time.sleep(0.01)
        dimmed.append(theme.COMPUTING in view._dom_classes)
        return compute(parameters)

    monkeypatch.setattr("widgets.panel.PATIENCE_S", 0.01)
    monkeypatch.setattr(squares, "compute", slow)
    squares.count = 5
    assert dimmed == [True]
    assert theme.COMPUTING not in view._dom_classes


def test_an_error_is_shown_leaves_the_picture_and_goes_away(squares):
    view = squares.view
    with pytest.raises(ValueError, match="must not be 13"):
        squares.count = 13
    assert squares.error == "count must not be 13, got 13."
    line = next(c for c in view.children if "sparselab-error" in str(getattr(c, "value", "")))
    assert 'role="alert"' in line.value
    assert "count must not be 13, got 13." in line.value
    assert list(squares.figure.data[0].y) == [0, 1, 4, 9]
    squares.count = 2
    assert squares.error == ""
    assert "must not" not in line.value
    assert list(squares.figure.data[0].y) == [0, 1]


def test_outside_of_tests_bad_input_does_not_raise_but_a_defect_does(squares, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    _ = squares.view
    squares.count = 13
    assert squares.error == "count must not be 13, got 13."
    with pytest.raises(KeyError):
        squares.count = 14
    assert squares.error == "KeyError: 'a defect'"


def test_a_panel_with_bad_settings_still_opens(squares, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    panel = type(squares)(count=13)
    assert panel.view
    assert panel.error == "count must not be 13, got 13."
    assert "The picture shows" not in panel._error_line.value
    panel.count = 3
    assert list(panel.figure.data[0].y) == [0, 1, 4]
    panel.count = 13
    assert "The picture shows the last settings that worked." in panel._error_line.value


def test_the_code_line_shows_the_present_settings_escaped(squares):
    _ = squares.view
    squares.shift = 5
    assert "[n * n + 5 for n in range(4)]" in squares._code_line.value
    assert eval(squares.code(squares.parameters())) == squares.result


def test_it_displays_as_a_widget_and_shows_its_picture_headless(squares, capsys):
    bundle = squares._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    squares.show(live=False)
    assert PLOTLY_MIME in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["html", "csv"])
def test_export_writes_what_needs_no_browser(squares, tmp_path, kind):
    path = squares.export(tmp_path / "new folder" / f"picture.{kind}")
    text = path.read_text(encoding="utf-8")
    if kind == "csv":
        assert text.split() == ["square", "0", "1", "4", "9"]
    else:
        assert "Plotly.newPlot" in text
        assert 'src="http' not in text


def test_export_to_another_format_is_refused(squares, tmp_path):
    with pytest.raises(ValueError, match=r"unknown format 'pgn' \(did you mean 'png'\?\)"):
        squares.export(tmp_path / "picture.pgn")


def test_export_without_a_browser_says_what_to_install(squares, tmp_path, monkeypatch):
    def no_browser(*_args, **_options):
        raise RuntimeError("Chrome not found")

    monkeypatch.setattr(go.Figure, "to_image", no_browser)
    with pytest.raises(RuntimeError, match=r"kaleido and Chrome or Chromium.*Chrome not found"):
        squares.export(tmp_path / "picture.svg")
    assert list(tmp_path.iterdir()) == []


def test_save_button_says_where_it_saved(squares, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = squares.view.children[-1]
    kind, button, message = row.children
    kind.value = "CSV"
    button.click()
    assert (tmp_path / "exports" / "Squares.csv").exists()
    assert str(tmp_path) in message.value


def test_plain_bundle_leaves_plotly_js_to_the_page(squares):
    from widgets.display import mime_bundle

    bundle = mime_bundle(squares.static())
    assert set(bundle) == {PLOTLY_MIME, "text/html", "text/plain"}
    assert len(json.dumps(bundle)) < 10_000
    assert "http" not in bundle["text/html"]


def test_no_figure_offers_to_send_its_data_to_a_server(squares, tmp_path):
    from widgets.display import mime_bundle

    bundle = mime_bundle(squares.static())
    assert bundle[PLOTLY_MIME]["config"]["showSendToCloud"] is False
    assert '"showSendToCloud": false' in bundle["text/html"]
    assert squares.view is not None  # makes the live figure
    assert squares.figure._config["showSendToCloud"] is False
    assert '"showSendToCloud": false' in squares.export(tmp_path / "page.html").read_text()
