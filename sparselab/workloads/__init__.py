"""Requests as token ids: loaders of data sets and traces, samples, synthetic workloads.

:func:`load` reads one by name; each loader is a module of this package. A new one needs
``SUMMARY``, ``load(path=None, ...)`` and its line in :mod:`sparselab.workloads.registry`.
"""

from sparselab.workloads.prefix_index import Match, PrefixIndex
from sparselab.workloads.registry import load, loaders, options, recognise
from sparselab.workloads.workload import Request, Workload

__all__ = [
    "Match",
    "PrefixIndex",
    "Request",
    "Workload",
    "load",
    "loaders",
    "options",
    "recognise",
]
