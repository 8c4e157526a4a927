"""Requests that ask many questions about one document."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from sparselab.workloads.prefix_index import common_prefix
from sparselab.workloads.workload import Request


def document_requests(group: Hashable, prompts: Iterable[NDArray[np.int64]]) -> list[Request]:
    """Return one request a prompt, keeping what all share with the first only once in memory."""
    requests: list[Request] = []
    for prompt in prompts:
        if not requests:
            first = prompt
            requests.append(Request(group, first))
            continue
        shared = common_prefix(first, prompt)
        # Without this copy the tail would be a view that keeps the whole prompt alive.
        requests.append(Request(group, first[:shared], tail=prompt[shared:].copy()))
    return requests
