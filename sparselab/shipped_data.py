"""The small data that the lab ships: overlap tables, document lengths, samples.

``data/datapackage.json`` (https://specs.frictionlessdata.io) says of each table where it comes
from, how it was computed, under which licence, and its checksum. :mod:`sparselab.build_data`
computes the tables anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparselab.overlap import OverlapDistribution
from sparselab.validation import check_choice

DESCRIPTION = "datapackage.json"


@dataclass(frozen=True)
class Dataset:
    """A shipped overlap table: how many requests share how many leading tokens.

    ``unit`` is the granularity of the depths in tokens: 1, or the block size of a hashed trace.
    ``licence`` is that of ``source``; of it only counts are shipped.
    ``synthetic`` says whether the requests were made up rather than collected.
    """

    name: str
    title: str
    path: Path
    requests: int
    unit: int
    source: str
    licence: str
    date: str
    method: str
    synthetic: bool


def data_folder() -> Path:
    """Return the folder of the shipped data: inside an installed package or beside it.

    Raises ``FileNotFoundError`` where neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_data", package.parent / "data"):
        if (folder / DESCRIPTION).is_file():
            return folder
    raise FileNotFoundError(
        f"the data shipped with sparselab is missing: no {DESCRIPTION} in {package / '_data'} "
        f"or {package.parent / 'data'}."
    )


def datasets() -> dict[str, Dataset]:
    """Return the shipped overlap tables by name, in the order of ``datapackage.json``."""
    return {
        resource["name"]: _dataset(resource)
        for resource in _description()["resources"]
        if resource["path"].startswith("overlaps/")
    }


def load_overlap(name: str) -> OverlapDistribution:
    """Return a shipped overlap table; weights are numbers of requests.

    Its length is the deepest overlap seen. Raises ``ValueError`` for an unknown name, with the
    nearest one.
    """
    tables = datasets()
    return OverlapDistribution.from_csv(tables[check_choice("dataset", name, tables)].path)


def sample(name: str) -> Path:
    """Return the path of a shipped sample file or folder, such as ``"chats.jsonl"``."""
    return data_folder() / "samples" / name


@lru_cache(maxsize=1)
def _description() -> dict[str, Any]:
    return json.loads((data_folder() / DESCRIPTION).read_text(encoding="utf-8"))


def _dataset(resource: dict[str, Any]) -> Dataset:
    return Dataset(
        name=resource["name"],
        title=resource["title"],
        path=data_folder() / resource["path"],
        requests=resource["requests"],
        unit=resource["granularity_tokens"],
        source=", ".join(source["title"] for source in resource["sources"]),
        licence=", ".join(source["license"] for source in resource["sources"]),
        date=resource["date"],
        method=resource["method"],
        synthetic=resource["synthetic"],
    )
