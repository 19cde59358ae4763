"""Headless Firefox that a test drives, by Marionette, its own protocol; no package is needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support.browser_process import BrowserProcess

__all__ = ["FIREFOX", "Firefox"]

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
_START_S = 60
_POLL_S = 0.1
_PREFERENCES = {
    "app.normandy.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class Firefox(BrowserProcess):
    """One window of one browser, which ends with the `with`."""

    def __init__(self, profile: Path, width: int = 1400, height: int = 900) -> None:
        assert FIREFOX is not None, "firefox is missing"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        profile.mkdir(parents=True, exist_ok=True)
        chosen = {**_PREFERENCES, "marionette.port": port}
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in chosen.items()]
        (profile / "user.js").write_text("\n".join(lines))
        self._process = subprocess.Popen(
            [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(profile),
             "--width", str(width), "--height", str(height)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._socket = self._connected(port)
        self._stream = self._socket.makefile("rb")
        self._number = 0
        self.wrong = []
        self._message()  # how the server greets
        self._call("WebDriver:NewSession", {})
        self._call("WebDriver:SetTimeouts", {"script": 300_000, "pageLoad": 300_000})
        self.resize(width, height)

    def _connected(self, port: int) -> socket.socket:
        end = time.monotonic() + _START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=300)
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    self._process.kill()
                    raise
                time.sleep(_POLL_S)

    def _close(self) -> None:
        self._socket.close()

    def _message(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self._stream.read(1)
        return json.loads(self._stream.read(int(length[:-1])))

    def _call(self, command: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        text = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self._message()
        assert error is None, f"{command}: {error}"
        return result.get("value") if isinstance(result, dict) else result

    def resize(self, width: int, height: int) -> None:
        """Another size of the window."""
        self._call("WebDriver:SetWindowRect", {"width": width, "height": height})

    def open(self, url: str) -> None:
        """Goes to an address."""
        self._call("WebDriver:Navigate", {"url": "about:blank"})
        self._call("WebDriver:Navigate", {"url": url})

    def run(self, script: str) -> Any:
        """The value of an expression."""
        code = f"return window.wrappedJSObject.eval({json.dumps(script)})"
        return self._call(
            "WebDriver:ExecuteScript", {"script": code, "args": [], "sandbox": "system"}
        )

    def screenshot(self, path: Path) -> None:
        """Writes the whole page as a PNG."""
        made = self._call("WebDriver:TakeScreenshot", {"full": True})
        path.write_bytes(base64.b64decode(made))
