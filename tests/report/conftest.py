"""A browser, and the pages that several tests look at."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.report import pages
from runner.runs.oracle_command import judge
from tests.report import packages

# Debian's package `chromium-headless-shell`; SUC_CHROMIUM names another browser.
BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
MADE: dict[str, Callable[[Path], Path]] = {
    name: lambda folder, name=name: getattr(packages, name)().write(folder)
    for name in ("four", "only_control", "hostile_text", "long_ids", "many_events", "no_trials")
}
MADE["broken"] = packages.broken


@dataclass(frozen=True)
class Shown:
    """A package, what the oracle says of it, and its page."""

    package: Path
    verdict: dict[str, Any]
    html: str
    file: Path

    @property
    def url(self) -> str:
        """The page's address, on this disk."""
        return self.file.as_uri()


@pytest.fixture(scope="session")
def shown(tmp_path_factory) -> Callable[[str], Shown]:
    """Return a page by the name of its package; each is made once."""
    folder, made = tmp_path_factory.mktemp("report"), {}

    def make(name: str) -> Shown:
        if name not in made:
            package = MADE[name](folder / name)
            html, _ = pages.report_page(package)
            file = folder / f"{name}.html"
            file.write_text(html, encoding="utf-8")
            made[name] = Shown(package, judge(package), html, file)
        return made[name]

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium. A machine without one fails these tests; it does not skip them.

    For one module: while it lives, Playwright's event loop runs in this thread, and another module's
    tests could not run one of their own.
    """
    from playwright.sync_api import sync_playwright

    candidates = [os.environ.get("SUC_CHROMIUM"), *BROWSERS]
    found = next((path for path in candidates if path and Path(path).exists()), None)
    assert found, "no browser: apt-get install chromium-headless-shell, or set SUC_CHROMIUM"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found)
        yield launched
        launched.close()
