"""Requests as token ids: loaders of datasets and traces, samples, synthetic workloads."""

from sparselab.workloads.prefix_index import Match, PrefixIndex
from sparselab.workloads.workload import Request, Workload

__all__ = ["Match", "PrefixIndex", "Request", "Workload"]
