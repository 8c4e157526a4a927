"""Models with random weights: the real layers and dimensions, no download.

Speed and exactness do not depend on the weights' values, but a check that a lost state shows does:
with the default initialisation a recurrent layer says little and forgets at once. So weights are
drawn such that the state matters: see :func:`build`.
"""

from __future__ import annotations

import math

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3_5TextConfig

from sparselab.architecture import HybridArchitecture

SMALL_VOCABULARY = 4096

# Time constants of the recurrence: steps between 0.001 and 0.1, as Gated DeltaNet is trained from.
SHORTEST_STEP, LONGEST_STEP = 1e-3, 1e-1
GAIN = 1.2


def configs() -> dict[str, Qwen3_5TextConfig]:
    """Return the config of each random model by name."""
    real = HybridArchitecture.preset("qwen3.5-0.8b")
    return {
        "tiny": _config(
            layers=4,
            vocab_size=512,
            hidden_size=64,
            intermediate_size=128,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            linear_num_key_heads=2,
            linear_num_value_heads=4,
            linear_key_head_dim=16,
            linear_value_head_dim=16,
        ),
        "qwen3.5-0.8b-group": _published(real, layers=4, vocab_size=SMALL_VOCABULARY),
        "qwen3.5-0.8b-random": _published(real, layers=24, vocab_size=248_320),
    }


def build(
    config: Qwen3_5TextConfig, device: torch.device, dtype: torch.dtype, seed: int
) -> PreTrainedModel:
    """Return a model whose weights depend on ``seed`` alone.

    Matrices are normal with standard deviation ``1.2 / sqrt(hidden_size)`` (0.15 at the tiny
    width), so that every layer changes its input by about its own size. The bias of the step size
    is the inverse softplus of a step drawn log-uniformly from 0.001 to 0.1, as in the training
    recipe of Gated DeltaNet (https://github.com/fla-org/flash-linear-attention), so that heads
    remember from a few tokens to thousands of them.
    """
    # Drawn on the CPU in float32 whatever the device, from a generator state that is put back;
    # torch.manual_seed would seed the generators of the other devices too.
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for name, parameter in model.named_parameters():
            if name.endswith("dt_bias"):
                low, high = math.log(SHORTEST_STEP), math.log(LONGEST_STEP)
                step = torch.empty_like(parameter).uniform_(low, high).exp()
                parameter.data.copy_(torch.log(torch.expm1(step)))
    for parameter in model.parameters():
        parameter.data = parameter.data.to(device=device, dtype=dtype)
    return model.to(device).eval()


def _published(real: HybridArchitecture, layers: int, vocab_size: int) -> Qwen3_5TextConfig:
    """The first ``layers`` layers of a published dense model."""
    return _config(
        layers=layers,
        vocab_size=vocab_size,
        hidden_size=real.hidden_size,
        intermediate_size=real.intermediate_size,
        num_attention_heads=real.query_heads,
        num_key_value_heads=real.kv_heads,
        head_dim=real.head_dim,
        linear_num_key_heads=real.linear_key_heads,
        linear_num_value_heads=real.linear_value_heads,
        linear_key_head_dim=real.linear_key_dim,
        linear_value_head_dim=real.linear_value_dim,
    )


def _config(layers: int, hidden_size: int, **sizes: int) -> Qwen3_5TextConfig:
    return Qwen3_5TextConfig(
        num_hidden_layers=layers,
        hidden_size=hidden_size,
        max_position_embeddings=262_144,
        initializer_range=GAIN / math.sqrt(hidden_size),
        tie_word_embeddings=True,
        **sizes,
    )
