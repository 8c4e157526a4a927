"""The numba kernels of `optimal.py`, apart so that numba is imported only when one solves."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(
    "void(float64[::1], float64[::1], int64, int32[:,::1], float64[:,::1])",
    cache=True,
    error_model="numpy",
)
def solve_layers(
    weight_below: NDArray[np.float64],
    saving: NDArray[np.float64],
    layers: int,
    choices: NDArray[np.int32],
    saved: NDArray[np.float64],
) -> None:
    """Fill ``choices[m - 1, j]``: the last of ``m`` checkpoints that serve groups ``0..j``.

    Args:
        weight_below: ``P``, shape ``(K + 1,)``; ``P[j]`` is the weight of groups ``0..j-1``.
        saving: ``G`` at each group's candidate position, strictly increasing, shape ``(K,)``.
        layers: the number of checkpoints ``M``, at most ``K``.
        choices: the result, shape ``(M, K)``.
        saved: the most that ``m`` checkpoints save of groups ``0..K-1``, by ``m`` in row 0; rows
            1 and 2 are working space of ``K + 1`` values.

    The recurrence, in savings rather than costs (the two add up to a constant)::

        S[m][j] = max over s <= j of  S[m-1][s-1] + G[s] * (P[j+1] - P[s])

    is for each ``j`` the highest of lines with slope ``G[s]`` at ``x = P[j+1]``. Slopes and
    queries both increase, so one deque of lines serves a whole layer in O(K).

    Why rounding cannot spoil integers with ``P * G < 2**53``: slopes, intercepts, and lines at an
    integer ``x`` are then exact, so two lines that differ at ``x`` differ by at least 1 there.
    Their crossing is the one rounded quantity, and it lies at least ``1 / G > x * 2**-53`` from
    ``x``, so it rounds to its own side of ``x``; and a line that is the best at some ``x`` is kept
    by the test below, since rounding is monotone and ``x * (slope difference)`` exact.
    """
    count = saving.size
    line = np.empty(count, dtype=np.int32)
    slope = np.empty(count)
    intercept = np.empty(count)
    crossing = np.empty(count)  # where line i overtakes line i - 1
    line[0], slope[0], intercept[0], crossing[0] = 0, saving[0], 0.0, 0.0
    before, now = saved[1], saved[2]
    before[:] = 0.0
    for m in range(layers):
        head, top = 0, 0
        last_slope, last_intercept, last_crossing = slope[0], 0.0, 0.0
        choices[m, 0], now[0], now[1] = 0, 0.0, saving[0] * weight_below[1]
        for j in range(1, count):
            # Add line j, after dropping those that it overtakes before they lead.
            new_slope = saving[j]
            new_intercept = before[j] - new_slope * weight_below[j]
            rise, fall = new_slope - last_slope, last_intercept - new_intercept
            while top > head and fall <= last_crossing * rise:
                top -= 1
                last_slope, last_intercept = slope[top], intercept[top]
                last_crossing = crossing[top]
                rise, fall = new_slope - last_slope, last_intercept - new_intercept
            top += 1
            last_slope, last_intercept, last_crossing = new_slope, new_intercept, fall / rise
            line[top], slope[top], intercept[top] = j, last_slope, last_intercept
            crossing[top] = last_crossing
            # Move on to the line that leads at x.
            x = weight_below[j + 1]
            while head < top and x >= crossing[head + 1]:
                head += 1
            choices[m, j] = line[head]
            now[j + 1] = slope[head] * x + intercept[head]
        saved[0, m + 1] = now[count]
        before, now = now, before


@njit(
    "Tuple((float64, int64))(float64[::1], float64[::1], float64)",
    cache=True,
    error_model="numpy",
)
def solve_priced(
    weight_below: NDArray[np.float64], saving: NDArray[np.float64], price: float
) -> tuple[float, int]:
    """Return the most that any number of checkpoints saves, each for ``price``, and that number.

    ``weight_below`` and ``saving`` are those of :func:`solve_layers`, whose layers are one here::

        S[j] = max of 0 and, over s <= j, S[s-1] - price + G[s] * (P[j+1] - P[s])

    So the same lines and the same deque serve, in O(K), after a line that is 0 everywhere: no
    checkpoint. Of several numbers that save as much, any may come back.
    """
    count = saving.size
    slope = np.zeros(count + 1)
    intercept = np.zeros(count + 1)
    crossing = np.zeros(count + 1)  # where line i overtakes line i - 1
    used = np.zeros(count + 1, dtype=np.int64)  # checkpoints of line i
    head, top = 0, 0
    best, checkpoints = 0.0, 0
    for j in range(count):
        # Add line j, after dropping those that it overtakes before they lead.
        new_slope = saving[j]
        new_intercept = best - price - new_slope * weight_below[j]
        while top > head and intercept[top] - new_intercept <= crossing[top] * (
            new_slope - slope[top]
        ):
            top -= 1
        overtakes = (intercept[top] - new_intercept) / (new_slope - slope[top])
        top += 1
        slope[top], intercept[top], crossing[top] = new_slope, new_intercept, overtakes
        used[top] = checkpoints + 1
        # Move on to the line that leads at x.
        x = weight_below[j + 1]
        while head < top and x >= crossing[head + 1]:
            head += 1
        best, checkpoints = slope[head] * x + intercept[head], used[head]
    return best, checkpoints


@njit(
    "void(float64[::1], float64[::1], int64[::1], float64[::1], int32[:,::1], float64[::1])",
    cache=True,
)
def price_layers(
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
    starts: NDArray[np.int64],
    saving: NDArray[np.float64],
    choices: NDArray[np.int32],
    priced: NDArray[np.float64],
) -> None:
    """Fill ``priced[m]`` with ``sum w * (G(d) - G(l))`` of the schedule of ``m`` checkpoints.

    Args:
        weights: weight of each support depth, shape ``(D,)``.
        costs: ``G`` at each support depth, shape ``(D,)``.
        starts: first support depth of each group, and ``D`` at the end, shape ``(K + 1,)``.
        saving: ``G`` at each group's candidate position, shape ``(K,)``.
        choices: from :func:`solve_layers`, shape ``(M, K)``.
        priced: the result for ``m = 1..M`` in ``priced[1:]``.

    Summing what is recomputed, rather than subtracting what is saved from the whole, keeps small
    costs accurate; Neumaier's compensation keeps the sum itself so.
    """
    for m in range(1, choices.shape[0] + 1):
        total, lost = 0.0, 0.0
        layer, end, last_group = m, weights.size, choices.shape[1] - 1
        while end > 0:
            begin, base = 0, 0.0
            if layer > 0 and last_group >= 0:
                group = choices[layer - 1, last_group]
                begin, base = starts[group], saving[group]
                layer, last_group = layer - 1, group - 1
            for depth in range(begin, end):
                term = weights[depth] * (costs[depth] - base)
                partial = total + term
                lost += (total - partial) + term if total >= term else (term - partial) + total
                total = partial
            end = begin
        priced[m] = total + lost
