"""The agents for boards: the right machine's, static, and what the host's does, they do."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from flashbed.targets.guest.agent import path_of
from flashbed.targets.guest.architectures import ARCHITECTURES, architecture_of
from tests.support import PROJECT

CORPUS = PROJECT / "tests" / "corpus" / "operations"
HEADER = "flashbed-ops 1\n"
ENDLESS = "numbers-at-their-ends.ops"
"""Not for running: it sleeps for eleven days."""
INTERPRETER = 3
"""Type of the program header that a dynamic program has."""


@dataclass(frozen=True)
class Built:
    """What an agent's ELF header has to say, and the emulator that runs it."""

    machine: int
    bits: int
    emulator: tuple[str, ...]


BUILT = {
    "armv5": Built(40, 32, ("qemu-arm", "-cpu", "arm926")),
    "armv7": Built(40, 32, ("qemu-arm", "-cpu", "cortex-a7")),
    "aarch64": Built(183, 64, ("qemu-aarch64", "-cpu", "cortex-a53")),
    "mipsel": Built(8, 32, ("qemu-mipsel", "-cpu", "4Kc")),
    "riscv64": Built(243, 64, ("qemu-riscv64",)),
    "x86_64": Built(62, 64, ("qemu-x86_64",)),
}


def built(architecture: str) -> Path:
    path = path_of(architecture)
    if not path.is_file():
        pytest.skip(f"{path.name} is not built: make agents, or make sql-agents")
    return path


def runs(architecture: str) -> list[str | Path]:
    """What a command for the architecture's agent begins with."""
    name = architecture.removeprefix("sql-")
    if name == "host":
        return [built(architecture)]
    program, *arguments = BUILT[name].emulator
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: make qemu-user")
    return [program, *arguments, built(architecture)]


def said(architecture: str, *arguments: str | Path) -> tuple[int, str, str]:
    command = [*runs(architecture), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def without_times(line: str) -> list[str]:
    words = line.split(" ")
    return [*words[:3], *words[5:]] if words[0] == "r" else words


def rows(architecture: str, file: Path, work: Path) -> list[list[str]]:
    """What a file's operations come to in an empty directory: rows without start and latency."""
    folder = work / architecture
    folder.mkdir()
    status, out, errors = said(architecture, "run", file, "--dir", folder, "--contents")
    return [*map(without_times, out.splitlines()), [str(status), errors]]


def test_every_architecture_is_tried() -> None:
    assert tuple(BUILT) == ARCHITECTURES


@pytest.mark.parametrize("kind", ["", "sql-"], ids=["small", "sqlite"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_agent_is_of_its_machine_and_static(architecture: str, kind: str) -> None:
    elf = built(f"{kind}{architecture}").read_bytes()
    wide = BUILT[architecture].bits == 64
    assert elf[:4] == b"\x7fELF"
    assert (elf[4], elf[5]) == (2 if wide else 1, 1)
    assert struct.unpack_from("<HH", elf, 16) == (2, BUILT[architecture].machine)
    (headers,) = struct.unpack_from("<Q" if wide else "<I", elf, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", elf, 54 if wide else 42)
    kinds = {struct.unpack_from("<I", elf, headers + i * size)[0] for i in range(count)}
    assert INTERPRETER not in kinds


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_files_are_accepted_and_refused_as_on_the_host(architecture: str) -> None:
    files = sorted(CORPUS.glob("*/*.ops"))
    assert len(files) > 20
    for file in files:
        assert said(architecture, "check", file) == said("host", "check", file), file.name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_corpus_comes_to_what_it_does_on_the_host(architecture: str, tmp_path: Path) -> None:
    measured = 0
    files = set(CORPUS.glob("valid/*.ops")) - {CORPUS / "valid" / ENDLESS}
    for number, file in enumerate(sorted(files)):
        work = tmp_path / str(number)
        work.mkdir()
        expected = rows("host", file, work)
        assert rows(architecture, file, work) == expected, file.name
        measured += len(expected) - 1
    assert measured > 30


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_wide_is_wide_on_every_machine(architecture: str, tmp_path: Path) -> None:
    """Offsets beyond 32 bits, unaligned content, flags and errors whose numbers differ.

    No `erase`: what qemu-user does not know of ioctls it refuses by itself.
    """
    file = tmp_path / "wide.ops"
    file.write_text(
        f"{HEADER}mkdir d\nopen 0 d/a rw,create,excl\nmark\nwrite 0 3 5001 9 30\nread 0 1 4098\n"
        "write 0 4999999990 101 3 3\nread 0 4999999981 100\ntruncate 0 5000000001\n"
        "truncate 0 9223372036854775807\nfadvise 0 5000000000 4096 random\nfadvise 0 0 0 noreuse\n"
        "fdatasync 0\nopen 1 d/a ro\nwrite 1 0 1 0 0\nopen 2 d/a rw,create,excl\n"
        "open 3 d/a wo,append\nwrite 3 0 7 5 0\nread 0 5000000000 64\n"
        "pause 3000000\nrename d b\nopen 4 d/a rw,sync\nopen 5 b/a rw,trunc,dsync\nread 0 0 1\n"
        "unlink b\nrmdir b\n"
    )
    expected = rows("host", file, tmp_path)
    results = [int(row[3]) for row in expected[:-1]]
    assert results[:5] == [5001, 4098, 101, 100, 0]
    assert len(results) == 22
    assert min(results) < 0
    assert rows(architecture, file, tmp_path) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_directory_is_surveyed_alike(architecture: str, tmp_path: Path) -> None:
    file, folder = tmp_path / "files.ops", tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    operations = (
        "open 0 a rw,create\nwrite 0 5 9000 77 40\nopen 1 sub/b rw,create\nwrite 1 0 11 2 0\n"
    )
    file.write_text(f"{HEADER}{operations}")
    assert said("host", "run", file, "--dir", folder)[0] == 0
    (folder / "other").write_bytes(b"not an agent")
    with (folder / "sparse").open("wb") as sparse:
        sparse.truncate(100_001)
    expected = said("host", "survey", file, "--dir", folder)
    assert expected[0] == 0
    assert {line.split(" ")[0] for line in expected[1].splitlines()} == {"s", "p", "k"}
    assert said(architecture, "survey", file, "--dir", folder) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sqlite_answers_alike(architecture: str, tmp_path: Path) -> None:
    file = tmp_path / "statements.ops"
    inserts = "".join(
        f"sql a.db INSERT INTO t VALUES ({i}, {i}.25, zeroblob({i * 900}))\n" for i in range(12)
    )
    file.write_text(
        f"{HEADER}sql_open a.db 1 fsync PRAGMA page_size=1024\nmark\n"
        f"sql a.db CREATE TABLE t (i INTEGER, r REAL, b BLOB)\n{inserts}"
        "sql a.db SELECT i, r * 3, length(b) FROM t ORDER BY r DESC\n"
        "sql a.db SELECT sum(r) FROM t\n"
        "sql a.db SELECT nothing\nsql a.db PRAGMA integrity_check\nsql_close a.db\n"
    )
    found = {}
    for name in (f"sql-{architecture}", "sql-host"):
        found[name] = rows(name, file, tmp_path), (tmp_path / name / "a.db").read_bytes()
    one, host = found.values()
    assert one == host
    assert host[0][13][3] == "12"


@pytest.mark.parametrize(
    ("machine", "architecture"),
    [
        ("armv4tl", None),
        ("armv5tel", "armv5"),
        ("armv5tejl", "armv5"),
        ("armv5teb", None),
        ("armv6l", "armv5"),
        ("armv7l", "armv7"),
        ("armv7b", None),
        ("armv7ml", None),
        ("armv8l", "aarch64"),
        ("aarch64", "aarch64"),
        ("aarch64_be", None),
        ("mips", "mipsel"),
        ("mips64", "mipsel"),
        ("riscv32", None),
        ("riscv64", "riscv64"),
        ("x86_64", "x86_64"),
        ("i686", None),
        ("ppc", None),
        ("", None),
    ],
)
def test_what_a_machine_calls_itself_says_which_agent(
    machine: str, architecture: str | None
) -> None:
    assert architecture_of(machine, True) == architecture
    assert architecture_of(machine, False) is None
