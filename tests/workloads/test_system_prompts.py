"""System prompts, from a folder or as token ids, followed by queries."""

from __future__ import annotations

import pytest

from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer


@pytest.fixture
def prompts(tmp_path):
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "b.md").write_text("You mend clocks.")
    (folder / "a.txt").write_text("You bake bread.")
    (folder / "notes.pdf").write_text("not a prompt")
    return folder


def tails(count: int) -> list[list[int]]:
    return [get_tokenizer().encode(f"\n\nUser: query {i}").tolist() for i in range(count)]


def test_a_request_is_the_prompt_then_a_query_tokenised_apart(prompts, write_lines):
    queries = write_lines({"query": "query 0"})
    workload = load("system_prompts", prompts, queries=queries, queries_per_prompt=1)
    encode = get_tokenizer().encode
    assert [r.tokens.tolist() for r in workload] == [
        [*encode("You bake bread."), *tails(1)[0]],
        [*encode("You mend clocks."), *tails(1)[0]],
    ]
    assert [r.group for r in workload] == ["a.txt", "b.md"]


def test_token_ids_are_taken_as_they_are(write_lines):
    file = write_lines({"prompt": "p0", "tokens": [5, 6, 7]}, name="ids.jsonl")
    queries = write_lines({"query": "query 0"}, name="queries.jsonl")
    (request,) = load("system_prompts", file, queries=queries, queries_per_prompt=1).requests
    assert request.tokens.tolist() == [5, 6, 7, *tails(1)[0]]
    assert request.group == "p0"


def test_queries_are_dealt_round_robin(prompts, write_lines):
    queries = write_lines(*({"query": f"query {i}"} for i in range(4)))
    workload = load("system_prompts", prompts, queries=queries, queries_per_prompt=4, seed=3)
    encode = get_tokenizer().encode
    openings = {"a.txt": len(encode("You bake bread.")), "b.md": len(encode("You mend clocks."))}
    for group, start in openings.items():
        asked = [r.tokens[start:].tolist() for r in workload if r.group == group]
        # Four queries for four places: each prompt gets every one once.
        assert sorted(asked) == sorted(tails(4))


def test_the_seed_changes_the_order_of_the_queries(prompts, write_lines):
    queries = write_lines(*({"query": f"query {i}"} for i in range(8)))
    orders = [
        [r.tokens.tolist() for r in load("system_prompts", prompts, queries=queries, seed=seed)]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queries.csv", 'id,question\n1,query 0\n2,"query 1"\n'),
        ("queries.jsonl", '{"turns": ["query 0", "and then?"]}\n{"turns": ["query 1"]}\n'),
        ("queries.jsonl", '{"text": "query 0"}\n{"prompt": "query 1"}\n'),
    ],
    ids=["csv", "turns", "other keys"],
)
def test_queries_come_from_csv_or_json_lines(prompts, tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    workload = load("system_prompts", prompts, queries=file, queries_per_prompt=2)
    start = len(get_tokenizer().encode("You bake bread."))
    asked = [r.tokens[start:].tolist() for r in workload if r.group == "a.txt"]
    assert sorted(asked) == sorted(tails(2))


def test_the_sample_has_prompts_that_open_alike():
    workload = load("system_prompts", queries_per_prompt=1)
    overlaps = dict(zip((r.group for r in workload), workload.overlap_samples(), strict=True))
    assert overlaps["fernway_returns.md"] > 300
    assert overlaps["code_review.md"] < 10


def test_bad_input_is_named(prompts, tmp_path, write_lines):
    with pytest.raises(ValueError, match="queries_per_prompt must be at least 1, got 0"):
        load("system_prompts", prompts, queries_per_prompt=0)
    with pytest.raises(ValueError, match="line 2: one of the keys turns, query"):
        load("system_prompts", prompts, queries=write_lines({"query": "a"}, {"ask": "b"}))
    with pytest.raises(ValueError, match="line 1: 'turns' must begin with the text of a query"):
        load("system_prompts", prompts, queries=write_lines({"turns": []}))
    with pytest.raises(ValueError, match="line 1: the key 'tokens' is missing"):
        load("system_prompts", write_lines({"prompt": "p"}))
    with pytest.raises(ValueError, match="line 1: 'tokens' is empty"):
        load("system_prompts", write_lines({"prompt": "p", "tokens": []}))
    with pytest.raises(ValueError, match=r"line 1: 'tokens' must be token ids in .*, got -1"):
        load("system_prompts", write_lines({"prompt": "p", "tokens": [-1]}))
    with pytest.raises(TypeError, match="queries must be the path of a file or folder, got 3"):
        load("system_prompts", prompts, queries=3)
    ids = write_lines({"prompt": "p", "tokens": [1]}, name="ids.jsonl")
    with pytest.raises(ValueError, match=r"tokenizer must be 'qwen3\.5' for .*ids\.jsonl"):
        load("system_prompts", ids, tokenizer=str(tmp_path))

    table = tmp_path / "queries.csv"
    table.write_text("id,words\n1,hello\n")
    with pytest.raises(ValueError, match="one of the columns query, question, prompt, text"):
        load("system_prompts", prompts, queries=table)
    table.write_text("id,query\n1\n")
    with pytest.raises(ValueError, match=r"queries\.csv, line 2: the row is too short"):
        load("system_prompts", prompts, queries=table)
    table.write_text("query\n")
    with pytest.raises(ValueError, match=r"queries\.csv has a header but no rows"):
        load("system_prompts", prompts, queries=table)
    (prompts / "a.txt").write_text(" \n")
    with pytest.raises(ValueError, match=r"a\.txt is empty"):
        load("system_prompts", prompts)
    for file in prompts.iterdir():
        file.unlink()
    with pytest.raises(ValueError, match=r"has no \.md or \.txt file"):
        load("system_prompts", prompts)
