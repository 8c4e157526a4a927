"""Controls follow their trait and their trait follows them, whatever its value."""

import ipywidgets
import pytest
from traitlets import Float, HasTraits, Int, Tuple, Unicode

from widgets import controls


class Settings(HasTraits):
    count = Int(4)
    share = Float(0.5)
    step = Int(16)
    name = Unicode("a")
    shown = Tuple(default_value=("a", "c"))


@pytest.fixture
def settings():
    return Settings()


def make(settings, kind):
    return {
        "count": lambda: controls.integer(settings, "count", "Count", "How many.", 1, 9, unit="u"),
        "share": lambda: controls.number(settings, "share", "Share", "A part.", 0, 1, 0.1),
        "step": lambda: controls.steps(settings, "step", "Step", "A power of two.", (1, 16, 64)),
        "name": lambda: controls.choice(settings, "name", "Name", "Of a thing.", ["a", "b"]),
    }[kind]()


@pytest.mark.parametrize(
    ("trait", "shown", "set_by_hand", "beyond"),
    [
        ("count", 4, 7, 50),
        ("count", 4, 1, -3),
        ("share", 0.5, 0.25, 2.5),
        ("step", 16, 64, 100),
        ("name", "a", "b", "something else"),
    ],
)
def test_trait_and_control_agree_even_beyond_the_controls_range(
    settings, trait, shown, set_by_hand, beyond
):
    control = make(settings, trait)
    assert control.value == shown
    control.value = set_by_hand
    assert getattr(settings, trait) == set_by_hand
    setattr(settings, trait, beyond)
    assert getattr(settings, trait) == beyond
    assert control.value == beyond


@pytest.mark.parametrize(("trait", "value"), [("count", 50), ("step", 100), ("name", "new")])
def test_a_first_value_beyond_the_range_is_kept(trait, value):
    settings = Settings(**{trait: value})
    assert make(settings, trait).value == value
    assert getattr(settings, trait) == value


def test_options_with_texts_are_known_by_their_values(settings):
    control = controls.choice(
        settings, "name", "Name", "Of a thing.", [("First", "a"), ("Second", "b")]
    )
    settings.name = "b"
    assert control.label == "Second"
    assert len(control.options) == 2


def test_added_numbers_keep_their_order(settings):
    control = make(settings, "step")
    settings.step = 32
    assert list(control.options) == [1, 16, 32, 64]


def test_labels_have_units_and_help(settings):
    control = make(settings, "count")
    assert control.description == "Count (u)"
    assert control.tooltip == "How many."
    row = controls.row(control, controls.button("Go", "Starts it.", lambda: None))
    assert controls.help_texts(row) == ["Count (u): How many.", "Go: Starts it."]


def test_several_holds_the_chosen_ones_in_order(settings):
    group = controls.several(settings, "shown", "Shown", "Which.", ["a", "b", "c"])
    boxes = [child for child in group.children if isinstance(child, ipywidgets.Checkbox)]
    assert [box.value for box in boxes] == [True, False, True]
    boxes[1].value = True
    assert settings.shown == ("a", "b", "c")
    settings.shown = ("b",)
    assert [box.value for box in boxes] == [False, True, False]
    boxes[0].value = True
    assert settings.shown == ("a", "b")


def test_a_button_does_its_work():
    pressed = []
    controls.button("Go", "Starts it.", lambda: pressed.append(1)).click()
    assert pressed == [1]
