"""Gives the parts of controls that have no name of their own one, for screen readers."""

from __future__ import annotations

import anywidget
import ipywidgets as w

# ipywidgets labels a slider beside it and a play button by an icon alone; a screen reader then
# says "slider" and "button". Each gets the words that stand beside it, or else its tooltip.
NAME = """
const PLAY = ["Play or pause", "Stop", "Repeat"];

const nameAll = (panel) => {
  for (const part of panel.querySelectorAll(".noUi-handle, .widget-readout")) {
    const label = part.closest(".widget-slider")?.querySelector(".widget-label");
    const words = label?.textContent || label?.title;
    if (words) part.setAttribute("aria-label", words);
  }
  for (const play of panel.querySelectorAll(".widget-play")) {
    play.querySelectorAll("button").forEach((button, i) =>
      button.setAttribute("aria-label", PLAY[i]));
  }
};

export default {
  render({ el }) {
    // Its size changes when this line gets its place in the page, and whenever the page does.
    const observer = new ResizeObserver(() => {
      const panel = el.closest(".sparselab-panel");
      if (panel) nameAll(panel);
    });
    observer.observe(el);
    return () => observer.disconnect();
  },
};
"""


class AccessibleNames(anywidget.AnyWidget):
    """An empty line below a panel's controls, which names their handles and buttons."""

    _esm = NAME

    def __init__(self) -> None:
        super().__init__(layout=w.Layout(width="100%", height="0", margin="0"))
