"""Makes a double click count as one click where clicks add something."""

from __future__ import annotations

import anywidget
import ipywidgets as w
from traitlets import Unicode

# plotly reports both clicks of a double click, and resets the zoom between them, so that the
# second is at another depth. The second press is kept from it.
KEEP = """
export default {
  render({ model }) {
    const keep = (event) => {
      if (event.detail > 1 && event.target.closest(model.get("place"))) event.stopPropagation();
    };
    document.addEventListener("mousedown", keep, true);
    return () => document.removeEventListener("mousedown", keep, true);
  },
};
"""


class SingleClicks(anywidget.AnyWidget):
    """An empty line; ``place`` is a CSS selector of what takes only the first of two clicks."""

    _esm = KEEP

    place = Unicode().tag(sync=True)

    def __init__(self, place: str) -> None:
        super().__init__(place=place, layout=w.Layout(height="0", margin="0"))
