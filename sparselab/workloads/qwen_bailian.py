"""Block-hash traces in the format of the anonymised Qwen-Bailian usage traces.

One JSON object a line: ``chat_id`` and ``parent_chat_id`` (-1 for the first turn), ``timestamp``
(seconds), ``input_length`` (tokens), ``hash_ids`` (one id for each block of 16 tokens, of that
block alone). See https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
"""

from __future__ import annotations

from pathlib import Path

from sparselab.shipped_data import sample
from sparselab.workloads.block_trace import in_order_of_arrival, read_blocks
from sparselab.workloads.records import get_arrival, get_field, origin
from sparselab.workloads.workload import Request, Workload

SUMMARY = "Qwen-Bailian trace: hash_ids, 16 tokens a block, timestamp in s, chats by parent"


def load(path: str | Path | None = None, block_size: int = 16) -> Workload:
    """Read a trace; the shipped sample unless ``path`` is given.

    A group is a chat with all its turns, named by the id of its first one.
    """
    file = sample("trace_qwen_bailian.jsonl") if path is None else Path(path)
    requests = []
    first_of: dict[int, int] = {}  # chat id -> id of the chat's first request
    for where, record, ids, length in read_blocks(file, block_size):
        chat = get_field(record, "chat_id", int, where)
        parent = get_field(record, "parent_chat_id", int, where)
        # A turn comes after its parent, so one look-up finds the first of the chat.
        known = parent if parent >= 0 else chat
        first_of[chat] = first_of.get(known, known)
        arrival = get_arrival(record, "timestamp", where)
        requests.append(Request(first_of[chat], ids, length, arrival))
    name, source = origin(path, "qwen_bailian", "sample trace (qwen_bailian format)")
    return Workload(
        name=name,
        requests=in_order_of_arrival(requests),
        source=source,
        unit=block_size,
        provenance={"format": "qwen_bailian", "granularity": f"blocks of {block_size} tokens"},
    )
