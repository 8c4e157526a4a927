"""Other hybrid families: exact as well, or refused; none ends up silently wrong."""

from __future__ import annotations

import pytest
import tiny_architectures
import transformers

from sparselab import replay

EXACT = (
    "qwen3.5",
    "qwen3.5-moe",
    "qwen3-next",
    "granite-hybrid",
    "nemotron-h",
    "falcon-h1",
    "olmo-hybrid",
    "lfm2",
    "mamba2",
    "bamba",
)
CASES = ((50, 90), (101, 140), (100, 101), (120, 120), (2, 40), (120, 150))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", EXACT)
def test_a_family_that_carries_its_state_is_exact(tmp_path, device, family, dtype):
    folder = tiny_architectures.save(tiny_architectures.configs()[family], tmp_path)
    model = replay.load_model(folder, device=device, dtype=dtype)
    prompt = replay.random_tokens(120, model.vocab_size, seed=1)
    entry = replay.capture(model, prompt, [3, 32, 50, 100], chunk=32)
    for depth, length in CASES:
        tokens = replay.diverging(prompt, depth, length, model.vocab_size, seed=2)
        report = replay.verify(model, entry, tokens)
        assert report.exact, report.verdict
        assert report.resume_point == max([c for c in (3, 50, 100) if c <= depth], default=0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["jamba", "mamba"])
def test_a_family_that_loses_its_state_is_refused(tmp_path, device, family, dtype):
    folder = tiny_architectures.save(tiny_architectures.configs()[family], tmp_path)
    with pytest.raises(ValueError, match="does not carry its state across calls") as refusal:
        replay.load_model(folder, device=device, dtype=dtype)
    message = str(refusal.value)
    assert f"({family})" in message
    assert transformers.__version__ in message
    assert "dropping its conv state by" in message
    assert "its recurrent state by" in message


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("recurrent-gemma", "caches in a DynamicSlidingWindowLayer, which replay cannot restore"),
        ("llama", "has no recurrent layer"),
    ],
)
def test_a_cache_that_cannot_be_restored_is_refused_before_loading(tmp_path, family, reason):
    # No weights are saved: the refusal must come first.
    tiny_architectures.configs()[family].save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=reason):
        replay.load_model(tmp_path, device="cpu", dtype="float32")


def test_the_language_model_inside_a_multimodal_checkpoint(tmp_path, device):
    folder = tiny_architectures.save_multimodal(tmp_path)
    model = replay.load_model(folder, device=device, dtype="float32")
    assert type(model.module).__name__ == "Qwen3_5ForCausalLM"
    prompt = replay.random_tokens(120, model.vocab_size, seed=1)
    entry = replay.capture(model, prompt, [50, 100], chunk=32)
    report = replay.verify(model, entry, prompt)
    assert report.exact, report.verdict
    assert report.resume_point == 100


def test_the_saved_weights_are_the_ones_that_run(tmp_path):
    """Loading by folder gives the logits of the multimodal model that was saved."""
    import torch

    folder = tiny_architectures.save_multimodal(tmp_path)
    whole = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    model = replay.load_model(folder, device="cpu", dtype="float32")
    prompt = replay.random_tokens(40, model.vocab_size, seed=1)
    with torch.no_grad():
        expected = whole(input_ids=torch.from_numpy(prompt)[None]).logits[0, -1]
    entry = replay.capture(model, prompt, [])
    assert torch.allclose(entry.logits, expected, atol=1e-5)
