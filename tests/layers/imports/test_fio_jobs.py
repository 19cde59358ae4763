"""fio's job files in the shapes that people have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flashbed.program.imports.fio_iolog import import_fio_iolog
from flashbed.program.imports.fio_job import import_fio_job
from flashbed.program.imports.lines import ImportedError
from flashbed.program.recording.file import Recording, open_recording
from flashbed.program.recording.translate import translate

CORPUS = Path(__file__).parents[2] / "corpus" / "imports"


def _job(name: str, folder: Path, size: int | None = None) -> Recording:
    import_fio_job(CORPUS / name, folder / "x.rec", size)
    return open_recording(folder / "x.rec")


def _body(recording: Recording) -> list[str]:
    return translate(recording, None, 0)[1].splitlines()[1:]


def _places(recording: Recording, task: int, name: str) -> list[tuple[int, int]]:
    return [(call.number("offset"), call.number("length")) for call in recording.calls()
            if call.task == task and call.name == name]  # fmt: skip


def _there(recording: Recording) -> dict[bytes | None, int]:
    return {call.path(): call.number("length") for call in recording.existed()}


def test_a_job_that_measures_a_disk_needs_a_size_and_says_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    with pytest.raises(ImportedError, match=r"disk\.fio:6: fill: a device, whose size is not in"):
        _job("disk.fio", tmp_path)
    recording = _job("disk.fio", tmp_path, 128 << 10)
    assert _there(recording) == {b"sdx": 128 << 10}
    assert _places(recording, 0, "pwrite64") == [(0, 65_536), (65_536, 65_536)]
    blocks = [(at, 4096) for at in range(0, 128 << 10, 4096)]
    assert sorted(_places(recording, 1, "pread64")) == blocks
    mixed = Counter(call.name for call in recording.calls() if call.task in (2, 3))
    assert mixed["pread64"] + mixed["pwrite64"] == 64
    assert 38 < mixed["pread64"] < 58
    flags = {call.number("flags") & 0o40000 for call in recording.calls() if call.name == "openat"}
    assert flags == {0o40000}
    lacks = recording.about.lacks
    for beginning in (
        "several requests in flight",
        "how often a job that ends by time goes round",
        "the device: it is a file",
        "the sizes of the job file: a file has 131,072",
    ):
        assert any(text.startswith(beginning) for text in lacks), beginning


def test_blocks_of_several_sizes_distributions_holes_and_backwards(tmp_path: Path) -> None:
    recording = _job("blocks.fio", tmp_path)
    split = _places(recording, 0, "pwrite64")
    assert {length for _, length in split} == {512, 1024, 4096}
    assert sum(length for _, length in split) >= 65_536
    ranged = _places(recording, 1, "pread64")
    assert {length % 1024 for _, length in ranged} == {0}
    assert len({length for _, length in ranged}) > 3
    zoned = _places(recording, 2, "pread64")
    assert len(zoned) == 200
    assert sum(at < 6_600 for at, _ in zoned) > 140
    hot = Counter(at for at, _ in _places(recording, 3, "pwrite64"))
    assert hot.most_common(1)[0][1] > 8
    backwards = [at for at, _ in _places(recording, 4, "pread64")]
    assert backwards == sorted(backwards, reverse=True)
    assert backwards[0] == 57_344
    assert _places(recording, 5, "pwrite64") == [(at, 4096) for at in range(0, 65_536, 16_384)]


def test_rates_and_thinking_are_times_and_end_a_job_by_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImportedError, match=r"paced\.fio:2: directory: \$\{FB_DATA\} is not set"):
        _job("paced.fio", tmp_path)
    monkeypatch.setenv("FB_DATA", "/data")
    recording = _job("paced.fio", tmp_path)
    log = [call.start_ns for call in recording.calls() if call.name == "pwrite64" and not call.task]
    assert log == [number * 250_000_000 for number in range(16)]
    state = [call for call in recording.calls() if call.task == 1 and call.name == "pwrite64"]
    assert state[0].start_ns == 1_000_000_000
    assert len(state) == 20
    assert state[-1].start_ns == 5_500_000_000
    assert not any("goes round" in text for text in recording.about.lacks)


def test_what_is_verified_is_read_again(tmp_path: Path) -> None:
    recording = _job("verify.fio", tmp_path)
    assert _places(recording, 0, "pread64") == _places(recording, 0, "pwrite64")
    names = [call.name for call in recording.calls() if call.task == 1]
    assert names[1:-1] == ["pwrite64", "pwrite64", "pread64", "pread64"] * 2
    assert [call.name for call in recording.calls() if call.task == 2][1:-1] == ["pread64"] * 2
    assert b"only.0.0" in _there(recording)


def test_engines_of_names_make_look_at_and_remove_files(tmp_path: Path) -> None:
    recording = _job("names.fio", tmp_path)
    assert _body(recording) == [
        "open 0 create.0.0 rw,create", "close 0", "open 0 create.0.1 rw,create", "close 0",
        "spawn 1", "task 1", "stat stat.0.0", "stat stat.0.1", "task 0", "spawn 2", "task 2",
        "unlink delete.0.0", "unlink delete.0.1", "task 0", "spawn 3", "task 3", "mkdir mkdir.0.0",
        "mkdir mkdir.0.1",
    ]  # fmt: skip
    there = [b"stat.0.0", b"stat.0.1", b"delete.0.0", b"delete.0.1"]
    assert _there(recording) == dict.fromkeys(there, 4096)


def test_parts_of_files_percentages_and_includes(tmp_path: Path) -> None:
    recording = _job("parts.fio", tmp_path, 65_536)
    assert _places(recording, 0, "pread64") == [(at, 4096) for at in range(32_768, 49_152, 4096)]
    assert _places(recording, 1, "pwrite64") == [(0, 4096), (0, 4096)]
    assert _places(recording, 2, "pwrite64") == [(8192, 4096), (8192, 4096)]
    opened = [call.path() for call in recording.calls() if call.name == "openat"]
    assert opened[-4:] == [b"d1/several-0-0", b"d2/several-1-0", b"d1/several-0-1",
                           b"d2/several-1-1"]  # fmt: skip
    assert {b"d1", b"d2"} <= set(_there(recording))


def test_weights_are_requests_a_turn(tmp_path: Path) -> None:
    tasks = [call.task for call in _job("weights.fio", tmp_path).calls() if call.name == "pwrite64"]
    assert tasks.index(0) < 4
    assert tasks[:20].count(1) == 16
    assert tasks.count(0) == tasks.count(1) == 16


def test_a_job_replays_the_log_that_it_names(tmp_path: Path) -> None:
    recording = _job("replayed.fio", tmp_path)
    import_fio_iolog(CORPUS / "write.iolog", tmp_path / "log.rec")
    assert _body(recording)[1:10] == _body(open_recording(tmp_path / "log.rec"))[1:10]


def test_trims_are_holes_and_mapped_files_are_stored_into(tmp_path: Path) -> None:
    recording = _job("discards.fio", tmp_path)
    assert _places(recording, 0, "fallocate") == [(0, 8192), (8192, 8192)]
    assert _places(recording, 1, "fallocate") == _places(recording, 1, "pwrite64")
    mapped = [line.split()[0] for line in _body(recording)][-10:]
    assert mapped == ["open", "mmap", "store", "store", "fsync", "store", "store", "fsync",
                      "close", "munmap"]  # fmt: skip
    assert any(text.startswith("trims of a device") for text in recording.about.lacks)


def test_a_log_may_trim_more_than_a_request_can_move(tmp_path: Path) -> None:
    import_fio_iolog(CORPUS / "discards.iolog", tmp_path / "x.rec")
    assert _body(open_recording(tmp_path / "x.rec")) == [
        "open 0 sdx rw,create", "fallocate 0 0 4294967296 punch", "write 0 1048576 4096 1 0",
        "fdatasync 0", "fallocate 0 1048576 4096 punch", "close 0",
    ]  # fmt: skip


def test_global_sections_add_up(tmp_path: Path) -> None:
    """The second one replaced the first: its jobs had no size."""
    job = tmp_path / "x.fio"
    job.write_text("[global]\nsize=8k\n[a]\nrw=write\n[global]\nbs=2k\n[b]\nrw=write\n")
    import_fio_job(job, tmp_path / "x.rec")
    recording = open_recording(tmp_path / "x.rec")
    assert len(_places(recording, 0, "pwrite64")) == 2
    assert len(_places(recording, 1, "pwrite64")) == 4


def test_options_that_add_or_move_calls_are_named_as_missing(tmp_path: Path) -> None:
    """They were ignored without a word."""
    job = tmp_path / "x.fio"
    job.write_text(
        "[global]\nsync_file_range=write:8\nwrite_barrier=4\nunlink_each_loop\nfallocate=none\n"
        "[a]\nrw=randwrite\nsize=64k\nba=8k\noffset_align=4k\nwrite_barrier=0\npre_read=0\n"
    )
    lacks = import_fio_job(job, tmp_path / "x.rec").lacks
    said = [text.removeprefix("what an option of the job does: ") for text in lacks]
    assert [text for text in said if " " not in text] == [
        "blockalign", "offset_align", "sync_file_range", "unlink_each_loop",
    ]  # fmt: skip
