"""QuALITY in its four formats gives the same requests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from sparselab.shipped_data import sample
from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer

ARTICLE = "A heron stood in the reeds.\nIt waited."
VERSION_1 = {
    "article_id": "1",
    "article": ARTICLE,
    "questions": [
        {"question": "Who waited?", "options": ["A fox", "A heron"], "gold_label": 2},
        {"question": "Where?", "options": ["In the reeds", "At sea"], "gold_label": 1},
    ],
}
FLAT = {
    "article": ["A heron stood in the reeds.\n", "It waited."],
    "question1": "Who waited?",
    "question1option1": "A fox",
    "question1option2": "A heron",
    "question1_gold_label": 2,
    "question2": "Where?",
    "question2option1": "In the reeds",
    "question2option2": "At sea",
    "question2_gold_label": 1,
}
L_EVAL = {
    "input": ARTICLE,
    "instructions": ["Who waited?", "Where?"],
    "outputs": ["A heron", "In the reeds"],
}
HUB = [
    {"article": ARTICLE, "question": "Who waited?", "options": ["A fox", "A heron"], "answer": 1},
    {"article": ARTICLE, "question": "Where?", "options": ["In the reeds", "At sea"], "answer": 0},
]
PROMPTS = [
    f"{ARTICLE} Question: Who waited? Answer: A heron",
    f"{ARTICLE} Question: Where? Answer: In the reeds",
]


@pytest.mark.parametrize(
    "records", [[VERSION_1], [FLAT], [L_EVAL], HUB], ids=["v1", "flat", "l_eval", "hub"]
)
def test_every_format_gives_the_documented_prompts(write_lines, records):
    workload = load("quality", write_lines(*records))
    encode = get_tokenizer().encode
    assert [r.tokens.tolist() for r in workload] == [encode(p).tolist() for p in PROMPTS]
    assert len({r.group for r in workload}) == 1
    assert workload.tokenizer == "qwen3.5"


def test_the_hub_data_set_is_read_through_the_datasets_package(tmp_path):
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    # A folder stands for a data set here: the same code path, without a network.
    (tmp_path / "validation.jsonl").write_text("".join(json.dumps(r) + "\n" for r in HUB))
    workload = load("quality", f"hub:{tmp_path}")
    assert [r.length for r in workload] == [len(get_tokenizer().encode(p)) for p in PROMPTS]


def test_articles_are_groups_and_share_memory(write_lines):
    other = VERSION_1 | {"article": "Another text, quite different."}
    workload = load("quality", write_lines(VERSION_1, other))
    assert [r.group for r in workload] == ["article 0", "article 0", "article 1", "article 1"]
    first, second = workload.requests[:2]
    assert np.shares_memory(first._head, second._head)


def test_the_sample_overlaps_on_whole_articles():
    workload = load("quality")
    overlaps, lengths = workload.overlap_samples(), workload.lengths()
    assert not workload.synthetic
    for group in {r.group for r in workload}:
        mine = [i for i, r in enumerate(workload) if r.group == group]
        assert len(mine) >= 5
        assert (overlaps[mine[1:]] > 0.9 * lengths[mine[1:]]).all()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"article": ARTICLE, "questions": []}, "the article has no question"),
        ({"article": " ", "questions": VERSION_1["questions"]}, "'article' is empty"),
        ({"questions": VERSION_1["questions"]}, "the key 'article' is missing"),
        (
            {"article": ARTICLE, "questions": [{"question": "?", "options": ["a"]}]},
            "question 1: the key 'gold_label' is missing",
        ),
        (
            {"article": ARTICLE, "questions": [{**VERSION_1["questions"][0], "gold_label": 3}]},
            r"'gold_label' must lie in 1\.\.2 \(2 options\), got 3",
        ),
        ({**HUB[0], "answer": 2}, r"'answer' must lie in 0\.\.1 \(2 options\), got 2"),
        ({**L_EVAL, "outputs": ["one"]}, "must be equally many, got 2 and 1"),
        ({**FLAT, "article": ARTICLE}, "'article' must be a list, got"),
        ({"story": "?"}, "one of the keys questions, question1, instructions, question is needed"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write_lines, record, message):
    with pytest.raises(ValueError, match=rf"file\.jsonl, line 2.*{message}"):
        load("quality", write_lines(VERSION_1, record))


@pytest.mark.reference_data
def test_the_published_files():
    folder = os.environ.get("SPARSELAB_REFERENCE_DATA")
    if not folder:
        pytest.skip("SPARSELAB_REFERENCE_DATA does not name the folder of published files")
    l_eval = load("quality", Path(folder) / "leval_quality.jsonl")
    assert (len(l_eval), len({r.group for r in l_eval})) == (202, 15)
    flat = load("quality", Path(folder) / "quality_v1_example.jsonl")
    # Its two lines are one article with the same five questions, so they form one group.
    assert (len(flat), len({r.group for r in flat})) == (10, 1)


@pytest.mark.parametrize("path", [None, sample("documents.jsonl")])
def test_a_file_has_no_split(path):
    with pytest.raises(
        ValueError, match=r"split must be left out for .*documents\.jsonl, .*'train'"
    ):
        load("quality", path, split="train")
