"""YAML as a sweep file has it: nothing is lost silently, and numbers are numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparselab.batch.yaml_file import load_yaml


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes its YAML."""
    return tmp_path / "sweep.yaml"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 1e5),
        ("-2.5e+3", -2500.0),
        ("+1.e2", 100.0),
        ("0.5", 0.5),
        ("12", 12),
        ("'1e-3'", "1e-3"),
        ("1e", "1e"),
        ("e-3", "e-3"),
        ("1e-3x", "1e-3x"),
        ("2026-01-01x", "2026-01-01x"),
    ],
)
def test_numbers_are_read_as_in_yaml_1_2(file: Path, text: str, value: Any) -> None:
    file.write_text(f"rate: {text}")
    read = load_yaml(file)["rate"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: not valid YAML (the key 'a' is there twice)"),
        ("a:\n  - {b: 1, c: 2, b: 3}", "line 2: not valid YAML (the key 'b' is there twice)"),
        ("runs: [", "line 1: not valid YAML"),
        ("a: " + "[" * 20000, "not valid YAML (nested too deeply)"),
        ("a: " + "9" * 5000, "not valid YAML (Exceeds the limit"),
        ("a: 2026-99-99", "not valid YAML (month must be in 1..12"),
        ("- a", "a mapping with the key 'runs' is expected"),
        ("", "a mapping with the key 'runs' is expected"),
    ],
)
def test_what_cannot_be_read_is_named_in_one_sentence(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ValueError, match=r"sweep\.yaml") as caught:
        load_yaml(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_may_overrule_one_that_is_merged_in(file: Path) -> None:
    file.write_text("base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  a: 3")
    assert load_yaml(file)["mine"] == {"a": 3, "b": 2}


def test_what_was_merged_may_be_merged_again(file: Path) -> None:
    file.write_text(
        "deep: [&base {size: 1, rate: 2}, [&mine {<<: *base, size: 3}]]\nlast: {<<: *mine}\n"
    )
    read = load_yaml(file)
    assert read["deep"] == [{"size": 1, "rate": 2}, [{"size": 3, "rate": 2}]]
    assert read["last"] == {"size": 3, "rate": 2}
