"""Plain JSON lines with tokens, text or messages."""

from __future__ import annotations

import pytest

from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer


def test_tokens_are_taken_as_they_are(write_lines):
    workload = load("jsonl", write_lines({"tokens": [4, 5], "group": "g"}, {"tokens": [4]}))
    assert [r.tokens.tolist() for r in workload] == [[4, 5], [4]]
    assert [r.group for r in workload] == ["g", None]
    assert workload.tokenizer is None


def test_text_and_messages_are_tokenised(write_lines):
    encode = get_tokenizer().encode
    (text,) = load("jsonl", write_lines({"text": "A heron."})).requests
    assert text.tokens.tolist() == encode("A heron.").tolist()
    (chat,) = load("jsonl", write_lines({"messages": [{"role": "user", "content": "Hi"}]})).requests
    whole = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert chat.tokens.tolist() == encode(whole).tolist()


def test_requests_are_in_order_of_arrival(write_lines):
    file = write_lines({"tokens": [1], "arrival": 5}, {"tokens": [2], "arrival": 0.5})
    assert [(r.tokens[0], r.arrival) for r in load("jsonl", file)] == [(2, 0.5), (1, 5.0)]


def test_the_sample_has_two_groups_and_arrivals():
    workload = load("jsonl")
    assert len({r.group for r in workload}) == 2
    assert workload.requests[-1].arrival > 0


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "a"}, "it has 'text' while the lines before have 'tokens'"),
        ({"tokens": [1]}, "'arrival' must be on all lines or on none"),
        ({"tokens": [1], "arrival": -1}, "'arrival' must be finite and not negative, got -1"),
        ({"tokens": [1], "arrival": "noon"}, "'arrival' must be a number, got 'noon'"),
        ({"tokens": [], "arrival": 1}, "'tokens' is empty"),
        ({"tokens": [True], "arrival": 1}, "'tokens' must be a list of integers"),
        ({"tokens": [*range(99), 4.0], "arrival": 1}, r"must be a list of integers .*, got 4\.0"),
        ({"tokens": [-1, 2**63], "arrival": 1}, r"must be a list of integers .*, got \[-1, 9223"),
        ({"tokens": [2**70], "arrival": 1}, "'tokens' must be a list of integers"),
        ({"tokens": [3, -2], "arrival": 1}, r"'tokens' must be token ids in .*, got -2"),
        ({"tokens": [2**63], "arrival": 1}, r"'tokens' must be token ids in .*, got 92233720368"),
        ({"tokens": [1], "arrival": 10**400}, "'arrival' is too large, got 1000"),
        ({"tokens": [1], "arrival": 1, "group": ""}, "'group' is empty"),
        ({"tokens": [1], "arrival": 1, "group": []}, "'group' must be text or an integer"),
        ({"ids": [1]}, "one of the keys tokens, text, messages is needed, found: ids"),
        ([1, 2], "a JSON object is expected, got list"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write_lines, record, message):
    with pytest.raises(ValueError, match=rf"file\.jsonl, line 2: .*{message}"):
        load("jsonl", write_lines({"tokens": [1], "arrival": 0}, record))
