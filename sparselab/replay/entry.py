"""A retained entry: what is kept of a prompt so that later ones can resume from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from sparselab.replay.state import Tensors, size_in_bytes
from sparselab.replay.tokens import Tokens
from sparselab.validation import check_integer
from sparselab.workloads.prefix_index import common_prefix

if TYPE_CHECKING:
    from sparselab.replay.models import ReplayModel


@dataclass(frozen=True, eq=False)
class Entry:
    """Attention KV of a whole prompt and recurrent checkpoints at some positions of it.

    Attributes:
        tokens: the prompt, shape ``(length,)``.
        kv: keys and values of every token, on the model's device.
        checkpoints: position ``c`` -> recurrent and conv states after the first ``c`` tokens,
            in host memory (pinned on CUDA).
        logits: after the last token, shape ``(vocab_size,)``, in host memory.
        chunk: the grid of the capture, in tokens.
        cuts: where the calls of the capture ended. It may have cut at more positions than are
            kept here, and a cold run needs the same cuts to give the same bits.
        fingerprint, dtype: of the model that it was captured with.
        capture_ms: how long the capture took.
    """

    tokens: Tokens
    kv: Tensors
    checkpoints: Mapping[int, Tensors]
    logits: torch.Tensor
    chunk: int
    cuts: tuple[int, ...]
    fingerprint: str
    dtype: torch.dtype
    capture_ms: float = field(default=float("nan"))

    @property
    def length(self) -> int:
        """Tokens in the prompt."""
        return self.tokens.size

    @property
    def positions(self) -> NDArray[np.int64]:
        """The checkpoints' positions, strictly increasing."""
        return np.array(sorted(self.checkpoints), dtype=np.int64)

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes of the tensors by kind: ``kv``, ``recurrent``, ``conv``, and the ``total``."""
        sizes = {"kv": sum(tensor.nbytes for tensor in self.kv.values()), "recurrent": 0, "conv": 0}
        for state in self.checkpoints.values():
            for kind, size in size_in_bytes(state).items():
                sizes[kind] += size
        return sizes | {"total": sum(sizes.values())}

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of all checkpoints together."""
        return self.bytes["recurrent"] + self.bytes["conv"]

    def overlap(self, tokens: Any) -> int:
        """Return how many leading tokens of a prompt agree with this entry's."""
        return common_prefix(self.tokens, np.asarray(tokens))

    def resume_point(self, tokens: Any) -> int:
        """Return the deepest usable checkpoint for a prompt, 0 if there is none.

        It lies within the overlap, and before the prompt's last token: that one is always
        computed, since its logits are what a request is for.
        """
        deepest = min(self.overlap(tokens), len(tokens) - 1)
        return max((position for position in self.checkpoints if position <= deepest), default=0)

    def keep(self, positions: Any) -> Entry:
        """Return the entry with only some of its checkpoints (integers or a ``Schedule``).

        Tensors are shared, not copied.
        """
        kept = as_positions(positions, self.length)
        missing = sorted(set(kept) - set(self.checkpoints))
        if missing:
            raise ValueError(
                f"positions to keep must be among the entry's checkpoints "
                f"{self.positions.tolist()}, got {missing[0]}."
            )
        return replace(
            self, checkpoints={position: self.checkpoints[position] for position in kept}
        )

    def check_model(self, model: ReplayModel) -> None:
        """Raise ``ValueError`` where the entry was captured with another model or dtype."""
        check_captured_with(model, self.fingerprint, self.dtype)

    def save(self, folder: str | Path) -> None:
        """Write the entry to a folder; see :func:`sparselab.replay.storage.save_entry`."""
        from sparselab.replay.storage import save_entry

        save_entry(self, folder)

    @staticmethod
    def load(folder: str | Path, model: ReplayModel) -> Entry:
        """Read an entry for ``model``; see :func:`sparselab.replay.storage.load_entry`."""
        from sparselab.replay.storage import load_entry

        return load_entry(folder, model)

    def __repr__(self) -> str:
        return (
            f"Entry({self.length:,} tokens, checkpoints at {self.positions.tolist()}, "
            f"{self.bytes['total'] / 2**20:,.1f} MiB)"
        )


def check_captured_with(model: ReplayModel, fingerprint: str, dtype: torch.dtype) -> None:
    """Raise ``ValueError`` where the fingerprint and dtype of an entry are not the model's."""
    if dtype != model.dtype:
        raise ValueError(f"the entry was captured in {dtype}, but the model runs in {model.dtype}.")
    if fingerprint != model.fingerprint:
        raise ValueError(
            f"the entry was captured with another model than {model.name!r} "
            "(architecture or weights differ)."
        )


def as_positions(positions: Any, length: int) -> tuple[int, ...]:
    """Return checkpoint positions (integers or a ``Schedule``), sorted, each once, in 1..length."""
    wanted = getattr(positions, "positions", positions)
    if not isinstance(wanted, Iterable):
        raise TypeError(f"positions must be a sequence of integers or a Schedule, got {wanted!r}.")
    return tuple(sorted({check_integer("position", p, 1, length) for p in wanted}))
