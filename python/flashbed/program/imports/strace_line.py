"""Parses a line of strace: task, time, call, arguments as text, result, duration.

It accepts what strace 4.5 to 6.x prints, with any of its options for times, names, numbers and
instruction pointers. strace_lines.py joins lines that other output has cut; strace_calls.py
interprets the arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Clock", "Ended", "Head", "Line", "NotALine", "arguments_of", "head_of", "parse_call_text",
    "strip_place", "text_of", "unescaped",
]  # fmt: skip

Clock = Literal["none", "epoch", "day", "relative"]
"""What a time counts from: nothing, 1970 (-ttt), midnight (-t, -tt), the line before (-r)."""

_TASK = rb"(?:\[pid +(\d{1,10})(?:<[^\]]*>)?\]( +)|(\d{1,8})(?:<[^ ]*>)?( +)|([ \t]+))?"
_TIME = (
    rb"(?:(?:\d{4}-\d\d-\d\dT)?(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[+-]\d{4})? "
    rb"|(\d{1,12})\.(\d{1,9}) |(\d{9,12}) )?"
)
_MORE = rb"(?:\(\+ *\d+(?:\.\d+)?\) )?(?:\[ *[\da-f]+\] |\[[?]+\] )*"
_HEAD = re.compile(_TASK + _TIME + _MORE)
_CALL = re.compile(rb"([a-zA-Z_?][\w?]{0,63})\((.*)\Z", re.DOTALL)
_RESUMED = re.compile(rb"<\.\.\. ([a-zA-Z_?][\w?]{0,63}) resumed> ?(.*)\Z", re.DOTALL)
_DURATION = re.compile(rb" <(\d{1,9})(?:\.(\d{1,9}))?>\Z")
_RESULT = re.compile(rb"\)[ \t]+= (.*)\Z", re.DOTALL)
_UNFINISHED = b"<unfinished ...>"
_PID_WIDTH, _SECONDS_WIDTH = 5, 6
_YEARS_NS = 10**17
"""Relative times are shorter than this, times since 1970 are longer."""
_ESCAPES = {
    ord("n"): 10, ord("t"): 9, ord("r"): 13, ord("v"): 11, ord("f"): 12, ord("a"): 7, ord("b"): 8,
    ord("e"): 27,
}  # fmt: skip
_OPEN, _CLOSE = b"([{", b")]}"


class NotALine(ValueError):
    """A line that strace did not print, or that other output has cut."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call: what strace prints after `=`, and how long it took."""

    result: bytes
    duration_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What stands before a call: task and time; `rest` is what follows.

    `coarse` marks a time in whole seconds.
    """

    task: int | None
    clock: Clock
    time_ns: int
    coarse: bool
    rest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A parsed line. For a task's end `name` is empty and `text` is strace's message.

    `ended` is None for an unfinished call; `resumed` marks the rest of one; `joined` marks a call
    that the program's own output had cut. `number` is the line's in its file.
    """

    task: int | None
    time_ns: int
    name: str
    text: bytes
    ended: Ended | None
    resumed: bool = False
    joined: bool = False
    number: int = 0


def head_of(line: bytes) -> Head:
    """The task and the time at a line's beginning; any may be missing."""
    found = _HEAD.match(line)
    assert found is not None
    pid, after, number, behind, indent, hours, minutes, seconds, part, since, fraction, whole = (
        found.groups()
    )
    task = int(pid or number) if pid or number else None
    if hours is not None:
        of_day = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
        return Head(
            task=task,
            clock="day",
            time_ns=_ns(of_day, part),
            coarse=part is None,
            rest=line[found.end() :],
        )
    if whole is not None:
        return Head(
            task=task,
            clock="epoch",
            time_ns=_ns(int(whole), None),
            coarse=True,
            rest=line[found.end() :],
        )
    if since is None:
        if task is not None and not pid and not _begins(line[found.end() :]):
            return Head(
                task=None, clock="none", time_ns=0, coarse=False, rest=line
            )  # a number of the program's output
        return Head(task=task, clock="none", time_ns=0, coarse=False, rest=line[found.end() :])
    time_ns = _ns(int(since), fraction)
    if pid:
        padded = len(after) > 1
    elif number:
        padded = len(number) + len(behind) > max(len(number), _PID_WIDTH) + 1
    else:
        padded = bool(indent) and len(since) < _SECONDS_WIDTH
    clock: Clock = "relative" if padded and time_ns < _YEARS_NS else "epoch"
    return Head(task=task, clock=clock, time_ns=time_ns, coarse=False, rest=line[found.end() :])


def _ns(seconds: int, fraction: bytes | None) -> int:
    return seconds * 10**9 + (int(fraction.ljust(9, b"0")) if fraction else 0)


def _begins(rest: bytes) -> bool:
    return rest.startswith((b"<... ", b"+++ ", b"--- ", b"[ Process ")) or bool(_CALL.match(rest))


def parse_call_text(head: Head, time_ns: int, number: int) -> Line | None:
    """A parsed line, or None for one about no call. Raises `NotALine`."""
    rest = head.rest
    if rest.startswith((b"--- ", b"[ Process ", b"strace: ")):
        return None
    if rest.startswith(b"+++ "):
        return Line(task=head.task, time_ns=time_ns, name="", text=rest, ended=None, number=number)
    resumed = _RESUMED.match(rest)
    found = resumed or _CALL.match(rest)
    if found is None:
        raise NotALine("not a call of strace")
    name, text = found[1].decode("ascii"), found[2]
    again = bool(resumed)
    if text.endswith(_UNFINISHED):
        cut = text[: -len(_UNFINISHED)].rstrip()
        return Line(
            task=head.task,
            time_ns=time_ns,
            name=name,
            text=cut,
            ended=None,
            resumed=again,
            number=number,
        )
    ended, text = _ended(name, text)
    return Line(
        task=head.task,
        time_ns=time_ns,
        name=name,
        text=text,
        ended=ended,
        resumed=again,
        number=number,
    )


def _ended(name: str, text: bytes) -> tuple[Ended, bytes]:
    """How a call ended, and its arguments."""
    duration_ns = None
    took = _DURATION.search(text)
    if took is not None:
        duration_ns = _ns(int(took[1]), took[2])
        text = text[: took.start()]
    at = text.rfind(b")")
    while at >= 0:
        found = _RESULT.match(text, at)
        if found is not None:
            return Ended(found[1], duration_ns), text[:at].rstrip()
        at = text.rfind(b")", 0, at)
    raise NotALine(f"{name}: no result")


_MARK = re.compile(rb'["<,\[\](){}]|/\*')


def arguments_of(text: bytes) -> list[bytes]:
    """Splits at commas, except in texts, braces and names of files."""
    parts: list[bytes] = []
    depth = begin = at = 0
    while (found := _MARK.search(text, at)) is not None:
        mark, at = found[0], found.start()
        if mark == b'"':
            at = _string_end(text, at)
            continue
        if mark == b"<":
            named = at and (text[at - 1 : at].isdigit() or _after_cwd(text, at))
            at = _place_end(text, at) if named else at + 1
            continue
        if mark == b"/*":
            end = text.find(b"*/", at)
            at = len(text) if end < 0 else end + 2
            continue
        if mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1
        elif depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    last = text[begin:].strip()
    if last or parts:
        parts.append(last)
    return parts


def _after_cwd(text: bytes, at: int) -> bool:
    return text.endswith((b"CWD", b"CWD */"), 0, at)


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


_PLACE = re.compile(rb"(-?\d+|AT_FDCWD|-100 /\* AT_FDCWD \*/)<(.*)>(?:\(deleted\))?\Z", re.DOTALL)
_DELETED = b" (deleted)"


def strip_place(argument: bytes) -> tuple[bytes, bytes | None]:
    """A descriptor, and its path printed by -y; None if it has no path."""
    found = _PLACE.match(argument)
    if found is None:
        return argument, None
    place = found[2]
    device = place.find(b"<")  # -yy: /dev/null<char 1:3>
    place = unescaped((place[:device] if device > 0 else place).removesuffix(_DELETED))
    return found[1], place if place.startswith(b"/") else None


def text_of(argument: bytes) -> tuple[bytes, bool] | None:
    """The bytes of a text, and whether strace printed all of them; None if it is no text."""
    whole = not argument.endswith(b"...")
    quoted = argument.removesuffix(b"...")
    if len(quoted) < 2 or quoted[0] != ord('"') or quoted[-1] != ord('"'):
        return None
    return unescaped(quoted[1:-1]), whole


_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)


def unescaped(text: bytes) -> bytes:
    """A text without strace's escapes."""
    return _ESCAPED.sub(_character, text) if b"\\" in text else text


def _character(found: re.Match[bytes]) -> bytes:
    word = found[1]
    if word[0] == ord("x") and len(word) == 3:
        return bytes((int(word[1:], 16),))
    if word[0] in b"01234567":
        return bytes((int(word, 8) & 0xFF,))
    return bytes((_ESCAPES.get(word[0], word[0]),))
