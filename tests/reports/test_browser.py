"""The site in a real browser, served from a port of this machine and opened from files: charts, filters, state in the
address, no error, no request to anywhere else, and what axe finds."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: What `.ci/system-packages test` installs has one of these names, by system.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
POSTGRES = "lines/postgres/17/local/default/sysbench"
MYSQL = "lines/mysql/8.0/ser4/cy10a_bee/insert"
#: One of every kind of page.
KINDS = (
    "index.html",
    f"{POSTGRES}/index.html",
    f"{POSTGRES}/point-query.html",
    f"{MYSQL}/index.html",
    f"{MYSQL}/insert.html",
    "findings/index.html",
    "findings/postgres/17/17.5/regression.html",
    "compare/index.html",
    "compare/local/sysbench.html",
    "noise.html",
    "environment.html",
    "about.html",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: pytest shows what matters."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(built))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "chromium is missing; run .ci/system-packages test"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


class Visit:
    """One tab that remembers what went wrong in it."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self.wrong.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "file://", "data:")):
            self.wrong.append(f"asked {request.url}")

    def _failed(self, request: Any) -> None:
        # The browser takes back what it still waits for, the icon say, when a page is left or closed.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"failed: {request.url}: {request.failure}")

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.address}/{path}")
        return self.page


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = Visit(context, address)
    yield made
    context.close()
    assert made.wrong == []


def drawn(page: Page) -> int:
    """Charts drawn, after scrolling through the page so that each comes near the window."""
    expect(page.locator("#theme")).to_be_visible()  # the page's script has run: sections it hides are hidden
    for chart in page.locator(".chart:visible").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("svg.marks")).to_be_visible()
    return page.locator("svg.marks").count()


def parameters(page: Page) -> str:
    return urlsplit(page.url).query


@pytest.mark.parametrize("path", KINDS)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_page_draws_and_axe_finds_nothing_serious(
    browser: Browser, address: str, path: str, scheme: Any, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    made = Visit(context, address)
    page = made.open(path)
    charts = drawn(page)
    if "/point-query" in path or path.endswith("8.0/index.html"):
        assert charts
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    context.close()
    assert made.wrong == []


def test_from_the_overview_to_why_in_three_clicks(visit: Visit) -> None:
    page = visit.open("index.html")
    page.get_by_role("link", name="postgres 17.5").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(
        "postgres 17.5: update-index needs 3.0 % more instructions"
    )
    expect(page.get_by_text("3 of 3 blocks agree.")).to_be_visible()
    expect(page.get_by_role("cell", name="+900", exact=True)).to_be_visible()
    page.get_by_role("link", name="point-query").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("point-query")
    assert "insn" in parameters(page)
    expect(page.locator(".view:visible h2")).to_contain_text("insn/o")


def test_another_base_changes_numbers_colours_and_address_and_survives_a_reload(visit: Visit) -> None:
    page = visit.open(f"{MYSQL}/index.html?metric=throughput")
    row = page.locator("tr", has=page.get_by_role("link", name="l.i0", exact=True))
    cell = row.locator("td").nth(6)  # 8.0.30, after the sparkline
    expect(cell).to_have_text("0.85")
    page.locator("select[name=base]").select_option(label="8.0.28")
    expect(cell).to_have_text("0.89")
    assert parameters(page) == "base=8.0.28"
    page.locator("select[name=base]").select_option(label="the release before")
    expect(cell).to_have_text("0.89")
    expect(row.locator("td").nth(7)).to_have_text("1.01")
    page.reload()
    expect(page.locator("select[name=base]")).to_have_value("previous")
    expect(cell).to_have_text("0.89")
    assert "cp" in (cell.get_attribute("class") or "")


def test_search_and_only_regressions_filter_the_heat_table(visit: Visit) -> None:
    page = visit.open(f"{POSTGRES}/index.html?metric=instructions-op")
    table = page.locator("table.heat:visible")
    rows = table.locator("tbody:not(.all) tr:not(.g):visible")
    expect(rows).to_have_count(6)
    page.get_by_label("only regressions").check()
    expect(rows).to_have_count(6)
    page.get_by_label("Search").fill("writes")
    expect(rows).to_have_count(2)
    assert parameters(page) == "only=1&q=writes" or "q=writes" in parameters(page)
    expect(page.get_by_text("2 of 6 tests")).to_be_visible()
    page.get_by_text("Throughput", exact=True).first.click()
    page.get_by_label("Search").fill("")
    expect(page.locator("table.heat:visible tbody:not(.all) tr:not(.g):visible")).to_have_count(0)


def test_only_regressions_filters_the_findings(visit: Visit) -> None:
    page = visit.open("findings/index.html?only=1&q=mysql")
    expect(page.locator("tr[data-text]:visible")).to_have_count(2)
    page.get_by_label("Search").fill("8.0.30")
    expect(page.locator("tr[data-text]:visible")).to_have_count(1)


def test_what_is_folded_opens_by_key_and_by_search(visit: Visit) -> None:
    page = visit.open("index.html")
    folded = page.get_by_role("link", name="postgres 17.3")
    expect(folded).to_be_hidden()
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(folded).to_be_visible()
    page.reload()
    expect(folded).to_be_hidden()
    page.get_by_label("Search").fill("17.3")
    expect(folded).to_be_visible()
    expect(page.locator("tr[data-text]:visible")).to_have_count(1)
    page.get_by_label("Search").fill("8.0.30")
    expect(page.locator("tr[data-text]:visible")).to_have_count(1)


def test_any_two_can_be_compared_and_the_script_agrees_with_the_page(visit: Visit) -> None:
    page = visit.open("compare/local/sysbench.html")
    written = page.locator(".view:visible").inner_text()
    left, right = page.locator("select[name=a]"), page.locator("select[name=b]")
    first, second = left.input_value(), right.input_value()
    page.get_by_role("button", name="Swap").click()
    expect(left).to_have_value(second)
    page.get_by_role("button", name="Swap").click()
    expect(left).to_have_value(first)
    assert page.locator(".view:visible").inner_text() == written
    left.select_option(label="postgres 17.0 default")
    right.select_option(label="postgres 17.7 default")
    expect(page.get_by_role("heading", level=1)).to_have_text("postgres 17.7 default against postgres 17.0 default")
    assert "a=postgres+17.0+default" in parameters(page)


def test_the_script_paints_what_the_page_was_written_with(visit: Visit) -> None:
    page = visit.open("about.html")
    for path in (f"{POSTGRES}/index.html", f"{MYSQL}/index.html"):
        text = (page.request.get(f"{visit.address}/{path}")).text()
        page.goto(f"{visit.address}/{path}")
        same = page.evaluate(
            """(text) => {
              const written = new DOMParser().parseFromString(text, "text/html");
              const cells = (root) => [...root.querySelectorAll("table.heat")].map((table) =>
                [...table.querySelectorAll("td")].map((cell) => [cell.textContent, cell.className]));
              const shown = cells(document), made = cells(written);
              return shown.flatMap((table, t) => table.map((cell, i) => [t, i, ...cell, ...made[t][i]]))
                .filter(([, , text, css, text2, css2]) => text !== text2 || css !== css2);
            }""",
            text,
        )
        assert same == []


def test_theme_is_kept_and_charts_follow(visit: Visit) -> None:
    page = visit.open(f"{POSTGRES}/index.html")
    assert drawn(page)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(page.locator(".chart:visible svg.marks").first).to_be_visible()
    page.goto(f"{visit.address}/index.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 28)"


def test_a_keyboard_reaches_everything(visit: Visit) -> None:
    page = visit.open(f"{MYSQL}/index.html")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.name || document.activeElement.textContent.trim().slice(0, 20)"))
    assert {"metric", "base", "q", "only", "Overview"} <= seen
    page.locator("input[name=metric]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator('.view[data-view="cpu-query"]')).to_be_visible()


def test_without_scripts_every_table_is_there(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/{POSTGRES}/index.html")
    assert page.locator("table.heat:visible").count() == 2
    assert page.locator(".controls:visible, .chart:visible").count() == 0
    expect(page.get_by_role("cell", name="1.030").first).to_be_visible()
    page.goto(f"{address}/index.html")
    page.locator("summary").click()
    expect(page.get_by_role("link", name="postgres 17.3")).to_be_visible()
    context.close()


def test_it_works_from_files(browser: Browser, built: Path) -> None:
    context = browser.new_context()
    made = Visit(context, f"file://{built}")
    page = made.open(f"{POSTGRES}/point-query.html")
    assert drawn(page)
    page.get_by_role("link", name="postgres 17", exact=True).click()
    assert drawn(page)
    page.get_by_label("only regressions").check()
    context.close()
    assert made.wrong == []
