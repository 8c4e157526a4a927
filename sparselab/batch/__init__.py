"""Notebooks as experiments: run one with given parameters, or a sweep of many.

A notebook takes part by two conventions, and stays an ordinary notebook that plain papermill runs:
it has a cell tagged ``parameters`` (:mod:`sparselab.batch.parameters`), and it hands over what it
found with :func:`publish` (:mod:`sparselab.batch.results`).
"""

from sparselab.batch.parameters import Parameter, check_parameters, parse_text, read_parameters
from sparselab.batch.results import Results, collect, publish

__all__ = [
    "Parameter",
    "Results",
    "check_parameters",
    "collect",
    "parse_text",
    "publish",
    "read_parameters",
]
