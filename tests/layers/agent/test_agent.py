"""The agent on this machine: it reads operations as the format says, and does what they say."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from tests.support import PROJECT as ROOT

AGENT = ROOT / "build" / "agent" / "flashbed-agent-host"
CORPUS = ROOT / "tests" / "corpus" / "operations"
HEADER = "flashbed-ops 1\n"

pytestmark = pytest.mark.skipif(not AGENT.is_file(), reason="the agent is not built; make build")


def agent(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AGENT, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def run(tmp_path: Path, operations: str) -> subprocess.CompletedProcess[str]:
    file, folder = tmp_path / "case.ops", tmp_path / "mounted"
    file.write_text(HEADER + operations)
    folder.mkdir(exist_ok=True)
    return agent("run", file, "--dir", folder)


def rows(done: subprocess.CompletedProcess[str]) -> list[tuple[int, int]]:
    """Line and result of each measured operation."""
    fields = [line.split() for line in done.stdout.splitlines()]
    return [(int(row[2]), int(row[5])) for row in fields if row[0] == "r"]


def mix(value: int) -> int:
    mask = 2**64 - 1
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return value ^ value >> 31


def word(seed: int, k: int) -> int:
    return mix(seed + (k + 1) * 0x9E3779B97F4A7C15 & 2**64 - 1)


def generated(offset: int, length: int, seed: int, compressibility: int) -> bytes:
    """Byte by byte as docs/reference/operations.md has it."""

    def byte(i: int) -> int:
        if word(seed, 2**62 + i // 64) % 100 < compressibility:
            return 0
        return word(seed, i // 8) >> 8 * (i % 8) & 255

    return bytes(byte(i) for i in range(offset, offset + length))


def in_order(line: str) -> list[str]:
    """A line's words, with the flags of an `open` or `sync_range` in one order."""
    words = line.split(" ")
    has_flags = words[0] in ("open", "sync_range")
    return [*words[:-1], *sorted(words[-1].split(","))] if has_flags else words


def test_flags_are_printed_in_the_order_of_the_format(tmp_path: Path) -> None:
    file = tmp_path / "flags.ops"
    file.write_text(f"{HEADER}open 0 a rw,direct,dsync,sync,append,trunc,excl,create\n")
    expected = "open 0 a rw,create,excl,trunc,append,sync,dsync,direct"
    assert agent("check", file).stdout.splitlines() == [HEADER.strip(), expected]


@pytest.mark.parametrize("file", sorted(CORPUS.glob("valid/*.ops")), ids=lambda file: file.stem)
def test_a_valid_file_is_printed_without_comments(file: Path) -> None:
    done = agent("check", file)
    lines = [line for line in file.read_text().split("\n") if line and line[0] != "#"]
    assert done.returncode == 0, done.stderr
    assert [in_order(line) for line in done.stdout.splitlines()] == [in_order(x) for x in lines]


@pytest.mark.parametrize("file", sorted(CORPUS.glob("broken/*.ops")), ids=lambda file: file.stem)
def test_a_broken_file_is_refused_with_line_and_code(file: Path) -> None:
    done = agent("check", file)
    line, code = file.with_suffix(".expected").read_text().split()
    assert done.returncode == 2
    assert done.stderr.startswith(f"{file}:{line}: {code}: ")
    assert done.stdout == ""


@pytest.mark.parametrize("compressibility", [0, 1, 50, 100])
def test_written_bytes_do_not_depend_on_the_request(tmp_path: Path, compressibility: int) -> None:
    parts = [(0, 1), (1, 6), (7, 58), (65, 1000), (1065, 8), (1073, 3023)]
    writes = "".join(f"write 0 {at} {size} 42 {compressibility}\n" for at, size in parts)
    done = run(tmp_path, f"open 0 a rw,create\nmark\n{writes}")
    assert rows(done) == [(4 + i, size) for i, (_, size) in enumerate(parts)]
    assert (tmp_path / "mounted" / "a").read_bytes() == generated(0, 4096, 42, compressibility)


def test_every_file_operation_does_what_it_says(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "mark\nmkdir d\nopen 0 d/a wo,create,excl\nwrite 0 10 20 1 0\nfsync 0\nfdatasync 0\n"
        "truncate 0 25\nfadvise 0 0 0 random\nclose 0\nrename d/a b\nrmdir d\nopen 3 b ro\n"
        "read 3 0 100\nread 3 30 5\nclose 3\nsync\npause 1000\ncompute 10\n",
    )
    results = [0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0]
    assert [result for _, result in rows(done)] == results
    assert [file.name for file in (tmp_path / "mounted").iterdir()] == ["b"]


def test_only_what_follows_the_mark_is_measured(tmp_path: Path) -> None:
    assert rows(run(tmp_path, "mkdir a\nprepared\nmkdir b\nmark\nmkdir c\n")) == [(6, 0)]
    assert rows(run(tmp_path, "mkdir d\nprepared\nmkdir e\n")) == [(4, 0)]
    assert rows(run(tmp_path, "mkdir f\n")) == [(2, 0)]


def test_a_measured_failure_is_a_result(tmp_path: Path) -> None:
    done = run(tmp_path, "mark\nunlink nothing\nopen 0 nothing ro\nread 0 0 1\nmkdir a\n")
    assert rows(done) == [(3, -2), (4, -2), (5, -9), (6, 0)]


def test_an_unmeasured_failure_ends_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, "mkdir a\nunlink nothing\nmark\nsync\n")
    assert done.returncode == 1
    expected = f"{tmp_path / 'case.ops'}:3: ENOENT: unlink: No such file or directory\n"
    assert done.stderr == expected


def test_sql_is_read_and_not_supported_by_the_agent_without_sqlite(tmp_path: Path) -> None:
    statements = "sql_open a.db 1 fsync PRAGMA page_size=1024\nsql a.db SELECT 1\nsql_close a.db\n"
    assert rows(run(tmp_path, f"mark\n{statements}")) == [(3, -38), (4, -38), (5, -38)]


def test_remount_needs_a_file_system_of_ours(tmp_path: Path) -> None:
    assert rows(run(tmp_path, "mark\nremount\nmkdir a\n")) == [(3, -38), (4, 0)]


def test_what_reads_return_is_summed_up_if_asked_for(tmp_path: Path) -> None:
    file, folder = tmp_path / "case.ops", tmp_path / "mounted"
    file.write_text(
        f"{HEADER}open 0 a rw,create\nwrite 0 0 5000 9 30\nmark\nread 0 0 4096\n"
        "read 0 4999 10\nread 0 5000 1\nsync\nread 0 0 1\nopen 1 nothing ro\nread 1 0 1\n"
    )
    folder.mkdir()
    done = agent("run", file, "--dir", folder, "--contents")
    last = [line.split()[7] for line in done.stdout.splitlines()]
    content = generated(0, 5000, 9, 30)
    sums = [zlib.crc32(part) for part in (content[:4096], content[4999:], b"")]
    assert last == [*map(str, sums), "-", str(zlib.crc32(content[:1])), "-", "-"]
    plain = agent("run", file, "--dir", folder).stdout.splitlines()
    assert [line.split()[7] for line in plain] == ["-"] * 7


def test_starts_are_in_order_and_latencies_fit_between_them(tmp_path: Path) -> None:
    done = run(tmp_path, "mark\npause 2000000\npause 1000000\nsync\n")
    fields = [[int(part) for part in line.split()[1:6]] for line in done.stdout.splitlines()]
    starts, latencies = [row[2] for row in fields], [row[3] for row in fields]
    assert latencies[0] >= 2_000_000
    assert latencies[1] >= 1_000_000
    assert all(a + b <= c for a, b, c in zip(starts, latencies, starts[1:], strict=False))


@pytest.mark.parametrize("arguments", [(), ("check",), ("run", "x"), ("nonsense", "x")])
def test_wrong_usage_says_so_in_one_line(arguments: tuple[str, ...]) -> None:
    done = agent(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: flashbed-agent ")
    assert done.stderr.count("\n") == 1


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = agent("check", tmp_path / "nothing")
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path / 'nothing'}: No such file or directory\n"


@pytest.mark.parametrize(
    "words", [("--mtd", "5"), ("--name", "data"), ("--dir", "/tmp", "--name", "data")]
)
def test_a_job_takes_no_partition_without_its_name(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = agent("job", "--home", tmp_path / "home", *words)
    assert done.returncode == 2
    assert "--mtd N --name NAME" in done.stderr
