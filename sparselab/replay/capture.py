"""Capture: prefill a prompt once and keep its KV and recurrent checkpoints."""

from __future__ import annotations

from typing import Any

import torch

from sparselab.replay import state
from sparselab.replay.devices import Stopwatch, check_fits
from sparselab.replay.entry import Entry, as_positions
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import CheckpointWriter
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.tokens import as_tokens

CHUNK = 512
# Checkpoints are kept in host memory whatever the device.
HOST = torch.device("cpu")


def capture(model: ReplayModel, tokens: Any, positions: Any, chunk: int = CHUNK) -> Entry:
    """Prefill ``tokens`` once, cutting calls at the grid and at ``positions``.

    Args:
        model: from :func:`sparselab.replay.load_model`.
        tokens: one prompt, a 1-D sequence of token ids (list, array or tensor).
        positions: where to keep the recurrent state, in ``1..len(tokens)``: integers or a
            ``Schedule``. Position ``c`` is the state after the first ``c`` tokens.
        chunk: tokens a call at most; calls end at its absolute multiples.

    Returns:
        An :class:`~sparselab.replay.entry.Entry`; everything in it has arrived in memory.

    Raises:
        TypeError, ValueError: for a batch, an empty prompt, token ids outside the vocabulary,
            positions outside the prompt, a chunk below 1, or more than fits in memory.
    """
    tokens = as_tokens(tokens, model.vocab_size)
    wanted = as_positions(positions, tokens.size)
    cuts = cut_plan(0, tokens.size, chunk, wanted)
    check_capture_fits(model, tokens.size, len(wanted))
    watch = Stopwatch(model.device)
    writer = CheckpointWriter(model.device)
    cache = state.new_cache(model.config)
    logits, checkpoints = prefill(model, cache, tokens, 0, cuts, wanted, writer)
    writer.finish()
    return Entry(
        tokens=tokens,
        kv=state.read_kv(cache),
        checkpoints=checkpoints,
        logits=logits.cpu(),
        chunk=chunk,
        cuts=cuts,
        fingerprint=model.fingerprint,
        dtype=model.dtype,
        capture_ms=watch.lap(),
    )


def check_capture_fits(model: ReplayModel, tokens: int, checkpoints: int) -> None:
    """Raise ``ValueError`` with the bytes where an entry would not fit in memory."""
    kv = tokens * model.kv_bytes_per_token
    held = checkpoints * model.checkpoint_bytes
    check_fits(f"the KV of {tokens:,} tokens", kv, model.device)
    check_fits(f"an entry with {checkpoints:,} checkpoints", held, HOST)
