"""Chats as text: how messages become token ids.

Messages are written in ChatML, the format of the Qwen models: ``<|im_start|>role``, a line break,
the content, ``<|im_end|>`` and a line break. Each piece is tokenised apart, so that a longer chat
always extends a shorter one, whatever the tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}

Encode = Callable[[str], NDArray[np.int64]]


class Message(NamedTuple):
    """One message of a chat; ``role`` is system, user, assistant or tool."""

    role: str
    content: str


def read_messages(items: Sequence[Any], where: str) -> list[Message]:
    """Return messages from ``{"role", "content"}`` or ShareGPT's ``{"from", "value"}`` objects."""
    if not items:
        raise ValueError(f"{where}: the chat has no message.")
    messages = []
    for number, item in enumerate(items, start=1):
        place = f"{where}, message {number}"
        if not isinstance(item, dict):
            raise ValueError(f"{place}: an object is expected, got {type(item).__name__}.")
        role = named_role(item)
        if role not in ROLES:
            raise ValueError(f"{place}: the role must be one of {', '.join(ROLES)}, got {role!r}.")
        content = item.get("content", item.get("value"))
        if content is None and ROLES[role] == "assistant":
            content = ""  # one that only calls a tool says nothing
        messages.append(Message(ROLES[role], _as_text(content, place)))
    return messages


def named_role(item: Mapping[str, Any]) -> str:
    """Return the role that a message names, which need not be one of :data:`ROLES`."""
    return str(item.get("role", item.get("from")))


def _as_text(content: Any, place: str) -> str:
    """Return a message's content, joining the text parts where it comes in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{place}: the content must be text or a list of text parts.")
    return "".join(map(str, texts))


def message_ids(message: Message, encode: Encode) -> NDArray[np.int64]:
    """Return the ids of one whole message."""
    return encode(f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n")


def answer_ids(encode: Encode) -> NDArray[np.int64]:
    """Return the ids that ask the assistant to answer."""
    return encode("<|im_start|>assistant\n")
