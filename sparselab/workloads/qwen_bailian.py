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

    A group is a chat with all its turns, named by the id of its first one, or of the earliest that
    a turn names where that one is not in the file. Turns may stand in any order.
    """
    file = sample("trace_qwen_bailian.jsonl") if path is None else Path(path)
    parents: dict[int, int] = {}
    turns = []
    for where, record, ids, length in read_blocks(file, block_size):
        chat = get_field(record, "chat_id", int, where)
        parent = get_field(record, "parent_chat_id", int, where)
        if parents.setdefault(chat, parent) != parent:
            raise ValueError(
                f"{where}: chat {chat} has the parent {parent}, but {parents[chat]} further up."
            )
        turns.append((chat, ids, length, get_arrival(record, "timestamp", where)))
    first = _first_turns(parents, file)
    requests = [Request(first[chat], ids, length, arrival) for chat, ids, length, arrival in turns]
    name, source = origin(path, "qwen_bailian", "sample trace (qwen_bailian format)")
    return Workload(
        name=name,
        requests=in_order_of_arrival(requests),
        source=source,
        unit=block_size,
        provenance={"format": "qwen_bailian", "granularity": f"blocks of {block_size} tokens"},
    )


def _first_turns(parents: dict[int, int], file: Path) -> dict[int, int]:
    """Return the first turn of every turn's chat, given the turn before each (below 0: none)."""
    first: dict[int, int] = {}
    for chat in parents:
        turn, later = chat, {}
        while turn not in first and parents.get(turn, -1) >= 0:
            if turn in later:
                raise ValueError(f"{file}: chat {turn} comes before itself by 'parent_chat_id'.")
            later[turn] = parents[turn]
            turn = parents[turn]
        known = first.get(turn, turn)
        first.update(dict.fromkeys([turn, *later], known))
    return first
