"""The loaders by name, and guessing which one a file is for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from sparselab.files import as_path
from sparselab.validation import check_choice
from sparselab.workloads import (
    append_only_chat,
    jsonl,
    mooncake,
    narrativeqa,
    quality,
    qwen_bailian,
    synthetic,
    synthetic_narrativeqa,
    synthetic_quality,
    system_prompts,
)
from sparselab.workloads.append_only_chat import is_json_list, read_objects
from sparselab.workloads.chat_format import ROLES, named_role
from sparselab.workloads.workload import Workload

#: How many records of a file tell its format.
RECORDS_READ = 20

# A new source of requests is a module with SUMMARY and load(path=None, ...), named here.
_LOADERS: Mapping[str, ModuleType] = MappingProxyType(
    {
        "quality": quality,
        "narrativeqa": narrativeqa,
        "system_prompts": system_prompts,
        "append_only_chat": append_only_chat,
        "mooncake": mooncake,
        "qwen_bailian": qwen_bailian,
        "jsonl": jsonl,
        "synthetic": synthetic,
        "synthetic_quality": synthetic_quality,
        "synthetic_narrativeqa": synthetic_narrativeqa,
    }
)


def loaders() -> dict[str, str]:
    """Return the name of each loader and one line about it."""
    return {name: module.SUMMARY for name, module in _LOADERS.items()}


def options(name: str) -> dict[str, Any]:
    """Return the options that a loader takes besides ``path``, with their defaults."""
    check_choice("workload", name, _LOADERS)
    parameters = inspect.signature(_LOADERS[name].load).parameters
    return {key: value.default for key, value in parameters.items() if key != "path"}


def load(name: str, path: str | Path | None = None, **chosen: Any) -> Workload:
    """Return the workload ``name``, read from ``path`` where it reads a file.

    Without a path, a loader of files reads the small sample that is shipped, offline.
    :func:`loaders` lists the names and :func:`options` what each takes. Raises ``ValueError`` for
    an unknown name or option (with the nearest one) and for files that are not as they should be.
    """
    for option in chosen:
        check_choice(f"option of workload {name!r}", option, options(name))
    check_choice("workload", name, _LOADERS)
    if path is not None:
        as_path("path", path)
    return _LOADERS[name].load(path, **chosen)


def recognise(path: str | Path) -> str:
    """Return the name of the loader that a file or folder is for, by what it begins with.

    Lines with ``group`` or ``arrival`` are requests (``jsonl``). So are others with ``messages`` if
    they say the ``model`` that is to answer, as bodies of requests to an OpenAI-style server do;
    they are whole chats (``append_only_chat``) if each ends with an answer. Lines with ``prompt``
    and ``tokens`` are system prompts if each ``prompt`` is a name. Raises ``ValueError`` where
    nothing is recognised and where it could be either.
    """
    path = as_path("path", path)
    if path.is_dir():
        return "narrativeqa" if (path / "qaps.csv").exists() else "system_prompts"
    records = [record for _, record in islice(read_objects(path), RECORDS_READ)]
    name = _recognise(records, path)
    if name != "append_only_chat" and is_json_list(path):
        raise ValueError(
            f"{path} is a JSON list, which only chats may be: write one object a line for {name}."
        )
    return name


def _recognise(records: list[dict[str, Any]], path: Path) -> str:
    keys = set(records[0])
    if keys & set(jsonl.CONTENT) and keys & {"group", "arrival"}:
        return "jsonl"
    if {"prompt", "tokens"} <= keys:
        return _prompts_or_requests(records, path)
    if "messages" in keys:
        return _chats_or_requests(records, path)
    for name, wanted in _RECOGNISED:
        if wanted <= keys:
            return name
    found = ", ".join(records[0])[:200] or "none"
    of_files = (name for name in _LOADERS if not name.startswith("synthetic"))
    raise ValueError(
        f"{path}: the format is not recognised from its keys {found}; "
        f"name one of {', '.join(of_files)}."
    )


def _prompts_or_requests(records: list[dict[str, Any]], path: Path) -> str:
    names = [record.get("prompt") for record in records]
    if all(isinstance(name, str) and len(name.split()) == 1 for name in names) and (
        len(set(names)) == len(names)
    ):
        return "system_prompts"
    raise ValueError(
        f"{path}: lines with 'prompt' and 'tokens' may be requests (format jsonl) or system "
        "prompts that queries follow (format system_prompts): name the one that is meant."
    )


def _chats_or_requests(records: list[dict[str, Any]], path: Path) -> str:
    answered = [_ends_with_an_answer(record) for record in records]
    says_model = ["model" in record for record in records]
    if all(says_model) and not any(answered):
        return "jsonl"
    if all(answered) and not any(says_model):
        return "append_only_chat"
    raise ValueError(
        f"{path}: lines with 'messages' may be requests (format jsonl) or whole chats whose every "
        "user turn is a request (format append_only_chat): name the one that is meant."
    )


def _ends_with_an_answer(record: dict[str, Any]) -> bool:
    messages = record.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and ROLES.get(named_role(last)) == "assistant"


# The first entry whose keys are all there decides, so the more particular ones come first.
_RECOGNISED: tuple[tuple[str, set[str]], ...] = (
    ("qwen_bailian", {"hash_ids", "chat_id"}),
    ("mooncake", {"hash_ids"}),
    ("quality", {"article", "questions"}),
    ("quality", {"article", "question1"}),
    ("quality", {"article", "question", "options"}),
    ("quality", {"instructions", "input", "outputs"}),
    ("narrativeqa", {"document", "question"}),
    ("jsonl", {"tokens"}),
    ("jsonl", {"text"}),
    ("append_only_chat", {"conversations"}),
    ("append_only_chat", {"conversation"}),
)
