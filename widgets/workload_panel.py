"""What panels about the requests of a workload share: where these come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets as w
from traitlets import Int, Unicode, observe

from widgets import controls
from widgets.panel import Panel
from widgets.workload_source import FILE, FORMATS, RECOGNISED, WorkloadSource, workload_source


class WorkloadPanel(Panel):
    """A panel about the requests of a loader, or of the reader's own file.

    Attributes:
        workload: a loader's name, whose shipped sample or synthetic requests are meant, or
            ``"my own file"``.
        path: that file; to give one chooses it.
        file_format: what it is, for one that could be read in several ways.
        seed: of the interleaving of groups; requests with arrivals of their own keep those.
    """

    workload = Unicode("quality").tag(parameter=True)
    path = Unicode("").tag(parameter=True)
    file_format = Unicode(RECOGNISED).tag(parameter=True)
    seed = Int(0).tag(parameter=True)

    @observe("path")
    def _choose_file(self, change: Any) -> None:
        if change["new"].strip():
            self.workload = FILE

    def source(self, parameters: dict[str, Any]) -> WorkloadSource:
        """Return the requests; raises what :func:`widgets.workload_source.workload_source` does."""
        names = ("workload", "path", "seed", "file_format")
        return workload_source(*(parameters[name] for name in names))

    def workload_controls(self, names: Iterable[str]) -> list[w.Widget]:
        """Return the controls of the requests: one of ``names``, or the reader's own file."""
        of_file = [
            controls.text(
                self,
                "path",
                "Your own file",
                "Where a trace or data set lies for the kernel; Enter reads it.",
                "trace.jsonl",
            ),
            controls.choice(
                self,
                "file_format",
                "Format",
                "Of your own file, for one that could be read in several ways.",
                FORMATS,
            ),
        ]
        return [
            controls.choice(
                self,
                "workload",
                "Workload",
                "Shipped samples, synthetic requests made up with the lengths of a dataset, or a "
                "file of your own.",
                [*names, FILE],
            ),
            *(
                controls.visible_while(self, "workload", lambda: self.workload == FILE, control)
                for control in of_file
            ),
            controls.integer(
                self,
                "seed",
                "Seed",
                "Of the order in which the groups' requests arrive. A trace with arrivals of its "
                "own keeps them.",
                0,
                1000,
                continuous=False,
            ),
        ]
