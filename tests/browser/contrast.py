"""How well text stands out from what is behind it."""

from __future__ import annotations

from playwright.sync_api import Locator

CONTRAST = """
async (root, selector) => {
  let element;
  while (!(element = root.querySelector(selector))) await new Promise(requestAnimationFrame);
  const channels = colour => colour.match(/[0-9.]+/g).map(Number);
  const luminance = colour => {
    const [r, g, b] = channels(colour).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = node => getComputedStyle(node).backgroundColor;
  const clear = node => channels(background(node))[3] === 0;
  let behind = element;
  while (clear(behind) && behind.parentElement) behind = behind.parentElement;
  const style = getComputedStyle(element);
  const own = luminance(element instanceof SVGElement ? style.fill : style.color);
  const paper = luminance(background(behind));
  return (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05);
}
"""


def contrast(root: Locator, selector: str) -> float:
    """The contrast to its background, after WCAG 2, of the first text in ``root`` that matches.

    The colour is an element's fill in SVG; the background is that of the nearest ancestor which
    is not transparent. The text is found and looked at in one step, since a redrawing between
    the two would leave an element that is no longer in the page and has no colours.
    """
    root.locator(selector).first.wait_for()  # with a limit, which the loop in the page has not
    return root.evaluate(CONTRAST, selector)
