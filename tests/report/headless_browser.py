"""A headless Chromium, driven over its DevTools protocol through a pair of pipes; nothing else is needed for it."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Browser", "Page", "browser", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# A page makes these of itself; they leave the machine as little as its own file does.
_OWN = ("data:", "blob:", "about:")


def find_chromium() -> str | None:
    """Give the path of a Chromium, None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


# Seconds in which a file that was asked for comes.
COMES_IN = 10.0
# Of the files that a page gives within a second the eleventh is dropped without a word.
_PACE = 0.12


class Browser:
    """The pipes to one Chromium: calls that wait for their answers, and events in the order in which they came."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and give its result; RuntimeError with what the browser says went wrong."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._to, left) :]
        answer = self._take(lambda found: found.get("id") == self._last, 60)
        if answer is None or "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message'] if answer else 'no answer in 60 s'}")
        return dict(answer["result"])

    def wait(self, method: str, seconds: float = 30) -> dict[str, Any]:
        """Take the next event of a name off `events`, where it may have been already; else TimeoutError."""
        known = next((event for event in self.events if event["method"] == method), None)
        found = known or self._take(lambda event: event.get("method") == method, seconds)
        if found is None:
            raise TimeoutError(f"no {method} in {seconds} s")
        self.events = [event for event in self.events if event is not found]
        return dict(found["params"])

    def _take(self, wanted: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any] | None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for found in self._messages(end - time.monotonic()):
                if "method" in found:
                    self.events.append(found)
                if wanted(found):
                    return found
        return None

    def _messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        if b"\0" not in self._buffer and select.select([self._back], [], [], seconds)[0]:
            read = os.read(self._back, 1 << 20)
            if not read:
                raise RuntimeError(f"the browser has gone (exit {self._process.wait(10)})")
            self._buffer += read
        while b"\0" in self._buffer:
            message, _, self._buffer = self._buffer.partition(b"\0")
            yield json.loads(message)


class Page:
    """One page in a browser, and all that it did wrong."""

    def __init__(self, browser: Browser, downloads: Path) -> None:
        self._browser, self._downloads = browser, downloads
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._url = ""
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page."""
        return self._browser.call(method, self._session, **params)

    def open(self, file: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Load a file in a window of `width` x `height` CSS pixels; what was wrong with the last one is forgotten."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self._browser.events.clear()
        self._url = file.resolve().as_uri()
        self.call("Page.navigate", url=self._url)
        self._browser.wait("Page.loadEventFired")

    def ask(self, script: str) -> Any:
        """Evaluate an expression, waiting where it is a promise, and give its value; RuntimeError when it throws."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(_thrown(found["exceptionDetails"]))
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 30) -> None:
        """Wait until an expression is true; TimeoutError with what the page did wrong."""
        end = time.monotonic() + seconds
        while not self.ask(f"Boolean({script})"):
            if time.monotonic() > end:
                raise TimeoutError("; ".join([f"not in {seconds} s: {script}", *self.faults()]))
            time.sleep(0.05)

    def faults(self) -> list[str]:
        """Tell all errors on the console, uncaught exceptions and requests that left the page since it was opened."""
        self.ask("new Promise(done => setTimeout(done))")
        found = []
        for event in self._browser.events:
            params = event["params"]
            match event["method"]:
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert", "warning"):
                    words = [str(one.get("value", one.get("description", ""))) for one in params["args"]]
                    found.append(f"console.{params['type']}: {' '.join(words)}")
                case "Runtime.exceptionThrown":
                    found.append(f"uncaught: {_thrown(params['exceptionDetails'])}")
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(f"{params['entry']['level']}: {params['entry']['text']}")
                case "Network.requestWillBeSent" if not self._is_own(params["request"]["url"]):
                    found.append(f"request: {params['request']['url']}")
        return found

    def _is_own(self, url: str) -> bool:
        return url.split("#")[0] == self._url or url.startswith(_OWN)

    def picture(self, file: Path) -> None:
        """Save all of the page as PNG, however long it is."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def download(self, button: str) -> tuple[str, bytes]:
        """Click on what an expression gives, and give the name and the content of the file that comes of it."""
        self._browser.events = [one for one in self._browser.events if not one["method"].startswith("Browser.download")]
        time.sleep(_PACE)
        self.ask(f"({button}).click()")
        name = self._browser.wait("Browser.downloadWillBegin", COMES_IN)["suggestedFilename"]
        while self._browser.wait("Browser.downloadProgress", COMES_IN)["state"] == "inProgress":
            pass
        (file,) = self._downloads.iterdir()
        content = file.read_bytes()
        file.unlink()
        return name, content


def _thrown(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    return str(thrown.get("description", thrown.get("value", details["text"])))


def _pipe() -> tuple[int, int]:
    """Make a pipe whose ends have numbers that no redirection of ours names."""
    ends = os.pipe()
    reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return reads, writes


@contextmanager
def browser(chromium: str) -> Iterator[Page]:
    """Start a Chromium with a profile of its own, give an empty page in it, and end it."""
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as place:
        scratch = Path(place)
        (scratch / "downloads").mkdir()
        # The browser reads from 3 and writes to 4.
        theirs, to = _pipe()
        back, answers = _pipe()
        command = [chromium, *_FLAGS, f"--user-data-dir={scratch / 'profile'}", "about:blank"]
        process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{theirs} 4>&{answers}', "bash", *command],
            pass_fds=(theirs, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            os.close(theirs)
            os.close(answers)
            started = Browser(process, to, back)
            yield Page(started, scratch / "downloads")
            started.call("Browser.close")
            process.wait(20)
        finally:
            os.close(to)
            os.close(back)
            if process.poll() is None:
                # It was started as the leader of a group, which its helpers share.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
