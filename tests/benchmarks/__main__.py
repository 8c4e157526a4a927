"""``make bench``: run every benchmark, print a table and write ``benchmark_results.json``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

import pandas as pd

import tests.benchmarks as package
from sparselab.files import write_json
from sparselab.provenance import provenance


def main() -> int:
    """Run the benchmarks that the arguments name, or all, and report."""
    known = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("bench_")]
    names = [name.removeprefix("bench_") for name in known]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--out", default="benchmark_results.json", help="where the JSON goes")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names)
    if unknown:
        parser.error(f"unknown benchmark {sorted(unknown)[0]!r}; known: {', '.join(names)}.")
    rows: list[dict] = []
    for name in arguments.names or names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"tests.benchmarks.bench_{name}").run()
    with pd.option_context("display.width", 200, "display.max_colwidth", 60):
        print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))
    write_json(arguments.out, provenance(results=rows))
    print(f"{len(rows)} measurements; also in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
