"""Reads Postmark's command script: the settings of a benchmark.

Reads the commands of Postmark 1.51 (Katcher, TR-3022; its `help` lists them) and of FFSMark, its
extension for flash file systems (olivierpierre/ffsmark): one a line, as typed at its prompt. The
first `run` ends the script. A script repeats some axes of its case (transactions, the largest file,
the block size of reads, the seed, how full the chip is); the experiment checks that the two agree.

Left out, and refused by name: several locations, `!` (a shell), filling before the transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flashbed.base.errors import InputError

__all__ = ["Settings", "read_script"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings with Postmark's defaults. A bias of -1 disables its pair of operations."""

    number: int = 500
    size_low_bytes: int = 500
    size_high_bytes: int = 10_000
    transactions: int = 500
    subdirectories: int = 0
    read_bytes: int = 512
    write_bytes: int = 512
    bias_read: int = 5
    bias_create: int = 5
    seed: int = 42
    buffering: bool = True
    drop_creation: bool = False
    drop_transactions: bool = False
    fill_valid: float = 0.0
    fill_invalid: float = 0.0
    sync: bool = False
    direct: bool = False
    said: frozenset[str] = frozenset()
    """The settings that a script has changed."""


_Change = dict[str, Any]


def _whole(key: str, least: int, most: int = 2**40) -> Callable[[list[str]], _Change]:
    def read(words: list[str]) -> _Change:
        (word,) = words
        if not least <= int(word) <= most:
            raise ValueError(word)
        return {key: int(word)}

    return read


def _switch(*keys: str) -> Callable[[list[str]], _Change]:
    def read(words: list[str]) -> _Change:
        (word,) = words
        return dict.fromkeys(keys, {"true": True, "false": False}[word])

    return read


def _share(key: str) -> Callable[[list[str]], _Change]:
    def read(words: list[str]) -> _Change:
        (word,) = words
        if not 0 <= float(word) <= 1:
            raise ValueError(word)
        return {key: float(word)}

    return read


def _size(words: list[str]) -> _Change:
    """The smallest and the largest file; a single number sets both."""
    low, high = int(words[0]), int(words[-1])
    if len(words) > 2 or not 0 < low <= high:
        raise ValueError(words)
    return {"size_low_bytes": low, "size_high_bytes": high}


def _nothing(_words: list[str]) -> _Change:
    return {}


_SET: dict[str, Callable[[list[str]], _Change]] = {
    "size": _size,
    "number": _whole("number", 1),
    "seed": _whole("seed", 0, 2**31 - 1),
    "transactions": _whole("transactions", 1),
    "location": _nothing,  # the partition of the case
    "subdirectories": _whole("subdirectories", 1),
    "read": _whole("read_bytes", 1),
    "write": _whole("write_bytes", 1),
    "buffering": _switch("buffering"),
    "bias read": _whole("bias_read", -1, 10),
    "bias create": _whole("bias_create", -1, 10),
    "report": _nothing,
    "flashmon": _switch(),  # every case reports that anyway
    "drop creation": _switch("drop_creation"),
    "drop transactions": _switch("drop_transactions"),
    "fill creation valid": _share("fill_valid"),
    "fill creation invalid": _share("fill_invalid"),
    "sync": _switch("sync"),
    "direct": _switch("direct"),
}
_SAID = ("show", "help", "?")
_END = ("run", "quit", "exit")


def read_script(text: str) -> Settings:
    """The settings at a script's first `run`. Raises `InputError` with the line."""
    settings = Settings()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0] in _SAID:
            continue
        if words[0] in _END:
            break
        try:
            change = _change(words)
            settings = replace(settings, **change, said=settings.said.union(change))
        except (ValueError, KeyError, IndexError):
            raise InputError(f"script: line {number}: {line.strip()!r} is not possible") from None
    return settings


def _change(words: list[str]) -> _Change:
    """The change that one `set` command makes; of several names that match, the longest counts."""
    if words[0] != "set":
        raise ValueError(words[0])
    for length in (3, 2, 1):
        name = " ".join(words[1 : 1 + length])
        if name in _SET:
            values = words[1 + length :]
            if name == "location" and len(values) != 1:
                raise ValueError(name)
            return _SET[name](values)
    raise KeyError(words[1])
