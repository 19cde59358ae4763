"""The beginning of a board's profile: what the board itself can tell, and `?` for the data sheet's.

`flashbed doctor --on ssh://... --profile NAME` writes it. Whoever loads it is told of the first
`?`.
"""

from __future__ import annotations

from flashbed.formats.prices import Software
from flashbed.targets.ssh.facts import BoardFacts, MtdPartition

__all__ = ["profile_text"]

_BLANK = '"?"'
_POINTER_BYTES = {"32": 4, "64": 8}


def profile_text(name: str, board: BoardFacts, there: MtdPartition) -> str:
    """A boards/NAME.toml with geometry, memory and a `[software]` that `calibrate` will fill."""
    block_bytes = there.block_bytes
    first = _BLANK if there.offset_bytes is None else str(there.offset_bytes // block_bytes)
    source = f"flashbed doctor: {board.facts['machine']}, Linux {board.kernel}"
    facts = {
        "name": f'"{name}"',
        "title": f'"{name}"',
        "ram_mib": str(int(board.facts["ram_kib"]) // 1024),
        "source": f'"{source}"',
    }
    chip = {
        "source": f"{_BLANK}  # which chip, which data sheet",
        "page_bytes": str(there.page_bytes),
        "oob_bytes": str(there.oob_bytes),
        "pages_per_block": str(block_bytes // there.page_bytes),
        "blocks": f"{_BLANK}  # of the whole chip",
        "read_array_ns": f"{_BLANK}  # tR",
        "program_array_ns": f"{_BLANK}  # tPROG",
        "erase_array_ns": f"{_BLANK}  # tBERS",
        "transfer": f'{_BLANK}  # "page" if the controller moves whole pages, else "bytes"',
        "bus_read_ns": f"{_BLANK}  # of a page, or of a byte",
        "bus_program_ns": f"{_BLANK}  # likewise",
        "column_change_ns": f"{_BLANK}  # tCCS",
    }
    ecc = {
        "source": _BLANK,
        "kind": f'{_BLANK}  # "hardware-page", "software-subpage" or "none"',
        "step_bytes": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_step_size",
        "strength_bits": f"{_BLANK}  # /sys/class/mtd/mtd{there.number}/ecc_strength",
    }
    partition = {
        "source": f'"mtd{there.number}, {there.name}"',
        "first_block": first,
        "blocks": str(there.size_bytes // block_bytes),
    }
    memory = {"source": f'"MemFree; {source}"', "free_kib": board.facts["free_kib"]}
    software = {"source": '"not calibrated: flashbed calibrate --write"'}
    software |= {field: "0" for field in Software.model_fields if field.endswith(("_ns", "_ps"))}
    software["sched_clock_ns"] = "1"
    software["pointer_bytes"] = str(_POINTER_BYTES[board.facts["word_bits"]])
    tables = {"board": facts, "chip": chip, "ecc": ecc, "partition": partition, "memory": memory}
    tables["software"] = software
    lines: list[str] = []
    for title, table in tables.items():
        lines += [f"[{title}]", *(f"{key} = {value}" for key, value in table.items()), ""]
    return "\n".join(lines)
