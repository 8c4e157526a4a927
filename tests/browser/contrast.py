"""How well text stands out from what is behind it."""

from __future__ import annotations

from playwright.sync_api import Locator


def contrast(text: Locator) -> float:
    """The contrast of an element's text (its fill in SVG) to its background, after WCAG 2.

    The background is that of the nearest ancestor which is not transparent.
    """
    return text.first.evaluate(
        """element => {
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
        }"""
    )
