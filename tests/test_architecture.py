"""Sizes and FLOPs of hybrid models, against published sizes and by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from sparselab.architecture import HybridArchitecture, presets

MIB, KIB = 2**20, 2**10

# Whole model: MiB of a checkpoint (3 conv columns, bf16; float32 state), KiB of KV a token, ratio.
KNOWN_SIZES = {
    "qwen3.5-0.8b": (18.6, 12, 1590),
    "qwen3.5-4b": (49.1, 32, 1572),
    "qwen3.5-9b": (49.1, 32, 1572),
    "qwen3.5-27b": (146.8, 64, 2349),
    "qwen3.5-35b-a3b": (61.4, 20, 3144),
    "qwen3.5-122b-a10b": (146.5, 24, 6252),
    "qwen3.5-397b-a17b": (183.2, 30, 6252),
}


@pytest.mark.parametrize("name", KNOWN_SIZES)
def test_presets_weigh_what_is_known(name):
    mebibytes, kibibytes, tokens = KNOWN_SIZES[name]
    model = HybridArchitecture.preset(name)
    assert model.checkpoint_bytes / MIB == pytest.approx(mebibytes, abs=0.06)
    assert model.kv_bytes_per_token == kibibytes * KIB
    assert model.checkpoint_kv_tokens == pytest.approx(tokens, abs=0.5)


@pytest.mark.parametrize(("name", "tokens"), [("qwen3.5-0.8b", 768), ("qwen3.5-27b", 1152)])
def test_with_equal_dtypes_and_no_conv_state_the_ratio_is_the_textbook_one(name, tokens):
    model = replace(HybridArchitecture.preset(name), conv_columns=0, recurrent_element_bytes=2)
    assert model.checkpoint_kv_tokens == tokens


def test_every_fourth_layer_of_a_preset_is_attention():
    for name in presets():
        model = HybridArchitecture.preset(name)
        assert model.recurrent_layers == 3 * model.attention_layers


def test_transformers_keeps_one_conv_column_more_than_engines():
    engine = HybridArchitecture.preset("qwen3.5-0.8b")
    transformers = replace(engine, conv_columns=4)
    extra = transformers.checkpoint_bytes - engine.checkpoint_bytes
    assert extra == 18 * (2 * 16 * 128 + 16 * 128) * 2


def test_flops_of_the_small_model_by_hand():
    model = HybridArchitecture.preset("qwen3.5-0.8b")
    mlp = 2 * 3 * 1024 * 3584
    recurrent = 2 * (1024 * (6144 + 2048 + 32) + 2048 * 1024 + 6144 * 4) + 7 * 16 * 128 * 128
    attention = 2 * 1024 * (4096 + 512 + 512 + 2048)
    assert model.flops_per_token == 18 * recurrent + 6 * attention + 24 * mlp
    # The third token alone reads 3 keys and 3 values in each of 6 layers of 8 heads of 256.
    third = model.prefill_flops(3) - model.prefill_flops(2)
    assert third == model.flops_per_token + 6 * 4 * 8 * 256 * 3


def test_flops_per_token_are_near_twice_the_active_parameters():
    # The models' names say how many parameters are active, embeddings included.
    for name, active in (("qwen3.5-27b", 27e9), ("qwen3.5-35b-a3b", 3e9)):
        assert 0.7 < HybridArchitecture.preset(name).flops_per_token / (2 * active) < 1.1


def test_prefill_flops_are_a_prefill_cost():
    tokens = np.arange(1000)
    flops = HybridArchitecture.preset("qwen3.5-4b").prefill_flops(tokens)
    assert flops.shape == tokens.shape
    assert flops[0] == 0
    assert (np.diff(flops) > 0).all()
    assert (np.diff(flops, 2) > 0).all()


def test_only_active_experts_cost():
    model = HybridArchitecture.preset("qwen3.5-35b-a3b")
    more_idle = replace(model, experts=512)
    more_active = replace(model, experts_per_token=16)
    assert more_idle.flops_per_token - model.flops_per_token == 40 * 2 * 2048 * 256
    assert more_active.flops_per_token - model.flops_per_token == 40 * 2 * 3 * 2048 * 8 * 512


def test_a_config_file_gives_the_preset():
    text = {
        "model_type": "qwen3_5_text",
        "hidden_size": 1024,
        "intermediate_size": 3584,
        "num_hidden_layers": 24,
        "full_attention_interval": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }
    config = json.loads(json.dumps({"model_type": "qwen3_5", "text_config": text}))
    found = HybridArchitecture.from_config(config)
    assert replace(found, name="qwen3.5-0.8b") == HybridArchitecture.preset("qwen3.5-0.8b")
    with pytest.raises(ValueError, match="no hidden_size"):
        HybridArchitecture.from_config({k: v for k, v in text.items() if k != "hidden_size"})


@pytest.mark.parametrize("size", ["qwen3.5-2b", "qwen3.5-397b-a17b"])
def test_transformers_configs_give_the_presets(size):
    transformers = pytest.importorskip("transformers")
    model = HybridArchitecture.preset(size)
    common = {
        "hidden_size": model.hidden_size,
        "num_hidden_layers": model.recurrent_layers + model.attention_layers,
        "num_attention_heads": model.query_heads,
        "num_key_value_heads": model.kv_heads,
        "linear_num_value_heads": model.linear_value_heads,
    }
    if model.experts:
        config = transformers.Qwen3_5MoeTextConfig(
            **common,
            num_experts=model.experts,
            num_experts_per_tok=model.experts_per_token,
            moe_intermediate_size=model.expert_intermediate_size,
            shared_expert_intermediate_size=model.intermediate_size,
        )
    else:
        config = transformers.Qwen3_5TextConfig(**common, intermediate_size=model.intermediate_size)
    assert replace(HybridArchitecture.from_config(config), name=size) == model


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HybridArchitecture.preset("qwen3.5-0.9b"), r"unknown preset 'qwen3.5-0.9b' \(did"),
        (lambda: HybridArchitecture.from_config({"model_type": "llama"}), "unknown model_type"),
        (lambda: HybridArchitecture.from_config({}), "no model_type"),
        (
            lambda: HybridArchitecture.from_config(
                {"model_type": "qwen3_5", "num_hidden_layers": 4, "full_attention_interval": 0}
            ),
            "full_attention_interval must be at least 1, got 0",
        ),
        (
            lambda: replace(HybridArchitecture.preset("qwen3.5-2b"), kv_heads=0),
            "kv_heads must be at least 1, got 0",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_importing_it_needs_no_torch():
    code = "import sys, sparselab.architecture; print(sorted({'torch'} & set(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
