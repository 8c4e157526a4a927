"""`import widgets` is cheap, and everything that it names is there."""

import subprocess
import sys

import pytest

import widgets


@pytest.mark.parametrize("name", widgets.__all__)
def test_every_name_can_be_imported(name):
    assert callable(getattr(widgets, name))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Explorer'"):
        _ = widgets.Explorer


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import widgets", ("plotly", "ipywidgets", "torch", "pandas")),
        ("from widgets import show", ("ipywidgets", "torch")),
        ("from widgets import PlacementExplorer", ("torch", "transformers")),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement, absent):
    code = f"{statement}\nimport sys\nprint([m for m in {absent} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
