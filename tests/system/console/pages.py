"""The console as a process, and a browser window that notes what a page should not do."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright
from rig.browser import chromium

# A desk's screen and a telephone's.
WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
SIZES = (WIDE, NARROW)
PATIENCE_MS = 60_000.0


def a_browser() -> Iterator[Browser]:
    """Chromium without a window; the test is skipped where there is none."""
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium: `make rig` installs it as root, or where npm is")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        # Root has no sandbox.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def console(bootstrap: str, *words: str, config: Path | None = None) -> Iterator[str]:
    """Run `ottla console`; the value is its address."""
    command = [sys.executable, "-m", "ottla.cli", "console", "--bootstrap", bootstrap]
    command += ["--listen", "127.0.0.1:0", *words]
    env = {name: value for name, value in os.environ.items() if name != "OTTLA_CONFIG"}
    if config is not None:
        env["OTTLA_CONFIG"] = str(config)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("The console is at "), line
            yield line.split()[-1]
        finally:
            process.terminate()


@dataclass
class Window:
    """A browser window on the console. `wrong` are errors of its pages, and refused content."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)
    clicks: int = 0

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))

    def _note(self, message: ConsoleMessage) -> None:
        # A page that answers with a status such as 404 is no fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def open(self, path: str) -> Page:
        """Go to a page of the console by its address."""
        self.page.goto(self.address + path)
        return self.page

    def click(self, name: str, role: str = "link") -> None:
        """Click what has this name, and count the click."""
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]

    def type(self, label: str, text: str) -> None:
        """Write into a field: choosing it is a click, too."""
        self.clicks += 1
        self.page.get_by_label(label, exact=True).first.fill(text)

    def text(self) -> str:
        """What a person reads on the page."""
        return self.page.locator("main").inner_text()

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        found = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return int(found)


WindowMaker = Callable[..., Window]


@contextlib.contextmanager
def windows(browser: Browser, address: str) -> Iterator[WindowMaker]:
    """Open windows of a size, and at the end see that their pages did nothing wrong."""
    opened: list[Window] = []

    def make(size: ViewportSize = WIDE) -> Window:
        context = browser.new_context(viewport=size)
        opened.append(Window(context.new_page(), address))
        return opened[-1]

    yield make
    for window in opened:
        window.page.context.close()
    assert [window.wrong for window in opened if window.wrong] == []


def names(sizes: Sequence[ViewportSize]) -> list[str]:
    """Return the names of sizes for pytest."""
    return [f"{size['width']}px" for size in sizes]
