"""Copying states off the device and onto it: which copies may still be under way, and until when.

Copies beside the computation exist on CUDA alone. Here a stand-in for it, whose copies arrive only
when somebody waits for them, shows what is waited for; ``test_cuda.py`` runs the real thing.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from sparselab.replay import offload


class MovingTensor:
    """Stands for a tensor in host memory and remembers how it was asked to move."""

    def to(self, device, non_blocking=False):
        self.device, self.non_blocking = device, non_blocking
        return self


@pytest.mark.parametrize(("device", "beside"), [("cuda", True), ("mps", False), ("cpu", False)])
def test_only_cuda_copies_beside_the_hosts_work(device, beside):
    tensor = MovingTensor()
    assert offload.to_device({"conv.0.0": tensor}, torch.device(device)) == {"conv.0.0": tensor}
    assert tensor.device == torch.device(device)
    assert tensor.non_blocking is beside


def test_a_checkpoint_stays_what_it_was_when_the_state_is_overwritten():
    state = {"recurrent.0.0": torch.ones(3)}
    writer = offload.CheckpointWriter(torch.device("cpu"))
    copied = writer.copy(state)
    state["recurrent.0.0"].zero_()
    writer.finish()
    assert torch.equal(copied["recurrent.0.0"], torch.ones(3))


class Stream:
    """Stands for a CUDA stream: copies on it arrive when it is waited for."""

    def __init__(self, device):
        self.device, self.waited_for, self.under_way = device, [], []

    def wait_stream(self, other):
        self.waited_for.append(other)

    def synchronize(self):
        for arrive in self.under_way:
            arrive()
        self.under_way.clear()


class DeviceTensor:
    """Stands for a tensor on the device."""

    def __init__(self, value):
        self.value, self.kept_for = value, None

    def detach(self):
        return self

    def clone(self):
        return DeviceTensor(self.value)

    def record_stream(self, stream):
        self.kept_for = stream


class HostTensor:
    """Stands for pinned host memory that is copied into from the device."""

    value = "not yet arrived"

    def __init__(self, stream):
        self._stream = stream

    def copy_(self, source, non_blocking):
        assert non_blocking
        assert self._stream.waited_for == ["computation"], "it may copy what is not yet computed"
        self.source = source
        self._stream.under_way.append(lambda: setattr(self, "value", source.value))


@pytest.fixture
def _stand_in_for_cuda(monkeypatch):
    """Replace the parts of torch that the writer uses on CUDA."""
    current = ["computation"]

    @contextmanager
    def on(stream):
        current.append(stream)
        yield
        current.pop()

    def empty_like(tensor, device, pin_memory):
        assert (device, pin_memory) == ("cpu", True)
        return HostTensor(current[-1])

    cuda = SimpleNamespace(Stream=Stream, stream=on, current_stream=lambda device: current[-1])
    monkeypatch.setattr(offload, "torch", SimpleNamespace(cuda=cuda, empty_like=empty_like))


@pytest.mark.usefixtures("_stand_in_for_cuda")
def test_on_cuda_checkpoints_arrive_by_the_end_as_they_were():
    state = {"recurrent.0.0": DeviceTensor("after 64 tokens")}
    writer = offload.CheckpointWriter(torch.device("cuda"))
    copied = writer.copy(state)
    state["recurrent.0.0"].value = "after 128 tokens"
    assert copied["recurrent.0.0"].value == "not yet arrived"
    writer.finish()
    assert copied["recurrent.0.0"].value == "after 64 tokens"


@pytest.mark.usefixtures("_stand_in_for_cuda")
def test_on_cuda_memory_is_kept_until_it_has_been_copied():
    writer = offload.CheckpointWriter(torch.device("cuda"))
    host = writer.copy({"conv.0.0": DeviceTensor("after 64 tokens")})["conv.0.0"]
    assert host.source.kept_for is host._stream
