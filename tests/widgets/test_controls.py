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
    assert control.tooltip == "How many. From 1 to 9."
    row = controls.row(control, controls.button("Go", "Starts it.", lambda: None))
    assert controls.help_texts(row) == ["Count (u): How many. From 1 to 9.", "Go: Starts it."]


def test_the_help_of_a_slider_says_its_range_and_its_steps(settings):
    settings.count = 200_000
    wide = controls.integer(settings, "count", "Count", "How many.", 64, 131_072, step=64)
    assert wide.help_text == "Count: How many. From 64 to 200,000 in steps of 64."
    assert make(settings, "share").help_text.endswith(" From 0 to 1.")
    follows = controls.integer(settings, "count", "Count", "How many.", 0, 0)
    assert follows.help_text == "Count: How many."
    assert make(settings, "step").help_text == "Step: A power of two."


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


def test_several_has_boxes_for_what_was_asked_for_beyond_the_options(settings):
    settings.shown = ("z", "a")
    group = controls.several(settings, "shown", "Shown", "Which.", ["a", "b", "c"])

    def box(option):
        return next(child for child in group.children if child.description == option)

    box("b").value = True
    assert settings.shown == ("a", "b", "z")
    settings.shown = ("y",)
    assert box("y").value
    assert not box("z").value
    box("z").value = True
    assert settings.shown == ("z", "y")


def test_bars_and_their_trait_follow_each_other_however_high_and_many(settings):
    settings.shown = (5, 1, 0.5)
    group = controls.bars(settings, "shown", "Weights", "Of each.")
    bars = group.children[1:]
    assert [(bar.value, bar.max) for bar in bars] == [(5, 5), (1, 5), (0.5, 5)]
    bars[1].value = 2
    assert settings.shown == (5, 2, 0.5)
    settings.shown = (0.25, 0.5, 0.75)
    assert [bar.value for bar in bars] == [0.25, 0.5, 0.75]
    settings.shown = (1, 2)
    assert [bar.value for bar in group.children[1:]] == [1, 2]
    group.children[1].value = 1.5
    assert settings.shown == (1.5, 2)


def test_a_control_is_shown_while_it_has_a_meaning(settings):
    control = controls.visible_while(
        settings, "name", lambda: settings.name == "b", make(settings, "count")
    )
    assert control.layout.display == "none"
    settings.name = "b"
    assert control.layout.display is None


def test_a_button_does_its_work():
    pressed = []
    controls.button("Go", "Starts it.", lambda: pressed.append(1)).click()
    assert pressed == [1]
