"""Compute the shipped tables anew: ``python -m sparselab.build_data SOURCE``.

``SOURCE`` is a folder with the published files named in :data:`TABLES` and
:data:`NARRATIVEQA_FILE`. Everything is computed before anything is written, into the repository's
``data/``: the overlap tables, the counts of NarrativeQA's document lengths, two block-hash traces
made from the samples, and ``datapackage.json``, which describes all of it.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparselab.files import sha256, write_json, write_text
from sparselab.overlap import OverlapDistribution
from sparselab.shipped_data import DESCRIPTION, data_folder
from sparselab.workloads import Workload, load
from sparselab.workloads.records import read_table

NARRATIVEQA_FILE = "narrativeqa_documents.csv"
WORDS_PER_CELL = 1000
SAMPLE_SOURCE = {"title": "written for sparselab", "license": "MIT"}
DEPTH_SCHEMA = {
    "fields": [
        {"name": "depth", "type": "integer", "description": "tokens shared with the prefix"},
        {"name": "requests", "type": "integer", "description": "requests with this overlap"},
    ]
}


@dataclass(frozen=True)
class Table:
    """An overlap table: which files it needs, how to read them, and what to say of it."""

    name: str
    title: str
    files: tuple[str, ...]
    read: Callable[[Path], Workload]
    source: dict[str, str]
    note: str


TABLES = (
    Table(
        "mooncake_conversation",
        "Mooncake production conversations",
        ("mooncake_conversation_trace.jsonl",),
        lambda folder: load("mooncake", folder / "mooncake_conversation_trace.jsonl"),
        {
            "title": "kvcache-ai/Mooncake, conversation trace",
            "path": "https://github.com/kvcache-ai/Mooncake",
            "license": "Apache-2.0",
        },
        "leading blocks of 512 tokens with equal ids, capped by the request's length",
    ),
    Table(
        "quality",
        "QuALITY: questions on 15 articles",
        ("leval_quality.jsonl",),
        lambda folder: load("quality", folder / "leval_quality.jsonl"),
        {
            "title": "QuALITY (nyu-mll) in the selection of OpenLMLab/LEval",
            "path": "https://github.com/OpenLMLab/LEval",
            "license": "CC-BY-4.0",
        },
        "'{article} Question: {question} Answer: {answer}', Qwen3.5 token ids",
    ),
    Table(
        "system_prompts",
        "96 system prompts with 20 user queries each",
        ("system_prompts_tokens.jsonl", "mt_bench_question.jsonl"),
        lambda folder: load(
            "system_prompts",
            folder / "system_prompts_tokens.jsonl",
            queries=folder / "mt_bench_question.jsonl",
            queries_per_prompt=20,
        ),
        {
            "title": "asgeirtj/system_prompts_leaks (prompts), lm-sys/FastChat MT-bench (queries)",
            "path": "https://github.com/asgeirtj/system_prompts_leaks",
            "license": "only counts are taken from the prompts; queries Apache-2.0",
        },
        "prompt ids followed by the ids of '\\n\\nUser: ' + query, Qwen3.5 token ids",
    ),
    Table(
        "sample_documents",
        "Sample: questions on four short articles",
        (),
        lambda folder: load("quality"),
        SAMPLE_SOURCE,
        "samples/documents.jsonl, read as QuALITY",
    ),
    Table(
        "sample_system_prompts",
        "Sample: six system prompts with 20 user queries each",
        (),
        lambda folder: load("system_prompts"),
        SAMPLE_SOURCE,
        "samples/system_prompts with samples/queries.jsonl",
    ),
    Table(
        "sample_chats",
        "Sample: append-only chats",
        (),
        lambda folder: load("append_only_chat"),
        SAMPLE_SOURCE,
        "samples/chats.jsonl, one request a user turn",
    ),
)

SAMPLES = {
    "samples/documents.jsonl": "four articles with multiple-choice questions (QuALITY v1 format)",
    "samples/stories": "two stories with questions (layout of the NarrativeQA repository)",
    "samples/system_prompts": "six system prompts, three of which open alike",
    "samples/queries.jsonl": "forty user queries",
    "samples/chats.jsonl": "six chats (OpenAI-style messages)",
    "samples/requests.jsonl": "few-shot prompts with group and arrival",
    "samples/trace_mooncake.jsonl": "block-hash trace of the articles and stories, interleaved",
    "samples/trace_qwen_bailian.jsonl": "block-hash trace of the chats, interleaved",
}


def build(source: Path, target: Path) -> list[str]:
    """Compute everything from ``source`` and write it into the data folder ``target``.

    Returns one line about each table. Raises ``FileNotFoundError`` naming what ``source`` lacks
    before anything is computed.
    """
    wanted = [NARRATIVEQA_FILE, *(file for table in TABLES for file in table.files)]
    missing = [file for file in wanted if not (source / file).is_file()]
    if missing:
        raise FileNotFoundError(f"{source} lacks {', '.join(missing)}.")

    measured = [(table, *measure(table.read(source))) for table in TABLES]
    lengths = count_lengths(source / NARRATIVEQA_FILE)
    traces = {
        "mooncake": "".join(mooncake_sample()),
        "qwen_bailian": "".join(qwen_bailian_sample()),
    }

    for name, lines in traces.items():
        write_text(target / f"samples/trace_{name}.jsonl", lines)
    for table, distribution, _ in measured:
        distribution.to_csv(target / f"overlaps/{table.name}.csv")
    write_text(target / "narrativeqa_lengths.csv", lengths)
    resources = [overlap_resource(table, facts, target) for table, _, facts in measured]
    resources += [lengths_resource(target), *sample_resources(target)]
    write_json(
        target / DESCRIPTION,
        {
            "name": "sparselab-data",
            "title": "What sparselab ships: overlap tables, document lengths and samples",
            "licenses": [{"name": "MIT", "title": "the tables and samples themselves"}],
            "resources": resources,
        },
    )
    return [
        f"{table.name}: {facts['requests']:,} requests, {facts['overlap_tokens']:,} of "
        f"{facts['prompt_tokens']:,} prompt tokens overlap"
        for table, _, facts in measured
    ]


def measure(workload: Workload) -> tuple[OverlapDistribution, dict[str, Any]]:
    """Return a workload's overlap distribution and the facts that describe it."""
    overlaps = workload.overlap_samples()
    facts = {
        "requests": len(workload),
        "prompt_tokens": int(workload.lengths().sum()),
        "overlap_tokens": int(overlaps.sum()),
        "granularity_tokens": workload.unit,
        "synthetic": workload.synthetic,
    }
    return OverlapDistribution.from_samples(overlaps), facts


def count_lengths(file: Path) -> str:
    """Return a CSV that counts NarrativeQA's documents by kind and cells of 1,000 words."""
    cells: Counter[tuple[str, int]] = Counter()
    for where, row in read_table(file, ("kind", "story_word_count")):
        words = row["story_word_count"]
        if not words.isdecimal():
            raise ValueError(f"{where}: 'story_word_count' must be a whole number, got {words!r}.")
        cells[row["kind"], int(words) // WORDS_PER_CELL] += 1
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", "words_from", "words_to", "documents"))
    for (kind, cell), documents in sorted(cells.items()):
        first = cell * WORDS_PER_CELL
        writer.writerow((kind, first, first + WORDS_PER_CELL - 1, documents))
    return text.getvalue()


# -- samples of block-hash traces, made from the sample texts ------------------------------------


def mooncake_sample(block_size: int = 512) -> Iterator[str]:
    """Yield the lines of a Mooncake-style trace of the sample articles and stories."""
    requests = [*load("quality"), *load("narrativeqa")]
    together = Workload("sample", requests, "written for sparselab").interleave(seed=0)
    number_of: dict[Hashable, int] = {}
    for request in together:
        yield json_line(
            timestamp=round(request.arrival * 1000),
            input_length=request.length,
            output_length=20,
            hash_ids=list(numbered_blocks(request.tokens, block_size, number_of, chained=True)),
        )


def qwen_bailian_sample(block_size: int = 16) -> Iterator[str]:
    """Yield the lines of a Qwen-Bailian-style trace of the sample chats."""
    number_of: dict[Hashable, int] = {}
    last_of: dict[Hashable, tuple[int, int]] = {}  # chat -> id and turn of its latest request
    for chat_id, request in enumerate(load("append_only_chat").interleave(seed=0)):
        parent, turn = last_of.get(request.group, (-1, 0))
        last_of[request.group] = (chat_id, turn + 1)
        yield json_line(
            chat_id=chat_id,
            parent_chat_id=parent,
            timestamp=round(request.arrival, 3),
            input_length=request.length,
            output_length=50,
            type="text",
            turn=turn + 1,
            hash_ids=list(numbered_blocks(request.tokens, block_size, number_of, chained=False)),
        )


def numbered_blocks(
    tokens: Any, block_size: int, number_of: dict[Hashable, int], chained: bool
) -> Iterator[int]:
    """Yield the number of each block: by what is in it, and if ``chained`` by all before it too."""
    for start in range(0, tokens.size, block_size):
        block = tokens[0 if chained else start : start + block_size]
        yield number_of.setdefault(block.tobytes(), len(number_of))


def json_line(**record: Any) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(record) + "\n"


# -- descriptions --------------------------------------------------------------------------------


def overlap_resource(table: Table, facts: dict[str, Any], target: Path) -> dict[str, Any]:
    """Return the description of an overlap table."""
    depth = "blocks" if facts["granularity_tokens"] > 1 else "tokens"
    return {
        **file_facts(target, f"overlaps/{table.name}.csv", table.name),
        "title": table.title,
        "sources": [table.source],
        "licenses": [{"name": "MIT"}],
        "date": today(),
        "method": f"longest prefix in {depth} shared with any earlier request, nothing evicted; "
        + table.note,
        **facts,
        "schema": DEPTH_SCHEMA,
    }


def lengths_resource(target: Path) -> dict[str, Any]:
    """Return the description of the counts of document lengths."""
    return {
        **file_facts(target, "narrativeqa_lengths.csv", "narrativeqa_lengths"),
        "title": "NarrativeQA: documents by kind and number of words",
        "sources": [
            {
                "title": "google-deepmind/narrativeqa, documents.csv",
                "path": "https://github.com/google-deepmind/narrativeqa",
                "license": "Apache-2.0",
            }
        ],
        "licenses": [{"name": "MIT"}],
        "date": today(),
        "method": f"documents counted in cells of {WORDS_PER_CELL} words of story_word_count",
        "schema": {
            "fields": [
                {"name": "kind", "type": "string"},
                {"name": "words_from", "type": "integer"},
                {"name": "words_to", "type": "integer"},
                {"name": "documents", "type": "integer"},
            ]
        },
    }


def sample_resources(target: Path) -> Iterator[dict[str, Any]]:
    """Yield the description of every sample file."""
    for place, title in SAMPLES.items():
        found = [target / place] if (target / place).is_file() else (target / place).rglob("*")
        for file in sorted(path for path in found if path.is_file()):
            path = file.relative_to(target).as_posix()
            name = path.removeprefix("samples/").rsplit(".", 1)[0].replace("/", "_")
            yield {
                **file_facts(target, path, f"sample_file_{name}"),
                "title": f"Sample: {title}",
                "sources": [SAMPLE_SOURCE],
                "licenses": [{"name": "MIT"}],
            }


def file_facts(target: Path, path: str, name: str) -> dict[str, Any]:
    """Return what is said of any file: name, path, size and checksum."""
    file = target / path
    checksum = f"sha256:{sha256(file)}"
    return {"name": name, "path": path, "bytes": file.stat().st_size, "hash": checksum}


def today() -> str:
    """Return the date (UTC)."""
    return datetime.now(UTC).date().isoformat()


def main() -> int:
    """Run the command; returns the exit status."""
    if len(sys.argv) != 2:
        print("usage: python -m sparselab.build_data SOURCE", file=sys.stderr)
        return 2
    try:
        lines = build(Path(sys.argv[1]), data_folder())
    except (OSError, ValueError) as error:
        print(f"build_data: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
