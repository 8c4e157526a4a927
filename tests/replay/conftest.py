"""Models that the replay tests share: loaded once, never changed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip(
    "torch", reason="live replay needs torch: pip install sparselab[replay]"
)
pytest.importorskip("transformers", reason="live replay needs transformers")

from sparselab import replay  # noqa: E402

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")


@pytest.fixture(scope="session", autouse=True)
def _few_threads():
    """Tiny matrices are slower on many threads, and test processes run side by side."""
    torch.set_num_threads(1)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, no_cuda])])
def device(request):
    """Each device that a test runs on: the CPU, and CUDA where there is one."""
    return request.param


@pytest.fixture(scope="session")
def models():
    """A function ``(name, dtype, device) -> ReplayModel`` that loads each model once."""
    loaded: dict[tuple[str, str, str], replay.ReplayModel] = {}

    def get(name: str = "tiny", dtype: str = "float32", device: str = "cpu") -> replay.ReplayModel:
        key = (name, dtype, device)
        if key not in loaded:
            loaded[key] = replay.load_model(name, device=device, dtype=dtype)
        return loaded[key]

    return get


@pytest.fixture(scope="session")
def tiny(models):
    """The tiny model in float32."""
    return models("tiny", "float32")


@pytest.fixture(scope="session")
def prompt(tiny):
    """A prompt of 160 random tokens."""
    return replay.random_tokens(160, tiny.vocab_size, seed=1)


@pytest.fixture(scope="session")
def entry(tiny, prompt):
    """That prompt captured with a few checkpoints, on the grid of 64 and beside it."""
    return replay.capture(tiny, prompt, [1, 40, 64, 65, 100, 160], chunk=64)
