"""Block-hash traces in the format of the anonymised Qwen-Bailian usage traces.

One JSON object a line: ``chat_id`` and ``parent_chat_id`` (-1 for the first turn), ``timestamp``
(seconds), ``input_length`` (tokens), ``hash_ids`` (one id for each block of 16 tokens, of that
block alone). See https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
"""

from __future__ import annotations

from pathlib import Path

from sparselab.files import read_json_lines
from sparselab.shipped_data import sample
from sparselab.workloads.block_trace import block_ids, check_block_size, in_order_of_arrival
from sparselab.workloads.records import get_arrival, get_field, get_ids
from sparselab.workloads.workload import Request, Workload

SUMMARY = "Qwen-Bailian trace: hash_ids, 16 tokens a block, timestamp in s, chats by parent"


def load(path: str | Path | None = None, block_size: int = 16) -> Workload:
    """Read a trace; the shipped sample unless ``path`` is given.

    A group is a chat with all its turns, named by the id of its first one.
    """
    check_block_size(block_size)
    file = sample("trace_qwen_bailian.jsonl") if path is None else Path(path)
    requests = []
    first_of: dict[int, int] = {}  # chat id -> id of the chat's first request
    for number, record in read_json_lines(file):
        where = f"{file}, line {number}"
        ids, length = block_ids(
            record, get_ids(record, "hash_ids", where), block_size, number, where
        )
        chat = get_field(record, "chat_id", int, where)
        parent = get_field(record, "parent_chat_id", int, where)
        # A turn comes after its parent, so one look-up finds the first of the chat.
        known = parent if parent >= 0 else chat
        first_of[chat] = first_of.get(known, known)
        arrival = get_arrival(record, "timestamp", where)
        requests.append(Request(first_of[chat], ids, length, arrival))
    return Workload(
        name="qwen_bailian" if path is not None else "sample trace (qwen_bailian format)",
        requests=in_order_of_arrival(requests),
        source=str(file) if path is not None else "sample written for sparselab",
        unit=block_size,
        provenance={"format": "qwen_bailian", "granularity": f"blocks of {block_size} tokens"},
    )
