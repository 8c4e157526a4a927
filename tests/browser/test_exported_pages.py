"""Exported pages in a real browser: every plot is drawn, with all outside requests blocked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from contrast import contrast
from jupyter_lab import SCREENSHOTS, WIDTH
from notebook_cases import CASES
from playwright.sync_api import Browser, Page

from sparselab.batch.index import write_index
from sparselab.batch.run import RunRecord

Scheme = Literal["light", "dark"]
INSIDE = ("file:", "data:", "blob:", "about:")
DRAWN = "() => [...document.querySelectorAll('.plotly-figure')].every(f => f._fullLayout?._size)"


class Offline:
    """Pages opened from files; whatever they ask of a network or complain about is kept."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.outside: list[str] = []
        self.complaints: list[str] = []

    def open(
        self,
        path: Path,
        scheme: Scheme = "light",
        width: int = WIDTH,
        height: int = 900,
    ) -> Page:
        context = self.browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": width, "height": height}
        )
        page = context.new_page()
        page.on("request", lambda r: self.outside.append(r.url) if not inside(r.url) else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text) if message.type == "error" else None
            ),
        )
        page.goto(path.as_uri())
        return page


def inside(url: str) -> bool:
    return url.startswith(INSIDE)


@pytest.fixture
def offline(browser: Browser) -> Iterator[Offline]:
    pages = Offline(browser)
    yield pages
    assert pages.outside == []
    assert pages.complaints == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stem", sorted(CASES))
def test_every_plot_of_a_notebooks_page_is_drawn_in_light_and_dark(
    stem: str, run_notebook_case: Callable[[str], Path], offline: Offline
) -> None:
    path = run_notebook_case(stem) / f"{stem}.html"
    SCREENSHOTS.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page = offline.open(path, scheme)
        page.wait_for_function(DRAWN)
        figures = page.locator(".plotly-figure")
        assert figures.count() > 0
        for index in range(figures.count()):
            svg = figures.nth(index).locator(".main-svg").first
            box = svg.bounding_box()
            assert box is not None
            assert box["width"] > 300
            assert box["height"] > 150
        body = page.locator("body")
        assert contrast(body, ".jp-RenderedMarkdown p") > 7
        assert contrast(body, ".plotly-figure .xtick text, .plotly-figure .gtitle") > 7
        # Nothing is wider than the page: the reader never scrolls sideways.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.screenshot(path=SCREENSHOTS / f"page-{stem}-{scheme}.png", full_page=True)
        page.context.close()


def test_a_page_follows_a_change_from_light_to_dark(
    run_notebook_case: Callable[[str], Path], offline: Offline
) -> None:
    page = offline.open(run_notebook_case("05_memory_and_serving") / "05_memory_and_serving.html")
    page.wait_for_function(DRAWN)
    body = page.locator("body")
    assert contrast(body, ".plotly-figure .gtitle") > 7
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.plotly-figure .gtitle')).fill"
        " === getComputedStyle(document.body).color"
    )
    assert contrast(body, ".plotly-figure .gtitle") > 7


def test_on_a_narrow_page_figures_scroll_and_the_page_does_not(
    run_notebook_case: Callable[[str], Path], offline: Offline
) -> None:
    page = offline.open(run_notebook_case("05_memory_and_serving") / "05_memory_and_serving.html")
    page.set_viewport_size({"width": 420, "height": 900})
    page.wait_for_function(DRAWN)
    page.wait_for_function("() => document.querySelector('.main-svg').width.baseVal.value === 760")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    titles = page.locator(".plotly-figure .gtitle")
    for index in range(titles.count()):
        figure = page.locator(".plotly-figure").nth(index)
        title, legend = (figure.locator(part).first for part in (".gtitle", ".legend"))
        if legend.count():
            below = legend.evaluate("legend => legend.getBoundingClientRect().top")
            assert title.evaluate("title => title.getBoundingClientRect().bottom") <= below


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_every_figure_is_whole_and_dark_on_light(
    run_notebook_case: Callable[[str], Path], offline: Offline, scheme: Scheme
) -> None:
    page = offline.open(
        run_notebook_case("05_memory_and_serving") / "05_memory_and_serving.html", scheme
    )
    page.wait_for_function(DRAWN)
    page.emulate_media(media="print")
    # A4 between its margins, in pixels; the window keeps its size, as it does when one prints.
    page.add_style_tag(content="main { width: 700px; }")
    body = page.locator("body")
    assert body.evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(255, 255, 255)"
    for text in (".jp-RenderedMarkdown p", ".plotly-figure .gtitle"):
        assert contrast(body, text) > 7
    assert contrast(body, ".highlight .kn") > 4.5
    for figure in page.locator(".plotly-figure").all():
        place, drawing = figure.bounding_box(), figure.locator(".main-svg").first.bounding_box()
        assert place is not None
        assert drawing is not None
        assert drawing["width"] == pytest.approx(place["width"], abs=1)
        assert drawing["height"] == pytest.approx(place["height"], abs=8)
        # It is the whole drawing in a smaller size, in each of its layers.
        for layer in figure.locator(".main-svg").all():
            shown = layer.evaluate("svg => svg.getScreenCTM().a * svg.getAttribute('width')")
            assert shown == pytest.approx(drawing["width"], rel=0.01)
    for code in page.locator(".highlight pre").all():
        assert code.evaluate("code => code.scrollWidth <= code.clientWidth")
    page.screenshot(path=SCREENSHOTS / f"page-on-paper-{scheme}.png", full_page=True)


def test_the_index_page_shows_a_picture_and_a_headline_of_each_run(
    run_notebook_case: Callable[[str], Path], offline: Offline
) -> None:
    page = offline.open(index_page(run_notebook_case))
    page.wait_for_function(DRAWN)
    assert page.locator(".card").count() == 2
    assert page.locator(".card .main-svg").count() > 0
    assert page.locator(".card dd").count() >= 2
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "index.png", full_page=True)

    page.locator(".card h2 a").first.click()
    page.wait_for_function(DRAWN)
    assert page.url.endswith("00_start_here/00_start_here.html")


def test_a_printed_index_page_has_the_pictures_that_were_not_scrolled_to(
    run_notebook_case: Callable[[str], Path], offline: Offline
) -> None:
    page = offline.open(index_page(run_notebook_case), width=420, height=20)
    last = page.locator(".card .thumbnail").last
    page.wait_for_timeout(500)
    assert last.locator(".main-svg").count() == 0
    page.pdf()
    assert last.locator(".main-svg").count() > 0


def index_page(run_notebook_case: Callable[[str], Path]) -> Path:
    """Write the index page of two notebooks beside their folders."""
    folders = [run_notebook_case(stem) for stem in ("00_start_here", "05_memory_and_serving")]
    records = {folder.name: RunRecord.load(folder) for folder in folders}
    write_index(
        folders[0].parent, "Two notebooks", {k: v for k, v in records.items() if v is not None}
    )
    return folders[0].parent / "index.html"
