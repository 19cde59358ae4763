"""Python, the simulator and the agent accept and refuse the same files, with line and code.

The corpus is in tests/corpus/operations: `valid/*.ops`, and `broken/*.ops` with the `LINE CODE`
each deserves in `*.expected`. Files that hypothesis makes up are tried as well.
"""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashbed.program.operation_fields import FIELDS as FIELDS_1
from flashbed.program.operation_fields import FIELDS_2
from flashbed.program.operations import (
    HEADER,
    HEADER_2,
    OperationError,
    canonical,
    header_of,
    parse,
)
from tests.support import PROJECT

CORPUS = PROJECT / "tests" / "corpus" / "operations"
AGENT = PROJECT / "build" / "agent" / "flashbed-agent-host"

Answer = str | tuple[int, str]
"""Canonical text, or line and code of the first error."""


def python_answer(data: bytes) -> Answer:
    try:
        return canonical(parse(data), header_of(data))
    except OperationError as error:
        return error.line, error.code


def simulator_answer(data: bytes) -> Answer:
    from flashbed._sim import FormatError, check_operations

    try:
        return check_operations(data.decode())
    except FormatError as error:
        return error.line, error.code


def agent_answer(data: bytes, folder: Path) -> Answer:
    file = folder / "checked.ops"
    file.write_bytes(data)
    done = subprocess.run([AGENT, "check", file], capture_output=True, check=False, timeout=20)
    if done.returncode == 0:
        return done.stdout.decode()
    report = done.stderr.decode(errors="replace").splitlines()[0].removeprefix(f"{file}:")
    line, code, _detail = report.split(":", 2)
    return int(line), code.strip()


def answers(data: bytes, folder: Path) -> dict[str, Answer]:
    given_answers: dict[str, Answer] = {"python": python_answer(data)}
    try:
        data.decode()
    except UnicodeDecodeError:
        pass  # the simulator takes text; Python has refused these bytes before it sees them
    else:
        given_answers["simulator"] = simulator_answer(data)
    given_answers["agent"] = agent_answer(data, folder)
    return given_answers


def corpus(kind: str) -> list[Path]:
    return sorted((CORPUS / kind).glob("*.ops"))


pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built: make build"),
]


@pytest.mark.parametrize("file", corpus("valid"), ids=lambda file: file.stem)
def test_all_three_accept_what_is_valid(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    expected = canonical(parse(data), header_of(data))
    assert answers(data, tmp_path) == dict.fromkeys(answers(data, tmp_path), expected)


@pytest.mark.parametrize("file", corpus("broken"), ids=lambda file: file.stem)
def test_all_three_refuse_what_is_broken(file: Path, tmp_path: Path) -> None:
    line, code = file.with_suffix(".expected").read_text().split()
    data = file.read_bytes()
    assert answers(data, tmp_path) == dict.fromkeys(answers(data, tmp_path), (int(line), code))


def test_the_corpus_is_there() -> None:
    assert corpus("valid")
    assert corpus("broken")


NUMBERS = st.sampled_from(
    ["0", "1", "7", "63", "64", "100", "101", "1023", "1024", "4096", "1073741824", "1073741825",
     "00", "-1", "", "9223372036854775807", "9223372036854775808", "18446744073709551616", "x",
     "1x", "+1", "0x1"]
)  # fmt: skip
PATHS = st.sampled_from(
    ["a", "a/b", "A.b_c-d", ".", "..", "a/..", "...", "/a", "a/", "a//b", "", "a b", "~", "a" * 255,
     "a" * 256, "/".join(["a" * 203] * 5), "/".join(["a" * 204] * 5), "%20", "%2F", "%61", "%C3%A4",
     "%c3", "%", "a%00", "SLOT:0", "SLOT:1", "SLOT:", "user.a", "user.", "user.%2F"]
)  # fmt: skip
FLAGS = st.lists(
    st.sampled_from(
        ["ro", "wo", "rw", "create", "excl", "trunc", "append", "sync", "dsync", "direct",
         "directory", "nofollow", "tmpfile", "write", "wait_before", "wait_after", "", "x"]
    ),
    max_size=4,
).map(",".join)  # fmt: skip
ADVICE = st.sampled_from(["normal", "random", "willneed", "dontneed", "noreuse", "never", ""])
HOW = st.sampled_from(["keep", "punch", "shared", "unlock", "rw", "ro", "private", "sync", "now"])
FILLS = st.one_of(
    st.sampled_from(["0", "100", "101", "data", "1+1x2", "0+4096x3", "Data", "+", ",", "1+1x"]),
    st.text(alphabet="01+x,", max_size=9),
)
BASE64 = st.one_of(
    st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()),
    st.text(alphabet="AQg=+/_", max_size=9),
)
FIELDS = st.one_of(NUMBERS, PATHS, FLAGS, ADVICE, HOW, FILLS, BASE64)
WORDS = st.sampled_from(
    ["mkdir", "open", "close", "read", "write", "fsync", "fdatasync", "truncate", "fadvise",
     "erase", "unlink", "rmdir", "rename", "sync", "drop_caches", "remount", "pause", "compute",
     "sql_open", "sql", "sql_close", "prepared", "mark", "Mark", "#", "", "seek", "task", "spawn",
     "wait", "stat", "readdir", "link", "symlink", "readlink", "chmod", "chown", "utimens",
     "setxattr", "getxattr", "listxattr", "removexattr", "fallocate", "copy", "send", "sync_range",
     "syncfs", "flock", "mmap", "touch", "store", "msync", "munmap", "data"]
)  # fmt: skip
SLOT = st.sampled_from(["0", "1"])
SMALL = st.sampled_from(["1", "512", "4096"])
USES = st.sampled_from(["fsync", "fdatasync,prepared", "fsync,", "prepared", "Fsync", ""])
STATEMENTS = st.one_of(
    st.sampled_from(["select 1", " x", "x ", ""]),
    st.text(alphabet="\\x|0aFg ", max_size=9),
)
LIKELY = st.one_of(
    st.tuples(st.just("open"), SLOT, PATHS, FLAGS),
    st.tuples(st.just("open"), SLOT, st.just("a"), st.just("rw,create")),
    st.tuples(st.just("close"), SLOT),
    st.tuples(st.sampled_from(["fsync", "fdatasync"]), SLOT),
    st.tuples(st.just("read"), SLOT, NUMBERS, NUMBERS),
    st.tuples(st.just("read"), SLOT, SMALL, SMALL),
    st.tuples(st.just("write"), SLOT, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    st.tuples(st.just("fadvise"), SLOT, NUMBERS, NUMBERS, ADVICE),
    st.tuples(st.just("erase"), SLOT, NUMBERS, NUMBERS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.sampled_from(["prepared", "mark", "sync", "drop_caches", "remount"])),
    st.tuples(st.just("sql_open"), PATHS, NUMBERS, USES, STATEMENTS),
    st.tuples(st.just("sql_open"), st.just("a"), st.just("1"), st.just("fsync"), STATEMENTS),
    st.tuples(st.sampled_from(["sql", "sql_close"]), PATHS, STATEMENTS),
    st.tuples(st.just("sql"), st.just("a"), STATEMENTS),
    st.tuples(st.just("sql_close"), st.just("a")),
)
NEW = st.one_of(
    st.tuples(st.just("write"), SLOT, SMALL, SMALL, st.just("0"), FILLS),
    st.tuples(st.just("data"), BASE64),
    st.tuples(st.just("data"), st.just("YQ==")),
    st.tuples(st.just("write"), SLOT, SMALL, st.just("1"), st.just("0"), st.just("data")),
    st.tuples(st.just("setxattr"), PATHS, st.just("user.a"), NUMBERS, st.just("0"), FILLS),
    st.tuples(st.sampled_from(["task", "spawn", "wait"]), SLOT),
    st.tuples(st.just("mmap"), SLOT, SLOT, st.just("4096"), SMALL, HOW),
    st.tuples(st.just("mmap"), SLOT, SLOT, NUMBERS, NUMBERS, st.just("rw")),
    st.tuples(st.just("touch"), SLOT, SMALL, SMALL),
    st.tuples(st.just("store"), SLOT, SMALL, NUMBERS, st.just("0"), FILLS),
    st.tuples(st.just("msync"), SLOT, SMALL, SMALL, HOW),
    st.tuples(st.just("munmap"), SLOT),
    st.tuples(st.sampled_from(["link", "symlink"]), PATHS, PATHS),
    st.tuples(st.sampled_from(["getxattr", "removexattr"]), PATHS, PATHS),
    st.tuples(st.sampled_from(["sync_range", "fallocate"]), SLOT, NUMBERS, NUMBERS, HOW | FLAGS),
    st.tuples(st.just("copy"), SLOT, NUMBERS, SLOT, NUMBERS, NUMBERS),
)
ANY = st.lists(FIELDS, max_size=6).flatmap(lambda fields: WORDS.map(lambda word: (word, *fields)))
LINES = st.one_of(
    st.one_of(LIKELY, NEW, ANY).map(" ".join),
    st.text(alphabet=st.characters(min_codepoint=1, max_codepoint=300), max_size=20),
    st.integers(4094, 4098).map(lambda length: "#" + "x" * (length - 1)),
)
FILES = st.tuples(
    st.sampled_from([HEADER] * 6 + [HEADER_2] * 6 + ["flashbed-ops 3", HEADER + " ", ""]),
    st.lists(LINES, max_size=8),
    st.sampled_from(["", "\n"]),
).map(lambda parts: "\n".join([parts[0], *parts[1]]) + parts[2])
FILES_2 = st.lists(NEW.map(" ".join), max_size=8).map(
    lambda lines: "\n".join([HEADER_2, "open 0 a rw,create", "open 1 b rw,create", *lines, ""])
)


@settings(
    max_examples=800, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(FILES | FILES_2)
def test_all_three_answer_alike_on_made_up_files(tmp_path: Path, text: str) -> None:
    given_answers = answers(text.encode(), tmp_path)
    assert len(set(given_answers.values())) == 1, given_answers


def test_a_word_of_version_2_is_unknown_in_version_1(tmp_path: Path) -> None:
    for word in sorted(set(FIELDS_2) - set(FIELDS_1)):
        data = f"{HEADER}\n{word}\n".encode()
        assert answers(data, tmp_path) == dict.fromkeys(
            ("python", "simulator", "agent"), (2, "unknown-operation")
        )
