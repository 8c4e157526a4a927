"""Chats: every user turn is a request that extends the one before."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "What is a tide?"},
    {"role": "assistant", "content": "The sea, breathing."},
]
SHARE_GPT = {
    "id": "x",
    "conversations": [
        {"from": "system", "value": "Be kind."},
        {"from": "human", "value": "Hello"},
        {"from": "gpt", "value": "Hello!"},
        {"from": "human", "value": "What is a tide?"},
        {"from": "gpt", "value": "The sea, breathing."},
    ],
}
FIRST = (
    "<|im_start|>system\nBe kind.<|im_end|>\n"
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
)
SECOND = (
    FIRST + "Hello!<|im_end|>\n<|im_start|>user\nWhat is a tide?<|im_end|>\n<|im_start|>assistant\n"
)


def write_json(tmp_path, value):
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(value))
    return path


def test_openai_style_lines_and_sharegpt_style_lists_give_the_same(tmp_path, write_lines):
    expected = [get_tokenizer().encode(text).tolist() for text in (FIRST, SECOND)]
    for path in (
        write_lines({"messages": MESSAGES}),
        write_json(tmp_path, [SHARE_GPT]),
        write_lines(SHARE_GPT, name="lines.jsonl"),
    ):
        assert [r.tokens.tolist() for r in load("append_only_chat", path)] == expected


def test_each_request_is_a_prefix_of_the_next_and_shares_its_memory():
    workload = load("append_only_chat")
    for earlier, later in zip(workload.requests, workload.requests[1:], strict=False):
        if earlier.group == later.group:
            assert later.length > earlier.length
            assert np.array_equal(later.tokens[: earlier.length], earlier.tokens)
            assert np.shares_memory(later.tokens, earlier.tokens)


def test_the_overlap_of_a_turn_is_the_whole_previous_prompt():
    workload = load("append_only_chat")
    overlaps = workload.overlap_samples()
    turns = 0
    for number in range(1, len(workload)):
        earlier, later = workload.requests[number - 1 : number + 1]
        if earlier.group == later.group:
            assert overlaps[number] == earlier.length
            turns += 1
    assert turns > 10


def test_several_user_messages_in_a_row_are_one_turn(write_lines):
    messages = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    assert len(load("append_only_chat", write_lines({"messages": messages}))) == 1


def test_content_in_parts_is_joined(write_lines):
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    joined = [{"role": "user", "content": parts}]
    plain = [{"role": "user", "content": "Hello"}]
    first, second = load("append_only_chat", write_lines({"messages": joined}, {"messages": plain}))
    assert first.tokens.tolist() == second.tokens.tolist()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"messages": []}, "the chat has no message"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "the chat has no user turn"),
        ({"messages": [{"role": "pirate", "content": "Arr"}]}, "message 1: the role must be one"),
        ({"messages": [{"role": "user"}]}, "message 1: the content must be text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            "must be text or a list",
        ),
        ({"messages": ["Hello"]}, "message 1: an object is expected, got str"),
        ({"messages": "Hello"}, "'messages' must be a list"),
        ({"dialog": []}, "one of the keys messages, conversations, conversation is needed"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write_lines, record, message):
    with pytest.raises(ValueError, match=rf"file\.jsonl, line 2.*{message}"):
        load("append_only_chat", write_lines({"messages": MESSAGES}, record))


def test_a_broken_or_empty_list_is_refused(tmp_path):
    path = tmp_path / "chats.json"
    path.write_text('[\n{"messages": }\n]')
    with pytest.raises(ValueError, match=r"chats\.json, line 2: not valid JSON"):
        load("append_only_chat", path)
    path.write_text('[{"messages":\n' + "[" * 100_000)
    with pytest.raises(ValueError, match=r"chats\.json, line 1: not valid JSON .nested too deeply"):
        load("append_only_chat", path)
    with pytest.raises(ValueError, match="holds an empty list"):
        load("append_only_chat", write_json(tmp_path, []))
