"""Headless Chromium: a page when its scripts have run, or one that a test drives.

A `Browser` speaks DevTools' protocol over a pipe, without a package for it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.support.browser_process import BrowserProcess, PageError

__all__ = ["CHROMIUM", "Browser", "PageError", "dumped"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_READ_BYTES = 1 << 20
_POLL_S = 0.05
_STARTED = """
import os, sys
ends = [os.dup(int(end)) for end in sys.argv[1:3]]
while min(ends) < 5:
    ends = [os.dup(end) for end in ends]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from descriptor 3 and writes answers to 4."""


def dumped(url: str, profile: Path, width: int = 1400) -> str:
    """A page as it is when its scripts have run, in a window of so many pixels, 500 at least."""
    assert CHROMIUM is not None, "chromium is missing"
    options = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=20000 --dump-dom"
    )
    done = subprocess.run(
        [CHROMIUM, *options.split(), f"--user-data-dir={profile}", f"--window-size={width},900",
         url],
        capture_output=True, text=True, check=True, timeout=250,
    )  # fmt: skip
    return done.stdout


def _resident(process: Path, *names: str) -> int:
    """Bytes of a process, by the names of its status."""
    lines = (process / "status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return sum(int(status[name].split()[0]) for name in names) * 1024


class Browser(BrowserProcess):
    """One page of one browser, which ends with the `with`."""

    def __init__(self, profile: Path, width: int = 1400, height: int = 900) -> None:
        assert CHROMIUM is not None, "chromium is missing"
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _STARTED,
                str(to_browser),
                str(from_browser),
                CHROMIUM,
                *options,
            ],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.wrong = []
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self.resize(width, height)

    def _close(self) -> None:
        os.close(self._write)
        os.close(self._read)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, _READ_BYTES)
            if not more:
                raise PageError("the browser ended")
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text) :]
        while True:
            answer = self._message()
            self._note(answer)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _note(self, message: dict[str, Any]) -> None:
        given = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            detail = given["exceptionDetails"]
            thrown = detail.get("exception", {}).get("description", detail["text"])
            self.wrong.append(f"thrown: {thrown}")
        elif message.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.wrong.append(f"error: {given['entry']['text']}")

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Another window, for a reader who prefers `light` or `dark`."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str) -> None:
        """Goes to an address."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression, a promise's once it has one."""
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            detail = answer["exceptionDetails"]
            raise PageError(detail.get("exception", {}).get("description", detail["text"]))
        return answer["result"].get("value")

    def choose(self, field: str, file: Path) -> None:
        """Chooses a file in a field of the page, as a reader does."""
        document = self._call("DOM.getDocument")["root"]["nodeId"]
        node = self._call("DOM.querySelector", nodeId=document, selector=field)["nodeId"]
        self._call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    @contextmanager
    def highest_memory(self) -> Iterator[Callable[[], int]]:
        """Yields what says, afterwards, how many bytes of its own the page's process had at most.

        That is its resident memory, less what it shared before, such as Chromium's program. The
        kernel's own maximum is read again and again, because Chromium sets it back now and then.
        """
        shared = {
            process: _resident(process, "RssFile", "RssShmem")
            for process in (Path("/proc") / str(pid) for pid in self._renderers())
        }
        for process in shared:
            (process / "clear_refs").write_text("5")  # the maximum is the present again
        highest, is_over = [0], Event()

        def watch() -> None:
            while not is_over.wait(_POLL_S):
                now = (_resident(process, "VmHWM") - before for process, before in shared.items())
                highest[0] = max(highest[0], *now)

        watching = Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield lambda: highest[0]
        finally:
            is_over.set()
            watching.join()

    def _renderers(self) -> list[int]:
        session, self._session = self._session, None
        found = self._call("SystemInfo.getProcessInfo")["processInfo"]
        self._session = session
        return [each["id"] for each in found if each["type"] == "renderer"]

    def key(self, name: str) -> None:
        """Presses a key."""
        text = {"key": name, "code": name}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, **text)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Writes what is shown, or the whole page, as a PNG."""
        made = self._call("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        path.write_bytes(base64.b64decode(made["data"]))
