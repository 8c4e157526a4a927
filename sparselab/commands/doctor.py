"""``sparselab doctor``: what is installed here, what is missing and what to do about it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import sys
from typing import Any

from sparselab.commands.arguments import add_json_argument, print_json
from sparselab.provenance import revision, versions

SUMMARY = "print versions, device, renderer and optional parts, and how to get what is missing"

#: Optional part -> (the modules it needs, the extra that installs them, what it is for).
PARTS = {
    "lab": (
        ("jupyterlab", "ipywidgets", "anywidget", "plotly", "papermill", "nbconvert"),
        "lab",
        "notebooks, panels and batch runs",
    ),
    "replay": (("torch", "transformers", "safetensors"), "replay", "live replay on a model"),
    "hub datasets": (("datasets",), "hub", "workloads from the Hugging Face hub"),
    "dask": (("dask", "distributed"), "dask", "sl.pareto on a Dask cluster"),
    "voila": (("voila",), "voila", "notebooks as web pages"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``sparselab doctor``."""
    add_json_argument(parser)
    parser.epilog = "example: sparselab doctor"


def run(arguments: argparse.Namespace) -> int:
    """Look around and print what was found; the exit code is 0 whatever is missing."""
    report: dict[str, Any] = {
        "platform": platform.platform(),
        "python_executable": sys.executable,
        "cpu_cores": os.cpu_count(),
        "versions": versions(),
        "revision": revision() or "unknown (no git checkout)",
        "device": compute_device(),
        "plotly_renderer": plotly_renderer(),
        "browser": find_browser(),
        "shipped_datasets": shipped_datasets(),
        "missing": missing_parts(),
    }
    if arguments.json:
        print_json(report)
        return 0
    for name, value in report.items():
        if name == "versions":
            print("versions:", ", ".join(f"{k} {v}" for k, v in report["versions"].items()))
        elif name != "missing":
            print(f"{name.replace('_', ' ')}: {value}")
    for hint in report["missing"]:
        print(f"missing: {hint}")
    print("nothing is missing" if not report["missing"] else "the rest works without these")
    return 0


def missing_parts() -> list[str]:
    """Return a sentence for each optional part that is not installed, with the install line."""
    hints = []
    for part, (modules, extra, purpose) in PARTS.items():
        absent = [name for name in modules if importlib.util.find_spec(name) is None]
        if absent:
            hints.append(
                f"{part} ({purpose}) lacks {', '.join(absent)}: "
                f'pip install -c constraints.txt -e ".[{extra}]"'
            )
        elif part == "replay" and (problem := replay_problem()):
            hints.append(f"{part} ({purpose}) does not work: {problem}")
    if not shipped_datasets():
        hints.append("the shipped overlap tables: install sparselab from its whole repository")
    if find_browser() is None:
        hints.append(
            "a browser (SVG and PNG export, browser tests): install Chromium or Chrome, "
            "e.g. apt-get install chromium"
        )
    return hints


def replay_problem() -> str | None:
    """Return why the installed torch and transformers cannot replay, or ``None``."""
    try:
        from sparselab.replay.versions import check_transformers

        check_transformers()
    except ImportError as error:
        return str(error)
    return None


def find_browser() -> str | None:
    """Return the path of a Chromium or Chrome on this machine, or ``None``."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def compute_device() -> str:
    """Return what the live replay would run on, in words."""
    if importlib.util.find_spec("torch") is None:
        return "none (torch is not installed)"
    import torch

    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    if torch.backends.mps.is_available():
        return "mps (Apple GPU)"
    return f"cpu ({torch.get_num_threads()} threads)"


def plotly_renderer() -> str:
    """Return plotly's default renderer, or that plotly is missing."""
    if importlib.util.find_spec("plotly") is None:
        return "none (plotly is not installed)"
    import plotly.io

    return plotly.io.renderers.default or "none"


def shipped_datasets() -> list[str]:
    """Return the names of the overlap tables that are shipped; none where they are missing."""
    from sparselab.shipped_data import datasets

    try:
        return list(datasets())
    except FileNotFoundError:
        return []
