"""Resume: restore the deepest usable checkpoint of an entry and compute the rest of a prompt."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from sparselab.replay import state
from sparselab.replay.devices import Stopwatch
from sparselab.replay.entry import Entry
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import CheckpointWriter, to_device
from sparselab.replay.plan import cut_plan
from sparselab.replay.prefill import prefill
from sparselab.replay.state import Tensors
from sparselab.replay.tokens import Tokens, as_tokens
from sparselab.validation import check_integer


@dataclass(frozen=True, eq=False)
class ResumeResult:
    """What a resumed prefill gave and what it took.

    Attributes:
        tokens: the prompt.
        overlap: leading tokens that it shares with the entry.
        resume_point: where computing began; 0 for a cold prefill.
        recomputed_tokens: tokens computed, ``len(tokens) - resume_point``.
        logits: of the last token, shape ``(vocab_size,)``, on the device.
        cache: after the whole prompt, to continue from.
        load_ms: restoring KV and states. compute_ms: the suffix. total_ms: both.
        fingerprint: of the model that it ran on.
    """

    tokens: Tokens
    overlap: int
    resume_point: int
    logits: torch.Tensor
    cache: DynamicCache
    load_ms: float
    compute_ms: float
    fingerprint: str

    @property
    def recomputed_tokens(self) -> int:
        """Tokens that were computed."""
        return self.tokens.size - self.resume_point

    @property
    def total_ms(self) -> float:
        """Milliseconds from the request to the last token's logits."""
        return self.load_ms + self.compute_ms

    def __repr__(self) -> str:
        return (
            f"ResumeResult(resumed at {self.resume_point:,} of {self.tokens.size:,} tokens, "
            f"overlap {self.overlap:,}, {self.load_ms:.1f} ms load + {self.compute_ms:.1f} ms "
            "compute)"
        )


def resume(model: ReplayModel, entry: Entry, tokens: Any) -> ResumeResult:
    """Prefill ``tokens``, starting from the deepest checkpoint of ``entry`` that they share.

    With no usable checkpoint it is a cold prefill. The entry is not modified. Calls are cut on
    the same grid as the entry's capture.

    Raises ``TypeError`` or ``ValueError`` for bad tokens or an entry of another model or dtype.
    """
    tokens = as_tokens(tokens, model.vocab_size)
    entry.check_model(model)
    watch = Stopwatch(model.device)
    point = entry.resume_point(tokens)
    cuts = cut_plan(point, tokens.size, entry.chunk)
    return compute_rest(model, entry, tokens, point, cuts, watch)[0]


def compute_rest(
    model: ReplayModel,
    entry: Entry,
    tokens: Tokens,
    point: int,
    cuts: Sequence[int],
    watch: Stopwatch,
    positions: Collection[int] = (),
) -> tuple[ResumeResult, dict[int, Tensors]]:
    """Restore the entry at ``point`` and compute the rest of ``tokens``, cut at ``cuts``.

    Returns the result, timed by ``watch``, and the states copied at those cuts that are among
    ``positions``.
    """
    cache = restore_at(model, entry, point, entry.checkpoints.get(point, {}))
    load_ms = watch.lap()
    writer = CheckpointWriter(model.device)
    logits, captured = prefill(model, cache, tokens, point, cuts, positions, writer)
    writer.finish()
    compute_ms = watch.lap()
    result = ResumeResult(
        tokens,
        entry.overlap(tokens),
        point,
        logits,
        cache,
        load_ms,
        compute_ms,
        model.fingerprint,
    )
    return result, captured


def restore_at(
    model: ReplayModel, entry: Entry, point: int, memory: Mapping[str, torch.Tensor]
) -> DynamicCache:
    """Return a cache of the entry's first ``point`` tokens with recurrent states ``memory``."""
    if point == 0:
        return state.new_cache(model.config)
    return state.restore(model.config, entry.kv, to_device(memory, model.device), point)


def generate(model: ReplayModel, result: ResumeResult, n: int) -> NDArray[np.int64]:
    """Return the ``n`` most likely next tokens, one after another; ``result`` is not modified.

    Raises ``ValueError`` for a result of another model.
    """
    check_integer("n", n, minimum=1)
    if result.fingerprint != model.fingerprint:
        raise ValueError(f"the result to continue was not computed by this model, {model.name!r}.")
    cache = state.copy_cache(model.config, result.cache, result.tokens.size)
    return continue_greedily(model, result.logits, cache, result.tokens.size, n)


def continue_greedily(
    model: ReplayModel, logits: torch.Tensor, cache: DynamicCache, start: int, n: int
) -> NDArray[np.int64]:
    """Return ``n`` greedy tokens after the ``start`` tokens of ``cache``, which is extended."""
    chosen: list[int] = []
    while True:
        token = logits.argmax().reshape(1)
        chosen.append(int(token))
        if len(chosen) == n:
            return np.array(chosen, dtype=np.int64)
        logits = model.forward(token, cache, start + len(chosen) - 1)
