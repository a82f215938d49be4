"""Pages as gradlab writes them, and a headless Chromium to open them in.

Chromium is spoken to by its own protocol over a pipe: no driver, no port, no package.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / "out" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Nothing of a browser's own may ask the network for anything either.
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0  # seconds for one answer: machines that run tests are slow
DIGITS = ROOT / "examples" / "digits"
MODELS = ROOT / "tests" / "fixtures" / "models"
PAGES: Mapping[str, tuple[object, ...]] = {
    "vanishing": ("vanishing", "--anchors", 4),
    "exploding": ("exploding", "--anchors", 4),
    "saturated": ("saturated", "--anchors", 4),
    "digits": (
        DIGITS / "digits_rnn.safetensors",
        "--inputs",
        DIGITS / "digits_test_inputs.npy",
        "--anchors",
        1,
    ),
    "gated": (MODELS / "lstm_bi_1l.pt", "--length", 30, "--batch", 2, "--anchors", 3),
    "comparison": ("rnn", "lstm", "gru", "--hidden-size", 16, "--length", 60),
    "training": ("echo", "--hidden-size", 8, "--length", 12, "--every", 10, "--epochs", 6),
}
# Those that are not written by the command report.
COMMANDS = {"comparison": "compare", "training": "train"}
FILES = {"comparison": "compare.html", "training": "training.html"}


class Browser:
    """A running Chromium; one command at a time, events kept in the order they came."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = _pipe(), _pipe()
        silence = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, silence, fd) for fd in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, at) for at, fd in ((3, ours[0]), (4, theirs[1]))]
        arguments = [program, *SWITCHES, f"--user-data-dir={profile}", "about:blank"]
        self.process = os.posix_spawn(program, arguments, os.environ, file_actions=actions)
        for fd in (ours[0], theirs[1], silence):
            os.close(fd)
        self._write, self._read = ours[1], theirs[0]
        self._numbers = itertools.count(1)
        self._pending = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._write, content) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        while not any(found.get("method") == event for found in self.events):
            self.events.append(self._next())

    def close(self) -> None:
        for fd in (self._write, self._read):
            os.close(fd)
        for _ in range(50):
            if os.waitpid(self.process, os.WNOHANG) != (0, 0):
                return
            time.sleep(0.1)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, f"the browser said nothing for {PATIENCE} seconds"
            content = os.read(self._read, 1 << 20)
            assert content, "the browser ended"
            self._pending += content
        message, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(message))


def _pipe() -> tuple[int, int]:
    """Ends of a pipe with numbers above those that the browser's ends shall have."""
    low = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in low]
    for fd in low:
        os.close(fd)
    return high[0], high[1]


class Tab:
    """One page in the browser."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        found = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = str(found["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def open(self, page: Path, width: int = 1280, scheme: str = "light") -> None:
        self.resize(width)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="", features=features)
        self.browser.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.browser.wait_for("Page.loadEventFired")

    def resize(self, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def ask(self, expression: str) -> Any:
        """Value of an expression in the page, waited for if it is a promise."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def told(self, event: str) -> list[dict[str, Any]]:
        """Parameters of the events of one name since the page was opened."""
        return [found["params"] for found in self.browser.events if found["method"] == event]

    def picture(self) -> bytes:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        return base64.b64decode(shot["data"])


def _program() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab of a headless Chromium."""
    program = _program()
    if program is None:
        pytest.skip(f"no browser found: none of {', '.join(NAMES)}, and CHROMIUM is not set")
    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    try:
        yield Tab(browser)
    finally:
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Source of the accessibility checker."""
    if not AXE.is_file():
        pytest.skip("axe-core is missing: npm install --no-save --no-package-lock axe-core@4")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of one of `PAGES` by its name, written once."""
    from gradlab_cli.app import main

    written: dict[str, Path] = {}

    def write(name: str) -> Path:
        if name not in written:
            folder = tmp_path_factory.mktemp("page") / name
            words = [
                COMMANDS.get(name, "report"),
                *map(str, PAGES[name]),
                "--quiet",
                "-o",
                str(folder),
            ]
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert not ended.value.code
            written[name] = folder / FILES.get(name, "report.html")
        return written[name]

    return write


@pytest.fixture
def keep_picture() -> Callable[[str, bytes], None]:
    """Keep a picture of a page for people to look at, in a folder that git ignores."""

    def keep(name: str, content: bytes) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        (SCREENSHOTS / name).write_bytes(content)

    return keep
