"""Job files and logs of fio, requests of block devices, and what is refused of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flashbed.program.imports.blktrace import import_blktrace
from flashbed.program.imports.fio_iolog import import_fio_iolog
from flashbed.program.imports.fio_job import import_fio_job
from flashbed.program.imports.lines import ImportedError
from flashbed.program.imports.perfetto_trace import import_perfetto
from flashbed.program.recording.file import Recording, open_recording
from flashbed.program.recording.translate import translate

CORPUS = Path(__file__).parents[2] / "corpus" / "imports"


def _body(recording: Recording, think: bool = True) -> list[str]:
    return translate(recording, None, 0, think=think)[1].splitlines()[1:]


def _log(folder: Path, text: str, **more: str) -> Recording:
    (folder / "x.log").write_text(text)
    import_fio_iolog(folder / "x.log", folder / "x.rec", **more)
    return open_recording(folder / "x.rec")


def _job(folder: Path, text: str) -> Recording:
    (folder / "x.fio").write_text(text)
    import_fio_job(folder / "x.fio", folder / "x.rec")
    return open_recording(folder / "x.rec")


def test_a_log_of_fio_3_has_its_requests_at_their_microseconds(tmp_path: Path) -> None:
    import_fio_iolog(CORPUS / "write.iolog", tmp_path / "x.rec")
    body = _body(open_recording(tmp_path / "x.rec"))
    assert body[:6] == [
        "open 0 w.0.0 rw,create", "write 0 0 4096 1 0", "pause 3305000", "write 0 45056 4096 2 0",
        "pause 2028000", "write 0 53248 4096 3 0",
    ]  # fmt: skip
    assert len([line for line in body if line.startswith("write")]) == 16
    assert "fsync 0" in body


def test_a_log_of_version_2_waits_where_it_says(tmp_path: Path) -> None:
    import_fio_iolog(CORPUS / "version-2.iolog", tmp_path / "x.rec")
    recording = open_recording(tmp_path / "x.rec")
    assert _body(recording) == [
        "open 0 a rw,create", "write 0 0 4096 1 0", "pause 2500000", "fsync 0",
        "open 1 b rw,create", "read 1 8192 4096", "fallocate 0 0 4096 punch", "close 0",
    ]  # fmt: skip
    assert {call.path(): call.number("length") for call in recording.existed()} == {b"b": 12_288}


def test_the_traps_of_logs_are_met(tmp_path: Path) -> None:
    """No add and no open; times that go back; a log in nanoseconds."""
    text = "fio version 3 iolog\n5000 /f/a write 0 512\n1000 /f/a write 512 512\n"
    recording = _log(tmp_path, text)
    assert _body(recording) == [
        "pause 5000000", "open 0 a rw,create", "write 0 0 512 1 0", "write 0 512 512 2 0",
    ]  # fmt: skip
    assert any("1 lines, which go back" in text for text in recording.about.lacks)
    assert [call.start_ns for call in recording.calls()] == [5_000_000] * 3
    twice = _log(tmp_path, text + "fio version 3 iolog\n1 /f/a sync 0 0\n")
    assert [call.start_ns for call in twice.calls()][-1] == 5_001_000
    assert [call.start_ns for call in _log(tmp_path, text, unit="ns").calls()] == [5000] * 3


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("fio version 1 iolog\n", ":1: not a log of fio"),
        ("fio version 3 iolog\n1 a write 0\n", ":2: neither FILE ACTION nor"),
        ("fio version 3 iolog\nx a open\n", ":2: 'x' is not a number"),
        ("fio version 3 iolog\n1 a wait 5 0\n", ":2: wait is an action of version 2"),
        ("fio version 2 iolog\na jump 0 1\n", ":2: action 'jump' is not one of fio's"),
        ("fio version 2 iolog\na read 0 0\n", ":2: a length that no request has"),
        ("fio version 2 iolog\na read 0 99999999999999999999\n", ":2: '99999999999999999999'"),
    ],
)
def test_a_line_of_a_log_that_cannot_be_is_named(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(ImportedError, match=rf"x\.log{where}"):
        _log(tmp_path, text)


def test_jobs_of_a_file_are_its_requests(tmp_path: Path) -> None:
    import_fio_job(CORPUS / "two-jobs.fio", tmp_path / "x.rec")
    recording = open_recording(tmp_path / "x.rec")
    body = _body(recording, think=False)
    writes = [line.split() for line in body if line.startswith("write")]
    assert sorted(int(write[2]) for write in writes) == list(range(0, 65_536, 4096))
    assert body.count("fsync 0") == 4
    assert body[-10:] == [
        "open 0 w.0.0 ro", *[f"read 0 {at} 8192" for at in range(0, 65_536, 8192)], "close 0",
    ]  # fmt: skip


def test_jobs_without_stonewall_run_request_by_request(tmp_path: Path) -> None:
    text = "[global]\nsize=8k\n[a]\nrw=write\n[b]\nrw=read\nbs=8k\nnumjobs=2\n"
    recording = _job(tmp_path, text)
    assert [(call.task, call.name) for call in recording.calls()] == [
        (0, "fork"), (0, "fork"), (0, "openat"), (1, "openat"), (2, "openat"), (0, "pwrite64"),
        (1, "pread64"), (2, "pread64"), (0, "pwrite64"), (1, "close"), (2, "close"), (0, "close"),
    ]  # fmt: skip
    assert {call.path() for call in recording.existed()} == {b"b.0.0", b"b.1.0"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("size=4k\n", ":1: size: before the first"),
        ("[a]\nsize=4k\nnever=1\n", ":3: never: not an option of fio"),
        ("[a]\nioengine=net\n", ":2: ioengine: 'net' asks another machine"),
        ("[a]\nioengine=mtd\n", ":2: ioengine: 'mtd' writes the partition itself"),
        ("[a]\nioengine=mine\n", ":2: ioengine: 'mine' is not an engine"),
        ("[a]\nzonemode=zbd\n", ":2: zonemode: 'zbd': zones of a device"),
        ("[a]\nopendir=/x\n", ":2: opendir: the files of that folder"),
        ("[a]\nsize=9999p\n", ":2: size: '9999p': a file has"),
        ("[a]\nsize=18446744073709551615\n", ":2: size: '18446744073709551615' is no size"),
        ("[a]\nsize=99999999999999999\n", ":2: a: 24,414,062,500,000 requests; 1,000,000"),
        ("[a]\nrw=read\n", ":1: a: no size; --size SIZE"),
        ("[a]\nfilename=/dev/sda\n", ":2: a: a device, whose size is not in the file; --size"),
        ("[a]\nsize=1m\nfilename=a\0b\n", ":3: filename: a name that has a NUL"),
        ("[a]\nsize=9g\nbs=1g\nrw=read\n", ":2: a: more than 8 GiB of files"),
        ("[a]\nsize=8g\nbs=4g\n", ":3: a: a request of more than 1 GiB"),
        ("[a]\nsize=1m\nbs=0\nnumjobs=1000000\n", ":4: a: 1,000,000 jobs; 1,024 at most"),
        ("[a]\nsize=1m\nnrfiles=1000000000\n", ":3: a: 1,000,000,000 files; 100,000 at most"),
        ("[a]\nsize=100\nloops=1000000000\n", ":2: a: 1,000,000,000 requests"),
        ("[a]\nsize=8g\nbs=1\n", ":2: a: 8,589,934,592 requests; 1,000,000 at most. --size"),
        ("[a]\nsize=1m\nrate_iops=1000000\ntime_based\nruntime=1d\n", ":2: a: 86,400,000,000"),
        ("[a]\nsize=1m\nbssplit=4k/60:8k/60\n", ":3: bssplit: '4k/60:8k/60': more than 100%"),
        ("[a]\nsize=${FB_NOT_SET}\n", ":2: size: ${FB_NOT_SET} is not set"),
        ("[a]\ninclude other.fio\n", ":2: include other.fio: no such file"),
        ("include x.fio\n", ":1: include x.fio: files that include one another"),
        ("[a]\nread_iolog=none.log\n", ":2: a: read_iolog: none.log: no such file"),
        ("# nothing\n", ": "),
    ],
)  # fmt: skip
def test_what_a_job_file_claims_and_cannot_have_is_named(
    tmp_path: Path, text: str, where: str
) -> None:
    """Among them: requests, loops, jobs and files without end, which took hours and gigabytes."""
    with pytest.raises(ImportedError, match=rf"x\.fio{re.escape(where)}"):
        _job(tmp_path, text)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.fio"]


def test_requests_of_a_device_are_those_of_one_file(tmp_path: Path) -> None:
    about = import_blktrace(CORPUS / "queue.blkparse", tmp_path / "x.rec")
    recording = open_recording(tmp_path / "x.rec")
    assert _body(recording, think=False) == [
        "open 0 device rw", "write 0 0 4096 1 0", "read 0 1048576 8192", "fdatasync 0",
        "write 0 4096 4096 2 0", "fdatasync 0", "fdatasync 0", "fallocate 0 0 4096 punch",
    ]  # fmt: skip
    assert [call.number("length") for call in recording.existed()] == [1_048_576 + 8192]
    assert "files and their names" in about.lacks[0]


def test_what_is_no_line_of_blkparse_is_counted(tmp_path: Path) -> None:
    trace = tmp_path / "x.txt"
    one = "8,0 0 1 0.000000001 1 Q R 1 + 2 [a]\n"
    trace.write_text(one + "hello\n" + one + one.replace("8,0", "8,1"))
    lacks = import_blktrace(trace, tmp_path / "x.rec").lacks
    assert "lines that are no request of blkparse: 1" in lacks
    assert "requests of other devices than 8,0: 8,1 (1)" in lacks


@pytest.mark.parametrize(
    ("sectors", "why"),
    [
        ("1 + 9999999", "no request"), ("99999999999999999999 + 8", "no request"),
        ("999999999999999999 + 8", "no request"),
    ],
)  # fmt: skip
def test_a_request_that_no_device_has_is_left_out(tmp_path: Path, sectors: str, why: str) -> None:
    trace = tmp_path / "x.txt"
    trace.write_text(f"8,0 0 1 0.000000001 1 Q R {sectors} [a]\n")
    with pytest.raises(ImportedError, match=why):
        import_blktrace(trace, tmp_path / "x.rec")


def test_a_trace_of_perfetto_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\n\x05abc")
    with pytest.raises(ImportedError, match="does not name the files that calls open"):
        import_perfetto(tmp_path / "t", tmp_path / "x.rec")
