"""Writes a chip of the catalogue as TOML: what is known, and a comment for what is not.

`flashbed chip new` and `flashbed chip import` write with it. A key that is not known stays a
comment, because an absent key means "no source says it" and a run that needs it says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["blank_chip_text", "chip_text", "toml_value"]

_ORDER = ("chip", "geometry", "times", "times.typical", "times.maximum", "ecc", "spi", "parallel",
          "endurance", "currents", "currents.typical", "currents.maximum")  # fmt: skip
_HINTS: Mapping[str, Mapping[str, str]] = {
    "times.typical": {
        "read_array_ns": "tR, typical, ECC on the die off",
        "read_array_ecc_ns": "tR, typical, ECC on the die on",
        "program_array_ns": "tPROG, typical",
        "erase_array_ns": "tBERS, typical",
    },
    "times.maximum": {
        "read_array_ns": "tR, at most",
        "read_array_ecc_ns": "tR at most, ECC on the die on",
        "program_array_ns": "tPROG, at most",
        "erase_array_ns": "tBERS, at most",
    },
    "spi": {"clock_max_hz": "the fastest clock of the part"},
    "parallel": {"read_cycle_ns": "tRC", "write_cycle_ns": "tWC"},
    "endurance": {
        "cycles": "PROGRAM/ERASE cycles with the ECC that it asks for",
        "retention_years": "data retention",
    },
}
"""Table -> keys that a run or an answer needs, and where a data sheet has them."""


def chip_text(head: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a chip's file. `tables` may have `times.typical` and other nested names."""
    lines = [f"# {head}", ""]
    bus = tables["chip"]["bus"]
    other = "parallel" if bus == "spi" else "spi"
    on_die = "on_die_strength_bits" in tables.get("ecc", {}) or bus == "spi"
    for name in _ORDER:
        table = tables.get(name, {})
        hints = {
            key: hint
            for key, hint in _HINTS.get(name, {}).items()
            if key not in table and (on_die or "_ecc_" not in key)
        }
        corners = name == "times" and {"times.typical", "times.maximum"} & tables.keys()
        if name == "times" and not (table or corners):
            lines += ["# [times]", '# source = "the data sheet, its revision and table"', ""]
        if name == other or not (table or hints or corners):
            continue
        lines += [*_table(name, table, hints), ""]
    return "\n".join(lines)


def _table(name: str, table: Mapping[str, Any], hints: Mapping[str, str]) -> Iterator[str]:
    dead = not table
    yield f"# [{name}]" if dead and name not in ("times",) else f"[{name}]"
    if dead and "." not in name:
        yield '# source = "the data sheet, its revision and table"'
    for key, value in table.items():
        yield from _pair(key, value)
    for key, hint in hints.items():
        yield f"# {key} =   # {hint}"


def _pair(key: str, value: Any) -> Iterator[str]:
    rows = isinstance(value, list) and value and isinstance(value[0], dict)
    if not rows:
        where = _WHERE.get(key) if value in (_BLANK, _NO_ID) else None
        yield f"{key} = {toml_value(key, value)}" + (f"  # {where}" if where else "")
        return
    yield f"{key} = ["
    for row in value:
        inner = ", ".join(f"{name} = {toml_value(name, one)}" for name, one in row.items())
        yield f"  {{{inner}}},"
    yield "]"


def toml_value(key: str, value: Any) -> str:
    """A value as TOML: bytes in hex, long numbers in groups."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml_value(key, one) for one in value)}]"
    if isinstance(value, int):
        return (
            f"0x{value:02x}"
            if key in ("opcode", "id")
            else f"{value:_}"
            if value > 9_999
            else str(value)
        )
    return json.dumps(value, ensure_ascii=False)


_BLANK, _NO_ID = "?", [0, 0]
_WHERE = {
    "id": "READ ID (9Fh): manufacturer and device; Linux' driver knows the chip by it",
    "page_bytes": "organisation: bytes of a page, without the spare area",
    "oob_bytes": "organisation: bytes of a page's spare area",
    "pages_per_block": "organisation",
    "blocks": "organisation",
    "on_die_strength_bits": "bits that its own ECC corrects",
    "on_die_step_bytes": "of so many bytes",
    "strength_bits": "bits that the controller has to correct",
    "step_bytes": "of so many bytes",
    "oob_free_bytes": "spare bytes left by ECC and bad-block mark: spare area assignment",
}
"""Where a number stands in a data sheet."""


def blank_chip_text(name: str, bus: str) -> str:
    """A chip's file with a `?` for each number that it must have."""
    blank, source = _BLANK, "which data sheet, its revision and table"
    tables: dict[str, dict[str, Any]] = {
        "chip": {
            "name": name, "title": name, "maker": blank, "bus": bus, "source": source,
        },
        "geometry": {
            "source": source, "page_bytes": blank, "oob_bytes": blank, "pages_per_block": blank,
            "blocks": blank,
        },
    }  # fmt: skip
    if bus == "spi":
        tables["chip"]["id"] = _NO_ID
        tables["ecc"] = {
            "source": source, "on_die_strength_bits": blank, "on_die_step_bytes": blank,
        }  # fmt: skip
        tables["spi"] = {
            "source": "commands: include/linux/mtd/spinand.h; hold them against the data sheet",
            "oob_free_bytes": blank,
            "read": [
                {"opcode": opcode, "address_lines": 1, "dummy_bytes": 1, "data_lines": lines}
                for opcode, lines in ((0x6B, 4), (0x3B, 2), (0x0B, 1), (0x03, 1))
            ],
            "program": [{"opcode": 0x34, "data_lines": 4}, {"opcode": 0x84, "data_lines": 1}],
        }
    else:
        tables["ecc"] = {"source": source, "strength_bits": blank, "step_bytes": blank}
        tables["parallel"] = {"source": source, "width_bits": 8}
    return chip_text(
        f"{name}: replace each ?, and take out what the data sheet does not say", tables
    )
