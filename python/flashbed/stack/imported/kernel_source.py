"""Reads chips from the kernel's own tables, in C.

Those are `SPINAND_INFO` of drivers/mtd/nand/spi/*.c and the full identities of
drivers/mtd/nand/raw/nand_ids.c. The kernel keeps identity, geometry, ECC and, of SPI-NAND, the
commands in its order of preference; it keeps no times. Left out are commands at double data rate
other than octal DTR, continuous reads with commands of their own, and rows of nand_ids.c that leave
geometry to the chip's own ID bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from flashbed.stack.bounds import EccStatus
from flashbed.stack.imported.oob_layouts import free_bytes

__all__ = ["chips_in_source", "is_kernel_source"]

Tables = dict[str, dict[str, Any]]

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_MAKER_ID = re.compile(r"#define\s+SPINAND_MFR_(\w+)\s+(0x[0-9A-Fa-f]+)")
_MAKER_NAME = re.compile(r"\.name\s*=\s*\"([^\"]+)\"")
_VARIANTS = re.compile(r"SPINAND_OP_VARIANTS\s*\(")
_INFO = re.compile(r"SPINAND_INFO\s*\(\s*\"([^\"]+)\"")
_ID = re.compile(r"SPINAND_ID\s*\(\s*\w+\s*,([^)]*)\)")
_OLD_ID = re.compile(r"^\s*,\s*(0x[0-9A-Fa-f]+)\s*,")
_MEMORG = re.compile(r"NAND_MEMORG\s*\(([^)]*)\)")
_ECC = re.compile(r"NAND_ECCREQ\s*\(([^)]*)\)")
_USED = re.compile(r"SPINAND_INFO_OP_VARIANTS(?:_WITH_CONT)?\s*\(\s*&(\w+)\s*,\s*&\w+\s*,\s*&(\w+)")
_LAYOUT = re.compile(r"SPINAND_ECCINFO\s*\(\s*&(\w+)")
_STATUS = re.compile(r"SPINAND_ECCINFO\s*\(\s*&\w+\s*,\s*(\w+?)_ecc_get_status\b")
_CALL = re.compile(r"\b(SPINAND_\w+)\s*\(([^()]*)\)")
_ROW = re.compile(
    r"\{\s*\"([^\"]+)\"\s*,\s*\{\s*\.id\s*=\s*\{([^}]*)\}\s*\}\s*,"
    r"([^{}\"]*?(?:\([^)]*\)[^{}\"]*?)*)\}"
)
_ROW_ECC = re.compile(r"NAND_ECC_INFO\s*\(([^)]*)\)")
_READ = re.compile(
    r"SPINAND_PAGE_READ_FROM_CACHE_(?:(FAST|3A|FAST_3A)_)?(?:(\d)S_(\d)S_(\d)S_|(8D)_8D_8D_)?"
    r"(?:(X2|X4|DUALIO|QUADIO|FAST)_)?OP(_3A)?"
)
_LOAD = re.compile(r"SPINAND_PROG_LOAD(?:_(\d)S_(\d)S_(\d)S_OP|_(X4)|_(8D)_8D_8D_OP)?")
_OLD_LINES = {"X2": (1, 2), "X4": (1, 4), "DUALIO": (2, 2), "QUADIO": (4, 4)}
_READ_OPCODE = {
    (1, 1): 0x03, (1, 2): 0x3B, (2, 2): 0xBB, (1, 4): 0x6B, (4, 4): 0xEB, (1, 8): 0x8B,
    (8, 8): 0xCB,
}  # fmt: skip
_DTR_READ_OPCODE = 0x9D
_FAST_OPCODE = 0x0B
_LOAD_OPCODE = {
    (1, 1): (0x02, 0x84),
    (1, 4): (0x32, 0x34),
    (1, 8): (0x82, 0x82),
    (8, 8): (0xC2, 0xC4),
}
"""Command that resets the register first, and the one that does not."""
_SAME_STATUS = {"mx35lf1ge4ab": "macronix", "f35sqa002g": "core", "w25w35nxxjw": "core"}
"""Before 6.12 the first had this name; the second tells what the core does."""
_MIB = 1 << 20
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MAKERS = {
    0x01: "Spansion", 0x04: "Fujitsu", 0x20: "STMicroelectronics", 0x2C: "Micron",
    0x45: "SanDisk", 0x98: "Toshiba", 0xAD: "Hynix", 0xC2: "Macronix", 0xC8: "ESMT",
    0xEC: "Samsung", 0xEF: "Winbond",
}  # fmt: skip
"""nand_ids.c: `nand_manufacturer_desc`."""


def is_kernel_source(text: str) -> bool:
    """Whether a text has one of the kernel's tables."""
    return bool(_INFO.search(text) or _ROW.search(_COMMENT.sub(" ", text)))


def chips_in_source(text: str, source: str) -> Iterator[Tables]:
    """The tables of each chip that is described whole, in the file's order."""
    text = _COMMENT.sub(" ", text)
    yield from _spi_nands(text, source)
    yield from _raw_nands(text, source)


def _spi_nands(text: str, source: str) -> Iterator[Tables]:
    makers = _MAKER_ID.findall(text)
    maker_id = int(makers[0][1], 16) if makers else None
    named = _MAKER_NAME.search(text)
    maker = named[1] if named else (makers[0][0].capitalize() if makers else "unknown")
    variants = dict(_op_variants(text))
    for found in _INFO.finditer(text):
        body = _within(text, text.index("(", found.start()))
        rest = body[body.index('"' + found[1] + '"') + len(found[1]) + 2 :]
        tables = _one_spi_nand(rest, variants, source, text)
        if tables is None:
            continue
        identity = _identity(rest)
        chip: dict[str, Any] = {
            "name": found[1],
            "title": f"{maker} {found[1]}, SPI-NAND of {_size_text(tables['geometry'])}",
            "maker": maker,
            "bus": "spi",
        }
        if maker_id is not None and identity:
            chip["id"] = [maker_id, *identity]
        yield {"chip": {**chip, "source": source}, **tables}


def _one_spi_nand(
    body: str, variants: dict[str, list[tuple[str, Sequence[str]]]], source: str, text: str
) -> Tables | None:
    organised = _MEMORG.search(body)
    numbers = [int(word, 0) for word in organised[1].split(",")] if organised else []
    if len(numbers) == 8:  # before 5.2, without the number of bad blocks
        numbers.insert(5, -1)
    used = _USED.search(body)
    if len(numbers) != 9 or used is None:
        return None
    _, page, oob, pages, blocks, bad, planes, luns, targets = numbers
    dies = luns * targets
    geometry = {
        "source": source, "page_bytes": page, "oob_bytes": oob, "pages_per_block": pages,
        "blocks": blocks * dies, "planes": planes, "dies": dies,
    }  # fmt: skip
    if bad >= 0:
        geometry["max_bad_blocks"] = bad * dies
    tables: Tables = {"geometry": geometry}
    asked = _ECC.search(body)
    if asked:
        strength, step = (int(word, 0) for word in asked[1].split(","))
        tables["ecc"] = {
            "source": source, "on_die_strength_bits": strength, "on_die_step_bytes": step
        }  # fmt: skip
    read = [row for call in variants.get(used[1], ()) for row in _read_variant(*call)]
    program = [row for call in variants.get(used[2], ()) for row in _program_variant(*call)]
    if not read or not program:
        return None
    tables["spi"] = {"source": source}
    layout = _LAYOUT.search(body)
    if layout and asked:
        free = free_bytes(text, layout[1], tables["geometry"], step)
        tables["spi"] |= {"oob_free_bytes": free} if free is not None else {}
    if "SPINAND_CONT_READ" in body and "_WITH_CONT" not in body:
        tables["spi"] |= {"continuous_reads": True}
    tables["spi"] |= {"ecc_status": _ecc_status(body), "read": read, "program": program}
    return tables


def _ecc_status(body: str) -> str:
    """The function that decodes the status, in flashbed's word for it."""
    named = _STATUS.search(body)
    name = named[1] if named else "core"
    return _SAME_STATUS.get(name, name if name in get_args(EccStatus) else "core")


def _identity(body: str) -> list[int]:
    found = _ID.search(body)
    words = found[1].split(",") if found else []
    old = _OLD_ID.match(body)
    return [int(word, 0) for word in words] or ([int(old[1], 16)] if old else [])


def _op_variants(text: str) -> Iterator[tuple[str, list[tuple[str, Sequence[str]]]]]:
    """Name -> the calls of a `SPINAND_OP_VARIANTS`."""
    for found in _VARIANTS.finditer(text):
        body = _within(text, found.end() - 1)
        name, _, calls = body.partition(",")
        rows: list[tuple[str, Sequence[str]]] = [
            (call, [word.strip() for word in given.split(",")])
            for call, given in _CALL.findall(calls)
        ]
        yield name.strip(), rows


def _within(text: str, opening: int) -> str:
    """What stands between this bracket and the one that closes it."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[opening + 1 : at]
    return text[opening + 1 :]


def _read_variant(call: str, given: Sequence[str]) -> Iterator[dict[str, Any]]:
    found = _READ.fullmatch(call)
    if found is None:
        return
    fast = (found[1] or "").startswith("FAST") or found[6] == "FAST"
    if found[2]:
        lines = int(found[3]), int(found[4])
    elif found[5]:
        lines = 8, 8
    elif found[6] in _OLD_LINES:
        lines = _OLD_LINES[found[6]]
    else:
        lines = 1, 1
        if len(given) == 5:  # (fast, addr, ndummy, buf, len), before 6.13
            fast, given = given[0] in ("true", "1"), given[1:]
    dummy = given[1] if len(given) > 1 else ""
    if lines not in _READ_OPCODE or not dummy.isdecimal():
        return
    row: dict[str, Any] = {
        "opcode": _FAST_OPCODE if fast and lines == (1, 1) else _READ_OPCODE[lines],
        "address_lines": lines[0],
    }
    if found[5]:
        row["opcode"] = _DTR_READ_OPCODE
    if found[7] or (found[1] or "").endswith("3A"):
        row["address_bytes"] = 3
    row |= {"dummy_bytes": int(dummy), "data_lines": lines[1]}
    if found[5]:
        row["dtr"] = True
    clock = re.fullmatch(r"(\d+)\s*\*\s*HZ_PER_MHZ", given[4]) if len(given) > 4 else None
    if clock:
        row["clock_max_hz"] = int(clock[1]) * 1_000_000
    yield row


def _program_variant(call: str, given: Sequence[str]) -> Iterator[dict[str, Any]]:
    found = _LOAD.fullmatch(call)
    if found is None:
        return
    lines = (int(found[2]), int(found[3])) if found[1] else (1, 4 if found[4] else 1)
    lines = (8, 8) if found[5] else lines
    if lines in _LOAD_OPCODE:
        kept = given[0] == "false"
        row: dict[str, Any] = {"opcode": _LOAD_OPCODE[lines][kept]}
        if lines[0] > 1:
            row["address_lines"] = lines[0]
        yield row | {"data_lines": lines[1]} | ({"dtr": True} if found[5] else {})


def _raw_nands(text: str, source: str) -> Iterator[Tables]:
    for name, id_text, rest in _ROW.findall(text):
        ecc = _ROW_ECC.search(rest)
        words = [word.strip() for word in _ROW_ECC.sub("", rest).split(",")]
        identity = [int(word, 0) for word in id_text.split(",") if word.strip()]
        numbers = [_number(word) for word in words[:3]]
        id_len, oob = (words[4], words[5]) if len(words) > 5 else ("", "")
        if None in numbers or not id_len.isdecimal() or not oob.isdecimal():
            continue
        page, size_mib, block = (number or 0 for number in numbers)
        if not page or block % page:
            continue
        short = name.split()[0]
        maker = _MAKERS.get(identity[0], "unknown")
        geometry = {
            "source": source, "page_bytes": page, "oob_bytes": int(oob),
            "pages_per_block": block // page, "blocks": size_mib * _MIB // block,
        }  # fmt: skip
        tables: Tables = {
            "chip": {
                "name": short,
                "title": f"{maker} {short}, raw NAND of {_size_text(geometry)}",
                "maker": maker,
                "bus": "parallel",
                **_cells(identity),
                "id": identity[: int(id_len)],
                "source": source,
            },
            "geometry": geometry,
        }
        if ecc:
            strength, step = (_number(word) for word in ecc[1].split(","))
            tables["ecc"] = {"source": source, "strength_bits": strength, "step_bytes": step}
        width = 16 if "16" in words[3] else 8
        tables["parallel"] = {"source": source, "width_bits": width}
        yield tables


def _cells(identity: list[int]) -> dict[str, str]:
    """`cells` of a chip whose third byte says several bits (nand_get_bits_per_cell)."""
    bits = (identity[2] >> 2 & 3) if len(identity) > 2 else 0
    return {"cells": ("mlc", "tlc", "tlc")[bits - 1]} if bits else {}


def _number(word: str) -> int | None:
    """`SZ_2K`, or a plain number."""
    word = word.strip()
    sized = re.fullmatch(r"SZ_(\d+)([KMG]?)", word)
    if sized:
        return int(sized[1]) * _SIZES.get(sized[2], 1)
    return int(word, 0) if re.fullmatch(r"0x[0-9A-Fa-f]+|\d+", word) else None


def _size_text(geometry: dict[str, Any]) -> str:
    pages = geometry["pages_per_block"] * geometry["blocks"]
    return f"{geometry['page_bytes'] * pages // _MIB:,} MiB"
