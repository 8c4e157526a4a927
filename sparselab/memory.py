"""What retained prompts weigh: attention KV of every token, and recurrent state where it is kept.

Four ways to keep recurrent state beside the KV, from most to least (``LAYOUTS``):

- ``dense``: a checkpoint after every token, as attention KV is kept;
- ``block``: one at every multiple of a block size;
- ``sparse``: at most ``budget`` of them, wherever a policy puts them;
- ``kv_only``: none, and so nothing to resume a recurrent layer from.

All bytes follow from :class:`sparselab.architecture.HybridArchitecture`; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.architecture import HybridArchitecture
from sparselab.validation import (
    LARGEST_EXACT_INTEGER,
    check_choice,
    check_counts,
    check_instance,
    check_integer,
    check_token_count,
)

if TYPE_CHECKING:
    import pandas as pd

LAYOUTS = ("dense", "block", "sparse", "kv_only")
MIB, GIB = 2**20, 2**30


def checkpoint_count(
    layout: str, length: ArrayLike, block_size: int = 512, budget: int = 4
) -> NDArray[np.int64]:
    """Return how many checkpoints an entry of ``length`` tokens holds; vectorised in ``length``.

    ``block_size`` (tokens) counts for ``block``, ``budget`` (checkpoints) for ``sparse``. Raises
    ``ValueError`` for an unknown layout or a number out of range, ``TypeError`` for no integer.
    """
    check_choice("layout", layout, LAYOUTS)
    check_token_count("block_size", block_size)
    budget = check_integer("budget", budget, minimum=0)
    tokens = check_counts("length", length)
    return {
        "dense": tokens,
        "block": tokens // block_size,
        "sparse": np.minimum(tokens, min(budget, LARGEST_EXACT_INTEGER)),
        "kv_only": np.zeros_like(tokens),
    }[layout]


def entry_bytes(
    architecture: HybridArchitecture, length: ArrayLike, checkpoints: ArrayLike
) -> NDArray[np.int64]:
    """Return the bytes of an entry of ``length`` tokens with that many ``checkpoints``.

    Vectorised in both. Raises ``TypeError`` for no integers and ``ValueError`` for negative ones
    and for entries whose bytes 64 bits do not hold.
    """
    check_instance("architecture", architecture, HybridArchitecture)
    tokens, kept = check_counts("length", length), check_counts("checkpoints", checkpoints)
    per_token, each = architecture.kv_bytes_per_token, architecture.checkpoint_bytes
    # Python's integers: these do not overflow.
    longest, most = int(tokens.max(initial=0)), int(kept.max(initial=0))
    if longest * per_token + most * each > np.iinfo(np.int64).max:
        raise ValueError(
            "length and checkpoints must weigh less than 2**63 bytes, got up to "
            f"{longest} tokens and {most} checkpoints."
        )
    return tokens * per_token + kept * each


def break_even_length(architecture: HybridArchitecture, checkpoints: int) -> float:
    """Return the length, in tokens, at which the KV weighs as much as so many checkpoints.

    Shorter entries weigh mostly checkpoints, longer ones mostly KV. It is
    ``checkpoints * checkpoint_bytes / kv_bytes_per_token``; infinite without attention layers.
    """
    checkpoints = check_integer("checkpoints", checkpoints, 0, LARGEST_EXACT_INTEGER)
    return checkpoints * architecture.checkpoint_kv_tokens if checkpoints else 0.0


def layouts_table(
    architecture: HybridArchitecture,
    lengths: Iterable[int],
    block_size: int = 512,
    budget: int = 4,
    memory_bytes: int = GIB,
) -> pd.DataFrame:
    """Return one row a layout and length: what an entry weighs and how many fit.

    Columns: ``layout``, ``length`` (tokens), ``checkpoints``, ``kv_bytes``, ``checkpoint_bytes``,
    ``total_bytes``, ``entries`` (a real number: how many such entries ``memory_bytes`` hold,
    infinitely many that weigh nothing).
    """
    import pandas as pd

    check_integer("memory_bytes", memory_bytes, 1, LARGEST_EXACT_INTEGER)
    tokens = check_counts("lengths", list(lengths))
    frames = []
    for layout in LAYOUTS:
        count = checkpoint_count(layout, tokens, block_size, budget)
        total = entry_bytes(architecture, tokens, count)
        with np.errstate(divide="ignore"):
            entries = memory_bytes / total
        frames.append(
            pd.DataFrame(
                {
                    "layout": layout,
                    "length": tokens,
                    "checkpoints": count,
                    "kv_bytes": entry_bytes(architecture, tokens, 0),
                    "checkpoint_bytes": count * architecture.checkpoint_bytes,
                    "total_bytes": total,
                    "entries": entries,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def family_table(architectures: Iterable[HybridArchitecture]) -> pd.DataFrame:
    """Return one row a model: bytes of KV a token, of one checkpoint, and their ratio in tokens."""
    import pandas as pd

    return pd.DataFrame(
        {
            "model": a.name,
            "recurrent_layers": a.recurrent_layers,
            "attention_layers": a.attention_layers,
            "kv_bytes_per_token": a.kv_bytes_per_token,
            "checkpoint_bytes": a.checkpoint_bytes,
            "checkpoint_kv_tokens": a.checkpoint_kv_tokens,
        }
        for a in architectures
    )
