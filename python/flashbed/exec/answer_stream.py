"""The answer of a guest or board that sends everything in one stream: lines, and what was printed.

`stdout BYTES` and `stderr BYTES` are followed by that many bytes; behind `end` comes what is to be
kept, if that was asked for (agent/host/launch.c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from flashbed.exec.outcome import NotRunError

__all__ = ["Answer", "read_answer"]

_LINE_BYTES_MAX = 65_536


@dataclass
class Answer:
    """Its lines, and what the program printed."""

    text: str
    stdout: bytes = b""
    stderr: bytes = b""


def read_answer(stream: BinaryIO) -> Answer:
    """Reads up to `end`; what comes after is still in the stream."""
    lines: list[bytes] = []
    printed = {b"stdout": b"", b"stderr": b""}
    while True:
        line = stream.readline(_LINE_BYTES_MAX)
        word, _, rest = line.strip().partition(b" ")
        if word in printed:
            if not rest.isdigit():
                raise NotRunError("the guest said what is not understood")
            printed[word] = stream.read(int(rest))
            continue
        lines.append(line)
        if not line or line == b"end\n":
            text = b"".join(lines).decode("utf-8", "surrogateescape")
            return Answer(text, printed[b"stdout"], printed[b"stderr"])
