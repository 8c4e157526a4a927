"""NarrativeQA: whole books and film scripts with about thirty questions each.

A request is the ids of the story followed by the ids of ``"\\n\\nQuestion: {question}\\nAnswer:"``,
tokenised apart, so that a story of 100,000 tokens is tokenised once. Three sources:

- the hub data set ``deepmind/narrativeqa`` (``path="hub"``);
- rows of it saved as JSON lines: ``{"document": {"id", "text"}, "question": {"text"}}``;
- a folder in the layout of https://github.com/google-deepmind/narrativeqa: ``documents.csv``,
  ``qaps.csv`` and each story as ``tmp/<document_id>.content``, as its download script saves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparselab.files import open_text, read_json_lines
from sparselab.shipped_data import sample
from sparselab.validation import check_integer
from sparselab.workloads.hub import hub_id, hub_rows, refuse_split
from sparselab.workloads.records import get_field, get_text, origin, read_table
from sparselab.workloads.tokenizers import DEFAULT, get_tokenizer
from sparselab.workloads.workload import Request, Workload

SUMMARY = (
    "NarrativeQA: stories with questions (hub, its rows as JSONL, or its folder), or the sample"
)
HUB_DATASET = "deepmind/narrativeqa"

Story = tuple[str, str, list[str]]  # id, text, questions


def load(
    path: str | Path | None = None,
    tokenizer: str = DEFAULT,
    split: str | None = None,
    documents: int | None = None,
) -> Workload:
    """Read stories and their questions; the shipped sample unless ``path`` is given.

    ``split`` selects a part: by default ``"test"`` of the hub data set, and all of a folder. A
    file is read whole, and a ``split`` of it refused.
    ``documents`` takes only so many stories, the first ones. A group is a story.
    """
    if documents is not None:
        check_integer("documents", documents, minimum=1)
    encode = get_tokenizer(tokenizer).encode
    dataset_id = hub_id(path, HUB_DATASET)
    place = sample("stories") if path is None else Path(path)
    if dataset_id:
        stories = _from_rows(
            hub_rows(dataset_id, split or "test"), f"hub data set {dataset_id}, row"
        )
    elif place.is_dir():
        stories = _from_folder(place, split)
    else:
        refuse_split(split, place)
        stories = _from_rows(read_json_lines(place), f"{place}, line")

    requests: list[Request] = []
    taken = 0
    for story_id, text, asked in stories:
        story = encode(text)
        requests += [
            Request(story_id, story, tail=encode(f"\n\nQuestion: {question}\nAnswer:"))
            for question in asked
        ]
        taken += 1
        if taken == documents:
            break
    name, source = origin(path, "narrativeqa", "sample stories")
    return Workload(
        name=name,
        requests=requests,
        source=source,
        tokenizer=tokenizer,
        provenance={"format": "narrativeqa", "stories": taken},
    )


def _from_rows(rows: Iterator[tuple[int, dict[str, Any]]], where: str) -> Iterator[Story]:
    """Yield stories from rows of one question each; the rows of a story follow each other."""
    story_id, text = "", ""
    asked: list[str] = []
    for number, row in rows:
        place = f"{where} {number}"
        document = get_field(row, "document", dict, place)
        identity = get_text(document, "id", f"{place}, document")
        if identity != story_id:
            if asked:
                yield story_id, text, asked
            story_id, asked = identity, []
            text = get_text(document, "text", f"{place}, document")
        question = get_field(row, "question", dict, place)
        asked.append(get_text(question, "text", f"{place}, question"))
    if asked:
        yield story_id, text, asked


def _from_folder(folder: Path, split: str | None) -> Iterator[Story]:
    """Yield the stories of a folder, or of one part of it, in the order of ``documents.csv``."""
    documents = list(read_table(folder / "documents.csv", ("document_id", "set")))
    known = sorted({row["set"] for _, row in documents})
    if split is not None and split not in known:
        raise ValueError(f"split must be one of {', '.join(known)} for {folder}, got {split!r}.")
    asked: dict[str, list[str]] = {}
    for where, row in read_table(folder / "qaps.csv", ("document_id", "question")):
        asked.setdefault(row["document_id"], []).append(get_text(row, "question", where))
    for where, row in documents:
        story_id = row["document_id"]
        if split not in (row["set"], None):
            continue
        if story_id not in asked:
            raise ValueError(f"{where}: document {story_id!r} has no question in qaps.csv.")
        with open_text(folder / "tmp" / f"{story_id}.content") as stream:
            text = stream.read()
        if not text.strip():
            raise ValueError(f"{folder / 'tmp' / story_id}.content is empty.")
        yield story_id, text, asked[story_id]
