"""Loading by name, options, and recognising what a file is."""

from __future__ import annotations

import inspect
import json
import os
import sys

import pytest

from sparselab.shipped_data import sample
from sparselab.workloads import Workload, load, loaders, options, recognise

ASKED = {"role": "user", "content": "Why?"}
ANSWERED = {"role": "assistant", "content": "Because."}


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
        ({"prompt": "Tell me why.", "tokens": [1, 2, 3], "group": "g"}, "jsonl"),
        ({"messages": [ASKED, ANSWERED]}, "append_only_chat"),
        ({"messages": [{"from": "human"}, {"from": "gpt"}]}, "append_only_chat"),
        ({"messages": [ASKED], "model": "m", "temperature": 0}, "jsonl"),
        ({"messages": [ASKED, ANSWERED, ASKED], "model": "m", "stream": True}, "jsonl"),
        ({"id": 1, "conversations": []}, "append_only_chat"),
        ({"input": "", "instructions": [], "outputs": []}, "quality"),
        ({"document": {}, "question": {}}, "narrativeqa"),
    ],
)
def test_formats_are_told_apart_by_their_keys(write_lines, record, name):
    assert recognise(write_lines(record)) == name


def test_a_log_of_request_bodies_is_one_request_a_line(write_lines):
    turns = [[ASKED], [ASKED, ANSWERED, ASKED], [ASKED, ANSWERED, ASKED, ANSWERED, ASKED]]
    file = write_lines(*({"model": "m", "messages": messages} for messages in turns))
    workload = load(recognise(file), file)
    assert len(workload) == 3
    lengths = workload.lengths().tolist()
    # Each body repeats the one before and goes on from its opening of the answer.
    assert workload.overlap_samples().tolist() == [0, *lengths[:2]]


@pytest.mark.parametrize(
    ("records", "formats"),
    [
        ([{"messages": [ASKED]}], ("jsonl", "append_only_chat")),
        ([{"messages": [ASKED, ANSWERED], "model": "m"}], ("jsonl", "append_only_chat")),
        ([{"messages": [ASKED, ANSWERED]}, {"messages": [ASKED]}], ("jsonl", "append_only_chat")),
        ([{"messages": []}], ("jsonl", "append_only_chat")),
        ([{"prompt": "Tell me why.", "tokens": [1, 2, 3]}], ("jsonl", "system_prompts")),
        ([{"prompt": "Hi", "tokens": [1]}, {"prompt": "Hi", "tokens": [1]}], ("system_prompts",)),
    ],
)
def test_what_could_be_two_formats_is_not_guessed(write_lines, records, formats):
    with pytest.raises(ValueError, match="name the one that is meant") as caught:
        recognise(write_lines(*records))
    assert all(f"format {name}" in str(caught.value) for name in formats)


@pytest.mark.parametrize(
    "record",
    [
        {"article": "News.", "highlights": "Short."},
        {"instructions": "Do.", "input": ""},
        {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {}},
    ],
)
def test_a_foreign_file_that_shares_a_key_is_not_taken_for_one_of_ours(write_lines, record):
    with pytest.raises(ValueError, match="the format is not recognised from its keys"):
        recognise(write_lines(record))


def test_requests_in_a_json_list_are_refused_and_chats_are_not(write_lines):
    chats = [{"messages": [ASKED, ANSWERED]}, {"messages": [ASKED, ANSWERED]}]
    assert recognise(write_lines(json.dumps(chats))) == "append_only_chat"
    with pytest.raises(ValueError, match=r"is a JSON list, .* write one object a line for jsonl"):
        recognise(write_lines(json.dumps([{"model": "m", "messages": [ASKED]}])))


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_is_refused_since_it_can_be_read_only_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is a pipe or a device: save what it holds"):
        recognise(tmp_path / "pipe")


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
