"""One prefill, cut into calls; capture and resume are both this loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from transformers import DynamicCache

from sparselab.replay import state
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import CheckpointWriter
from sparselab.replay.state import Tensors
from sparselab.replay.tokens import Tokens


def prefill(
    model: ReplayModel,
    cache: DynamicCache,
    tokens: Tokens,
    start: int,
    cuts: Sequence[int],
    positions: Collection[int] = (),
    writer: CheckpointWriter | None = None,
) -> tuple[torch.Tensor, dict[int, Tensors]]:
    """Compute ``tokens[start:]`` after a cache of ``start`` tokens, which is extended.

    Args:
        cuts: where calls end, increasing, the last one at the end of the prompt.
        positions: those of the cuts at which to copy the recurrent state.
        writer: how to copy it; its ``finish`` is the caller's to call.

    Returns:
        The last token's logits and the copied states by position.
    """
    on_device = torch.from_numpy(tokens).to(model.device)
    checkpoints: dict[int, Tensors] = {}
    logits = None
    for end in cuts:
        logits = model.forward(on_device[start:end], cache, start)
        if end in positions and writer is not None:
            checkpoints[end] = writer.copy(state.read_state(cache))
        start = end
    if logits is None:
        raise ValueError("a prefill must compute at least one token.")
    return logits, checkpoints
