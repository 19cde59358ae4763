"""Writes a first profile of a board: what is known, and `?` for what is not.

`flashbed doctor --profile NAME` writes it; with `--on ssh://...` the board reports its memory and
geometry. Loading it lists every `?`.
"""

from __future__ import annotations

from flashbed.formats.prices import Software
from flashbed.targets.ssh.facts import BoardFacts, MtdPartition

__all__ = ["blank_profile_text", "profile_text"]

_BLANK = '"?"'
_POINTER_BYTES = {"32": 4, "64": 8}
_SOURCE_BLANK = f"{_BLANK}  # where the numbers come from: a data sheet, a measurement"


def blank_profile_text(name: str) -> str:
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
        {"step_bytes": f"{_BLANK}  # 512, 1024", "strength_bits": f"{_BLANK}  # 1, 4, 8"},
        {
            "source": _SOURCE_BLANK,
            "first_block": "0",
            "blocks": f"{_BLANK}  # its size divided by that of a block",
        },
        {"source": _SOURCE_BLANK, "free_kib": f"{_BLANK}  # MemFree of /proc/meminfo"},
        f"{_BLANK}  # of the kernel: 4 on 32 bits, 8 on 64",
    )


def profile_text(name: str, board: BoardFacts, there: MtdPartition) -> str:
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
        {
            "step_bytes": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_step_size",
            "strength_bits": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_strength",
        },
        {
            "source": f'"mtd{there.number}, {there.name}"',
            "first_block": first,
            "blocks": str(there.size_bytes // block_bytes),
        },
        {"source": f'"MemFree; {source}"', "free_kib": board.facts["free_kib"]},
        str(_POINTER_BYTES[board.facts["word_bits"]]),
    )


def _text(
    board: dict[str, str], geometry: dict[str, str], ecc: dict[str, str],
    partition: dict[str, str], memory: dict[str, str], pointer_bytes: str,
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
    software = {"source": '"not calibrated: flashbed calibrate --write"'}
    software |= {field: "0" for field in Software.model_fields if field.endswith(("_ns", "_ps"))}
    software |= {"sched_clock_ns": "1", "pointer_bytes": pointer_bytes}
    tables = {
        "board": board,
        "chip": chip,
        "ecc": {"source": _BLANK, "kind": kind, **ecc},
        "partition": partition,
        "memory": memory,
        "software": software,
    }
    lines: list[str] = []
    for title, table in tables.items():
        lines += [f"[{title}]", *(f"{key} = {value}" for key, value in table.items()), ""]
    return "\n".join(lines)
