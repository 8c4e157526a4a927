"""System prompts with user queries: many requests open with one of a few long texts.

A request is the ids of the prompt followed by the ids of ``"\\n\\nUser: " + query``, tokenised
apart. Prompts come from a folder of ``.md`` and ``.txt`` files, or from a file of JSON lines with
``prompt`` (a name) and ``tokens`` (Qwen3.5 token ids). Queries come from JSON lines (the first
entry of ``turns``, or ``query``, ``question``, ``prompt`` or ``text``) or from a CSV with such a
column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparselab.files import as_path, open_text, read_csv, read_json_lines
from sparselab.shipped_data import sample
from sparselab.validation import check_integer, shorten
from sparselab.workloads.records import (
    check_keys,
    get_field,
    get_text,
    get_tokens,
    origin,
    read_table,
)
from sparselab.workloads.tokenizers import DEFAULT, get_tokenizer
from sparselab.workloads.workload import Request, Workload, check_request_count

SUMMARY = "system prompts (folder of .md/.txt, or token-id JSONL) followed by user queries"
QUERY_KEYS = ("query", "question", "prompt", "text")


def load(
    path: str | Path | None = None,
    queries: str | Path | None = None,
    queries_per_prompt: int = 20,
    seed: int = 0,
    tokenizer: str = DEFAULT,
) -> Workload:
    """Read prompts and queries; the shipped samples unless ``path`` and ``queries`` are given.

    Queries are shuffled with ``seed`` and dealt round-robin: each prompt takes the next
    ``queries_per_prompt`` of them, starting again when all are dealt. Requests come prompt by
    prompt (see :meth:`Workload.interleave`); a group is a prompt.
    """
    queries_per_prompt = check_request_count("queries_per_prompt", queries_per_prompt)
    seed = check_integer("seed", seed, minimum=0)
    place = sample("system_prompts") if path is None else Path(path)
    query_file = sample("queries.jsonl") if queries is None else as_path("queries", queries)
    if not place.is_dir() and tokenizer != DEFAULT:
        raise ValueError(
            f"tokenizer must be {DEFAULT!r} for {place}, which holds its token ids; "
            f"got {tokenizer!r}."
        )
    encode = get_tokenizer(tokenizer).encode
    if place.is_dir():
        prompts = [(name, encode(text)) for name, text in _read_folder(place)]
    else:
        prompts = list(_read_token_ids(place))

    tails = [encode(f"\n\nUser: {query}") for query in read_queries(query_file)]
    order = np.random.default_rng(seed).permutation(len(tails))
    requests: list[Request] = []
    for prompt, tokens in prompts:
        for _ in range(queries_per_prompt):
            tail = tails[order[len(requests) % len(tails)]]
            requests.append(Request(prompt, tokens, tail=tail))
    name, source = origin(path, "system_prompts", "sample system prompts")
    _, asked = origin(queries, "queries", "sample queries")
    return Workload(
        name=name,
        requests=requests,
        source=source if source == asked else f"{source}, queries: {asked}",
        tokenizer=tokenizer,
        provenance={
            "format": "system_prompts",
            "prompts": len(prompts),
            "queries": asked,
            "queries_per_prompt": queries_per_prompt,
            "seed": seed,
        },
    )


def read_queries(path: Path) -> list[str]:
    """Return the user queries of a JSON-lines or CSV file, in its order."""
    if ".csv" in path.suffixes:
        return _read_query_table(path)
    queries = []
    for number, record in read_json_lines(path):
        where = f"{path}, line {number}"
        check_keys(record, ("turns", *QUERY_KEYS), where)
        if "turns" in record:
            turns = get_field(record, "turns", list, where)
            if not turns or not isinstance(turns[0], str) or not turns[0].strip():
                raise ValueError(f"{where}: 'turns' must begin with the text of a query.")
            queries.append(turns[0])
        else:
            key = next(key for key in QUERY_KEYS if key in record)
            queries.append(get_text(record, key, where))
    return queries


def _read_query_table(path: Path) -> list[str]:
    _, names = next(read_csv(path), (1, []))
    column = next((key for key in QUERY_KEYS if key in names), None)
    if column is None:
        raise ValueError(
            f"{path}, line 1: one of the columns {', '.join(QUERY_KEYS)} is needed, "
            f"found: {shorten(', '.join(names))}."
        )
    return [get_text(row, column, where) for where, row in read_table(path, [column])]


def _read_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every prompt in a folder, in the order of the names."""
    files = sorted(p for p in folder.iterdir() if p.suffix in (".md", ".txt") and p.is_file())
    if not files:
        raise ValueError(f"{folder} has no .md or .txt file.")
    for file in files:
        with open_text(file) as stream:
            text = stream.read()
        if not text.strip():
            raise ValueError(f"{file} is empty.")
        yield file.name, text


def _read_token_ids(file: Path) -> Iterator[tuple[str, NDArray[np.int64]]]:
    for number, record in read_json_lines(file):
        where = f"{file}, line {number}"
        ids = get_tokens(record, where)
        ids.setflags(write=False)
        yield get_text(record, "prompt", where), ids
