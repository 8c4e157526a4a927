"""The same on a CUDA device, with checkpoints copied to pinned memory beside the computation."""

import pytest
import torch

from sparselab import replay
from sparselab.replay.prefill import prefill
from sparselab.replay.state import new_cache

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here"),
]


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def model(request):
    return replay.load_model("qwen3.5-0.8b-group", device="cuda", dtype=request.param)


def test_resuming_is_exact(model):
    prompt = replay.random_tokens(500, model.vocab_size, seed=1)
    entry = replay.capture(model, prompt, [64, 100, 333], chunk=128)
    for depth, length, point in ((0, 400, 0), (64, 300, 64), (332, 500, 100), (500, 600, 333)):
        tokens = replay.diverging(prompt, depth, length, model.vocab_size, seed=2)
        report = replay.verify(model, entry, tokens)
        assert report.exact, report.verdict
        assert report.resume_point == point


def test_checkpoints_lie_in_pinned_host_memory_and_kv_on_the_device(model):
    prompt = replay.random_tokens(300, model.vocab_size, seed=1)
    entry = replay.capture(model, prompt, range(10, 300, 10), chunk=128)
    for state in entry.checkpoints.values():
        assert all(tensor.device.type == "cpu" and tensor.is_pinned() for tensor in state.values())
    assert all(tensor.is_cuda for tensor in entry.kv.values())


class WaitingWriter:
    """Copies each state at once, and the device waits for it."""

    def copy(self, state):
        return {name: tensor.to("cpu", copy=True) for name, tensor in state.items()}


def test_asynchronous_copies_hold_what_waiting_for_each_one_gives(model):
    prompt = replay.random_tokens(300, model.vocab_size, seed=1)
    positions = list(range(7, 300, 13))
    for _ in range(3):
        entry = replay.capture(model, prompt, positions, chunk=64)
        cache = new_cache(model.config)
        _, waited = prefill(model, cache, prompt, 0, entry.cuts, positions, WaitingWriter())
        assert list(waited) == positions
        for position in positions:
            for name, tensor in waited[position].items():
                assert torch.equal(tensor, entry.checkpoints[position][name])


def test_saved_on_one_device_loads_on_it(model, tmp_path):
    prompt = replay.random_tokens(100, model.vocab_size, seed=1)
    replay.capture(model, prompt, [50]).save(tmp_path)
    loaded = replay.Entry.load(tmp_path, model)
    assert all(tensor.is_pinned() for tensor in loaded.checkpoints[50].values())
    assert replay.verify(model, loaded, prompt).exact
