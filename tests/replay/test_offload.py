"""Copying states to the device: which copies may still be under way when they are handed over."""

import pytest
import torch

from sparselab.replay import offload


class RecordingTensor:
    """Stands for a tensor in host memory and remembers how it was asked to move."""

    def to(self, device, non_blocking=False):
        self.device, self.non_blocking = device, non_blocking
        return self


@pytest.mark.parametrize(("device", "beside"), [("cuda", True), ("mps", False), ("cpu", False)])
def test_only_cuda_copies_beside_the_hosts_work(device, beside):
    tensor = RecordingTensor()
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
