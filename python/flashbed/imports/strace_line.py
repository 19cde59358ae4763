"""Parses a line of strace: task, time, call, arguments as text, result, duration.

It accepts the output of `strace -f -ttt -T -y` of strace 4.12 to 6.x. strace_calls.py interprets
the arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Ended", "Line", "NotALine", "arguments_of", "parse_line", "strip_place", "text_of"]

_HEAD = re.compile(rb"(?:\[pid +(\d+)\] |(\d+) +)?(\d{1,12})\.(\d{1,9}) (.*)\Z", re.DOTALL)
_CALL = re.compile(rb"([a-zA-Z_?][\w?]*)\((.*)\Z", re.DOTALL)
_RESUMED = re.compile(rb"<\.\.\. ([a-zA-Z_?][\w?]*) resumed>,? ?(.*)\Z", re.DOTALL)
_DURATION = re.compile(rb" <(\d+)\.(\d{1,9})>\Z")
_RESULT = re.compile(rb"\) += (.*)\Z", re.DOTALL)
_UNFINISHED = b"<unfinished ...>"
_ESCAPES = {
    ord("n"): 10, ord("t"): 9, ord("r"): 13, ord("v"): 11, ord("f"): 12, ord("a"): 7, ord("b"): 8,
    ord("e"): 27,
}  # fmt: skip
_OPEN, _CLOSE = b"([{", b")]}"


class NotALine(ValueError):
    """A line that strace did not print, or not with the required options."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call: what strace prints after `=`, and how long it took."""

    result: bytes
    duration_ns: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A parsed line. For a task's end `name` is empty and `text` is strace's message.

    `ended` is None for an unfinished call; `resumed` marks the rest of one.
    """

    task: int | None
    time_ns: int
    name: str
    text: bytes
    ended: Ended | None
    resumed: bool = False


def parse_line(line: bytes) -> Line | None:
    """A parsed line, or None for one about no call. Raises `NotALine`."""
    if not line or line.startswith((b"strace: ", b"[ Process ")):
        return None
    head = _HEAD.match(line)
    if head is None:
        raise NotALine("no time in the format of -ttt")
    task = head[1] or head[2]
    number = int(task) if task else None
    time_ns = int(head[3]) * 10**9 + int(head[4].ljust(9, b"0"))
    rest = head[5]
    if rest.startswith((b"--- ", b"[ Process ")):
        return None
    if rest.startswith(b"+++ "):
        return Line(number, time_ns, "", rest, None)
    resumed = _RESUMED.match(rest)
    found = resumed or _CALL.match(rest)
    if found is None:
        raise NotALine("not a call of strace")
    name, text = found[1].decode("ascii"), found[2]
    if text.endswith(_UNFINISHED):
        return Line(number, time_ns, name, text[: -len(_UNFINISHED)].rstrip(), None, bool(resumed))
    return _whole(number, time_ns, name, text, bool(resumed))


def _whole(number: int | None, time_ns: int, name: str, text: bytes, resumed: bool) -> Line:
    duration_ns = None
    took = _DURATION.search(text)
    if took is not None:
        duration_ns = int(took[1]) * 10**9 + int(took[2].ljust(9, b"0"))
        text = text[: took.start()]
    at = text.rfind(b") ")
    while at >= 0:
        found = _RESULT.match(text, at)
        if found is not None:
            ended = Ended(found[1], duration_ns)
            return Line(number, time_ns, name, text[:at].rstrip(), ended, resumed)
        at = text.rfind(b") ", 0, at)
    raise NotALine(f"{name}: no result")


def arguments_of(text: bytes) -> list[bytes]:
    """Splits at commas, except in texts, braces and names of files."""
    parts: list[bytes] = []
    depth = begin = at = 0
    while at < len(text):
        byte = text[at]
        if byte == ord('"'):
            at = _string_end(text, at)
            continue
        if byte == ord("<") and at and (text[at - 1 : at].isdigit() or text[:at].endswith(b"CWD")):
            at = _place_end(text, at)
            continue
        if text.startswith(b"/*", at):
            end = text.find(b"*/", at)
            at = len(text) if end < 0 else end + 2
            continue
        if byte in _OPEN:
            depth += 1
        elif byte in _CLOSE:
            depth -= 1
        elif byte == ord(",") and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    last = text[begin:].strip()
    if last or parts:
        parts.append(last)
    return parts


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _string_end(text: bytes, at: int) -> int:
    found = _STRING.match(text, at)
    if found is None:
        raise NotALine("a text without its end")
    return found.end()


def _place_end(text: bytes, at: int) -> int:
    """The index after `<...>`, a descriptor's name; -yy nests them."""
    depth = 0
    while at < len(text):
        if text[at] == ord("<"):
            depth += 1
        elif text[at] == ord(">") and text[at - 1] != ord("-"):
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    raise NotALine("a descriptor's name without its end")


_PLACE = re.compile(rb"(-?\d+|AT_FDCWD)<(.*)>(?:\(deleted\))?\Z", re.DOTALL)
_DELETED = b" (deleted)"


def strip_place(argument: bytes) -> tuple[bytes, bytes | None]:
    """A descriptor, and its path printed by -y; None if it has no path."""
    found = _PLACE.match(argument)
    if found is None:
        return argument, None
    place = found[2]
    device = place.find(b"<")  # -yy: /dev/null<char 1:3>
    place = (place[:device] if device > 0 else place).removesuffix(_DELETED)
    return found[1], _unescaped(place) if place.startswith(b"/") else None


def text_of(argument: bytes) -> tuple[bytes, bool] | None:
    """The bytes of a text, and whether strace printed all of them; None if it is no text."""
    whole = not argument.endswith(b"...")
    quoted = argument.removesuffix(b"...")
    if len(quoted) < 2 or quoted[0] != ord('"') or quoted[-1] != ord('"'):
        return None
    return _unescaped(quoted[1:-1]), whole


_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)


def _unescaped(text: bytes) -> bytes:
    return _ESCAPED.sub(_character, text) if b"\\" in text else text


def _character(found: re.Match[bytes]) -> bytes:
    word = found[1]
    if word[0] == ord("x") and len(word) == 3:
        return bytes((int(word[1:], 16),))
    if word[0] in b"01234567":
        return bytes((int(word, 8) & 0xFF,))
    return bytes((_ESCAPES.get(word[0], word[0]),))
