"""A synthetic stand-in shaped like QuALITY, for where the data set itself cannot be had.

Published facts that it follows (Pang et al., 2022, https://arxiv.org/abs/2112.08608): articles of
2,000 to 8,000 tokens, about 5,000 on average (drawn uniformly here), and 6,737 questions on 381
articles, about 18 an article. Only shape is imitated: the token ids are random.
"""

from __future__ import annotations

import numpy as np

from sparselab.validation import check_integer
from sparselab.workloads.synthetic_documents import synthetic_documents
from sparselab.workloads.workload import Workload, check_request_count

SUMMARY = "synthetic stand-in shaped like QuALITY (random tokens, published lengths)"
ARTICLE_TOKENS = (2000, 8000)
QUESTIONS_PER_ARTICLE = 18
QUESTION_TOKENS = (15, 60)  # question and answer; an assumption


def load(
    path: None = None,
    documents: int = 20,
    questions_per_document: int = QUESTIONS_PER_ARTICLE,
    seed: int = 0,
) -> Workload:
    """Make ``documents`` articles with their questions; equal seeds give equal ones."""
    if path is not None:
        raise ValueError(f"path must be left out for a synthetic workload, got {path!r}.")
    documents = check_request_count("documents", documents)
    rng = np.random.default_rng(check_integer("seed", seed, minimum=0))
    return synthetic_documents(
        name="synthetic, shaped like QuALITY",
        likeness="article lengths and questions an article as published for QuALITY",
        lengths=rng.integers(*ARTICLE_TOKENS, size=documents, endpoint=True),
        questions_per_document=questions_per_document,
        question_tokens=QUESTION_TOKENS,
        rng=rng,
        provenance={
            "generator": "synthetic_quality",
            "documents": documents,
            "questions_per_document": questions_per_document,
            "seed": seed,
        },
    )
