"""Parses a real board's erase counters from the pasted output of tools and kernels.

There are two kinds. Some list every block: /sys/kernel/debug/ubi/ubi0/detailed_erase_block_info
(since Linux 4.11), a counter a line (`ubidumpec`), flashbed_nand's file `blocks`. Others summarise:
`ubinfo`, the files of /sys/class/ubi/ubi0, the kernel's log of attaching UBI
(drivers/mtd/ubi/build.c); other lines between them are ignored. Left out: images of the flash (EC
headers). JFFS2 and YAFFS2 keep no counters, so no tool prints any.

Invariant: any text gives `Counters`, or one `InputError` that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flashbed.base.errors import InputError
from flashbed.stack.file_systems import FILE_SYSTEMS

__all__ = ["COUNTER_MAX", "Counters", "parse_counters", "wl_threshold_of"]

COUNTER_MAX = 0x7FFFFFFF
"""UBI_MAX_ERASECOUNTER of drivers/mtd/ubi/ubi-media.h."""
BLOCKS_MAX = 1 << 24
_UBI_WL_THRESHOLD = 4096
"""Default of MTD_UBI_WL_THRESHOLD in drivers/mtd/ubi/Kconfig."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """One reading. `each` is erases by block if every block was listed, else empty.

    `mean` is over `blocks`, rounded down if `mean_is_floor`; what the text does not say is None.
    `wl_threshold` is set for UBI only.
    """

    worst: int
    blocks: int | None = None
    mean: float | None = None
    mean_is_floor: bool = False
    wl_threshold: int | None = None
    each: Mapping[int, int] = field(default_factory=dict)


def wl_threshold_of(fs: str | None) -> int | None:
    """The usual threshold of UBI below a file system; None for one that is not on UBI."""
    row = FILE_SYSTEMS.get(fs or "")
    return _UBI_WL_THRESHOLD if row is not None and row.stands_on == "ubi" else None


_DEVICE = re.compile(r"(?:^|[\s/\]:])(ubi\d+)\b")
_SUMMARY: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        # ubinfo, of mtd-utils 1.0 to 2.3
        "worst": r"Current maximum erase counter value:\s*(\S+)",
        "blocks": r"Total amount of logical eraseblocks:\s*(\S+)",
        # the files of /sys/class/ubi/ubi0, as `grep . FILE` or `tail FILE` print them
        "worst sysfs": r"\bmax_ec\b[:=\s]+(\S+)",
        "blocks sysfs": r"\btotal_eraseblocks\b[:=\s]+(\S+)",
        # the kernel's log
        "worst kernel": r"max/mean erase counter:\s*(\d+)/\d+\b",
        "mean": r"max/mean erase counter:\s*\d+/(\d+)\b",
        "wl_threshold": r"WL threshold:\s*(\d+)",
        "blocks kernel": r"(?:good PEBs|number of good PEBs):\s*(\d+)",
    }.items()
}
_HEADER = re.compile(r"^physical_block_number\s+erase_count$")
_STATES = ("good", "bad", "worn")
_PROMPT = re.compile(r"^\S*[#$]\s")


def parse_counters(text: str, name: str) -> Counters:
    """The counters in a text; `name` is its name in messages. Raises `InputError`."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise InputError(f"{name}: empty; expected the erase counters of a board")
    summary = _summary(lines, name)
    if summary is not None:
        return summary
    return _each(lines, name)


def _number(text: str, what: str, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > COUNTER_MAX:
        raise InputError(f"{where}: {what} is {text[:40]!r}, not a number up to {COUNTER_MAX}")
    return int(text)


def _summary(lines: list[tuple[int, str]], name: str) -> Counters | None:
    """A device's summary by ubinfo, sysfs or the kernel; None if the text has none."""
    found: dict[str, int] = {}
    devices: dict[str, int] = {}
    device = ""
    for number, line in lines:
        named = _DEVICE.search(line)
        device = named[1] if named else device
        for key, pattern in _SUMMARY.items():
            match = pattern.search(line)
            if match:
                what = key.split()[0]
                found[what] = _number(match[1], what, f"{name}:{number}")
                if what == "worst":
                    devices.setdefault(device, number)
    if len(devices) > 1:
        raise InputError(
            f"{name}:{max(devices.values())}: counters of {' and '.join(map(str, devices))};"
            " give one device at a time"
        )
    if "worst" not in found:
        if found or any("Amount of eraseblocks" in line for _, line in lines):
            raise InputError(
                f"{name}: no erase counters in it (mtdinfo prints none); `ubinfo /dev/ubi0` does"
            )
        return None
    return _whole(found, name)


def _whole(found: Mapping[str, int], name: str) -> Counters:
    mean = found.get("mean")
    if mean is not None and mean > found["worst"]:
        raise InputError(f"{name}: a mean of {mean} above a maximum of {found['worst']}")
    if found.get("blocks") == 0:
        raise InputError(f"{name}: a device without blocks")
    return Counters(
        worst=found["worst"],
        blocks=found.get("blocks"),
        mean=mean,
        mean_is_floor=mean is not None,
        wl_threshold=found.get("wl_threshold", _UBI_WL_THRESHOLD),
    )


def _each(lines: list[tuple[int, str]], name: str) -> Counters:
    """A line per block, all of one form."""
    ubi = True
    rows: list[tuple[int, int]] = []
    form: Callable[[list[str], int], tuple[int, int] | None] | None = None
    for number, line in lines:
        if _HEADER.match(line) or _PROMPT.match(line):
            continue
        fields = line.split()
        if form is None:
            form = _FORMS.get(len(fields))
            ubi = len(fields) != 3
        row = form(fields, len(rows)) if form and form is _FORMS.get(len(fields)) else None
        if row is None:
            raise InputError(
                f"{name}:{number}: {line[:40]!r} is no row of erase counters; known are ubinfo,"
                " /sys/class/ubi, the kernel's log, detailed_erase_block_info and ubidumpec"
            )
        rows.append(row)
    return _of_rows(rows, name, ubi=ubi)


def _of_rows(rows: list[tuple[int, int]], name: str, *, ubi: bool) -> Counters:
    each = {block: erases for block, erases in rows if erases >= 0}
    if len({block for block, _ in rows}) != len(rows):
        raise InputError(f"{name}: a block is listed twice")
    if not each:
        raise InputError(f"{name}: no good block in it")
    return Counters(
        worst=max(each.values()),
        blocks=len(each),
        mean=sum(each.values()) / len(each),
        wl_threshold=_UBI_WL_THRESHOLD if ubi else None,
        each=each,
    )


def _is_counter(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,10}", text)) and int(text) <= COUNTER_MAX


def _ubidumpec(fields: list[str], row: int) -> tuple[int, int] | None:
    return (row, int(fields[0])) if _is_counter(fields[0]) else None


def _block_and_count(fields: list[str], _row: int) -> tuple[int, int] | None:
    if not all(map(_is_counter, fields)) or int(fields[0]) >= BLOCKS_MAX:
        return None
    return int(fields[0]), int(fields[1])


def _block_count_state(fields: list[str], row: int) -> tuple[int, int] | None:
    """A row with its state; a bad block wears no more and counts as -1."""
    pair = _block_and_count(fields[:2], row)
    if pair is None or fields[2] not in _STATES:
        return None
    return pair if fields[2] == "good" else (pair[0], -1)


_FORMS: dict[int, Callable[[list[str], int], tuple[int, int] | None]] = {
    1: _ubidumpec,
    2: _block_and_count,
    3: _block_count_state,
}
