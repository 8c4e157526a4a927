"""The one adapter to transformers' cache classes: read a model's state out of one, and restore it.

A snapshot is a flat mapping of names to tensors: ``recurrent.<layer>.<index>`` and
``conv.<layer>.<index>`` for a recurrent layer, ``keys.<layer>`` and ``values.<layer>`` (batch 1,
heads, tokens, head dim) for an attention layer. The part before the first dot is its *kind*.

Everything is done through public methods and attributes of ``DynamicCache``. A layer kind that is
not known here is refused: a cache that is restored in part resumes wrongly without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import (
    DummyLayer,
    DynamicCache,
    DynamicLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionLayer,
)

from sparselab.validation import check_integer

Tensors = dict[str, torch.Tensor]

# Exact classes: a subclass (a sliding window, say) keeps something else than its parent.
ATTENTION_LAYERS = (DynamicLayer, LinearAttentionAndFullAttentionLayer)
RECURRENT_LAYERS = (LinearAttentionLayer, LinearAttentionAndFullAttentionLayer)
KNOWN_LAYERS = (*ATTENTION_LAYERS, *RECURRENT_LAYERS, DummyLayer)

STATE_KINDS = ("recurrent", "conv")
KV_KINDS = ("keys", "values")


def new_cache(config: Any) -> DynamicCache:
    """Return an empty cache for a model's config; ``ValueError`` for an unknown kind of layer."""
    cache = DynamicCache(config=config)
    for index, layer in enumerate(cache.layers):
        if type(layer) not in KNOWN_LAYERS:
            known = ", ".join(sorted({kind.__name__ for kind in KNOWN_LAYERS}))
            raise ValueError(
                f"layer {index} of this {config.model_type} model caches in a "
                f"{type(layer).__name__}, which replay cannot restore; it knows {known}."
            )
    if not any(type(layer) in RECURRENT_LAYERS for layer in cache.layers):
        raise ValueError(
            f"this {config.model_type} model has no recurrent layer: its attention KV alone "
            "resumes at any token, so there is nothing to checkpoint."
        )
    return cache


def read_state(cache: DynamicCache) -> Tensors:
    """Return the recurrent and convolution states, as references that the next call overwrites."""
    found: Tensors = {}
    for layer_index, layer in enumerate(cache.layers):
        if type(layer) not in RECURRENT_LAYERS:
            continue
        for index in range(layer.number_of_states):
            recurrent = cache.get_recurrent_state(layer_index, index)
            conv = cache.get_conv_state(layer_index, index)
            # Some layers have only one of the two (a gated convolution has no recurrent state).
            if recurrent is not None:
                found[f"recurrent.{layer_index}.{index}"] = recurrent
            if conv is not None:
                found[f"conv.{layer_index}.{index}"] = conv
    return found


def read_kv(cache: DynamicCache) -> Tensors:
    """Return the attention keys and values of every token so far, as references."""
    found: Tensors = {}
    for index, layer in enumerate(cache.layers):
        if type(layer) in ATTENTION_LAYERS and layer.is_initialized:
            found[f"keys.{index}"] = layer.keys
            found[f"values.{index}"] = layer.values
    return found


def restore(
    config: Any, kv: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor], length: int
) -> DynamicCache:
    """Return a new cache as it was after ``length`` tokens; the given tensors are only copied.

    Args:
        config: of the model that the snapshot came from.
        kv: keys and values of at least ``length`` tokens, on the model's device.
        state: recurrent and convolution states after exactly ``length`` tokens, on the device.
        length: tokens that the cache covers, at least 1.
    """
    check_integer("length", length, minimum=1)
    cache = new_cache(config)
    for name, tensor in state.items():
        kind, layer, index = name.split(".")
        update = cache.update_conv_state if kind == "conv" else cache.update_recurrent_state
        update(tensor, int(layer), int(index))
    for name, keys in kv.items():
        kind, layer = name.split(".")
        if kind == "keys":
            values = kv[f"values.{layer}"]
            cache.update(keys[:, :, :length], values[:, :, :length], int(layer))
    return cache


def copy_cache(config: Any, cache: DynamicCache, length: int) -> DynamicCache:
    """Return an independent copy of a cache that covers ``length`` tokens."""
    return restore(config, read_kv(cache), read_state(cache), length)


def without(state: Mapping[str, torch.Tensor], *kinds: str) -> Tensors:
    """Return a state that remembers nothing of ``kinds`` (of ``recurrent`` and ``conv``)."""
    return {
        name: torch.zeros_like(tensor) if kind(name) in kinds else tensor
        for name, tensor in state.items()
    }


def kind(name: str) -> str:
    """Return what a tensor of a snapshot is: ``recurrent``, ``conv`` or ``kv``."""
    first = name.split(".")[0]
    return "kv" if first in KV_KINDS else first


def size_in_bytes(tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Return the bytes of a snapshot by kind, measured from its tensors."""
    sizes: dict[str, int] = {}
    for name, tensor in tensors.items():
        sizes[kind(name)] = sizes.get(kind(name), 0) + tensor.nbytes
    return sizes
