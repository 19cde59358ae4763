"""FILL of a write: the bytes of a replay are as compressible as the recorded ones."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from flashbed._sim import compressed_size
from flashbed.program.content import generated, generated_pieces
from flashbed.program.recording.calls import PIECE_BYTES, Piece
from flashbed.program.recording.fill import Compressor, Filler
from tests.support import PROJECT
from tests.support.sizer import Sizer


def _stored(compressor: Compressor, data: bytes, aligned: int = 4) -> int:
    """The bytes that compressed data takes in a node."""
    return -(-min(compressed_size(compressor, data), len(data)) // aligned) * aligned


@pytest.mark.parametrize("compressor", ["lzo", "zlib", "zstd"])
def test_a_piece_alone_takes_what_the_recorded_one_took(compressor: Compressor) -> None:
    """Sizes by lzo came in steps of up to 120 bytes, zstd's of 16: each file was a page off."""
    filler = Filler(compressor)
    for number, size in enumerate([*range(60, 4000, 83), 4096], start=1):
        at = number * 4096
        text = filler.fill(1, at, sizes=[Piece(*[size] * 6)], length=4096, seed=number)
        data = generated_pieces(at, 4096, number, text).tobytes()
        assert _stored(compressor, data) == -(-size // 4) * 4, size


def test_a_piece_that_only_the_second_compressor_makes_smaller_is_as_small() -> None:
    """JFFS2 tries zlib on what lzo does not make smaller, be it a piece or a whole page."""
    filler = Filler("lzo", "zlib")
    for size in (3400, 3600, 4000):
        text = filler.fill(1, 0, sizes=[Piece(4096, 4096, size, size, 0, 0)], length=4096, seed=5)
        data = generated_pieces(0, 4096, 5, text).tobytes()
        assert compressed_size("lzo", data) >= 4096
        assert abs(compressed_size("zlib", data) - size) < 4
    # No text is as small.
    whole = filler.fill(1, 0, sizes=[Piece(4096, 4096, 2000, 2000, 0, 0)], length=4096, seed=5)
    assert _stored("lzo", generated_pieces(0, 4096, 5, whole).tobytes()) == 2016
    # The first half of a page that lzo makes smaller, which the second half prevents.
    first = filler.fill(2, 0, sizes=[Piece(1900, 1900, 1000, 1000, 0, 0)], length=2048, seed=5)
    second = filler.fill(2, 2048, sizes=[Piece(2048, 2300, 1000, 1200, 0, 0)], length=2048, seed=6)
    one, other = generated_pieces(0, 2048, 5, first), generated_pieces(2048, 2048, 6, second)
    assert _stored("lzo", one.tobytes()) == 1900
    page = one.tobytes() + other.tobytes()
    stored = compressed_size("lzo", page), compressed_size("zlib", page) + 16
    assert abs((stored[0] if stored[0] < 4096 else stored[1]) - 2216) <= 4


@pytest.mark.parametrize("size", [30, 200, 400, 512])
def test_a_piece_inside_a_page_is_as_small_alone_as_it_was(size: int) -> None:
    """JFFS2 compresses what is written: pieces of 512 bytes were made for their page alone."""
    filler = Filler("lzo", "zlib")
    for seed, at in enumerate(range(0, 3584, 512), start=1):
        text = filler.fill(
            1, at, sizes=[Piece(size, size // 2, size, size // 2, 0, 0)], length=512, seed=seed
        )
        data = generated_pieces(at, 512, seed, text).tobytes()
        assert _stored("lzo", data) == -(-size // 4) * 4


def test_a_page_that_both_compressors_make_smaller_is_about_as_small_by_the_second() -> None:
    """At the end of a block JFFS2 has no room for what lzo makes, and zlib fills what there is."""
    filler = Filler("lzo", "zlib")
    for number, (first, second) in enumerate(((2500, 1340), (2700, 1610), (3000, 2300)), start=1):
        at = number * 4096
        piece = Piece(first, first, second, second, 0, 0)
        text = filler.fill(1, at, sizes=[piece], length=4096, seed=number)
        data = generated_pieces(at, 4096, number, text).tobytes()
        assert _stored("lzo", data) == first
        assert abs(compressed_size("zlib", data) - second) < second / 10


def _lines_of_a_log() -> list[bytes]:
    line = b"Nov 28 01:%02d:%02d host daemon[%d]: event %d value %d ok\n"
    numbers = ((i // 60 % 60, i % 60, 100 + i % 7, i, i * 7919 % 1000) for i in range(600))
    return [line % each for each in numbers]


def _lines_of_a_table() -> list[bytes]:
    numbers = ((i + 1_700_000_000, 20 + i % 7, i * 7919 % 1000, i * 104729 % 4096)
               for i in range(900))  # fmt: skip
    return [b"%d,%d.%03d,%d\n" % each for each in numbers]


def _lines_of_objects() -> list[bytes]:
    tags = ["a", "bb", "ccc"]
    return [
        json.dumps({"id": i, "name": f"s-{i % 13}", "value": i * 7919 / 997, "tags": tags[: i % 4]})
        .encode() for i in range(400)
    ]  # fmt: skip


@pytest.mark.parametrize("lines", [_lines_of_a_log, _lines_of_a_table, _lines_of_objects])
@pytest.mark.parametrize(
    ("compressor", "by_pages"), [("lzo", False), ("lzo", True), ("zlib", True), ("zstd", True)]
)
def test_pages_of_short_lines_take_what_they_took(
    lines: Callable[[], list[bytes]], compressor: Compressor, by_pages: bool
) -> None:
    """A logger's 38 pages were replayed as 20: each line's sizes were met as if it stood alone."""
    sizer, filler = Sizer(), Filler(compressor, by_pages=by_pages)
    recorded, made, ends = b"", b"", []
    for seed, line in enumerate(lines(), start=1):
        at = len(recorded)
        fill = filler.fill(1, at, sizes=sizer.sizes(1, at, line), length=len(line), seed=seed)
        recorded += line
        made += generated_pieces(at, len(line), seed, fill).tobytes()
        ends.append(len(recorded))
    # A page is compressed when it is full, by UBIFS whenever it is written back as well.
    full = list(range(PIECE_BYTES, len(recorded), PIECE_BYTES))
    often = [end for end in ends if end % PIECE_BYTES >= 512] if by_pages else full
    for ends, most, part in ((full, 16, 100), (often, 40, 50)):
        pages = [slice((end - 1) // PIECE_BYTES * PIECE_BYTES, end) for end in ends]
        theirs = [compressed_size(compressor, recorded[page]) for page in pages]
        off = [
            abs(compressed_size(compressor, made[page]) - size)
            for page, size in zip(pages, theirs, strict=True)
        ]
        assert max(off) <= most
        assert sum(off) <= sum(theirs) / part


def test_both_parts_of_a_page_that_is_cut_are_about_as_small_as_the_recorded_ones() -> None:
    """JFFS2 cuts a page at a block's end. Zeroes stood in front: 900 bytes off on average."""
    filler = Filler("lzo", "zlib")
    texts = (_lines_of_a_log(), _lines_of_a_table(), _lines_of_objects())
    text = (PROJECT / "LICENSE").read_bytes() + b"".join(line for each in texts for line in each)
    off = []
    for number in range(len(text) // PIECE_BYTES):
        at = number * PIECE_BYTES
        page = text[at : at + PIECE_BYTES]
        first, second = compressed_size("lzo", page), compressed_size("zlib", page)
        fill = filler.fill(
            1,
            at,
            sizes=[Piece(first, first, second, second, 0, 0)],
            length=PIECE_BYTES,
            seed=number,
        )
        made = generated_pieces(at, PIECE_BYTES, number, fill).tobytes()
        assert _stored("lzo", made) == _stored("lzo", page)
        for cut in range(512, PIECE_BYTES, 512):
            (by_zlib, by_lzo), (their_zlib, their_lzo) = (
                (compressed_size("zlib", one[:cut]), compressed_size("lzo", one[cut:]))
                for one in (made, page)
            )
            off.append(abs(by_zlib - their_zlib) + abs(by_lzo - their_lzo))
    assert sum(off) / len(off) < 300


def test_a_page_is_as_small_as_it_was_where_its_later_pieces_added_nothing() -> None:
    """Pages of a small database of Python (`shelve`) became 117 bytes too large."""
    filler, sizer = Filler("lzo", "zlib"), Sizer()
    recorded, made = b"", b""
    for seed, length in enumerate([17, *[512] * 7, 495], start=1):
        at = len(recorded)
        data = (b"value %05d" % (seed * 3701)).ljust(length, b"\0")
        fill = filler.fill(1, at, sizes=sizer.sizes(1, at, data), length=length, seed=seed)
        piece = generated_pieces(at, length, seed, fill).tobytes()
        if at + length < PIECE_BYTES:
            assert _stored("lzo", piece) == _stored("lzo", data)
        recorded, made = recorded + data, made + piece
    assert abs(_stored("lzo", made) - _stored("lzo", recorded)) <= 16


@pytest.mark.parametrize("lengths", [[700] * 40, [1024] * 8, [100, 1500, 300] * 12])
def test_small_writes_that_do_not_shrink_do_not_shrink_in_their_page(lengths: list[int]) -> None:
    """1,000 appended lots of 700 random bytes are 702 page writes on JFFS2, replayed as 462."""
    filler, sizer = Filler("lzo", "zlib"), Sizer()
    recorded, made = b"", b""
    for seed, length in enumerate(lengths, start=1):
        at, data = len(recorded), generated(len(recorded), length, 77, 0).tobytes()
        fill = filler.fill(1, at, sizes=sizer.sizes(1, at, data), length=length, seed=seed)
        recorded, made = recorded + data, made + generated_pieces(at, length, seed, fill).tobytes()
    for at in range(0, len(recorded) - PIECE_BYTES, PIECE_BYTES):
        assert _stored("lzo", made[at : at + PIECE_BYTES]) == PIECE_BYTES


def test_a_piece_behind_a_hole_leaves_its_page_as_large_as_it_is() -> None:
    """Quarters of a page, written in any order: those behind zeroes were equal to each other."""
    filler, sizer = Filler("lzo", "zlib"), Sizer()
    recorded, made = bytearray(PIECE_BYTES), bytearray(PIECE_BYTES)
    for seed, quarter in enumerate([1, 2, 0, 3], start=1):
        at, data = quarter * 1024, generated(quarter * 1024, 1024, 77, 0).tobytes()
        fill = filler.fill(1, at, sizes=sizer.sizes(1, at, data), length=1024, seed=seed)
        recorded[at : at + 1024] = data
        made[at : at + 1024] = generated_pieces(at, 1024, seed, fill).tobytes()
    assert _stored("lzo", bytes(recorded)) == PIECE_BYTES
    assert compressed_size("lzo", bytes(made)) >= PIECE_BYTES - 100


def test_text_takes_what_it_took() -> None:
    """Of 1,106 writes of Postmark 207 came out 8 to 30 bytes off: sizes of text scatter."""
    filler, missed = Filler("lzo", "zlib"), 0
    for seed in range(1, 61):
        size = 3037 + seed * 13
        fill = filler.fill(
            seed, 0, sizes=[Piece(4096, 4096, size, size, 0, 0)], length=4096, seed=seed
        )
        data = generated_pieces(0, 4096, seed, fill).tobytes()
        missed += abs(_stored("zlib", data) - (size + 3) // 4 * 4) > 0
    assert missed <= 3


def test_a_page_of_zeroes_is_not_spread() -> None:
    """JFFS2 never cuts a page that small; looking for runs took 60 compressions a page."""
    sizes = [compressed_size(each, bytes(4096)) for each in ("lzo", "zlib")]
    piece = Piece(sizes[0], sizes[0], sizes[1], sizes[1], 0, 0)
    fill = Filler("lzo", "zlib").fill(1, 0, sizes=[piece], length=4096, seed=3)
    assert "s" not in fill
    assert abs(_stored("lzo", generated_pieces(0, 4096, 3, fill).tobytes()) - sizes[0]) <= 4
