"""A recording is a workload: in an experiment's file, and as the file that a command is given."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flashbed._sim import compressed_size
from flashbed.base.errors import InputError
from flashbed.cli import app
from flashbed.plan.case import Case
from flashbed.plan.experiment import ExperimentError, load_experiment, read_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.workloads.recorded_program import compressor_of
from flashbed.program.content import generated_pieces
from flashbed.program.operations import parse
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import Call, Piece
from flashbed.program.recording.file import RecordingWriter
from flashbed.running.programs import programs_of

EXPERIMENT = """[experiment]
id = "t/x"
title = "t"
question = "q"
source = "s"

[workload]
kind = "program"
recording = "my.rec"

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["jffs2", "ubifs", "yaffs2"]
read_ahead_kib = ["default"]
pattern = ["recorded", "flat-out"]
requests = [1]
seed = [1]
"""
SIZES = Piece(
    lzo_alone=1000,
    lzo_context=1000,
    zlib_alone=2000,
    zlib_context=2000,
    zstd_alone=3000,
    zstd_context=3000,
)


def recorded(folder: Path) -> Path:
    """A recording of one write that lzo, zlib and zstd make differently small."""
    path = folder / "my.rec"
    with RecordingWriter(path, About(source="test", think="gaps")) as writer:
        opened: dict[str, int | bytes] = {"path": b"a", "flags": 0o102}
        writer.add(
            Call(
                task=0,
                start_ns=0,
                duration_ns=0,
                cpu_ns=None,
                name="openat",
                arguments=opened,
                result=3,
            )
        )
        moved: dict[str, int | bytes] = {"descriptor": 3, "length": 4096}
        writer.add(
            Call(
                task=0,
                start_ns=5_000_000,
                duration_ns=0,
                cpu_ns=None,
                name="write",
                arguments=moved,
                result=4096,
                written=(SIZES,),
            )
        )
        writer.add(
            Call(
                task=0,
                start_ns=5_000_000,
                duration_ns=0,
                cpu_ns=None,
                name="fsync",
                arguments={"descriptor": 3},
            )
        )
    return path


def read(folder: Path, change: tuple[str, str] = ("", "")) -> list[Case]:
    path = folder / "x.toml"
    path.write_text(EXPERIMENT.replace(*change) if change[0] else EXPERIMENT)
    return [item.case for item in read_experiment(path).planned]


def test_each_file_system_gets_the_sizes_of_its_compressor(tmp_path: Path) -> None:
    recorded(tmp_path)
    cases = read(tmp_path)
    experiment = read_experiment(tmp_path / "x.toml")
    fills, made = {}, {}
    for program in programs_of(experiment, [case for case in cases if case.pattern == "recorded"]):
        (write,) = [step for step in parse(program.body) if step.name == "write"]
        seed, fill = int(write.fields[3]), str(write.fields[4])
        fills[program.stack.fs] = fill
        if "+" in fill:
            made[program.stack.fs] = generated_pieces(0, 4096, seed, fill).tobytes()
    assert fills["yaffs2"] == "0"
    assert compressed_size("lzo", made["jffs2"]) in range(997, 1001)
    assert compressed_size("zstd", made["ubifs"]) in range(2993, 3001)


def test_the_compressor_is_the_kernels_or_the_cases(tmp_path: Path) -> None:
    jffs2, _, ubifs, _, yaffs2, _ = read(tmp_path)
    assert [compressor_of(case) for case in (jffs2, ubifs, yaffs2)] == ["lzo", "zstd", None]
    assert compressor_of(replace(ubifs, compressor="zlib")) == "zlib"
    assert compressor_of(replace(ubifs, compressor="none")) is None
    assert compressor_of(replace(jffs2, kernel="2.6.29")) == "zlib"


def test_flat_out_leaves_the_waiting_out(tmp_path: Path) -> None:
    recorded(tmp_path)
    read(tmp_path)
    bodies = {}
    experiment = read_experiment(tmp_path / "x.toml")
    for item, program in zip(
        experiment.planned, programs_of(experiment, [i.case for i in experiment.planned]),
        strict=True,
    ):  # fmt: skip
        bodies[item.case.fs, item.case.pattern] = program.body
    assert "pause 5000000" in bodies["ubifs", "recorded"]
    assert "pause" not in bodies["ubifs", "flat-out"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('recording = "my.rec"', ""), "recording: goes with the workload program"),
        (('kind = "program"', 'kind = "raw"\nrequest_bytes = 1\nfile_bytes = 1\nsettle_ns = 1'),
         "recording: goes with the workload program"),
        (("requests = [1]", "requests = [2]"), "program is run once: 1"),
        (('recording = "my.rec"', 'recording = "my.rec"\nfile_bytes = 5'), "file_bytes: goes with"),
        (('"flat-out"', '"random"'), "program has no pattern 'random'"),
    ],
)  # fmt: skip
def test_an_experiment_that_cannot_be_meant_is_refused(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    with pytest.raises(ExperimentError, match=why):
        read(tmp_path, change)


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    cases = read(tmp_path)
    with pytest.raises(InputError, match=r"my\.rec: no such file"):
        programs_of(read_experiment(tmp_path / "x.toml"), cases)


def test_a_recordings_file_stands_for_an_experiment_of_one_case(tmp_path: Path) -> None:
    path = recorded(tmp_path).rename(tmp_path / "my own program.rec")
    experiment = load_experiment(str(path))
    assert experiment.id == "program/my-own-program"
    (one,) = plan(experiment)
    assert (one.case.fs, one.case.pattern) == ("ubifs", "recorded")
    chosen = plan(experiment, parse_settings(["fs=jffs2,yaffs2", "pattern=flat-out"]))
    assert [(item.case.fs, item.case.pattern) for item in chosen] == [
        ("jffs2", "flat-out"), ("yaffs2", "flat-out"),
    ]  # fmt: skip
    assert len(programs_of(experiment, [item.case for item in chosen])) == 2


def test_what_a_killed_recorder_left_stands_for_an_experiment_too(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "my.rec", About(source="test"))
    writer.add(
        Call(task=0, start_ns=0, duration_ns=0, cpu_ns=None, name="mkdir", arguments={"path": b"d"})
    )
    writer.flush()
    (one,) = plan(load_experiment(str(tmp_path / "my.rec")))
    (program,) = programs_of(load_experiment(str(tmp_path / "my.rec")), [one.case])
    assert "mkdir d" in program.body


def test_an_axis_that_is_usual_has_to_have_the_value(tmp_path: Path) -> None:
    more = '[usual]\nfs = "mtd"\n'
    with pytest.raises(ExperimentError, match=r"usual\.fs: no grid has mtd"):
        read(tmp_path, ("seed = [1]\n", f"seed = [1]\n\n{more}"))


def test_several_recordings_are_for_lifetime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run a.rec b.rec` was told to be run by `exec`, as if they were a command."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(recorded(tmp_path), "b.rec")
    done = CliRunner().invoke(app, ["run", "my.rec", "b.rec"])
    assert "`flashbed lifetime my.rec b.rec` asks for all of them on one flash" in str(
        done.exception
    )
