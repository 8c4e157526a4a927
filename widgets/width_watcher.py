"""Makes figures fit their page when that gets another width, or a width at all."""

from __future__ import annotations

import anywidget

# plotly looks at the width of its place when it draws, and again when the *window* is resized.
# Neither happens when a cell that was drawn out of sight is scrolled to, or a side bar opens.
WATCH = """
export default {
  render({ el }) {
    let frame = null;
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
    });
    observer.observe(el);
    return () => observer.disconnect();
  },
};
"""


class WidthWatcher(anywidget.AnyWidget):
    """An empty line as wide as its page, which tells figures when that width changes."""

    _esm = WATCH
