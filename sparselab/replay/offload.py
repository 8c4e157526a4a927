"""Copying checkpoints off the device while it goes on computing.

On CUDA a checkpoint is first copied on the device (the next call overwrites the state in place),
then by a second stream into pinned host memory, beside the computation of the next tokens.
Elsewhere a plain copy on the CPU does.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from sparselab.replay.state import Tensors


class CheckpointWriter:
    """Copies states to host memory; :meth:`finish` waits until all of them have arrived."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def copy(self, state: Mapping[str, torch.Tensor]) -> Tensors:
        """Return tensors in host memory that hold ``state`` once :meth:`finish` has returned."""
        if self._stream is None:
            return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
        snapshot = {name: tensor.detach().clone() for name, tensor in state.items()}
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            return {name: self._to_pinned(tensor) for name, tensor in snapshot.items()}

    def finish(self) -> None:
        """Wait for copies that are still under way."""
        if self._stream is not None:
            self._stream.synchronize()

    def _to_pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        host = torch.empty_like(tensor, device="cpu", pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        # Keeps the allocator from handing the snapshot's memory out before the copy is done.
        assert self._stream is not None
        tensor.record_stream(self._stream)
        return host


def to_device(tensors: Mapping[str, torch.Tensor], device: torch.device) -> Tensors:
    """Return the tensors on ``device``; on CUDA copied beside the host's work from pinned memory.

    Elsewhere the copies have arrived: on MPS an unfinished one would read pageable memory that may
    have been given back by then (https://github.com/pytorch/pytorch/issues/189690).
    """
    beside = device.type == "cuda"
    return {name: tensor.to(device, non_blocking=beside) for name, tensor in tensors.items()}
