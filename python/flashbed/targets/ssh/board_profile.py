"""Writes a first profile of a board: what is known, and `?` for what is not.

`flashbed board new NAME --blank` writes it; with `--on ssh://...` the board reports its memory and
geometry. Loading it lists every `?`. Prices of software are left out until they are measured, or
are those of another board by the clocks of both (`--like`).
"""

from __future__ import annotations

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.stack.borrowed import BorrowedPrices
from flashbed.stack.profiles import load_board
from flashbed.targets.ssh.facts import FoundBoard, MtdPartition

__all__ = ["Like", "blank_profile_text", "profile_text"]

_BLANK = '"?"'
_POINTER_BYTES = {"32": 4, "64": 8}
_SOURCE_BLANK = f"{_BLANK}  # where the numbers come from: a data sheet, a measurement"


class Like(BorrowedPrices):
    """A board whose prices are known, by its name."""

    @classmethod
    def of(cls, name: str, mhz: int) -> Like:
        """Raises `InputError` for a board without a clock or prices."""
        board = load_board(name)
        if board.board.cpu_mhz is None:
            raise InputError(f"--like {name}: {shown(board.path)} has no board.cpu_mhz")
        if board.software.is_free:
            raise InputError(f"--like {name}: {shown(board.path)} is not calibrated")
        software, clock = board.software, board.board.cpu_mhz
        return cls(name=name, software=software, clock_mhz=clock, mhz=mhz)


def blank_profile_text(name: str, like: Like | None = None) -> str:
    """A boards/NAME.toml without a board: a `?` with a hint for each number."""
    return _text(
        {
            "name": f'"{name}"',
            "title": f'"{name}"',
            "ram_mib": f"{_BLANK}  # free -m says it",
            "source": _SOURCE_BLANK,
        },
        {
            "page_bytes": f"{_BLANK}  # without the spare area: 2048, 4096",
            "oob_bytes": f"{_BLANK}  # the spare area of a page: 64, 128, 224",
            "pages_per_block": f"{_BLANK}  # 64, 128",
        },
        ecc={"step_bytes": f"{_BLANK}  # 512, 1024", "strength_bits": f"{_BLANK}  # 1, 4, 8"},
        partition={
            "source": _SOURCE_BLANK,
            "first_block": f"{_BLANK}  # 0 if it begins the chip",
            "blocks": f"{_BLANK}  # its size divided by that of a block",
        },
        memory={"source": _SOURCE_BLANK, "free_kib": f"{_BLANK}  # MemFree of /proc/meminfo"},
        pointer_bytes=f"{_BLANK}  # of the kernel: 4 on 32 bits, 8 on 64",
        like=like,
    )


def profile_text(
    name: str, board: FoundBoard, there: MtdPartition, like: Like | None = None
) -> str:
    """A boards/NAME.toml with geometry, memory and a `[software]` for `calibrate` to fill."""
    block_bytes = there.block_bytes
    first = _BLANK if there.offset_bytes is None else str(there.offset_bytes // block_bytes)
    source = f"flashbed doctor: {board.facts['machine']}, Linux {board.kernel}"
    return _text(
        {
            "name": f'"{name}"',
            "title": f'"{name}"',
            "ram_mib": str(int(board.facts["ram_kib"]) // 1024),
            "source": f'"{source}"',
        },
        {
            "page_bytes": str(there.page_bytes),
            "oob_bytes": str(there.oob_bytes),
            "pages_per_block": str(block_bytes // there.page_bytes),
        },
        ecc={
            "step_bytes": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_step_size",
            "strength_bits": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_strength",
        },
        partition={
            "source": f'"mtd{there.number}, {there.name}"',
            "first_block": first,
            "blocks": str(there.size_bytes // block_bytes),
        },
        memory={"source": f'"MemFree; {source}"', "free_kib": board.facts["free_kib"]},
        pointer_bytes=str(_POINTER_BYTES[board.facts["word_bits"]]),
        like=like,
    )


def _text(
    board: dict[str, str], geometry: dict[str, str], *, ecc: dict[str, str],
    partition: dict[str, str], memory: dict[str, str], pointer_bytes: str, like: Like | None,
) -> str:  # fmt: skip
    chip = {
        "source": f"{_BLANK}  # which chip, which data sheet",
        **geometry,
        "blocks": f"{_BLANK}  # of the whole chip",
        "read_array_ns": f"{_BLANK}  # tR",
        "program_array_ns": f"{_BLANK}  # tPROG",
        "erase_array_ns": f"{_BLANK}  # tBERS",
        "transfer": f'{_BLANK}  # "page" if the controller moves whole pages, else "bytes"',
        "bus_read_ns": f"{_BLANK}  # of a whole page with its spare area",
        "bus_program_ns": f"{_BLANK}  # likewise",
        "column_change_ns": f"{_BLANK}  # tCCS",
    }
    kind = f'{_BLANK}  # "hardware-page", "software-subpage" or "none"'
    endurance = {
        "source": f"{_BLANK}  # which data sheet; without this table `--endurance` has to say it",
        "cycles": f"{_BLANK}  # PROGRAM/ERASE cycles with the ECC that it asks for: 100_000 (SLC)",
    }
    software = {"source": '"not calibrated: flashbed calibrate --write"'}
    if like is not None:
        board = board | {"cpu_mhz": str(like.mhz)}
        software = like.prices()
    software |= {"sched_clock_ns": "1", "pointer_bytes": pointer_bytes}
    tables = {
        "board": board,
        "chip": chip,
        "ecc": {"source": _BLANK, "kind": kind, **ecc},
        "endurance": endurance,
        "partition": partition,
        "memory": memory,
        "software": software,
    }
    lines: list[str] = []
    for title, table in tables.items():
        lines += [f"[{title}]", *(f"{key} = {value}" for key, value in table.items()), ""]
    return "\n".join(lines)
