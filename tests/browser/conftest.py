"""A chromium of this machine, and pages of it that note whatever a report does."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

sys.path.insert(0, str(Path(__file__).parents[1] / "reporting"))  # `samples`: reports made by hand

SECONDS = 60
"""Patience on a busy machine; a quiet one needs one or two."""

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    named = os.environ.get("HCP_LOGSCAN_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium()
    if path is None:
        pytest.skip(f"no {', '.join(NAMES)} on PATH; HCP_LOGSCAN_CHROMIUM may name one")
    with api.sync_playwright() as playwright:
        try:
            # no sandbox: root in a container has none, and the pages are ours
            browser = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox"], timeout=SECONDS * 1_000
            )
        except api.Error as error:
            if "HCP_LOGSCAN_CHROMIUM" in os.environ:
                raise
            pytest.skip(f"{path} does not start: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page, and what it did."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    early: str = ""
    "What the library was before any chart was near."

    def is_calm(self) -> None:
        """It asked for nothing but itself, and nothing went wrong."""
        assert self.requests == [self.address]
        assert self.console == []
        assert self.errors == []
        assert self.dialogs == []

    def scroll_through(self) -> None:
        """Bring every chart near once, and wait until all of them are drawn by plotly."""
        for figure in self.page.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".live svg.main-svg").first.wait_for()
        self.page.wait_for_function("!document.querySelector('.drawing:not([hidden])')")

    def fits_its_width(self) -> bool:
        return self.page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )

    def text(self) -> str:
        """All text of the report, folded or not; none of its scripts."""
        return "\n".join(self.page.locator("header, main, footer").all_text_contents())


@pytest.fixture(scope="module")
def watch(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Watched]]:
    """Opens the text of a report from a file; options are those of a browser context.

    `before` gets the page before it opens the file.
    """
    contexts: list[BrowserContext] = []

    def opened(
        html: str, *, before: Callable[[Page], None] = lambda page: None, **options: Any
    ) -> Watched:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1_000)
        path = tmp_path_factory.mktemp("browser") / "report.html"
        path.write_text(html, encoding="utf-8")
        watched = Watched(page, path.as_uri())
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on("console", lambda message: watched.console.append(message.text))
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
        before(page)
        page.goto(watched.address)
        return watched

    yield opened
    for context in contexts:
        context.close()
