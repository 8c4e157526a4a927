"""Loading by name, options, and recognising what a file is."""

from __future__ import annotations

import inspect

import pytest

from sparselab.shipped_data import sample
from sparselab.workloads import Workload, load, loaders, options, recognise


@pytest.mark.parametrize("name", sorted(loaders()))
def test_every_loader_works_offline_without_a_path(name):
    small = {key: 1 for key in ("documents", "groups") if key in options(name)}
    workload = load(name, **small)
    assert isinstance(workload, Workload)
    assert len(workload) > 0
    assert loaders()[name]


@pytest.mark.parametrize("name", sorted(loaders()))
def test_the_command_line_can_set_every_option(name):
    # Values arrive by keyword, so every option needs a default.
    assert inspect.Parameter.empty not in options(name).values()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("documents.jsonl", "quality"),
        ("stories", "narrativeqa"),
        ("system_prompts", "system_prompts"),
        ("chats.jsonl", "append_only_chat"),
        ("requests.jsonl", "jsonl"),
        ("trace_mooncake.jsonl", "mooncake"),
        ("trace_qwen_bailian.jsonl", "qwen_bailian"),
    ],
)
def test_samples_are_recognised_and_read_from_their_path(file, name):
    assert recognise(sample(file)) == name
    by_path, without = load(name, sample(file)), load(name)
    assert [r.length for r in by_path] == [r.length for r in without]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"prompt": "p", "tokens": [1]}, "system_prompts"),
        ({"tokens": [1]}, "jsonl"),
        ({"messages": [], "arrival": 0}, "jsonl"),
        ({"messages": []}, "append_only_chat"),
        ({"id": 1, "conversations": []}, "append_only_chat"),
        ({"input": "", "instructions": [], "outputs": []}, "quality"),
        ({"document": {}, "question": {}}, "narrativeqa"),
    ],
)
def test_formats_are_told_apart_by_their_keys(write_lines, record, name):
    assert recognise(write_lines(record)) == name


def test_what_is_unknown_is_named_with_the_nearest(write_lines):
    with pytest.raises(ValueError, match=r"unknown workload 'moonkake' \(did you mean 'mooncake'"):
        load("moonkake")
    with pytest.raises(ValueError, match=r"'tokeniser' \(did you mean 'tokenizer'\?\)"):
        load("quality", tokeniser="qwen3.5")
    with pytest.raises(TypeError, match="path must be the path of a file or folder, got 3"):
        load("quality", 3)
    with pytest.raises(ValueError, match="not recognised from its keys none"):
        recognise(write_lines({}))
    with pytest.raises(ValueError, match="not recognised from its keys colour"):
        recognise(write_lines({"colour": "blue"}))
    with pytest.raises(FileNotFoundError, match=r"no such file: nowhere\.jsonl"):
        recognise("nowhere.jsonl")
