"""What tests that drive a browser share: its process, and waiting for a page."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

__all__ = ["BrowserProcess", "PageError"]

_POLL_S = 0.05
_PATIENCE_S = 20
"""So long may a browser take to end."""


class PageError(AssertionError):
    """The page threw, or did not become what the test waits for."""


class BrowserProcess(ABC):
    """A browser that ends with the `with`."""

    _process: subprocess.Popen[bytes]
    wrong: list[str]
    """What the page complained of, in its order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    @abstractmethod
    def _close(self) -> None:
        """Closes the connection to the process."""

    @abstractmethod
    def run(self, script: str) -> Any:
        """The value of an expression. Raises `PageError` where it throws."""

    def until(self, script: str, seconds: float = 120.0) -> Any:
        """Waits until an expression is true; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                value = self.run(script)
            except PageError:
                value = None  # the page is not there yet
            if value:
                return value
            time.sleep(_POLL_S)
        raise PageError(f"never true: {script}; {self.wrong}")
