"""Writes what the playground knows of the world: boards, kernels and recorded programs, as JSON.

A recording becomes operations here, once for each compressor that a file system may have, because
the fill of written data follows its sizes. Variants of a program differ in a few fields of their
lines: the lines are kept once, with a mark where a field differs, and the fields of each variant
beside them.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from flashbed.formats.profiles import (
    COMPR_OPTIONS,
    FILE_SYSTEMS,
    USUAL_COMPRESSOR,
    Kernel,
    board_names,
    kernel_names,
    load_board,
    load_kernel,
)
from flashbed.plan.experiment import SETTLE_NS
from flashbed.recording.file import open_recording
from flashbed.recording.fill import Compressor, as_compressor
from flashbed.recording.translate import translate
from flashbed.workloads.recorded_program import OF_YAFFS2, usual_compressors

MARK = "\x01"
"""Stands where variants of a line differ."""
EXPLICIT = "none"
"""Any requested compressor: costs are then those of the profile alone."""
PROGRAMS = {
    "git": "git: three commits and a collection",
    "logger": "A logger with rotation",
    "config": "A configuration store",
    "sqlite-delete": "SQLite inserting rows (journal DELETE)",
    "sqlite-persist": "SQLite inserting rows (journal PERSIST)",
    "sqlite-truncate": "SQLite inserting rows (journal TRUNCATE)",
    "sqlite-wal": "SQLite inserting rows (journal WAL)",
    "postmark": "Postmark: a mail server's files",
    "unpack": "Unpacking an archive",
    "update": "A firmware update",
    "lmdb": "LMDB, a mapped database",
    "berkeleydb": "Berkeley DB",
}


def main() -> None:
    """The file's name is the one argument."""
    out = Path(sys.argv[1])
    recordings = Path(sys.argv[2])
    world = {
        "boards": {name: _board(name) for name in board_names()},
        "kernels": {name: _kernel(load_kernel(name)) for name in kernel_names()},
        "programs": [
            _program(recordings / f"{name}.parquet", name, title)
            for name, title in PROGRAMS.items()
        ],
    }
    out.write_text(json.dumps(world, separators=(",", ":")), encoding="utf-8")


def _board(name: str) -> dict[str, Any]:
    board = load_board(name)
    return {
        "title": board.board.title,
        "usual": json.loads(board.sim_json),
        "priced": json.loads(board.sim_json_with(EXPLICIT)),
        "endurance": board.endurance.cycles if board.endurance else None,
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    assert kernel.jffs2, kernel.name
    assert kernel.ubifs, kernel.name
    able: dict[str, list[str]] = {
        "jffs2": [*kernel.jffs2.compr_option], "ubifs": [*kernel.ubifs.compr_option],
    }  # fmt: skip
    return {
        "title": kernel.kernel.title,
        "sim": json.loads(kernel.sim_json),
        "shipped_kib": {fs: kernel.shipped_kib(fs) for fs in FILE_SYSTEMS},
        "compressors": {
            fs: {name.split("-")[0]: name for name in able[fs]} for fs in COMPR_OPTIONS
        },
    }


_Texts = tuple[str, str]
"""Preparation and body."""
_Way = tuple[Compressor | None, Compressor | None, bytes | None]
"""First and second compressor, and the folder that the file system has by itself."""


def _ways() -> dict[str, _Way]:
    """Every way in which a program is translated, by the key that the page makes of a choice."""
    ways: dict[str, _Way] = {"yaffs2": (None, None, OF_YAFFS2)}
    for fs, options in COMPR_OPTIONS.items():
        for option in options:
            ways[f"{fs} {option}"] = (as_compressor(option), None, None)
    for name in kernel_names():
        for fs in COMPR_OPTIONS:
            usual = usual_compressors(fs, load_kernel(name))
            ways[f"{fs} {USUAL_COMPRESSOR} {name}"] = (*usual, None)
    return ways


def _program(path: Path, name: str, title: str) -> dict[str, Any]:
    recording = open_recording(path)

    @cache
    def translated(first: Compressor | None, then: Compressor | None, own: bytes | None) -> _Texts:
        prepare, body, _ = translate(recording, first, SETTLE_NS, then=then, own=own)
        return prepare, body

    distinct: list[_Texts] = []
    variants: dict[str, int] = {}
    for key, way in _ways().items():
        texts = translated(*way)
        if texts not in distinct:
            distinct.append(texts)
        variants[key] = distinct.index(texts)
    _, flat_out, _ = translate(recording, None, SETTLE_NS, think=False, own=OF_YAFFS2)
    assert flat_out == _without_thinking(translated(None, None, OF_YAFFS2)[1]), "made by the page"
    return {
        "name": name,
        "title": title,
        "variants": variants,
        "prepare": _common([prepare for prepare, _ in distinct]),
        "body": _common([body for _, body in distinct]),
    }


def _without_thinking(body: str) -> str:
    lines = body.splitlines()
    return "".join(f"{line}\n" for line in lines if line.split()[0] not in ("pause", "compute"))


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


if __name__ == "__main__":
    main()
