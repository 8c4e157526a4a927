"""What block-hash traces have in common: one JSON object a request, prompts as block ids.

``hash_ids`` names the blocks of a prompt, so that two prompts share as many leading blocks as
their lists begin alike. Depths measured on such a trace go by whole blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.files import read_json_lines
from sparselab.validation import check_token_count
from sparselab.workloads.records import get_field, get_ids
from sparselab.workloads.workload import Request


def read_blocks(
    file: Path, block_size: int
) -> Iterator[tuple[str, dict[str, Any], NDArray[np.int64], int]]:
    """Yield of each line its place for messages, the record, its block ids and length in tokens.

    Raises ``ValueError`` naming the line whose fields are missing or do not fit together.
    """
    check_token_count("block_size", block_size)
    for number, record in read_json_lines(file):
        where = f"{file}, line {number}"
        ids = get_ids(record, "hash_ids", where)
        yield where, record, *_block_ids(record, ids, block_size, number, where)


def _block_ids(
    record: dict[str, Any], ids: NDArray[np.int64], block_size: int, number: int, where: str
) -> tuple[NDArray[np.int64], int]:
    """Return the block ids of a request and its length in tokens, once they fit together.

    A trace may name every block or only the full ones; in the second case the last, partly filled
    block gets an id of its own, which no other request has.
    """
    length = get_field(record, "input_length", int, where)
    if length < 1:
        raise ValueError(f"{where}: 'input_length' must be at least 1, got {length}.")
    full, needed = length // block_size, -(-length // block_size)
    if ids.size not in (full, needed):
        raise ValueError(
            f"{where}: 'hash_ids' has {ids.size} blocks, but {length} tokens take {needed} "
            f"at {block_size} tokens a block: is the block size right?"
        )
    if ids.size < needed:
        # Counted up from the least integer, where no numbering of blocks begins.
        ids = np.append(ids, np.iinfo(np.int64).min + number)
    return ids, length


def in_order_of_arrival(requests: Iterable[Request]) -> list[Request]:
    """Return requests sorted by arrival, those of equal arrival in the order of the file."""
    return sorted(requests, key=lambda request: request.arrival)
