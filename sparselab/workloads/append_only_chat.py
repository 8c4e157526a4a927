"""Append-only chats: each user turn is a request that extends the previous one.

Two formats: ShareGPT-style JSON, a list of ``{"id", "conversations": [{"from", "value"}]}`` (or the
same one a line), and OpenAI-style JSON lines, ``{"messages": [{"role", "content"}]}``.

Each line is a whole chat. A log of a server's requests, whose every line repeats the chat so far,
is for the loader ``jsonl``, which takes a line as one request.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.files import open_text, parse_json, read_json_lines
from sparselab.shipped_data import sample
from sparselab.workloads.chat_format import (
    Encode,
    Message,
    answer_ids,
    message_ids,
    read_messages,
)
from sparselab.workloads.records import check_keys, get_field, origin
from sparselab.workloads.tokenizers import DEFAULT, get_tokenizer
from sparselab.workloads.workload import Request, Workload

SUMMARY = "append-only chats: ShareGPT-style JSON or OpenAI-style JSONL, a request a user turn"


def load(path: str | Path | None = None, tokenizer: str = DEFAULT) -> Workload:
    """Read chats; the shipped sample unless ``path`` is given. A group is a chat.

    The request of a user turn holds all messages up to it and the opening of the answer; the next
    one adds the answer that the file has, and the next question. Chats without a user turn are
    refused. Requests come chat by chat (see :meth:`Workload.interleave`).
    """
    encode = get_tokenizer(tokenizer).encode
    file = sample("chats.jsonl") if path is None else Path(path)
    requests: list[Request] = []
    chats = 0
    for where, messages in _read_chats(file):
        prompts = list(turn_prompts(messages, encode))
        if not prompts:
            raise ValueError(f"{where}: the chat has no user turn.")
        requests += [Request(f"chat {chats}", prompt) for prompt in prompts]
        chats += 1
    name, source = origin(path, "append_only_chat", "sample chats")
    return Workload(
        name=name,
        requests=requests,
        source=source,
        tokenizer=tokenizer,
        provenance={"format": "append_only_chat", "chats": chats, "template": "ChatML"},
    )


def turn_prompts(messages: list[Message], encode: Encode) -> Iterator[NDArray[np.int64]]:
    """Yield the prompt of every user turn; all share the memory of the longest one.

    After its question each prompt has the opening of the answer, which the answer then repeats,
    so that one prompt is a prefix of the next.
    """
    opening = answer_ids(encode)
    pieces: list[NDArray[np.int64]] = []
    ends: list[int] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            # The opening apart from the rest, exactly as the prompt before it had it.
            pieces += [opening, encode(f"{message.content}<|im_end|>\n")]
            continue
        pieces.append(message_ids(message, encode))
        last_of_turn = number + 1 == len(messages) or messages[number + 1].role == "assistant"
        if message.role == "user" and last_of_turn:
            ends.append(sum(piece.size for piece in pieces) + opening.size)
    if not ends:
        return
    whole = np.concatenate([*pieces, opening])
    whole.setflags(write=False)
    for end in ends:
        yield whole[:end]


def _read_chats(file: Path) -> Iterator[tuple[str, list[Message]]]:
    for where, chat in read_objects(file):
        check_keys(chat, ("messages", "conversations", "conversation"), where)
        key = next(k for k in ("messages", "conversations", "conversation") if k in chat)
        yield where, read_messages(get_field(chat, key, list, where), where)


def is_json_list(file: Path) -> bool:
    """Return whether a file begins as a JSON list does.

    Raises ``ValueError`` for a pipe, which can be read only once: here or by a loader.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        raise ValueError(f"{file} is a pipe or a device: save what it holds as a file first.")
    with open_text(file) as stream:
        return stream.read(4096).lstrip().startswith("[")


def read_objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSON list, or of JSON lines, each with its place for messages."""
    if not is_json_list(file):
        for number, record in read_json_lines(file):
            yield f"{file}, line {number}", record
        return
    with open_text(file) as stream:
        chats = parse_json(stream.read(), file)
    if not chats:
        raise ValueError(f"{file} holds an empty list: at least one chat is expected.")
    for number, chat in enumerate(chats, start=1):
        if not isinstance(chat, dict):
            raise ValueError(f"{file}, chat {number}: an object is expected.")
        yield f"{file}, chat {number}", chat
