"""Block-hash traces in the format of Mooncake's published production traces.

One JSON object a line: ``timestamp`` (milliseconds), ``input_length`` and ``output_length``
(tokens), ``hash_ids`` (one id for each block of 512 tokens; an id stands for the block and all
before it). See https://github.com/kvcache-ai/Mooncake.
"""

from __future__ import annotations

from pathlib import Path

from sparselab.shipped_data import sample
from sparselab.validation import check_integer
from sparselab.workloads.block_trace import in_order_of_arrival, read_blocks
from sparselab.workloads.records import get_arrival, origin
from sparselab.workloads.workload import Request, Workload

SUMMARY = "Mooncake-style trace: hash_ids, 512 tokens a block, timestamp in ms"


def load(path: str | Path | None = None, block_size: int = 512, group_blocks: int = 2) -> Workload:
    """Read a trace; the shipped sample unless ``path`` is given.

    The trace names no sessions, so requests whose first ``group_blocks`` blocks agree form a
    group: with two, a common opening of one block does not join strangers. ``output_length`` is
    not needed and not read.
    """
    check_integer("group_blocks", group_blocks, minimum=1)
    file = sample("trace_mooncake.jsonl") if path is None else Path(path)
    requests = []
    groups: dict[tuple[int, ...], int] = {}  # opening blocks -> number of the group
    for where, record, ids, length in read_blocks(file, block_size):
        arrival = get_arrival(record, "timestamp", where, seconds=0.001)
        group = groups.setdefault(tuple(ids[:group_blocks].tolist()), len(groups))
        requests.append(Request(group, ids, length, arrival))
    name, source = origin(path, "mooncake", "sample trace (mooncake format)")
    return Workload(
        name=name,
        requests=in_order_of_arrival(requests),
        source=source,
        unit=block_size,
        provenance={"format": "mooncake", "granularity": f"blocks of {block_size} tokens"},
    )
