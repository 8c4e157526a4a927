"""Does a model carry its recurrent state from one multi-token call to the next?

Some architectures in transformers ignore the stored state in a call of several tokens. A resumed
run then equals an equally cut cold run bit for bit, and both are wrong. So a model is compared with
itself in one call, against a control that drops the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import transformers

from sparselab.replay import state

if TYPE_CHECKING:
    from sparselab.replay.models import ReplayModel

TOKENS, CUT = 160, 128
LARGEST_SHARE = 0.01


@dataclass(frozen=True)
class SelfCheck:
    """What was found, on the same random tokens and weights.

    Attributes:
        split_difference: largest difference of any logit after the cut, two calls against one.
        dropped_difference: the same where recurrent and conv states are zeroed at the cut.
        dtype: in which it was decided; float32 where half precision rounds too coarsely to tell.
        checkpoint_bytes, kv_bytes_per_token: measured from the tensors in the model's own dtype.
    """

    split_difference: float
    dropped_difference: float
    dtype: torch.dtype
    checkpoint_bytes: int
    kv_bytes_per_token: int

    @property
    def passed(self) -> bool:
        """Whether splitting changes less than 1 % of what dropping the state changes."""
        return self.split_difference < LARGEST_SHARE * self.dropped_difference


def self_check(model: ReplayModel) -> SelfCheck:
    """Compare two calls with one and with a lost state; ``ValueError`` where state is lost.

    Rounding in half precision alone can reach 1 % of the control. Where it does, the same weights
    are compared once more in float32, in place and put back bit by bit.
    """
    result = _compare(model)
    if not result.passed and model.dtype != torch.float32:
        sizes = (result.checkpoint_bytes, result.kv_bytes_per_token)
        result = SelfCheck(*_compare_in_float32(model), torch.float32, *sizes)
    if not result.passed:
        raise ValueError(
            f"{model.name!r} ({model.config.model_type}) does not carry its state across calls in "
            f"transformers {transformers.__version__}: cutting a prompt in two changes its logits "
            f"by {result.split_difference:.2g}, dropping the state by "
            f"{result.dropped_difference:.2g}, and the first must be under 1 % of the second; "
            "resuming it would be silently wrong, so it is refused."
        )
    return result


def _compare(model: ReplayModel) -> SelfCheck:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(model.vocab_size, (TOKENS,), generator=generator).to(model.device)
    whole = model.all_logits(tokens, state.new_cache(model.config))[CUT:].float()
    cache = state.new_cache(model.config)
    model.forward(tokens[:CUT], cache)
    kv, memory = state.read_kv(cache), state.read_state(cache)
    lost = state.restore(model.config, kv, state.zeroed(memory), CUT)
    checkpoint_bytes = sum(state.size_in_bytes(memory).values())
    kv_bytes = sum(state.size_in_bytes(kv).values())
    # The copy above comes first: the next call overwrites the states of this cache.
    split = model.all_logits(tokens[CUT:], cache).float()
    dropped = model.all_logits(tokens[CUT:], lost).float()
    return SelfCheck(
        (split - whole).abs().max().item(),
        (dropped - whole).abs().max().item(),
        model.dtype,
        checkpoint_bytes,
        kv_bytes // CUT,
    )


def _compare_in_float32(model: ReplayModel) -> tuple[float, float]:
    """Return both differences with the weights widened to float32 for the time being."""
    from sparselab.replay.devices import check_fits

    parameters = list(model.module.parameters())
    narrow = [parameter.data for parameter in parameters]
    needed = sum(4 * tensor.numel() for tensor in narrow)
    check_fits(f"the self-check of {model.name!r} in float32", needed, model.device)
    try:
        for parameter in parameters:
            parameter.data = parameter.data.float()
        result = _compare(model)
    finally:
        for parameter, tensor in zip(parameters, narrow, strict=True):
            parameter.data = tensor
    return result.split_difference, result.dropped_difference
