"""What the synthetic stand-ins share: random documents with random questions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparselab.workloads.workload import Request, Workload, check_request_count

VOCABULARY = 200_000


def synthetic_documents(
    name: str,
    likeness: str,
    lengths: NDArray[np.int64],
    questions_per_document: int,
    question_tokens: tuple[int, int],
    rng: np.random.Generator,
    provenance: dict[str, Any],
) -> Workload:
    """Return requests that each ask a random question about a random document.

    Args:
        name: of the workload; says "synthetic".
        likeness: which data set it is shaped like, and from which facts.
        lengths: tokens of each document, shape ``(documents,)``.
        questions_per_document: requests a document.
        question_tokens: the fewest and the most tokens of a question, drawn uniformly.
        rng: the source of everything random.
        provenance: what to keep with the workload.
    """
    check_request_count("questions_per_document", questions_per_document)
    fewest, most = question_tokens
    requests = []
    for number, length in enumerate(lengths.tolist()):
        document = rng.integers(VOCABULARY, size=length)
        document.setflags(write=False)
        for size in rng.integers(fewest, most, size=questions_per_document, endpoint=True):
            question = rng.integers(VOCABULARY, size=size)
            requests.append(Request(f"document {number}", document, tail=question))
    return Workload(
        name=name,
        requests=requests,
        source=f"made up by a random generator; {likeness}",
        synthetic=True,
        provenance=provenance,
    )
