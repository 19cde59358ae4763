"""What is odd about a profile, line by line, and which bus a measured figure fits.

`flashbed board check` prints it. What is impossible was refused when the file was read
(toml_errors.py); what no chip on sale has is a doubt (doubts.py) and stands here with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.human import time_text
from flashbed.base.paths import shown
from flashbed.stack.board_tables import Spi
from flashbed.stack.bus_arithmetic import WiredChip, attach_steps, steps_of, total_ns
from flashbed.stack.doubts import doubts
from flashbed.stack.profiles import Board

__all__ = ["Measured", "explained", "oddities"]

_TABLE = re.compile(r"^\s*\[([a-z_.]+)\]")
_BUS_BYTE_NS = (4, 400)
_CYCLES = (500, 1_000_000)
_MHZ = (20, 4_000)
_CLOCK_HZ = (1_000_000, 200_000_000)
_KIB, _NS_PER_S, _NS_PER_US = 1 << 10, 1_000_000_000, 1_000
_CLOSE = 0.15
_LINES = (1, 2, 4, 8)
_SIZES = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "k": 1 << 10, "m": 1 << 20, "kb": 1_000,
          "mb": 1_000_000}  # fmt: skip
_SIZED = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_TIMES = {"s": _NS_PER_S, "ms": 1_000_000, "us": 1_000}


def oddities(board: Board) -> list[str]:
    """A line for each number that is odd, with the file, its line, the key and what is usual."""
    text = read_text(board.path, 1 << 20, InputError)
    prefix = f"{shown(board.path)}: "
    found = [line.removeprefix(prefix) for line in doubts(board)]
    found += _more(board)
    return [f"{shown(board.path)}{_line_of(text, one)}: {one}" for one in found]


def _more(board: Board) -> Iterator[str]:
    chip = board.chip
    if board.nor is not None:  # the ranges below are NAND's
        return
    size = chip.page_bytes + chip.oob_bytes
    for key in ("bus_read_ns", "bus_program_ns"):
        value = getattr(chip, key)
        low, high = (one * size for one in _BUS_BYTE_NS)
        if board.spi is None and not low <= value <= high:
            yield f"chip.{key} = {value:_}: a page of {size:,} bytes takes {low:_} to {high:_} ns"
    if chip.read_array_ns > chip.program_array_ns:
        yield (
            f"chip.read_array_ns = {chip.read_array_ns:_}: longer than a page write of"
            f" {chip.program_array_ns:_}; are they swapped?"
        )
    if chip.program_array_ns > chip.erase_array_ns:
        yield (
            f"chip.program_array_ns = {chip.program_array_ns:_}: longer than an erase of"
            f" {chip.erase_array_ns:_}; are they swapped?"
        )
    if not chip.page_bytes // 64 <= chip.oob_bytes <= chip.page_bytes // 4:
        yield (
            f"chip.oob_bytes = {chip.oob_bytes}: pages of {chip.page_bytes} bytes have"
            f" {chip.page_bytes // 64} to {chip.page_bytes // 4}"
        )
    if board.endurance and not _CYCLES[0] <= board.endurance.cycles <= _CYCLES[1]:
        yield (
            f"endurance.cycles = {board.endurance.cycles:_}: NAND lasts {_CYCLES[0]:_} to"
            f" {_CYCLES[1]:_} cycles"
        )
    mhz = board.board.cpu_mhz
    if mhz is not None and not _MHZ[0] <= mhz <= _MHZ[1]:
        yield f"board.cpu_mhz = {mhz:_}: boards with NAND have {_MHZ[0]} to {_MHZ[1]:_} MHz"
    if board.memory.free_kib > board.board.ram_mib * _KIB:
        yield (
            f"memory.free_kib = {board.memory.free_kib:_}: more than the board's"
            f" {board.board.ram_mib * _KIB:_} KiB (board.ram_mib)"
        )
    if board.spi is not None and not _CLOCK_HZ[0] <= board.spi.clock_hz <= _CLOCK_HZ[1]:
        yield (
            f"spi.clock_hz = {board.spi.clock_hz:_}: SPI-NAND is clocked with {_CLOCK_HZ[0]:_} to"
            f" {_CLOCK_HZ[1]:_} Hz"
        )


def _line_of(text: str, oddity: str) -> str:
    """`:12`, the line of the key that an oddity begins with; nothing if it is not in the file."""
    table, _, key = oddity.split(" ", 1)[0].rstrip(":").rpartition(".")
    names = {table, {"spi": "controller"}.get(table, table)}
    here = ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = _TABLE.match(line)
        here = begun[1] if begun else here
        if here in names and re.match(rf"\s*{re.escape(key)}\s*=", line):
            return f":{number}"
    return ""


@dataclass(frozen=True)
class Measured:
    """A figure that was measured on a board: of how many pages or eraseblocks, and the time."""

    what: str
    count: float
    bytes: float
    ns: float

    @classmethod
    def parse(cls, text: str) -> Measured:
        """`dd 16MiB 2.86s`, `read 3763KiB/s`, `attach 1008 0.813s`. Raises `InputError`."""
        words = text.split()
        try:
            if len(words) == 3 and words[0] == "dd":
                return cls("dd", 0, _size(words[1]), _time(words[2]))
            if len(words) == 2 and words[0] == "read" and words[1].endswith("/s"):
                return cls("read", 0, _size(words[1][:-2]), _NS_PER_S)
            if len(words) == 3 and words[0] == "attach":
                return cls("attach", float(words[1]), 0, _time(words[2]))
        except ValueError:
            pass
        raise InputError(
            f"--measured {text!r}: not 'dd SIZE TIME', 'read RATE' or 'attach PEBS TIME', such as"
            " 'dd 16MiB 2.86s', 'read 3763KiB/s', 'attach 1008 0.813s'"
        )


def _size(word: str) -> float:
    found = _SIZED.fullmatch(word)
    if found is None or found[2].lower() not in _SIZES or not float(found[1]):
        raise ValueError(word)
    return float(found[1]) * _SIZES[found[2].lower()]


def _time(word: str) -> float:
    found = _SIZED.fullmatch(word)
    if found is None or found[2] not in _TIMES or not float(found[1]):
        raise ValueError(word)
    return float(found[1]) * _TIMES[found[2]]


def explained(board: Board, measured: Measured) -> list[str]:
    """What the board's profile says of the same work, and which bus the figure fits."""
    if board.nor is not None:
        raise InputError("--measured: for NAND; SPI-NOR's reads are of any length")
    said = _expected(board, measured)
    off = measured.ns / said - 1
    lines = [f"measured {time_text(measured.ns)}, the profile says {time_text(said)} ({off:+.0%})"]
    if board.spi is None:
        lines.append(_of_raw(board, measured, said))
        return lines
    spi, mhz = board.spi, board.spi.clock_hz / 1_000_000
    times = {one: _expected(_with_lines(board, one), measured) for one in _LINES}
    near = min(times, key=lambda one: abs(times[one] / measured.ns - 1))
    if abs(times[near] / measured.ns - 1) <= _CLOSE:
        own = spi.read_data_lines
        other = f", not {own}" if near != own else ", as the profile says"
        lines.append(
            f"this fits {near} data line{'s' if near > 1 else ''} at {mhz:g} MHz{other}"
            f" ({time_text(times[near])})"
        )
        return lines
    lines.append(f"no number of data lines fits at {mhz:g} MHz; the clocks that fit:")
    lines += [f"  {_needed(board, measured, one)}" for one in _LINES]
    return lines


def _of_raw(board: Board, measured: Measured, said: float) -> str:
    if abs(measured.ns / said - 1) <= _CLOSE:
        return "this fits the bus of the profile"
    pages = _pages(board, measured)
    size = board.chip.page_bytes + board.chip.oob_bytes
    cycle = (measured.ns / pages - board.chip.read_array_ns) / size
    if cycle <= 0:
        return "this is shorter than tR alone: the figure or chip.read_array_ns is wrong"
    return f"this fits a cycle of {cycle:.1f} ns a byte, the CPU's time included"


def _pages(board: Board, measured: Measured) -> float:
    if measured.what == "attach":
        return measured.count * len(attach_steps(_wired(board)))
    return measured.bytes / board.chip.page_bytes


def _expected(board: Board, measured: Measured) -> float:
    if measured.what == "attach":
        return measured.count * total_ns(attach_steps(_wired(board)))
    return _pages(board, measured) * total_ns(steps_of(_wired(board), "read"))


def _wired(board: Board) -> WiredChip:
    return WiredChip(board.chip, board.spi)


def _with_lines(board: Board, lines: int) -> Board:
    assert board.spi is not None
    values = board.spi.model_dump() | {
        "read_data_lines": lines, "read_address_lines": 1, "read_dummy_bytes": 1, "dtr": False,
    }  # fmt: skip
    return board.model_copy(update={"spi": Spi.model_validate(values)})


def _needed(board: Board, measured: Measured, lines: int) -> str:
    """The clock at which these lines take as long as was measured, by bisection."""
    assert board.spi is not None
    other = _with_lines(board, lines)
    low, high = 100_000, 1_000_000_000
    for _ in range(40):
        middle = (low + high) // 2
        assert other.spi is not None
        at = other.model_copy(update={"spi": other.spi.model_copy(update={"clock_hz": middle})})
        low, high = (middle, high) if _expected(at, measured) > measured.ns else (low, middle)
    name = f"{lines} data line{'s' if lines > 1 else ''}"
    if high > _CLOCK_HZ[1]:
        return f"{name}: none up to {_CLOCK_HZ[1] // 1_000_000} MHz, the array takes too long"
    return f"{name}: {high / 1_000_000:.1f} MHz"
