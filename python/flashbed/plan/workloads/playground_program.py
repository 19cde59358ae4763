"""A recorded program as the playground has it: its operations for every file system at once.

The fill of written data follows the sizes of one compressor, so a recording becomes operations once
for each compressor that a file system may have. The variants differ in a few fields of their lines:
the lines are kept once, with a mark where a field differs, and the fields of each variant beside
them. page/web/world.ts puts a variant together again.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.paths import shown
from flashbed.plan.experiment import SETTLE_NS
from flashbed.plan.workloads.recorded_program import Way, translated_for_each, usual_compressors
from flashbed.program.recording.fill import as_compressor
from flashbed.stack.file_systems import COMPRESSING, FILE_SYSTEMS
from flashbed.stack.profiles import USUAL_COMPRESSOR, kernel_names, load_board, load_kernel

__all__ = [
    "Opening",
    "board_tables",
    "packed_mix",
    "packed_program",
    "page_with",
    "program_variants",
]

MARK = "\x01"
"""Stands where variants of a line differ."""
_EXPLICIT = "none"
"""Any requested compressor: costs are then those of the profile alone."""
FORMAT = 1
"""Of a file that is dropped onto the playground."""
_PLACE = '<script type="text/plain" id="own">{}</script>'
"""Where the page has a program of the reader's (page/web/index.html)."""

Told = Callable[[str, int, int], None]
"""Takes what is done now, how many calls are translated, and how many there are."""


def _untold(_what: str, _done: int, _total: int) -> None:
    pass


@dataclass(frozen=True)
class Opening:
    """What the page shows a file on: a configuration, written as its address, and the board."""

    address: str
    board: str


def packed_program(path: Path, opening: Opening | None = None, told: Told = _untold) -> bytes:
    """A recording as a file for the playground. Raises `RecordingError`."""
    name = path.stem
    program = {"flashbed-program": FORMAT, **program_variants(path, name, name, told)}
    return _packed(program, opening)


def packed_mix(
    parts: Sequence[tuple[Path, float | None]], opening: Opening | None = None,
    told: Told = _untold,
) -> bytes:  # fmt: skip
    """Recordings and how often each runs a day, as one file for the playground.

    None leaves the pace to the program. Raises `RecordingError`.
    """
    made = [
        {"runsPerDay": often, "program": program_variants(path, path.stem, path.stem, told)}
        for path, often in parts
    ]
    return _packed({"flashbed-mix": FORMAT, "parts": made}, opening)


def _packed(made: dict[str, Any], opening: Opening | None) -> bytes:
    if opening is not None:
        made["opens"] = opening.address
        made["board"] = {"name": opening.board, "tables": board_tables(opening.board)}
    return gzip.compress(json.dumps(made, separators=(",", ":")).encode(), mtime=0)


def board_tables(name: str) -> dict[str, Any]:
    """A board as the page has it. Raises `ProfileError`."""
    board = load_board(name)
    return {
        "title": board.board.title,
        "usual": json.loads(board.sim_json),
        "priced": json.loads(board.sim_json_with(_EXPLICIT)),
        "endurance": board.endurance.cycles if board.endurance else None,
        "energy": board.energy and board.energy.numbers,
    }


def page_with(page: Path, packed: bytes) -> bytes:
    """The playground with this program in it. Raises `InputError` without a playground."""
    if not page.is_file():
        raise InputError(f"{shown(page)}: no such file; make playground makes it")
    text = read_text(page)
    before, place, after = text.partition(_PLACE.format(""))
    if not place:
        raise InputError(f"{shown(page)}: not the playground; make playground makes it")
    return (before + _PLACE.format(b64encode(packed).decode()) + after).encode()


def program_variants(path: Path, name: str, title: str, told: Told = _untold) -> dict[str, Any]:
    """Every variant of a recorded program, as JSON has it. Raises `RecordingError`."""
    ways = _ways()
    each = list(dict.fromkeys(ways.values()))
    made = translated_for_each(path, each, SETTLE_NS, partial(told, f"translating {path.name}"))
    texts = dict(zip(each, made, strict=True))
    distinct = list(dict.fromkeys(texts.values()))
    variants = {key: distinct.index(texts[way]) for key, way in ways.items()}
    return {
        "name": name,
        "title": title,
        "variants": variants,
        "prepare": _common([prepare for prepare, _ in distinct]),
        "body": _common([body for _, body in distinct]),
    }


def _ways() -> dict[str, Way]:
    """Every way in which a program is translated, by the key that the page makes of a choice."""
    ways: dict[str, Way] = {fs: (None, None, fs) for fs in FILE_SYSTEMS if fs not in COMPRESSING}
    for fs in COMPRESSING:
        for option in FILE_SYSTEMS[fs].compr:
            ways[f"{fs} {option}"] = (as_compressor(option), None, fs)
    for name in kernel_names():
        for fs in COMPRESSING:
            usual = usual_compressors(fs, load_kernel(name))
            ways[f"{fs} {USUAL_COMPRESSOR} {name}"] = (*usual, fs)
    return ways


def _common(texts: list[str]) -> dict[str, Any]:
    """Lines with marks, and for each text what stands at the marks; whole texts if they differ."""
    lines = [text.splitlines() for text in texts]
    if len({len(each) for each in lines}) != 1:
        return {"whole": texts}
    shared: list[str] = []
    values: list[list[str]] = [[] for _ in texts]
    for row in zip(*lines, strict=True):
        words = [line.split(" ") for line in row]
        if len({len(each) for each in words}) != 1:
            shared.append(MARK)
            for value, line in zip(values, row, strict=True):
                value.append(line)
            continue
        common = []
        for column in zip(*words, strict=True):
            if len(set(column)) == 1:
                common.append(column[0])
                continue
            common.append(MARK)
            for value, word in zip(values, column, strict=True):
                value.append(word)
        shared.append(" ".join(common))
    return {"lines": "\n".join(shared) + "\n", "values": ["\t".join(each) for each in values]}
