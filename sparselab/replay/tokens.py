"""Token sequences as replay takes them, and requests that share a prefix with another."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sparselab.validation import check_integer

Tokens = NDArray[np.int64]


def as_tokens(tokens: Any, vocab_size: int) -> Tokens:
    """Return ``tokens`` (a list, array or tensor of token ids) as a 1-D ``int64`` array.

    Raises ``TypeError`` or ``ValueError`` for what is not a sequence of integers, a batch, an
    empty prompt, and ids outside ``0..vocab_size-1``.
    """
    array = (
        tokens.detach().cpu().numpy() if isinstance(tokens, torch.Tensor) else np.asarray(tokens)
    )
    if array.ndim != 1:
        raise ValueError(
            f"tokens must be one prompt, a 1-D sequence of token ids, got shape {array.shape}: "
            "replay takes no batches."
        )
    if array.size == 0:
        raise ValueError("tokens must hold at least one token, got an empty prompt.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"tokens must be integers, got {array.dtype} such as {array[0]!r}.")
    outside = array[(array < 0) | (array >= vocab_size)]
    if outside.size:
        raise ValueError(
            f"token ids must lie in 0..{vocab_size - 1}, the model's vocabulary, got {outside[0]}."
        )
    return array.astype(np.int64)


def random_tokens(length: int, vocab_size: int, seed: int) -> Tokens:
    """Return ``length`` token ids drawn uniformly; equal seeds give equal ids."""
    seed = check_integer("seed", seed, minimum=0)
    return np.random.default_rng(seed).integers(0, vocab_size, length, dtype=np.int64)


def diverging(tokens: Tokens, depth: int, length: int, vocab_size: int, seed: int) -> Tokens:
    """Return a prompt of ``length`` tokens that shares exactly ``depth`` with ``tokens``.

    The rest is random, the first token of it surely another one than in ``tokens``. ``ValueError``
    for a depth that either prompt does not have.
    """
    depth = check_integer("depth", depth, 0, min(length, tokens.size))
    prompt = random_tokens(length, vocab_size, seed)
    prompt[:depth] = tokens[:depth]
    if depth < min(length, tokens.size) and prompt[depth] == tokens[depth]:
        prompt[depth] = (prompt[depth] + 1) % vocab_size
    return prompt
