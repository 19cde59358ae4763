"""Python, the simulator and the agent make the same bytes of the same write.

The simulator (sim/tests/stack/content.rs) and Python read tests/corpus/content, the agent writes
files.
"""

from __future__ import annotations

import base64
import csv
import subprocess
import zlib
from pathlib import Path

import pytest

from flashbed.program.content import generated, generated_pieces, generated_word
from flashbed.program.operation_fields import PieceSizes, pieces
from tests.support import PROJECT

TABLES = PROJECT / "tests" / "corpus" / "content"
AGENT = PROJECT / "build" / "agent" / "flashbed-agent-host"
COMMON_SEED = 0x636F6D6D6F6E

needs_agent = pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built: make build")


def table(name: str) -> list[dict[str, str]]:
    with (TABLES / name).open() as file:
        return list(csv.DictReader(file))


def test_the_bytes_are_those_the_simulator_generates() -> None:
    rows = [{name: int(value) for name, value in row.items()} for row in table("generated.csv")]
    assert len(rows) == 10
    for row in rows:
        content = generated(row["offset"], row["length"], row["seed"], row["compressibility"])
        assert zlib.crc32(content.tobytes()) == row["crc32"], row


def in_order(piece: PieceSizes) -> list[int | None]:
    """Which of COMMON and OWN each byte of a piece is; None is a zero."""
    bytes_: list[int | None] = list(range(piece.common_bytes + piece.own_bytes))
    zeroes: list[int | None] = [None] * piece.zero_bytes
    if not piece.runs:
        return bytes_[: piece.common_bytes] + zeroes + bytes_[piece.common_bytes :]

    in_run, in_part = len(zeroes) // piece.runs, len(bytes_) // piece.runs
    made = zeroes[: len(zeroes) % piece.runs]
    for k in range(piece.runs):
        made += zeroes[:in_run] + bytes_[k * in_part : (k + 1) * in_part]
    return made + bytes_[piece.runs * in_part :]


def is_text(piece: PieceSizes, number: int) -> bool:
    """Whether a byte of COMMON and OWN has only BITS bits."""
    if not piece.runs:
        return number < piece.text_bytes
    of = piece.common_bytes + piece.own_bytes
    return (number + 1) * piece.text_bytes // of > number * piece.text_bytes // of


def by_definition(offset: int, length: int, seed: int, fill: str) -> bytes:
    """docs/reference/operations.md, byte by byte."""
    content = bytearray()
    sizes = [piece for piece in pieces(fill) for _ in range(piece.times)]
    orders = [in_order(piece) for piece in sizes]
    for at in range(offset, offset + length):
        page = at // 4096
        in_piece = at - max(offset, page * 4096)
        piece = sizes[page - offset // 4096]
        order = orders[page - offset // 4096]
        number = order[in_piece] if in_piece < len(order) else None
        if number is None:
            word, byte = 0, 0
        elif number < piece.common_bytes:
            word, byte = generated_word(COMMON_SEED, number // 8), number % 8
        else:
            word, byte = generated_word(seed, at // 8), at % 8
        text = number is not None and is_text(piece, number)
        content.append(word >> (8 * byte) & (2**piece.text_bits - 1 if text else 255))
    return bytes(content)


def test_pieces_are_what_their_definition_says_and_the_simulator_makes() -> None:
    rows = table("pieces.csv")
    assert len(rows) >= 8
    for row in rows:
        write = int(row["offset"]), int(row["length"]), int(row["seed"]), row["fill"]
        content = generated_pieces(*write).tobytes()
        assert zlib.crc32(content) == int(row["crc32"]), row
        assert content == by_definition(*write), row


@needs_agent
def test_the_agent_writes_the_same_pieces_and_data(tmp_path: Path) -> None:
    for row in table("pieces.csv"):
        offset, length, seed, fill = (row[name] for name in ("offset", "length", "seed", "fill"))
        lines = f"open 0 a rw,create,trunc\nwrite 0 {offset} {length} {seed} {fill}\n"
        assert (
            written(tmp_path, lines, int(offset))
            == generated_pieces(int(offset), int(length), int(seed), fill).tobytes()
        )
    data = bytes(range(256)) * 20
    encoded = [base64.b64encode(data[at : at + 3000]).decode() for at in range(0, len(data), 3000)]
    lines = "".join(f"data {line}\n" for line in encoded)
    lines = f"open 0 a rw,create,trunc\n{lines}write 0 77 {len(data)} 0 data\n"
    assert written(tmp_path, lines, 77) == data


def written(folder: Path, lines: str, offset: int) -> bytes:
    program = folder / "program.ops"
    program.write_text(f"flashbed-ops 2\n{lines}close 0\n")
    work = folder / "work"
    work.mkdir(exist_ok=True)
    subprocess.run([AGENT, "run", program, "--dir", work], check=True, capture_output=True)
    with (work / "a").open("rb") as file:
        file.seek(offset)
        return file.read()
