"""Cut plans: into which calls a prefill is cut. Results depend on it in the last bits.

A plan is the increasing tuple of the tokens at which calls end. Two prefills of the same tokens
with the same plan give the same bits; with another plan they agree to rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparselab.validation import check_integer


def cut_plan(start: int, end: int, chunk: int, positions: Iterable[int] = ()) -> tuple[int, ...]:
    """Return where calls end between ``start`` and ``end``: the grid, ``positions`` and ``end``.

    The grid is the absolute multiples of ``chunk``, so that a resumed run cuts where a run from
    the first token does. Positions outside ``start+1..end`` are left out.
    """
    check_integer("chunk", chunk, minimum=1)
    grid = range((start // chunk + 1) * chunk, end, chunk)
    inside = {int(position) for position in positions if start < position < end}
    return tuple(sorted({*grid, *inside, end})) if end > start else ()
