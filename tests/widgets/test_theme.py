"""One look for every policy, readable on light and on dark pages."""

from itertools import combinations

import plotly.graph_objects as go
import pytest

import sparselab as sl
from widgets import theme
from widgets.theme import OWN, POLICY_STYLES, policy_style

WHITE, DARK_PAGE = "#ffffff", "#111111"


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_policy_of_the_registry_has_a_style_of_its_own():
    assert set(sl.policies()) | {OWN} == set(POLICY_STYLES)


@pytest.mark.parametrize(("a", "b"), list(combinations(POLICY_STYLES, 2)))
def test_no_two_policies_look_alike_even_without_colour(a, b):
    one, other = policy_style(a), policy_style(b)
    assert (one.dash, one.marker) != (other.dash, other.marker)
    assert one.colour != other.colour or one.dash != other.dash


def test_a_registered_policy_always_gets_the_same_style():
    style = policy_style("somebody's policy")
    assert style == policy_style("somebody's policy")
    assert style.colour in theme.HUES
    assert style.dash in theme.DASHES
    assert style.marker in theme.MARKERS


def test_styles_are_ones_that_plotly_knows():
    for name in [*POLICY_STYLES, "a", "b", "c"]:
        style = policy_style(name)
        go.Scatter(line=style.line(), marker={"symbol": style.marker})


@pytest.mark.parametrize("page", [WHITE, DARK_PAGE])
def test_text_has_contrast_on_light_and_dark(page):
    assert contrast(theme.TEXT, page) > 4


@pytest.mark.parametrize("page", [WHITE, DARK_PAGE])
@pytest.mark.parametrize("name", POLICY_STYLES)
def test_lines_stand_out_on_light_and_dark(name, page):
    assert contrast(policy_style(name).colour, page) > 1.9


def test_figures_have_no_background_and_nothing_of_plotlys_own_template():
    figure = theme.apply(go.Figure(), height=300, title="A title")
    template = figure.layout.template.layout
    assert template.paper_bgcolor == template.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert figure.layout.template.data.to_plotly_json() == {}
    assert figure.layout.title.text == "A title"


def test_translucent_keeps_the_hue():
    assert theme.translucent("#0072B2", 0.5) == "rgba(0, 114, 178, 0.5)"
