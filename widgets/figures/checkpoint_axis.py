"""An axis of numbers of checkpoints, which shows 0 and grows by doublings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

TICKS = (0, *(2**power for power in range(13)))


def position(checkpoints: ArrayLike) -> NDArray[np.float64]:
    """Return where numbers of checkpoints stand on the axis: ``log2(1 + checkpoints)``."""
    return np.log2(1.0 + np.asarray(checkpoints, dtype=np.float64))


def axis(title: str, largest: float) -> dict[str, Any]:
    """Return the axis, as plotly's layout has it, from 0 to ``largest`` checkpoints."""
    ticks = [tick for tick in TICKS if tick <= max(largest, 1)]
    return {
        "title": {"text": title},
        "type": "linear",
        "tickmode": "array",
        "tickvals": position(ticks).tolist(),
        "ticktext": [f"{tick:,}" for tick in ticks],
        "range": [-0.25, float(position(largest)) + 0.3],
        "autorange": False,
        "zeroline": False,
    }
