"""Capture: prefill a prompt once and keep its KV and recurrent checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import DynamicCache

from sparselab.replay import state
from sparselab.replay.devices import HOST, Stopwatch, check_fits
from sparselab.replay.entry import Entry, as_positions
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import CheckpointWriter
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.resume import ResumeResult, compute_rest
from sparselab.replay.state import Tensors
from sparselab.replay.tokens import Tokens, as_tokens

CHUNK = 512


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
    return _entry(model, tokens, cache, checkpoints, logits, chunk, cuts, watch.lap())


def extend(
    model: ReplayModel, entry: Entry, tokens: Any, positions: Any
) -> tuple[ResumeResult, Entry]:
    """Resume ``tokens`` from ``entry`` and retain them as a new entry, in one pass.

    What a serving engine does with a request: states before the resume point are not computed, so
    a position there must be a checkpoint of ``entry``, which the new one then shares.

    Raises ``ValueError`` for a position that can be had in neither way, and as :func:`capture`.
    """
    tokens = as_tokens(tokens, model.vocab_size)
    wanted = as_positions(positions, tokens.size)
    entry.check_model(model)
    point = entry.resume_point(tokens)
    inherited = {c: entry.checkpoints[c] for c in wanted if c <= point and c in entry.checkpoints}
    missing = [c for c in wanted if c <= point and c not in inherited]
    if missing:
        raise ValueError(
            f"position {missing[0]} lies before the resume point {point} and is no checkpoint of "
            f"the entry, which has {entry.positions.tolist()}."
        )
    cuts = cut_plan(point, tokens.size, entry.chunk, wanted)
    check_capture_fits(model, tokens.size, len(wanted) - len(inherited))
    watch = Stopwatch(model.device)
    result, captured = compute_rest(model, entry, tokens, point, cuts, watch, wanted)
    whole_cuts = tuple(cut for cut in entry.cuts if cut <= point) + cuts
    return result, _entry(
        model,
        tokens,
        result.cache,
        inherited | captured,
        result.logits,
        entry.chunk,
        whole_cuts,
        result.total_ms,
    )


def check_capture_fits(model: ReplayModel, tokens: int, checkpoints: int) -> None:
    """Raise ``ValueError`` with the bytes where an entry would not fit in memory."""
    kv = tokens * model.kv_bytes_per_token
    held = checkpoints * model.checkpoint_bytes
    if model.device.type == HOST.type:
        what = f"an entry of {tokens:,} tokens with {checkpoints:,} checkpoints"
        check_fits(what, kv + held, HOST)
    else:
        check_fits(f"the KV of {tokens:,} tokens", kv, model.device)
        check_fits(f"the states of {checkpoints:,} checkpoints", held, HOST)


def _entry(
    model: ReplayModel,
    tokens: Tokens,
    cache: DynamicCache,
    checkpoints: Mapping[int, Tensors],
    logits: torch.Tensor,
    chunk: int,
    cuts: tuple[int, ...],
    capture_ms: float,
) -> Entry:
    return Entry(
        tokens=tokens,
        kv=state.read_kv(cache),
        checkpoints=checkpoints,
        logits=logits.cpu(),
        chunk=chunk,
        cuts=cuts,
        fingerprint=model.fingerprint,
        dtype=model.dtype,
        capture_ms=capture_ms,
    )
