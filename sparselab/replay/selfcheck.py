"""Does a model carry its recurrent state from one multi-token call to the next?

Some architectures in transformers ignore the stored state in a call of several tokens. A resumed
run then equals an equally cut cold run bit for bit, and both are wrong. So a model is compared with
itself in one call, against controls that drop its recurrent or its convolution state. Each alone:
dropping both would hide a recurrent state that is ignored behind a convolution that matters more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

import torch
import transformers
from transformers import DynamicCache

from sparselab.replay import state
from sparselab.replay.devices import check_fits

if TYPE_CHECKING:
    from sparselab.replay.models import ReplayModel

TOKENS, CUT = 96, 60
LARGEST_SHARE = 0.01

Parameters = Iterable[torch.nn.Parameter]


@dataclass(frozen=True)
class SelfCheck:
    """What was found, on the same random tokens and weights.

    Attributes:
        split_difference: largest difference of any logit after the cut, two calls against one.
        dropped_differences: the same where states of one kind (``recurrent``, ``conv``) are zeroed
            at the cut.
        dtype: in which it was decided; float32 where half precision rounds too coarsely to tell.
        checkpoint_bytes, kv_bytes_per_token: measured from the tensors in the model's own dtype.
    """

    split_difference: float
    dropped_differences: dict[str, float]
    dtype: torch.dtype
    checkpoint_bytes: int
    kv_bytes_per_token: int

    @property
    def passed(self) -> bool:
        """Whether splitting changes less than 1 % of what dropping either state changes."""
        return self.split_difference < LARGEST_SHARE * min(self.dropped_differences.values())


def self_check(model: ReplayModel) -> SelfCheck:
    """Compare two calls with one and with lost states; ``ValueError`` where state is lost.

    Rounding in half precision alone can reach 1 % of a control. Where it does, the same weights
    are compared once more in float32, layer by layer in place, and put back bit by bit.
    ``ValueError`` also where the installed kernels do not compute the model at all.
    """
    state.new_cache(model.config)  # refuses layers that replay does not know
    result = _compare(model)
    if not result.passed and model.dtype != torch.float32:
        wide = _compare_in_float32(model)
        sizes = (result.checkpoint_bytes, result.kv_bytes_per_token)
        result = SelfCheck(wide.split_difference, wide.dropped_differences, torch.float32, *sizes)
    if not result.passed:
        dropped = ", ".join(
            f"its {kind} state by {difference:.2g}"
            for kind, difference in result.dropped_differences.items()
        )
        raise ValueError(
            f"{model.name!r} ({model.config.model_type}) does not carry its state across calls in "
            f"transformers {transformers.__version__}: cutting a prompt in two changes its logits "
            f"by {result.split_difference:.2g}, dropping {dropped}, and the first must be under "
            "1 % of each; resuming it would be silently wrong, so it is refused."
        )
    return result


def _compare(model: ReplayModel) -> SelfCheck:
    """Compare in the dtype that the weights have now."""
    try:
        return _differences(model)
    except Exception as error:  # of many types, by the kernel that fails
        dtype = next(model.module.parameters()).dtype
        reason = shorten(str(error), 300, placeholder=" ...")
        raise ValueError(
            f"{model.name!r} ({model.config.model_type}) does not run in {dtype} on {model.device} "
            f"with the kernels installed here ({type(error).__name__}: {reason}): try another "
            "dtype or device, or without the packages flash-linear-attention and causal-conv1d."
        ) from error


def _differences(model: ReplayModel) -> SelfCheck:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(model.vocab_size, (TOKENS,), generator=generator).to(model.device)
    whole = model.all_logits(tokens, state.new_cache(model.config), 0)[CUT:].float()
    cache = state.new_cache(model.config)
    model.forward(tokens[:CUT], cache, 0)
    kv, memory = state.read_kv(cache), state.read_state(cache)
    checkpoint_bytes = sum(state.size_in_bytes(memory).values())
    kv_bytes = sum(state.size_in_bytes(kv).values())

    def difference(restored: DynamicCache) -> float:
        logits = model.all_logits(tokens[CUT:], restored, CUT).float()
        return (logits - whole).abs().max().item()

    dropped = {
        kind: difference(state.restore(model.config, kv, state.without(memory, kind), CUT))
        for kind in sorted({state.kind(name) for name in memory})
    }
    # Last, since it overwrites the states that the others were made from.
    split = difference(cache)
    return SelfCheck(split, dropped, model.dtype, checkpoint_bytes, kv_bytes // CUT)


def _compare_in_float32(model: ReplayModel) -> SelfCheck:
    """Compare with float32 weights, those of a layer only while it computes.

    All weights at once would take three times the memory of the model in half precision.
    """
    layers = list(_layers(model.module))
    in_layers = {parameter for layer in layers for parameter in layer.parameters()}
    others = [parameter for parameter in model.module.parameters() if parameter not in in_layers]
    largest = max((_elements(layer.parameters()) for layer in layers), default=0)
    needed = 4 * (_elements(others) + largest)
    check_fits(f"the self-check of {model.name!r} in float32", needed, model.device)
    with _widened(layers, others):
        return _compare(model)


@contextmanager
def _widened(layers: Sequence[torch.nn.Module], others: Parameters) -> Iterator[None]:
    """Widen ``others`` to float32, and the weights of each layer during its calls; put all back."""
    narrow: dict[torch.nn.Parameter, torch.Tensor] = {}

    def widen(parameters: Parameters) -> None:
        for parameter in parameters:
            narrow[parameter] = parameter.data
            parameter.data = parameter.data.float()

    def put_back(parameters: Parameters) -> None:
        for parameter in parameters:
            parameter.data = narrow.pop(parameter)

    hooks = []
    try:
        for layer in layers:
            before = layer.register_forward_pre_hook(lambda layer, _: widen(layer.parameters()))
            after = layer.register_forward_hook(lambda layer, *_: put_back(layer.parameters()))
            hooks += [before, after]
        widen(others)
        yield
    finally:
        for hook in hooks:
            hook.remove()
        put_back(list(narrow))


def _elements(parameters: Parameters) -> int:
    return sum(parameter.numel() for parameter in parameters)


def _layers(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Yield the modules of the outermost lists in a model: its layers."""
    for child in module.children():
        if isinstance(child, torch.nn.ModuleList):
            yield from child
        else:
            yield from _layers(child)
