"""Any requests as JSON lines, one a line, for logs that have no format of their own.

A line has ``tokens`` (a list of token ids), ``text`` (a prompt to tokenise) or ``messages`` (a chat
to write in ChatML with the opening of the answer), the same one of the three on all lines, and may
have ``group`` (text or an integer) and ``arrival`` (seconds).

The bodies of requests to an OpenAI-style server are such lines with ``messages``. Nothing else of
them is read: their order is that of the file, and what a server adds to the prompt for ``tools``
is not counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.files import read_json_lines
from sparselab.shipped_data import sample
from sparselab.workloads.block_trace import in_order_of_arrival
from sparselab.workloads.chat_format import Encode, answer_ids, message_ids, read_messages
from sparselab.workloads.records import (
    check_keys,
    get_arrival,
    get_field,
    get_text,
    get_tokens,
    origin,
)
from sparselab.workloads.tokenizers import DEFAULT, get_tokenizer
from sparselab.workloads.workload import Request, Workload

SUMMARY = "JSON lines with tokens, text or messages a request, optional group and arrival"
CONTENT = ("tokens", "text", "messages")


def load(path: str | Path | None = None, tokenizer: str = DEFAULT) -> Workload:
    """Read a file; the shipped sample unless ``path`` is given.

    Requests without a ``group`` belong to none. Either all lines have an ``arrival`` or none has.
    Token ids are taken as they are, so ``tokenizer`` is then not used.
    """
    file = sample("requests.jsonl") if path is None else Path(path)
    requests: list[Request] = []
    first: tuple[str, bool] | None = None
    for number, record in read_json_lines(file):
        where = f"{file}, line {number}"
        check_keys(record, CONTENT, where)
        kind = next(key for key in CONTENT if key in record)
        form = (kind, "arrival" in record)
        if first is None:
            first = form
            encode = None if kind == "tokens" else get_tokenizer(tokenizer).encode
        _check_same_form(form, first, where)
        arrival = get_arrival(record, "arrival", where) if "arrival" in record else 0.0
        ids = _read_ids(record, kind, encode, where)
        requests.append(Request(_read_group(record, where), ids, arrival=arrival))
    name, source = origin(path, "jsonl", "sample requests")
    return Workload(
        name=name,
        requests=in_order_of_arrival(requests),
        source=source,
        tokenizer=None if first and first[0] == "tokens" else tokenizer,
        provenance={"format": "jsonl"},
    )


def _check_same_form(form: tuple[str, bool], first: tuple[str, bool], where: str) -> None:
    if form[0] != first[0]:
        raise ValueError(
            f"{where}: it has {form[0]!r} while the lines before have {first[0]!r}; "
            "a file must not mix them."
        )
    if form[1] != first[1]:
        raise ValueError(f"{where}: 'arrival' must be on all lines or on none.")


def _read_ids(
    record: dict[str, Any], kind: str, encode: Encode | None, where: str
) -> NDArray[np.int64]:
    if encode is None:
        return get_tokens(record, where)
    if kind == "text":
        return encode(get_text(record, "text", where))
    messages = read_messages(get_field(record, "messages", list, where), where)
    return np.concatenate([*(message_ids(m, encode) for m in messages), answer_ids(encode)])


def _read_group(record: dict[str, Any], where: str) -> str | int | None:
    group = record.get("group")
    if isinstance(group, bool) or not isinstance(group, (str, int, type(None))):
        raise ValueError(f"{where}: 'group' must be text or an integer, got {group!r}.")
    if group == "":
        raise ValueError(f"{where}: 'group' is empty; leave it out where there is none.")
    return group
