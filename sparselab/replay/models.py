"""Loading a model to replay on: random weights, a local folder or the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

from sparselab.replay import random_models, state
from sparselab.replay.devices import HOST, check_fits, choose_device, choose_dtype, device_name
from sparselab.replay.selfcheck import SelfCheck, self_check
from sparselab.validation import check_integer, nearest

# Values of each tensor that go into a model's fingerprint.
FINGERPRINT_VALUES = 64
SAME_SIZE_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# What a config says of where a model came from; the weights' dtype is read from the weights.
NOT_THE_MODEL = ("_name_or_path", "architectures", "dtype", "transformers_version")


@dataclass(eq=False)
class ReplayModel:
    """A model together with what replay needs to know about it.

    Attributes:
        name: as it was asked for.
        module: the transformers model, in evaluation mode.
        device, dtype: where it runs, and the dtype of its matrices.
        weights: such as ``"random (seed 0)"``, or ``"pretrained"``.
        check: the self-check made on load; sizes measured from its tensors.
    """

    name: str
    module: PreTrainedModel
    device: torch.device
    dtype: torch.dtype
    weights: str
    check: SelfCheck = field(init=False)

    def __post_init__(self) -> None:
        accepted = signature(self.module.forward).parameters
        if "cache" not in accepted:
            raise ValueError(
                f"forward of {type(self.module).__name__} takes no cache= argument, so a second "
                "call would silently start from nothing; replay refuses it."
            )
        # Only the last token's logits are needed; not computing the others saves most of the head.
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._takes_positions = "position_ids" in accepted
        self.check = self_check(self)

    @property
    def config(self) -> Any:
        """The config of the language model."""
        return self.module.config.get_text_config(decoder=True)

    @property
    def vocab_size(self) -> int:
        """Token ids lie in ``0..vocab_size-1``."""
        return self.config.vocab_size

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of one checkpoint, measured from its tensors."""
        return self.check.checkpoint_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of attention KV a token, measured from its tensors."""
        return self.check.kv_bytes_per_token

    @cached_property
    def fingerprint(self) -> str:
        """Which model this is: a checksum of its config and of each weight's sum and 64 values.

        Sums are of the weights' bits as integers, so they are the same on every device.
        """
        config = self.config.to_dict()
        described = {name: config[name] for name in sorted(config) if name not in NOT_THE_MODEL}
        digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
        for name, parameter in self.module.named_parameters():
            flat = parameter.detach().reshape(-1)
            step = max(1, flat.numel() // FINGERPRINT_VALUES)
            sample = flat[::step][:FINGERPRINT_VALUES].float().cpu().numpy()
            total = flat.view(SAME_SIZE_INTEGER[flat.itemsize]).sum(dtype=torch.int64).item()
            digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype} {total}".encode())
            digest.update(sample.tobytes())
        return digest.hexdigest()

    @torch.no_grad()
    def forward(self, tokens: torch.Tensor, cache: DynamicCache, start: int) -> torch.Tensor:
        """Run ``tokens`` (1-D, on the device) after the ``start`` tokens that ``cache`` holds.

        The cache is extended. Returns the logits of the last token, shape ``(vocab_size,)``.
        """
        return self._call(tokens, cache, start, **self._last_only)[-1]

    @torch.no_grad()
    def all_logits(self, tokens: torch.Tensor, cache: DynamicCache, start: int) -> torch.Tensor:
        """Like :meth:`forward`, but return the logits of every token, shape ``(tokens, vocab)``."""
        return self._call(tokens, cache, start)

    def _call(
        self, tokens: torch.Tensor, cache: DynamicCache, start: int, **options: Any
    ) -> torch.Tensor:
        if self._takes_positions:
            # Most models count on from the cache; some (Bamba) begin at 0 in every call.
            positions = torch.arange(start, start + tokens.numel(), device=tokens.device)
            options |= {"position_ids": positions[None]}
        output = self.module(input_ids=tokens[None], cache=cache, use_cache=True, **options)
        return output.logits[0]

    def __repr__(self) -> str:
        return (
            f"ReplayModel({self.name!r}, {self.weights} weights, "
            f"{str(self.dtype).removeprefix('torch.')}, {device_name(self.device)})"
        )


def load_model(
    name: str | Path,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    seed: int = 0,
) -> ReplayModel:
    """Load a hybrid model and check that it carries its state across calls.

    Args:
        name: ``"tiny"`` (200,360 parameters, for tests and demonstrations),
            ``"qwen3.5-0.8b-group"`` (one group of three recurrent layers and one attention layer
            with the real dimensions, random weights, 4,096 tokens of vocabulary: what the paper
            times), ``"qwen3.5-0.8b-random"`` (all 24 layers, random weights), or a local folder
            or hub id of a model for transformers' ``AutoModelForCausalLM``.
        device: ``"auto"`` takes CUDA if there, else MPS, else the CPU.
        dtype: ``"auto"`` takes bfloat16 where the device computes it natively, float16 on older
            CUDA devices, else float32. Recurrent states stay in float32 in any case.
        seed: of the random weights; pretrained weights do not depend on it.

    Raises:
        ValueError: an unknown name, device or dtype; a model that does not fit in memory (with
            the bytes needed), that is not hybrid, or that loses state between calls.
        OSError: a model that is neither here nor to be had.
    """
    name = str(name)
    seed = check_integer("seed", seed, minimum=0)
    chosen_device = choose_device(device)
    chosen_dtype = choose_dtype(dtype, chosen_device)
    config = random_models.configs().get(name)
    if config is not None:
        # Drawn in host memory in float32 whatever the device and dtype.
        drawn = weight_bytes(config, torch.float32)
        check_memory(name, weight_bytes(config, chosen_dtype), chosen_device, drawn)
        module = random_models.build(config, chosen_device, chosen_dtype, seed)
        return ReplayModel(name, module, chosen_device, chosen_dtype, f"random (seed {seed})")
    with _cannot_be_loaded(name):
        config = _pretrained_config(name)
        needed = weight_bytes(config, chosen_dtype)
    # Refuses a model whose cache replay does not know before its weights take up memory.
    state.new_cache(config)
    # Read into host memory whatever the device.
    check_memory(name, needed, chosen_device, needed)
    with _cannot_be_loaded(name):
        module = _pretrained(name, chosen_dtype)
    return ReplayModel(
        name, module.to(chosen_device).eval(), chosen_device, chosen_dtype, "pretrained"
    )


def check_memory(name: str, needed: int, device: torch.device, needed_on_host: int) -> None:
    """Raise ``ValueError`` where a model fits not on its device, or not in host memory before.

    Both are bytes of its weights, which are made in host memory before they move.
    """
    check_fits(f"model {name!r}", needed, device)
    check_fits(f"making the weights of model {name!r}", needed_on_host, HOST)


def weight_bytes(config: Any, dtype: torch.dtype) -> int:
    """Return the bytes of a model's weights in ``dtype``, without allocating them."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=False)
    return sum(parameter.nbytes for parameter in model.parameters())


def _pretrained_config(name: str) -> Any:
    """Return the config of a folder or hub id."""
    # A hub id is owner/name; asking the hub for anything else only takes time.
    if not Path(name).is_dir() and name.count("/") != 1:
        raise OSError("neither a folder nor a hub id")
    # Replay knows the caches of transformers' own classes; code from a folder is never run.
    return AutoConfig.from_pretrained(name, trust_remote_code=False)


def _pretrained(name: str, dtype: torch.dtype) -> PreTrainedModel:
    """Return the model of a folder or hub id, all of whose weights were found."""
    module, found = AutoModelForCausalLM.from_pretrained(
        name,
        dtype=dtype,
        trust_remote_code=False,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    # transformers draws these at random, with a warning.
    absent = sorted([*found["missing_keys"], *(key[0] for key in found["mismatched_keys"])])
    if absent:
        raise OSError(
            f"its files hold {len(absent)} of the weights not at all or in another shape, such as "
            f"{absent[0]}"
        )
    return module


@contextmanager
def _cannot_be_loaded(name: str) -> Iterator[None]:
    """Turn a failure to read a folder or hub id into one sentence that says what would work."""
    known = tuple(random_models.configs())
    try:
        yield
    except Exception as error:  # of many types, by what is wrong with the files
        reason = shorten(str(error), 300, placeholder=" ...").rstrip(".")
        if not isinstance(error, (OSError, ValueError)):
            reason = f"{type(error).__name__}: {reason}"
        raise OSError(
            f"model {name!r} cannot be loaded{nearest(name, known)}: use a random one "
            f"({', '.join(known)}), the path of a folder made by save_pretrained, or a hub id that "
            f"is in the local cache or can be downloaded ({reason})."
        ) from error
