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
else:
    # Before the imports below: an unsupported version may lack the classes that they name.
    from sparselab.replay.versions import check_transformers

    check_transformers()

from sparselab.replay.calibration import Calibration, calibrate, calibration_lengths
from sparselab.replay.capture import capture, extend
from sparselab.replay.capture_cost import measure_capture
from sparselab.replay.entry import Entry
from sparselab.replay.live_workload import measure_workload
from sparselab.replay.measurement import measure
from sparselab.replay.models import ReplayModel, load_model
from sparselab.replay.resume import ResumeResult, generate, resume
from sparselab.replay.savings import (
    PredictionError,
    SavingsFit,
    can_fit,
    fit_savings,
    predict,
    prediction_error,
    summarise,
)
from sparselab.replay.tokens import diverging, random_tokens
from sparselab.replay.verify import VerifyReport, verify, verify_depths, verify_resumes

__all__ = [
    "Calibration",
    "Entry",
    "PredictionError",
    "ReplayModel",
    "ResumeResult",
    "SavingsFit",
    "VerifyReport",
    "calibrate",
    "calibration_lengths",
    "can_fit",
    "capture",
    "diverging",
    "extend",
    "fit_savings",
    "generate",
    "load_model",
    "measure",
    "measure_capture",
    "measure_workload",
    "predict",
    "prediction_error",
    "random_tokens",
    "resume",
    "summarise",
    "verify",
    "verify_depths",
    "verify_resumes",
]
