"""What a file may claim is bounded, and nothing is left of an import that ends early."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from flashbed.program.imports.blktrace import import_blktrace
from flashbed.program.imports.fio_iolog import import_fio_iolog
from flashbed.program.imports.fio_job import import_fio_job
from flashbed.program.imports.lines import ImportedError
from flashbed.program.imports.strace_trace import import_strace
from flashbed.program.recording.about import About
from flashbed.program.recording.file import RecordingWriter, open_recording
from flashbed.program.recording.translate import translate

CORPUS = Path(__file__).parents[2] / "corpus" / "imports"
Import = Callable[[Path, Path], About]


def test_a_log_that_names_a_file_thousands_of_folders_deep_is_refused(tmp_path: Path) -> None:
    """Each of 30,000 folders was looked up from the first: the import did not end."""
    log = tmp_path / "x.log"
    log.write_text(f"fio version 2 iolog\n/{'a/' * 30_000}b write 0 4096\n")
    with pytest.raises(ImportedError, match=r"x\.log:2: a name of 60,002 bytes, 30,000 folders"):
        import_fio_iolog(log, tmp_path / "x.rec", "/")
    log.write_text("fio version 2 iolog\na\0b write 0 4096\n")
    with pytest.raises(ImportedError, match=r"x\.log:2: a name with a NUL byte"):
        import_fio_iolog(log, tmp_path / "x.rec", "/")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.log"]


def test_a_trace_that_names_a_folder_thousands_of_folders_deep_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "x.strace"
    trace.write_text(f'1 1.000000 mkdir("{"a/" * 30_000}b", 0755) = 0 <0.000001>\n')
    with pytest.raises(ImportedError, match=r"x\.strace:1: a name of .* 256 folders at most"):
        import_strace(trace, tmp_path / "x.rec", "/w")


@pytest.mark.parametrize("text", ["<" * 200_000, "(" * 200_000, '"' * 200_001, "\\" * 200_000,
                                  "a, " * 100_000, ") = " * 50_000, "/*" * 100_000])  # fmt: skip
def test_a_long_line_of_brackets_is_read_once(tmp_path: Path, text: str) -> None:
    trace = tmp_path / "x.strace"
    good = '1 mkdir("a", 0755) = 0\n'
    trace.write_text(f"{good}1 openat(1{text}) = 3\n1 write(3, {text}\n{good}")
    import_strace(trace, tmp_path / "x.rec")
    made = [call for call in open_recording(tmp_path / "x.rec").calls() if call.name == "mkdir"]
    assert len(made) == 2


def test_an_offset_near_the_largest_is_no_recording_that_no_target_runs(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(f"fio version 2 iolog\na write {2**62 - 4096} 4096\n")
    import_fio_iolog(log, tmp_path / "x.rec")
    translate(open_recording(tmp_path / "x.rec"), None, 0)
    log.write_text(f"fio version 2 iolog\na write {2**62} 4096\n")
    with pytest.raises(ImportedError, match=r"x\.log:2: a request behind the largest offset"):
        import_fio_iolog(log, tmp_path / "x.rec")


def test_requests_that_touch_more_than_a_replay_can_prepare_are_refused(tmp_path: Path) -> None:
    lines = [f"8,0 0 1 0.{number:09} 1 Q R {number * 4096} + 8 [a]\n" for number in range(9000)]
    (tmp_path / "x").write_text("".join(lines))
    with pytest.raises(ImportedError, match="requests touch 8 GiB of the device; 8 GiB at most"):
        import_blktrace(tmp_path / "x", tmp_path / "x.rec")
    far = "8,0 0 1 0.1 1 Q R 1 + 8 [a]\n8,0 0 1 0.2 1 Q W 36028797018963960 + 8 [a]\n"
    (tmp_path / "x").write_text(far)
    import_blktrace(tmp_path / "x", tmp_path / "x.rec")
    (there,) = open_recording(tmp_path / "x.rec").existed()
    assert there.number("length") <= 2 << 20


@pytest.mark.parametrize(
    ("importer", "name"),
    [
        (import_strace, "clock.strace"), (import_fio_job, "blocks.fio"),
        (import_fio_iolog, "write.iolog"), (import_blktrace, "queue.blkparse"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError, MemoryError])
@pytest.mark.parametrize("where", ["add", "close"])
def test_nothing_is_left_of_an_import_that_ends_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, importer: Import, name: str,
    error: type[BaseException], where: str,
) -> None:  # fmt: skip
    """An error while the parts were joined left FILE.rec.parts, and the next import refused it."""

    def fails(*_: object, **__: object) -> None:
        raise error("a test")

    monkeypatch.setattr(RecordingWriter, where, fails)
    with pytest.raises((error, ImportedError)):
        importer(CORPUS / name, tmp_path / "x.rec")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("importer", "name"),
    [
        (import_strace, "clock.strace"), (import_strace, "between-output.strace"),
        (import_strace, "attached.strace"), (import_fio_job, "blocks.fio"),
        (import_fio_job, "verify.fio"), (import_fio_iolog, "write.iolog"),
        (import_blktrace, "queue.blkparse"), (import_blktrace, "all-processors.blktrace"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_taken_or_refused_in_one_line(
    tmp_path: Path, importer: Import, name: str, seed: int
) -> None:
    draw = random.Random(f"{name} {seed}")
    data = bytearray((CORPUS / name).read_bytes())
    odd = [b"9" * 30, b"-1", b"18446744073709551615", b"\0", b"/" * 5000, b'"', b"<", b")", b" = ",
           b"\xff\xfe", b",", b"\n", b"[", b"0x" + b"f" * 20, b"%", b"1000000000"]  # fmt: skip
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(data))
        length = draw.choice([0, 1, 3, 12])
        data[at : at + length] = draw.choice(odd)
    (tmp_path / "x").write_bytes(data)
    refused = ""
    try:
        importer(tmp_path / "x", tmp_path / "x.rec")
    except ImportedError as why:
        refused = str(why)
    assert "\n" not in refused
    if refused:
        assert [entry.name for entry in tmp_path.iterdir()] == ["x"]
    else:
        assert sum(1 for _ in open_recording(tmp_path / "x.rec").calls()) > 0
