"""No file and no option ends in a traceback, a panic, a hang or a killed process (issue 21).

FLASHBED_FUZZ_EXAMPLES is how many calls each test draws; without it the same few are drawn each
time.
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.calls import Call, Worker
from tests.hostile.conftest import Kept
from tests.hostile.drawn import bent_lines, bent_toml, damaged, texts
from tests.hostile.good import (
    COUNTERS,
    EXPERIMENT,
    FLASHMON,
    LEVEL,
    METADATA,
    OPERATION_WORDS,
    OPERATIONS,
    POSTMARK,
    RECORDING,
    SCRIPT,
    SCRIPT_WORDS,
    SQL,
    STREAM,
    check,
    few,
    lines_of,
    session,
    toml_of,
)  # fmt: skip
from tests.hostile.known import KNOWN
from tests.support import PROJECT as ROOT

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

pytestmark = pytest.mark.timeout(100_000)

OPTIONS: dict[str, tuple[str, ...]] = {
    "run": ("--on", "--set", "--out", "--case", "--trace", "--erase"),
    "trace": ("--on", "--set", "--case", "--export", "--seconds", "--points",
              "--buffer-kib", "--read", "--func", "--erase"),
    "powercut": ("--on", "--step", "--samples", "--set", "--case", "--seed", "--chip", "--format"),
    "lifetime": ("--rate", "--endurance", "--board", "--age", "--before", "--case", "--set",
                 "--on", "--format"),
    "compare": ("--set", "--on", "--by", "--rate", "--endurance", "--against", "--format"),
    "space": ("--set", "--fs", "--board", "--partition", "--volume", "--compressible", "--files",
              "--fastmap", "-c", "-j", "--format"),
    "predict": ("--pattern", "--requests", "--request-bytes", "--fs", "--page-bytes", "--database",
                "--set", "--rate", "--endurance", "--format"),
    "report": ("--out",),
    "table": ("--format",),
    "list": ("--format",),
    "model": ("--out",),
    "cost": ("--out", "--pattern", "--requests", "--request-bytes", "--fs", "--format"),
    "doctor": ("--format", "--on"),
    "prepare": ("--on",),
    "fuzz": ("--class", "--set", "--cases", "--seed", "--on", "--minutes",
             "--without", "--batch", "--format"),
    "reproduce": ("--on", "--set", "--format", "--erase"),
    "validate": ("--suite", "--on", "--kernel", "--set", "--format", "--erase"),
    "calibrate": ("--on", "--kernel", "--erase"),
    "verdicts": ("--format", "--results", "--on", "--sentences", "--check"),
    "power": ("--rail", "--unit", "--rate", "--marker", "--windows", "--offset", "--accuracy",
              "--board", "--activity", "--fs", "--pattern", "--read-ahead", "--format"),
}  # fmt: skip
GOOD_WORDS = (
    "sim", "sim,sim", "x.toml", "good", "fs=jffs2", "requests=8", "seed=1", "board=emulated",
    "kernel=6.1", "state=valid0.5", "faults=bad3", "database=wal", "read_ahead_kib=default",
    "pattern=random", "1/min", "3y", "flash", "flash,wear", "json", "csv", "text", "jffs2",
    "ubifs,bulk_read", "emulated", "6.1", "reads", "counters.txt", "recording.csv", "mtd0",
    "mtd0:x", "cpu=cpu*1V", "A0=mV", "10kHz", "edge", "random", "insert",
    "9MiB", "50",
)  # fmt: skip
BEGINS = {
    "power": ("fit",), "trace": ("--on", "sim"), "validate": ("--on", "sim"),
    "calibrate": ("emulated", "--on", "sim"), "model": ("sqlite",), "cost": ("fit",),
    "prepare": ("--on", "sim"),
    "fuzz": ("--on", "sim", "--cases", "1", "--minutes", "0.01", "--no-shrink"),
    "verdicts": ("small",),
}  # fmt: skip
"""What stands before what is drawn, so that no kernel is booted."""
LINKS = ("/dev/zero", "/dev/null", "/dev/tty", "loop", "/etc/shadow", "/", "nothing")
BENT_AXES = (
    "requests", "seed", "pause_ns", "file_bytes", "request_bytes", "read_ahead_kib", "state",
    "faults", "database", "compressor", "mount", "chip", "chip.read_array_ns", "partition.blocks",
    "database.page_bytes", "state.valid", "fs.x", "chip.", "nothing",
)  # fmt: skip


GOOD = {
    "run": Call(("run", "x.toml", "--out", "o"), {"x.toml": toml_of(EXPERIMENT)}),
    "sql": Call(
        ("run", "x.toml", "--out", "o"), {"x.toml": toml_of(SQL), "my.sql": lines_of(SCRIPT)}
    ),
    "postmark": Call(("run", "x.toml", "--out", "o"), {"x.toml": toml_of(POSTMARK)}),
    "stream": Call(("trace", "--read", "s", "--out", "o"), {"s": lines_of(STREAM)}),
    "flashmon": Call(("trace", "--read", "s", "--out", "o"), {"s": lines_of(FLASHMON)}),
    "counters": Call(
        ("lifetime", "c", "--age", "3y", "--endurance", "9999"), {"c": lines_of(COUNTERS[:1])}
    ),
    "recording": Call(("power", "fit", "r"), {"r": lines_of(RECORDING)}),
    "session": Call(
        ("power", "fit", "r", "--unit", "A0=W", "--rail", "cpu=A0"),
        {"r": session(lines_of(METADATA), LEVEL)},
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_bent_is_good(worker: Worker, name: str) -> None:
    """Else what is drawn would only be refused for what is wrong with all of it."""
    assert worker.ends(GOOD[name])[0] == 0


@pytest.mark.parametrize("kind", KNOWN)
def test_what_once_ended_badly(worker: Worker, kind: str) -> None:
    found = [(call.arguments, worker.finding(call)) for call in KNOWN[kind]()]
    assert [one for one in found if one[1] is not None] == []


@few
@given(
    text=st.sampled_from((EXPERIMENT, EXPERIMENT, SQL, POSTMARK)).flatmap(bent_toml),
    script=bent_lines(SCRIPT, SCRIPT_WORDS),
)
def test_experiments(worker: Worker, text: bytes, script: bytes) -> None:
    files = {"x.toml": text, "my.sql": script}
    check(worker, Call(("run", "x.toml", "--out", "o"), files))


@few
@given(script=bent_lines(SCRIPT, SCRIPT_WORDS))
def test_sql_scripts(worker: Worker, script: bytes) -> None:
    files = {"x.toml": toml_of(SQL), "my.sql": script}
    check(worker, Call(("run", "x.toml", "--out", "o"), files))


def profile(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "boards" / path).read_text())


@few
@given(st.data())
def test_boards_and_kernels(worker: Worker, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(("emulated-small.toml", "omap3evm.toml", "kernels/6.1.toml")))
    good = {**profile(path)}
    table = "kernel" if "kernels/" in path else "board"
    good[table] = {**good[table], "name": "bent"}
    bent = data.draw(bent_toml(good))
    where = "kernels/bent.toml" if table == "kernel" else "bent.toml"
    grid = {**EXPERIMENT["grid"][0], table: ["bent"], "fs": ["jffs2", "ubifs", "yaffs2"]}
    files = {f"../root/boards/{where}": bent, "x.toml": toml_of({**EXPERIMENT, "grid": [grid]})}
    try:
        check(worker, Call(("run", "x.toml", "--out", "o"), files))
    finally:
        (worker.folder / "root" / "boards" / where).unlink()


@few
@given(
    text=bent_lines(OPERATIONS, OPERATION_WORDS),
    fs=st.sampled_from(("jffs2", "ubifs", "yaffs2", "mtd", "ubifs,bulk_read")),
)
def test_operations(worker: Worker, text: bytes, fs: str) -> None:
    arguments = ("trace", "--on", "sim", "--flash", "--set", f"fs={fs}", "x.ops", "--out", "o")
    check(worker, Call((*arguments, "--set", "board=emulated-small"), {"x.ops": text}))


OF_RESULTS: tuple[tuple[str, ...], ...] = (
    ("report", "good"), ("table", "good", "cases"), ("table", "good", "flash"),
    ("run", "x.toml", "--out", "good"), ("lifetime", "good", "--rate", "1/min"),
    ("power", "draw", "good"), ("model", "sqlite", "good"), ("report", "traced"),
    ("table", "traced", "flash"), ("powercut", "x.toml", "--on", "sim", "--out", "good"),
)  # fmt: skip
WAYS = ("cut", "flipped", "flipped", "flipped", "other", "folder", "gone", "link")


@few
@given(
    arguments=st.sampled_from(OF_RESULTS),
    place=st.integers(0, 1000),
    way=st.sampled_from(WAYS),
    flips=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=12),
    link=st.sampled_from(LINKS),
)
def test_results(
    worker: Worker,
    result: Kept,
    arguments: tuple[str, ...],
    place: int,
    way: str,
    flips: list[tuple[int, int]],
    link: str,
) -> None:
    """A file of a result is damaged, another's, a folder, a link to something else, or gone."""
    folder = "traced" if "traced" in arguments else "good"
    names = sorted(name for name in result if name.startswith(f"{folder}/"))
    name = names[place % len(names)]
    there = bytearray(result[name])
    for at, byte in flips:
        there[at % len(there)] = byte
    bent: dict[str, bytes | str | None] = {
        "cut": result[name][: flips[0][0] % len(there)],
        "flipped": bytes(there),
        "other": result[names[flips[0][0] % len(names)]],
        "folder": None,
        "link": link,
    }
    files: dict[str, bytes | str | None] = dict(result)
    del files[name]
    if way in bent:
        files[name] = bent[way]
    check(worker, Call(arguments, files))


@few
@given(text=bent_lines(COUNTERS, ("good", "worn", "ubi1", "erase_count", "max_ec:")))
def test_counters(worker: Worker, text: bytes) -> None:
    arguments = ("lifetime", "counters.txt", "--age", "3y", "--endurance", "100000")
    check(worker, Call(arguments, {"counters.txt": text}))


@few
@given(
    text=st.sampled_from((STREAM, FLASHMON)).flatmap(
        lambda lines: bent_lines(
            lines, ("read", "erase", "vfs", "flash", "R;1;a", ";", "0.1;R;1;x")
        )
    )
)
def test_streams(worker: Worker, text: bytes) -> None:
    check(worker, Call(("trace", "--read", "stream.txt", "--out", "o"), {"stream.txt": text}))


@few
@given(st.data())
def test_recordings(worker: Worker, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        words = ("0.5,nan,1", "inf,1,0", "1e308,1e308,1", "-1,-1,-1", "a,b,c", "time_s,cpu_W,cpu_W")
        files = {"trace": data.draw(bent_lines(RECORDING, words))}
    else:
        metadata = data.draw(bent_lines(METADATA, ("unitsize=0", "samplerate=0", "probe0=x")))
        samples = data.draw(damaged(LEVEL))
        files = {"trace": data.draw(damaged(session(metadata, samples)))}
    arguments = ("power", "fit", "trace", "--unit", "A0=W", "--rail", "cpu=A0")
    check(worker, Call(data.draw(st.sampled_from((arguments, arguments[:3]))), files))


def _argument(text: str) -> str:
    """As the shell can pass it on."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


@few
@given(st.data())
def test_options(worker: Worker, result: Kept, data: st.DataObject) -> None:
    command = data.draw(st.sampled_from(sorted(OPTIONS)))
    word = st.one_of(
        st.sampled_from(GOOD_WORDS), st.sampled_from(GOOD_WORDS), texts,
        st.sampled_from(BENT_AXES).flatmap(lambda axis: texts.map(lambda text: f"{axis}={text}")),
        st.integers(-(2**70), 2**70).map(str),
    ).map(_argument)  # fmt: skip
    arguments = [data.draw(word) for _ in range(data.draw(st.integers(0, 2)))]
    for _ in range(data.draw(st.integers(0, 3))):
        arguments += [data.draw(st.sampled_from(OPTIONS[command])), data.draw(word)]
    arguments = [given for given in arguments if not _leaves(given)]
    begin = (command, *BEGINS.get(command, ()))
    files: dict[str, bytes | str | None] = {
        **result, "x.toml": toml_of(EXPERIMENT), "counters.txt": COUNTERS[0].encode(),
        "recording.csv": lines_of(RECORDING),
    }  # fmt: skip
    check(worker, Call((*begin, *arguments), files))


def _leaves(text: str) -> bool:
    """Whether it asks for another machine, a kernel, or standard input."""
    return text in ("-", "uml", "emulator") or text.startswith("ssh://")


@pytest.mark.parametrize(
    "target", ["/dev/zero", "/dev/null", "/dev/tty", "loop", "/etc/shadow", "/"]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "file.toml"), ("trace", "--on", "sim", "file.ops"), ("trace", "--read", "file"),
        ("lifetime", "file", "--age", "3y", "--endurance", "9"), ("power", "fit", "file"),
        ("lifetime", "file.parquet", "--rate", "1/h", "--endurance", "9"),
        ("predict", "file", "--pattern", "insert", "--requests", "1", "--request-bytes", "9"),
        ("power", "fit", "recording.csv", "--windows", "file"), ("report", "file"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_no_file(worker: Worker, arguments: tuple[str, ...], target: str) -> None:
    names = ("file", "file.toml", "file.ops", "file.parquet", "loop")
    files: dict[str, bytes | str | None] = dict.fromkeys(names, target)
    files["recording.csv"] = lines_of(RECORDING)
    check(worker, Call(arguments, files))
