"""Tiny models of many hybrid families, built from configs; saved so that they load by folder."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

# Wide enough weights for the state to matter at this width.
WEIGHT_STD = 0.15

COMMON = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
}
DELTA_NET = {
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}
MAMBA2 = {"mamba_d_state": 16, "mamba_d_head": 16, "mamba_n_heads": 4, "mamba_chunk_size": 32}


def configs() -> dict[str, transformers.PreTrainedConfig]:
    """Return a tiny config of each family by name."""
    return {
        "qwen3.5": transformers.Qwen3_5TextConfig(**COMMON, **DELTA_NET),
        "qwen3.5-moe": transformers.Qwen3_5MoeTextConfig(
            **{k: v for k, v in COMMON.items() if k != "intermediate_size"}, **DELTA_NET, **EXPERTS
        ),
        "qwen3-next": transformers.Qwen3NextConfig(**COMMON, **DELTA_NET, **EXPERTS),
        "granite-hybrid": transformers.GraniteMoeHybridConfig(
            **COMMON,
            **MAMBA2,
            mamba_expand=2,
            mamba_n_groups=1,
            num_local_experts=4,
            num_experts_per_tok=2,
            shared_intermediate_size=32,
            layer_types=["mamba", "attention"] * 2,
        ),
        "nemotron-h": transformers.NemotronHConfig(
            **COMMON,
            head_dim=16,
            layers_block_type=["mamba", "attention", "mamba", "mlp"],
            ssm_state_size=16,
            mamba_num_heads=4,
            mamba_head_dim=16,
            n_groups=1,
            chunk_size=32,
        ),
        "falcon-h1": transformers.FalconH1Config(
            **COMMON, **MAMBA2, mamba_d_ssm=64, mamba_n_groups=1
        ),
        "olmo-hybrid": transformers.OlmoHybridConfig(
            **COMMON,
            **{k: v for k, v in DELTA_NET.items() if k != "head_dim"},
            layer_types=[
                "linear_attention",
                "linear_attention",
                "linear_attention",
                "full_attention",
            ],
        ),
        "lfm2": transformers.Lfm2Config(
            **COMMON, layer_types=["conv", "full_attention"] * 2, block_multiple_of=16
        ),
        "mamba2": transformers.Mamba2Config(
            vocab_size=256,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=16,
            num_heads=4,
            head_dim=16,
            n_groups=1,
            chunk_size=32,
        ),
        "jamba": transformers.JambaConfig(
            **COMMON,
            num_experts=2,
            mamba_d_state=8,
            attn_layer_period=2,
            attn_layer_offset=1,
        ),
        "mamba": transformers.MambaConfig(
            vocab_size=256, hidden_size=32, num_hidden_layers=2, state_size=8
        ),
        "bamba": transformers.BambaConfig(
            **COMMON, **MAMBA2, mamba_n_groups=1, attn_layer_indices=[1, 3]
        ),
        "recurrent-gemma": transformers.RecurrentGemmaConfig(
            **COMMON,
            lru_width=32,
            attention_window_size=16,
        ),
        "llama": transformers.LlamaConfig(**COMMON),
    }


def save(config: transformers.PreTrainedConfig, folder: Path) -> str:
    """Save a random model of ``config`` to ``folder``, with weights that make its state matter."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            parameter.data.normal_(0, WEIGHT_STD)
    model.save_pretrained(folder)
    return str(folder)


def save_multimodal(folder: Path) -> str:
    """Save a tiny multimodal Qwen3.5 (a language model inside a vision model) to ``folder``."""
    text = configs()["qwen3.5"].to_dict() | {"vocab_size": 320}
    vision = {
        "depth": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": COMMON["hidden_size"],
        "num_position_embeddings": 16,
    }
    # The special tokens must lie within the small vocabulary.
    special = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    config = transformers.Qwen3_5Config(
        text_config=text,
        vision_config=vision,
        **{name: 300 + number for number, name in enumerate(special)},
    )
    torch.manual_seed(0)
    model = transformers.Qwen3_5ForConditionalGeneration(config)
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            parameter.data.normal_(0, WEIGHT_STD)
    model.save_pretrained(folder)
    return str(folder)
