"""Live replay: capture a prompt's state on a real model, resume from it, verify and measure.

    from sparselab import replay

    model = replay.load_model("tiny")
    entry = replay.capture(model, tokens, positions=[64, 192])
    result = replay.resume(model, entry, other_tokens)
    print(replay.verify(model, entry, other_tokens).verdict)

Needs torch and transformers, which only this part of the lab imports.
"""

try:
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"live replay needs torch and transformers ({error}): pip install 'sparselab[replay]'."
    ) from error

from sparselab.replay.capture import capture, extend
from sparselab.replay.entry import Entry
from sparselab.replay.models import ReplayModel, load_model
from sparselab.replay.resume import ResumeResult, generate, resume
from sparselab.replay.tokens import diverging, random_tokens
from sparselab.replay.verify import VerifyReport, verify

__all__ = [
    "Entry",
    "ReplayModel",
    "ResumeResult",
    "VerifyReport",
    "capture",
    "diverging",
    "extend",
    "generate",
    "load_model",
    "random_tokens",
    "resume",
    "verify",
]
