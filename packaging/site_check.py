"""Open the site in a browser and test it: ``make release-check`` and ``make site-check``.

1. Every link inside the site leads to a page, and every anchor exists. A page has one heading of
   the first level, and no level is skipped.
2. Pages of each kind are opened at 390, 1280 and 1920 pixels, in light and dark mode. Nothing is
   fetched from another host, no script fails, the page does not scroll sideways, and code is at
   least 13 pixels high. Screenshots are kept in ``build/site/screenshots``.
3. axe-core examines these pages, contrast and headings included. The score must be 95 or more.
4. The search finds pages of the guide and the reference first.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build/site/html"
SCREENSHOTS = ROOT / "build/site/screenshots"

WIDTHS = {390: 844, 1280: 800, 1920: 1080}
MODES = ("light", "dark")

#: A page of each kind.
SHOWN = (
    "index",
    "guide",
    "docs/first-solve",
    "docs/verdicts",
    "docs/choosing-a-solver",
    "docs/performance",
    "docs/tutorials/first_solve",
    "examples/index",
    "examples/heat",
    "reference/index",
    "reference/wollemi.solvers",
    "reference/wollemi.solvers.Cg",
    "reference/wollemi.solve",
    "reference/wollemi.Csr",
)

#: The weight of an audit in the score, by the impact that axe-core gives it; as in Lighthouse.
WEIGHTS = {"minor": 1, "moderate": 3, "serious": 7, "critical": 10}
SCORE = 95

SMALLEST_CODE = 13

#: Words that people type, and the beginnings of the paths that may come first.
SEARCHES = {
    "solve": ("reference/", "docs/"),
    "wl.solve": ("reference/wollemi.solve",),
    "preconditioner": ("reference/", "docs/preconditioners"),
    "Csr": ("reference/wollemi.Csr",),
    "gpu": ("docs/",),
    "slow": ("docs/", "guide", "start"),
    "error": ("reference/", "docs/"),
    "out of memory": ("docs/", "reference/"),
    "multigrid": ("docs/multigrid", "reference/wollemi.solvers.Multigrid",
                  "reference/wollemi.preconditioners.Multigrid"),
}  # fmt: skip

#: The state of a page that is measured in the browser.
MEASURE = """() => ({
  sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  code: [...document.querySelectorAll("pre, dt.sig")]
    .filter(e => e.offsetParent).map(e => parseFloat(getComputedStyle(e).fontSize)),
})"""


def say(text: str) -> None:
    """Print at once."""
    print(f"site-check: {text}", flush=True)


@dataclass
class Page(HTMLParser):
    """The links, anchors and headings of a page of HTML.

    Attributes
    ----------
    links : list of str
        The targets of links, images and scripts.
    anchors : set of str
        The identifiers that links may name.
    levels : list of int
        The levels of the headings, in order.
    """

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    levels: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes of one element."""
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        self.links += [value for name in ("href", "src") if (value := found.get(name))]
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.levels.append(int(tag[1]))


def read_page(file: Path) -> Page:
    """Return the links, anchors and headings of a file."""
    page = Page()
    page.feed(file.read_text())
    return page


def broken_links(site: Path) -> list[str]:
    """Return a line for each link of a site that leads nowhere, and for each wrong heading.

    Parameters
    ----------
    site : Path
        The folder with the pages.
    """
    files = [file.resolve() for file in site.rglob("*.html") if "_static" not in file.parts]
    pages = {file: read_page(file) for file in files}
    faults = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for link in set(page.links):
            address, anchor = urldefrag(link)
            if urlsplit(link).scheme or link.startswith("//") or link == "#":
                continue
            target = (file.parent / unquote(urlsplit(address).path)).resolve() if address else file
            if not target.is_file():
                faults.append(f"{name}: {link} leads nowhere")
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                faults.append(f"{name}: {link} names an anchor that does not exist")
        if page.levels.count(1) != 1:
            faults.append(f"{name}: {page.levels.count(1)} headings of the first level")
        steps = zip(page.levels, page.levels[1:], strict=False)
        if any(b > a + 1 for a, b in steps):
            faults.append(f"{name}: a level of headings is skipped: {page.levels}")
    return sorted(faults)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on this machine; yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # the browser leaves a page before all of it has arrived

    handler = functools.partial(Quiet, directory=str(site))
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium: that of the system, or that of ``playwright install chromium``."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def score_of(found: dict[str, Any]) -> float:
    """Return the share of audits that a page passes, in percent, weighted by their impact.

    Parameters
    ----------
    found : dict
        The answer of axe-core.
    """

    def weight(audits: list[dict[str, Any]]) -> int:
        return sum(WEIGHTS[audit["impact"] or "minor"] for audit in audits)

    failed = weight(found["violations"])
    # an audit that passes has no impact of its own: its checks have
    passed = sum(max(_impacts(audit), default=1) for audit in found["passes"])
    return 100 * passed / (passed + failed)


def _impacts(audit: dict[str, Any]) -> list[int]:
    checks = [c for node in audit["nodes"] for kind in ("any", "all", "none") for c in node[kind]]
    return [WEIGHTS[check["impact"]] for check in checks if check.get("impact") in WEIGHTS]


def faults_of_pages(address: str, names: tuple[str, ...]) -> list[str]:
    """Open pages at each width in each mode; return a line for each fault.

    Parameters
    ----------
    address : str
        Where the site is served.
    names : tuple of str
        The pages, without suffixes.
    """
    from axe_playwright_python.sync_playwright import Axe

    faults: list[str] = []
    scores: dict[str, float] = {}
    shutil.rmtree(SCREENSHOTS, ignore_errors=True)
    SCREENSHOTS.mkdir(parents=True)
    with browser() as chromium:
        for width, height in WIDTHS.items():
            for mode in MODES:
                context = chromium.new_context(
                    viewport={"width": width, "height": height}, color_scheme=mode
                )
                context.add_init_script(f"localStorage.mode = localStorage.theme = '{mode}'")
                page = context.new_page()
                for name in names:
                    where = f"{name} at {width} in {mode} mode"
                    with events(page, address) as seen:
                        page.goto(f"{address}/{name}.html")
                        shot = SCREENSHOTS / f"{name.replace('/', '-')}-{width}-{mode}.png"
                        page.screenshot(path=shot)
                    state = page.evaluate(MEASURE)
                    if state["sideways"] > 0:
                        seen.append(f"scrolls sideways by {state['sideways']} pixels")
                    if state["code"] and min(state["code"]) < SMALLEST_CODE:
                        seen.append(f"code of {min(state['code'])} pixels")
                    if width != 1920:  # the same page as at 1280
                        found = Axe().run(page).response
                        scores[where] = score_of(found)
                        seen += _audits(found, everything=scores[where] < SCORE)
                    faults += [f"{where}: {fault}" for fault in seen]
                context.close()
    lowest = min(scores, key=lambda where: scores[where])
    say(f"accessibility score: {scores[lowest]:.0f} at the least ({lowest}), "
        f"{sum(scores.values()) / len(scores):.1f} on average")  # fmt: skip
    return faults


@contextmanager
def events(page: Any, address: str) -> Iterator[list[str]]:
    """Note the errors of scripts and the requests to other hosts while a page is opened."""
    seen: list[str] = []

    def on_error(error: Any) -> None:
        seen.append(f"a script fails: {error}")

    def on_request(request: Any) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            seen.append(f"fetches {request.url}")

    page.on("pageerror", on_error)
    page.on("request", on_request)
    yield seen
    page.remove_listener("pageerror", on_error)
    page.remove_listener("request", on_request)


def _audits(found: dict[str, Any], *, everything: bool) -> list[str]:
    """Return a line for each element that has too little contrast or a wrong heading."""
    return [
        f"{audit['id']}: {node['html'][:140]}"
        for audit in found["violations"]
        for node in audit["nodes"][:3]
        if everything or audit["id"] in ("color-contrast", "heading-order")
    ]


def faults_of_search(address: str) -> list[str]:
    """Search for words that people type; return a line where the first result is a wrong one."""
    faults = []
    with browser() as chromium:
        page = chromium.new_page()
        for words, allowed in SEARCHES.items():
            page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
            page.wait_for_selector("ul.search li a", timeout=30_000)
            page.wait_for_function(
                "() => !document.querySelector('.search-summary')?.textContent.includes('...')"
            )
            links = page.eval_on_selector_all(
                "ul.search li > a", "all => all.map(a => a.getAttribute('href'))"
            )
            first = links[:3]
            say(f"search {words!r}: {', '.join(first)}")
            if not first or not first[0].startswith(allowed):
                faults.append(f"search {words!r} finds {first} first")
    return faults


def main() -> None:
    """Make all checks; print the faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="pages to open, such as docs/verdicts")
    names = tuple(parser.parse_args().pages) or SHOWN
    if not (SITE / "index.html").is_file():
        sys.exit("site-check: there is no site: run make site")
    faults = broken_links(SITE)
    say(f"{len(faults)} faults of links and headings")
    with served(SITE) as address:
        faults += faults_of_pages(address, names)
        faults += faults_of_search(address)
    for fault in faults:
        say(fault)
    say(f"the screenshots are in {SCREENSHOTS.relative_to(ROOT)}")
    sys.exit(f"site-check: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
