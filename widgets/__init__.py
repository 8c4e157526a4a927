"""What a person touches in a notebook: explorers, and the figures they draw.

Everything is imported on first use, so that a headless run that only draws figures loads no
widget, and placement work loads no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "CheckpointLayout": "checkpoint_layout",
    "DriftExplorer": "drift_explorer",
    "Panel": "panel",
    "PlacementExplorer": "placement_explorer",
    "ResumeLab": "resume_lab",
    "WorkloadExplorer": "workload_explorer",
    "show": "display",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'widgets' has no attribute {name!r}")
    return getattr(importlib.import_module(f"widgets.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
