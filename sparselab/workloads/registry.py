"""The loaders by name, and guessing which one a file is for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from sparselab.files import as_path, open_text, read_json_lines
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
from sparselab.workloads.workload import Workload

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

    Lines with ``messages`` are taken as chats, unless they have ``group`` or ``arrival``. Raises
    ``ValueError`` where nothing is recognised.
    """
    path = as_path("path", path)
    if path.is_dir():
        return "narrativeqa" if (path / "qaps.csv").exists() else "system_prompts"
    with open_text(path) as stream:
        if stream.read(4096).lstrip().startswith("["):
            return "append_only_chat"
    _, record = next(read_json_lines(path))
    keys = set(record)
    for name, wanted in _RECOGNISED:
        if wanted <= keys:
            return name
    raise ValueError(
        f"{path}: the format is not recognised from its keys {', '.join(record) or 'none'}; "
        f"name one of {', '.join(_LOADERS)}."
    )


# The first entry whose keys are all there decides, so the more particular ones come first.
_RECOGNISED: tuple[tuple[str, set[str]], ...] = (
    ("qwen_bailian", {"hash_ids", "chat_id"}),
    ("mooncake", {"hash_ids"}),
    ("quality", {"article"}),
    ("quality", {"instructions", "input"}),
    ("narrativeqa", {"document", "question"}),
    ("system_prompts", {"prompt", "tokens"}),
    ("jsonl", {"tokens"}),
    ("jsonl", {"text"}),
    ("jsonl", {"messages", "group"}),
    ("jsonl", {"messages", "arrival"}),
    ("append_only_chat", {"messages"}),
    ("append_only_chat", {"conversations"}),
    ("append_only_chat", {"conversation"}),
)
