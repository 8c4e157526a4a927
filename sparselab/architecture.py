"""Sizes and FLOPs of hybrid models: bytes of a checkpoint and of a token of KV, cost of a prefill.

Everything here is arithmetic on a model's shape; no weights and no torch are needed. The formulas
describe the Qwen3.5 family (https://huggingface.co/Qwen): Gated DeltaNet layers with gated
attention layers in between, and a gated MLP or a mixture of experts after each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparselab.validation import check_choice, check_integer

RECURRENT, ATTENTION = "linear_attention", "full_attention"
DENSE_TYPES = ("qwen3_5", "qwen3_5_text")
EXPERT_TYPES = ("qwen3_5_moe", "qwen3_5_moe_text")

# Fields of a transformers config that mean the same here under a shorter name.
CONFIG_FIELDS = {
    "hidden_size": "hidden_size",
    "query_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "linear_key_heads": "linear_num_key_heads",
    "linear_value_heads": "linear_num_value_heads",
    "linear_key_dim": "linear_key_head_dim",
    "linear_value_dim": "linear_value_head_dim",
    "conv_kernel": "linear_conv_kernel_dim",
}
DENSE_FIELDS = {"intermediate_size": "intermediate_size"}
EXPERT_FIELDS = {
    "intermediate_size": "shared_expert_intermediate_size",
    "experts": "num_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_intermediate_size": "moe_intermediate_size",
}


@dataclass(frozen=True)
class HybridArchitecture:
    """The shape of a hybrid model, as far as state sizes and prefill FLOPs depend on it.

    Attributes:
        name: what to call it in tables.
        recurrent_layers, attention_layers: how many layers of each kind.
        hidden_size: width of the residual stream.
        intermediate_size: width of the MLP, or of the shared expert of a mixture of experts.
        query_heads, kv_heads, head_dim: of an attention layer.
        linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim: of a recurrent
            layer; its state is one ``linear_key_dim x linear_value_dim`` matrix a value head.
        conv_kernel: taps of the short causal convolution of a recurrent layer.
        experts, experts_per_token, expert_intermediate_size: of a mixture of experts, 0 without.
        conv_columns: past inputs of the convolution that are kept. Serving engines keep
            ``conv_kernel - 1`` (3 here), transformers keeps ``conv_kernel`` (4).
        recurrent_element_bytes: 4, since the recurrent state stays in float32 in a bf16 model.
        conv_element_bytes, kv_element_bytes: 2 for bf16.
    """

    name: str
    recurrent_layers: int
    attention_layers: int
    hidden_size: int
    intermediate_size: int
    query_heads: int
    kv_heads: int
    linear_value_heads: int
    linear_key_heads: int = 16
    linear_key_dim: int = 128
    linear_value_dim: int = 128
    head_dim: int = 256
    conv_kernel: int = 4
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate_size: int = 0
    conv_columns: int = 3
    recurrent_element_bytes: int = 4
    conv_element_bytes: int = 2
    kv_element_bytes: int = 2

    def __post_init__(self) -> None:
        may_be_zero = {"recurrent_layers", "attention_layers", "intermediate_size", "experts"}
        may_be_zero |= {"experts_per_token", "expert_intermediate_size", "conv_columns"}
        for field in fields(self):
            if field.name != "name":
                smallest = 0 if field.name in may_be_zero else 1
                check_integer(field.name, getattr(self, field.name), minimum=smallest)

    # -- bytes ---------------------------------------------------------------------------------

    @property
    def recurrent_state_bytes(self) -> int:
        """Bytes of the recurrent state of one layer: value heads x key dim x value dim."""
        elements = self.linear_value_heads * self.linear_key_dim * self.linear_value_dim
        return elements * self.recurrent_element_bytes

    @property
    def conv_state_bytes(self) -> int:
        """Bytes of the convolution state of one layer: query, key and value channels x columns."""
        return self._conv_channels * self.conv_columns * self.conv_element_bytes

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of one checkpoint of the whole model: the state of every recurrent layer."""
        return self.recurrent_layers * (self.recurrent_state_bytes + self.conv_state_bytes)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of attention keys and values of one token over the whole model."""
        return self.attention_layers * 2 * self.kv_heads * self.head_dim * self.kv_element_bytes

    @property
    def checkpoint_kv_tokens(self) -> float:
        """How many tokens of KV weigh as much as one checkpoint (infinite without attention)."""
        if not self.kv_bytes_per_token:
            return float("inf")
        return self.checkpoint_bytes / self.kv_bytes_per_token

    # -- FLOPs ---------------------------------------------------------------------------------

    @property
    def flops_per_token(self) -> int:
        """FLOPs of one token apart from attention scores: linear in the length of a prefill.

        A multiply-add counts as 2. Projections, MLP or active experts with their router,
        convolution and recurrence; norms, activations and the vocabulary are left out.
        """
        layers = self.recurrent_layers + self.attention_layers
        return (
            self.recurrent_layers * self._recurrent_layer_flops
            + self.attention_layers * self._attention_projection_flops
            + layers * self._mlp_flops
        )

    def prefill_flops(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Return the FLOPs of prefilling the first ``tokens`` tokens: usable as a prefill cost.

        Linear work and causal attention: token ``i`` reads ``i + 1`` keys and as many values, so
        ``x`` tokens cost ``4 * heads * head_dim * x (x + 1) / 2`` per attention layer. The
        logits, computed once a request wherever it resumes, are not part of it.
        """
        x = np.asarray(tokens, dtype=np.float64)
        attention = 2.0 * self.attention_layers * self.query_heads * self.head_dim
        return self.flops_per_token * x + attention * x * (x + 1.0)

    @property
    def _conv_channels(self) -> int:
        keys = self.linear_key_heads * self.linear_key_dim
        return 2 * keys + self.linear_value_heads * self.linear_value_dim

    @property
    def _recurrent_layer_flops(self) -> int:
        """A Gated DeltaNet layer, one token (Yang et al. 2024, https://arxiv.org/abs/2412.06464).

        The recurrence counts as its step-by-step form: decay the state, read it with the key,
        write the correction, read it with the query. The chunked form that runs a prefill does
        more arithmetic in fewer steps.
        """
        values = self.linear_value_heads * self.linear_value_dim
        gates = 2 * self.linear_value_heads
        projections = self.hidden_size * (self._conv_channels + values + gates)
        output = values * self.hidden_size
        convolution = self._conv_channels * self.conv_kernel
        state = self.linear_value_heads * self.linear_key_dim * self.linear_value_dim
        return 2 * (projections + output + convolution) + 7 * state

    @property
    def _attention_projection_flops(self) -> int:
        """Query with its output gate (twice the width), key, value and output projections."""
        queries, keys = self.query_heads * self.head_dim, self.kv_heads * self.head_dim
        return 2 * self.hidden_size * (2 * queries + 2 * keys + queries)

    @property
    def _mlp_flops(self) -> int:
        """Three matrices of the MLP or shared expert, and of each active expert with its router."""
        width = self.intermediate_size + self.experts_per_token * self.expert_intermediate_size
        router = self.experts + 1 if self.experts else 0
        return 2 * self.hidden_size * (3 * width + router)

    # -- where it comes from -------------------------------------------------------------------

    @classmethod
    def preset(cls, name: str) -> HybridArchitecture:
        """Return a published Qwen3.5 model by name, see :func:`presets`; ``ValueError`` else."""
        return PRESETS[check_choice("preset", str(name).lower(), PRESETS)]

    @classmethod
    def from_config(
        cls, config: Any, conv_columns: int = 3, element_bytes: int = 2
    ) -> HybridArchitecture:
        """Read the shape from a Qwen3.5 config of transformers, or from its ``config.json``.

        Args:
            config: a config object or a mapping, of the text model or of the multimodal one.
            conv_columns: columns of the convolution state that are kept (transformers: 4).
            element_bytes: bytes of an element of KV and convolution state.

        Raises:
            ValueError: for a model of another family, whose sizes these formulas do not give.
        """
        config = _text_config(config)
        kind = _field(config, "model_type")
        check_choice("model_type", kind, DENSE_TYPES + EXPERT_TYPES)
        names = CONFIG_FIELDS | (EXPERT_FIELDS if kind in EXPERT_TYPES else DENSE_FIELDS)
        layers = _layer_types(config)
        return cls(
            name=_field(config, "_name_or_path", "") or kind,
            recurrent_layers=layers.count(RECURRENT),
            attention_layers=layers.count(ATTENTION),
            conv_columns=conv_columns,
            conv_element_bytes=element_bytes,
            kv_element_bytes=element_bytes,
            **{ours: _field(config, theirs) for ours, theirs in names.items()},
        )


def presets() -> tuple[str, ...]:
    """Return the names that :meth:`HybridArchitecture.preset` knows, smallest model first."""
    return tuple(PRESETS)


def _text_config(config: Any) -> Any:
    """Return the language model's part of a config."""
    inner = _field(config, "text_config", None)
    return config if inner is None else inner


def _field(config: Any, name: str, *default: Any) -> Any:
    """Return a field of a config object or mapping; ``ValueError`` if missing without default."""
    found = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
    if found is None and not default:
        raise ValueError(f"the config has no {name}: a Qwen3.5 config is expected.")
    return default[0] if found is None else found


def _layer_types(config: Any) -> list[str]:
    """Return the kind of each layer, from the list or from the attention interval (4 if unsaid)."""
    types = _field(config, "layer_types", None)
    if types is None:
        interval = check_integer(
            "full_attention_interval", _field(config, "full_attention_interval", 4), minimum=1
        )
        layers = range(1, _field(config, "num_hidden_layers") + 1)
        return [ATTENTION if layer % interval == 0 else RECURRENT for layer in layers]
    for kind in types:
        check_choice("layer type", kind, (RECURRENT, ATTENTION))
    return list(types)


def _dense(name: str, layers: int, *sizes: int) -> HybridArchitecture:
    """A dense preset; ``sizes``: hidden, intermediate, query, KV and linear value heads."""
    hidden, intermediate, query, kv, values = sizes
    return HybridArchitecture(
        name, layers * 3 // 4, layers // 4, hidden, intermediate, query, kv, values
    )


def _mixture(
    name: str, layers: int, hidden: int, width: int, experts: int, active: int, *heads: int
) -> HybridArchitecture:
    """A mixture-of-experts preset; ``width`` of each expert and of the shared one."""
    query, kv, values = heads
    return HybridArchitecture(
        name,
        layers * 3 // 4,
        layers // 4,
        hidden,
        width,
        query,
        kv,
        values,
        experts=experts,
        experts_per_token=active,
        expert_intermediate_size=width,
    )


# From the models' published config.json files: every fourth layer is attention in all of them.
PRESETS = {
    architecture.name: architecture
    for architecture in (
        _dense("qwen3.5-0.8b", 24, 1024, 3584, 8, 2, 16),
        _dense("qwen3.5-2b", 24, 2048, 6144, 8, 2, 16),
        _dense("qwen3.5-4b", 32, 2560, 9216, 16, 4, 32),
        _dense("qwen3.5-9b", 32, 4096, 12288, 16, 4, 32),
        _dense("qwen3.5-27b", 64, 5120, 17408, 24, 4, 48),
        _mixture("qwen3.5-35b-a3b", 40, 2048, 512, 256, 8, 16, 2, 32),
        _mixture("qwen3.5-122b-a10b", 48, 3072, 1024, 256, 8, 32, 2, 64),
        _mixture("qwen3.5-397b-a17b", 60, 4096, 1024, 512, 10, 32, 2, 64),
    )
}
