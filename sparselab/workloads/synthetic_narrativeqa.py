"""A synthetic stand-in shaped like NarrativeQA, whose stories are not to be redistributed.

Story lengths are drawn from the shipped counts of words of its 1,572 documents
(``data/narrativeqa_lengths.csv``) times ``tokens_per_word``; 46,765 questions on 1,572 stories make
about 30 a story (Kocisky et al., 2018, https://arxiv.org/abs/1712.07040). Only shape is imitated:
the token ids are random.
"""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from sparselab.shipped_data import data_folder
from sparselab.validation import check_integer, check_number
from sparselab.workloads.synthetic_documents import synthetic_documents
from sparselab.workloads.workload import Workload, check_request_count

SUMMARY = "synthetic stand-in shaped like NarrativeQA (random tokens, counted story lengths)"
QUESTIONS_PER_STORY = 30
QUESTION_TOKENS = (8, 24)  # an assumption


def load(
    path: None = None,
    documents: int = 10,
    questions_per_document: int = QUESTIONS_PER_STORY,
    tokens_per_word: float = 1.3,
    seed: int = 0,
) -> Workload:
    """Make ``documents`` stories with their questions; equal seeds give equal ones.

    ``tokens_per_word`` turns counted words into tokens; 1.3 is a usual ratio for English.
    """
    if path is not None:
        raise ValueError(f"path must be left out for a synthetic workload, got {path!r}.")
    documents = check_request_count("documents", documents)
    tokens_per_word = check_number("tokens_per_word", tokens_per_word, above=0.0, maximum=100.0)
    rng = np.random.default_rng(check_integer("seed", seed, minimum=0))
    lengths = np.maximum(1, np.rint(draw_words(documents, rng) * tokens_per_word)).astype(np.int64)
    return synthetic_documents(
        name="synthetic, shaped like NarrativeQA",
        likeness="story lengths and questions a story as counted in NarrativeQA's document list",
        lengths=lengths,
        questions_per_document=questions_per_document,
        question_tokens=QUESTION_TOKENS,
        rng=rng,
        provenance={
            "generator": "synthetic_narrativeqa",
            "documents": documents,
            "questions_per_document": questions_per_document,
            "tokens_per_word": tokens_per_word,
            "seed": seed,
        },
    )


def draw_words(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw story lengths in words: a cell of the shipped counts, then uniformly inside it."""
    with (data_folder() / "narrativeqa_lengths.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    low = np.array([int(row["words_from"]) for row in rows])
    high = np.array([int(row["words_to"]) for row in rows])
    documents = np.array([int(row["documents"]) for row in rows])
    cells = rng.choice(len(rows), size=count, p=documents / documents.sum())
    return rng.integers(low[cells], high[cells], endpoint=True)
