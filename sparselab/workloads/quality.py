"""QuALITY: long articles with multiple-choice questions, each question a request.

A request is ``"{article} Question: {question} Answer: {answer}"`` with the text of the right
option, tokenised as one text. Four formats are told apart by their keys:

- the authors' v1 files (https://github.com/nyu-mll/quality): one object an article with
  ``article`` and ``questions``, each of ``question``, ``options`` and ``gold_label`` (from 1);
- the authors' flat files for their baselines: ``article`` as a list of lines, ``question1``,
  ``question1option1`` ..., ``question1_gold_label`` (from 1), ``question2`` ...;
- the L-Eval file (https://github.com/OpenLMLab/LEval): ``input``, ``instructions``, ``outputs``;
- the hub data set: one row a question with ``article``, ``question``, ``options`` and ``answer``
  (from 0).

Articles are taken as the file has them, markup included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sparselab.files import read_json_lines
from sparselab.shipped_data import sample
from sparselab.workloads.documents import document_requests
from sparselab.workloads.hub import hub_id, hub_rows, refuse_split
from sparselab.workloads.records import check_keys, get_field, get_text, origin
from sparselab.workloads.tokenizers import DEFAULT, get_tokenizer
from sparselab.workloads.workload import Request, Workload

SUMMARY = "QuALITY: articles with questions (v1, flat, L-Eval or hub format), or the sample"
HUB_DATASET = "emozilla/quality"

Question = tuple[str, str, str]  # article, question, answer


def load(
    path: str | Path | None = None, tokenizer: str = DEFAULT, split: str | None = None
) -> Workload:
    """Read a file in one of the formats above; the shipped sample unless ``path`` is given.

    ``path="hub"`` (or ``"hub:<data set>"``) reads a ``split`` of the hub data set, by default
    ``"validation"``; a file is read whole. A group is an article. Raises ``ValueError`` naming the
    line and the key of a malformed record, and for a ``split`` of a file.
    """
    encode = get_tokenizer(tokenizer).encode
    dataset_id = hub_id(path, HUB_DATASET)
    file = sample("documents.jsonl") if path is None else path
    where = f"hub data set {dataset_id}, row" if dataset_id else f"{file}, line"
    if dataset_id:
        records = hub_rows(dataset_id, split or "validation")
    else:
        refuse_split(split, Path(file))
        records = read_json_lines(Path(file))

    by_article: dict[str, list[tuple[str, str]]] = {}
    for number, record in records:
        for article, question, answer in questions(record, f"{where} {number}"):
            by_article.setdefault(article, []).append((question, answer))
    requests: list[Request] = []
    for number, (article, asked) in enumerate(by_article.items()):
        prompts = (f"{article} Question: {q} Answer: {a}" for q, a in asked)
        requests += document_requests(f"article {number}", map(encode, prompts))
    name, source = origin(path, "quality", "sample documents")
    return Workload(
        name=name,
        requests=requests,
        source=source,
        tokenizer=tokenizer,
        provenance={"format": "quality", "articles": len(by_article)},
    )


def questions(record: dict[str, Any], where: str) -> Iterator[Question]:
    """Yield every question of a record, whatever its format; at least one."""
    if "questions" in record:
        found = _version_1(record, where)
    elif "instructions" in record:
        found = _l_eval(record, where)
    elif "question" in record:
        found = iter([_hub(record, where)])
    else:
        check_keys(record, ("questions", "question1", "instructions", "question"), where)
        found = _flat(record, where)
    return _at_least_one(found, where)


def _version_1(record: dict[str, Any], where: str) -> Iterator[Question]:
    article = get_text(record, "article", where)
    for number, item in enumerate(get_field(record, "questions", list, where), start=1):
        place = f"{where}, question {number}"
        if not isinstance(item, dict):
            raise ValueError(f"{place}: an object is expected, got {type(item).__name__}.")
        options = get_field(item, "options", list, place)
        label = get_field(item, "gold_label", int, place)
        answer = _option(options, label, 1, "gold_label", place)
        yield article, get_text(item, "question", place), answer


def _flat(record: dict[str, Any], where: str) -> Iterator[Question]:
    lines = get_field(record, "article", list, where)
    if not lines or not all(isinstance(line, str) for line in lines):
        raise ValueError(f"{where}: 'article' must be a list of lines of text.")
    number = 1
    while f"question{number}" in record:
        options: list[Any] = []
        while (key := f"question{number}option{len(options) + 1}") in record:
            options.append(record[key])
        key = f"question{number}_gold_label"
        answer = _option(options, get_field(record, key, int, where), 1, key, where)
        yield "".join(lines), get_text(record, f"question{number}", where), answer
        number += 1


def _l_eval(record: dict[str, Any], where: str) -> Iterator[Question]:
    article = get_text(record, "input", where)
    asked = get_field(record, "instructions", list, where)
    answers = get_field(record, "outputs", list, where)
    if len(asked) != len(answers):
        raise ValueError(
            f"{where}: 'instructions' and 'outputs' must be equally many, "
            f"got {len(asked)} and {len(answers)}."
        )
    for question, answer in zip(asked, answers, strict=True):
        if not isinstance(question, str) or not isinstance(answer, str):
            raise ValueError(f"{where}: 'instructions' and 'outputs' must be lists of text.")
        yield article, question, answer


def _hub(record: dict[str, Any], where: str) -> Question:
    article, question = get_text(record, "article", where), get_text(record, "question", where)
    options = get_field(record, "options", list, where)
    label = get_field(record, "answer", int, where)
    return article, question, _option(options, label, 0, "answer", where)


def _option(options: list[Any], label: int, first: int, key: str, where: str) -> str:
    """Return the text of the right option; labels count from ``first``."""
    if not first <= label < first + len(options):
        raise ValueError(
            f"{where}: {key!r} must lie in {first}..{first + len(options) - 1} "
            f"({len(options)} options), got {label}."
        )
    answer = options[label - first]
    if not isinstance(answer, str):
        raise ValueError(f"{where}: the option that {key!r} names must be text, got {answer!r}.")
    return answer


def _at_least_one(found: Iterable[Question], where: str) -> Iterator[Question]:
    empty = True
    for item in found:
        empty = False
        yield item
    if empty:
        raise ValueError(f"{where}: the article has no question.")
