"""Whatever calls a recording has: its translation is a valid, closed file, or one line of error."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from flashbed.program.operations import parse
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import ARGUMENTS, CALLS, WRITES, Call, Piece
from flashbed.program.recording.file import RecordingError, RecordingWriter, check, open_recording
from flashbed.program.recording.translate import translate

PATHS = st.sampled_from(
    [b"a", b"b", b"d", b"d/a", b"d/x y", b"l", b".", b"/", b"/tmp/x", b"\xff\n", b"n" * 300]
)
SMALL = st.integers(0, 6)
NUMBERS: dict[str, st.SearchStrategy[int]] = {
    "descriptor": SMALL,
    "to_descriptor": SMALL,
    "offset": st.sampled_from([0, 1, 4095, 4096, 10_000, 2**62]),
    "to_offset": st.sampled_from([0, 4096, 9000]),
    "length": st.sampled_from([0, 1, 100, 4096, 5000, 70_000, 2**31]),
    "flags": st.one_of(
        st.sampled_from([0, 1, 2, 0o101, 0o2102, 0o1101, 0o200000, 0o20200002, 0x100, 0x10F00]),
        st.integers(0, 2**25),
    ),
    "mode": st.one_of(st.sampled_from([0o100644, 0o40755, 0o120777, 1, 3]), st.integers(0, 2**17)),
    "command": st.integers(0, 12),
    "user": st.integers(-1, 2**33),
    "group": st.integers(-1, 2**33),
    "address": st.sampled_from([4096, 8192, 8000, 65_536]),
}
TEXTS: dict[str, st.SearchStrategy[bytes]] = {
    "name": st.sampled_from([b"user.a", b"user./", b"security.x", b"user.", b"user." + b"n" * 300]),
    "target": st.sampled_from([b"", b"a", b"../..", b"/etc", b"d/a", b"t" * 2000]),
}
SIZE = st.integers(0, 4096)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """A call that a recording may have, sensible or not."""
    name = draw(st.sampled_from(sorted(CALLS)))
    arguments: dict[str, int | bytes] = {}
    for argument, may_be_missing in CALLS[name]:
        if may_be_missing and draw(st.booleans()):
            continue
        if ARGUMENTS[argument] is int:
            arguments[argument] = draw(NUMBERS[argument])
        else:
            arguments[argument] = draw(TEXTS.get(argument, PATHS))
    result = draw(st.one_of(SMALL, st.sampled_from([-2, -13, -17, 100, 4096, 5000])))
    length = arguments.get("length", 0)
    moved = result if name.startswith(("write", "pwrite")) else int(length)
    written: bytes | tuple[Piece, ...] | None = None
    kind = draw(SMALL)
    if name in WRITES and 0 <= moved <= 70_000 and kind < 4:
        pieces = -(-moved // 4096) + kind % 2
        written = bytes(moved) if kind < 2 else (Piece(*[draw(SIZE) for _ in range(6)]),) * pieces
    start_ns = draw(st.integers(0, 10**9))
    cpu_ns = draw(st.one_of(st.none(), st.integers(0, 10**6)))
    return Call(
        task=draw(SMALL),
        start_ns=start_ns,
        duration_ns=draw(st.integers(0, 10**8)),
        cpu_ns=cpu_ns,
        name=name,
        arguments=arguments,
        result=result,
        written=written,
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(calls(), max_size=40), st.sampled_from([None, "lzo", "zlib", "zstd"]))
def test_every_translation_is_a_valid_closed_file(drawn: list[Call], compressor: object) -> None:
    kept = []
    for call in sorted(drawn, key=lambda call: call.start_ns):
        try:
            check(call)
        except ValueError:
            continue
        kept.append(call)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.rec"
        with RecordingWriter(path, About(source="test", think="cpu", step_ps=900)) as writer:
            for call in kept:
                writer.add(call)
        try:
            recording = open_recording(path)
            prepare, body, _ = translate(recording, compressor, 5)  # type: ignore[arg-type]
        except RecordingError:
            return
    parse(prepare)
    parse(body)
