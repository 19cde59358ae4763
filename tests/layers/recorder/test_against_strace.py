"""What the recorder sees is what strace sees: the same calls, in order, with the same results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from flashbed.program.recording.calls import CALLS, EXISTED, Call
from flashbed.program.recording.file import open_recording
from tests.support.recorded import NOT_OF_FILES, calls_of, needs, recorded

PYTHON = """
import os
with open('a.txt', 'w') as file:
    file.write('x' * 5000)
    file.flush()
    os.fsync(file.fileno())
with open('a.txt', 'r+b') as file:
    file.seek(100)
    file.write(b'y' * 10)
    file.truncate(3000)
    file.seek(0)
    file.read()
os.rename('a.txt', 'b.txt')
os.link('b.txt', 'c.txt')
os.symlink('b.txt', 'd.txt')
os.mkdir('sub')
os.stat('d.txt'), os.lstat('d.txt'), os.listdir('.')
descriptor = os.open('sub/e', os.O_CREAT | os.O_RDWR | os.O_APPEND)
os.write(descriptor, b'abc')
os.pwrite(descriptor, b'zz', 0)
os.pread(descriptor, 10, 1)
os.writev(descriptor, [b'1', b'22', b'333'])
os.posix_fallocate(descriptor, 0, 8192)
os.fdatasync(descriptor)
os.dup2(descriptor, 50)
os.close(descriptor)
os.utime('sub/e')
os.chmod('sub/e', 0o600)
os.truncate('sub/e', 100)
os.setxattr('sub/e', 'user.colour', b'blue')
os.getxattr('sub/e', 'user.colour'), os.listxattr('sub/e')
os.unlink('sub/e')
try:
    os.open('nothing', os.O_RDONLY)
except OSError:
    pass
os.rmdir('sub')
os.sync()
"""

PROGRAMS = {
    "python3": [sys.executable, "-I", "-S", "-c", PYTHON],
    "sqlite3": [
        "sqlite3", "x.db", "create table t(a, b); insert into t values(1, 'one'), (2, 'two');"
        "pragma journal_mode=wal; update t set b = 'three'; select * from t; vacuum;",
    ],
    "tar": ["tar", "xf", "songs.tar"],
    "cp": ["cp", "-r", "--preserve=mode", "tree", "copy"],
    "dd": ["dd", "if=songs.tar", "of=out", "bs=1000", "count=7", "conv=fsync"],
    "sh": ["sh", "-c", "echo one > a; echo two >> a; cat a | wc -c > n; mv a b; rm -f n; ls tree"],
    # The same times: whether a commit's folder is there already depends on its hash.
    "git": ["sh", "-c", "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z;"
            " export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE; git init -q . && git add tree &&"
            " git -c user.name=a -c user.email=b -c gc.auto=0 commit -q -m c"],
}  # fmt: skip
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?: (E\w+))?.*")
_BEGIN = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>")
_END = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)")
# Which file a range of memory is of, strace does not say.
_EVENTS = {
    "munmap",
    "mprotect",
    "mremap",
    "madvise",
    *NOT_OF_FILES,
    "vfork",
    "fork",
    "clone3",
    "exit_group",
}


def fresh(folder: Path) -> Path:
    """A folder as each program finds it, at the same path each time."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tree" / "inner").mkdir(parents=True)
    for number in range(5):
        (folder / "tree" / f"f{number}").write_text("line\n" * 100 * number, encoding="ascii")
    (folder / "tree" / "inner" / "g").write_bytes(bytes(range(256)) * 40)
    for path in folder.rglob("*"):
        # git reads again what is as new as its index.
        os.utime(path, (1, 1))
    command = ["tar", "-C", str(folder), "--mtime=@0", "-cf", str(folder / "songs.tar"), "tree"]
    subprocess.run(command, check=True)
    return folder


def whole_lines(text: str) -> list[str]:
    """Lines of strace with those joined that another task's interrupted."""
    begun: dict[tuple[str, str], str] = {}
    lines = []
    for line in text.splitlines():
        if begin := _BEGIN.fullmatch(line):
            begun[begin[1], begin[2]] = f"{begin[1]} {begin[2]}({begin[3]}"
        elif end := _END.fullmatch(line):
            lines.append(begun.pop((end[1], end[2]), "") + end[3])
        else:
            lines.append(line)
    return lines


def is_inside(arguments: str, folder: str) -> bool:
    """Whether a descriptor or a first path among them is below the folder."""
    paths = re.findall(r'(?:AT_FDCWD|\d+)<([^>]*)>, "([^"]*)"', arguments)
    plain = re.match(r'"([^"]*)"', arguments)
    paths += [(folder, plain[1])] if plain else []
    paths += [(path, "") for path in re.findall(r'\d<(/[^>]*)>(?!, ")', arguments)]
    return any(str(Path(*pair)).startswith(folder) for pair in paths)


def seen_by_strace(text: str, folder: Path) -> dict[str, list[tuple[str, int]]]:
    """Per task the calls on files below the folder: name and result."""
    seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
    began = False
    for line in whole_lines(text):
        found = _LINE.fullmatch(line)
        if not found or found[4] == "?":
            continue
        task, name, arguments = found[1], found[2], found[3]
        began = began or name == "execve"
        if re.match(r"\d+<[^>]*>, \"\", ", arguments):
            name = {"newfstatat": "fstat", "statx": "fstat"}.get(name, name)
        if (
            not (is_inside(arguments, str(folder)) or name == "sync")
            or name not in CALLS
            or name in _EVENTS
        ):
            continue
        if name == "fcntl" and re.search(r"F_GETF[DL]", arguments):
            continue
        result = int(found[4], 0)
        seen[task].append((name, -1 if found[5] else result))
    return {task: calls for task, calls in seen.items() if calls}


def seen_by_us(calls: list[Call]) -> dict[str, list[tuple[str, int]]]:
    seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for call in calls:
        if call.name not in _EVENTS and not call.name.startswith("mapped_"):
            result = -1 if call.result < 0 else call.result
            seen[str(call.task)].append((call.name, 0 if call.name == "mmap" else result))
    return dict(seen)


def in_order(seen: dict[str, list[tuple[str, int]]]) -> list[list[tuple[str, int]]]:
    """Tasks in the order of what they did: process numbers say nothing."""
    plain = [
        [(name, 0 if name == "mmap" else result) for name, result in calls]
        for calls in seen.values()
    ]
    return sorted(plain)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_calls_in_order_with_the_same_results(name: str, tmp_path: Path) -> None:
    command = PROGRAMS[name]
    needs("strace", command[0], name)
    folder = tmp_path / "work"
    log = tmp_path / "strace.log"
    strace = ["strace", "-f", "-y", "-o", str(log), *command]
    subprocess.run(strace, cwd=fresh(folder), check=True, capture_output=True)
    theirs = seen_by_strace(log.read_text(encoding="utf-8", errors="replace"), folder)

    came = recorded(command, fresh(folder), tmp_path / "x.parquet")
    assert came.status == 0
    ours = seen_by_us(calls_of(tmp_path / "x.parquet"))
    assert in_order(ours) == in_order(theirs)


def test_what_was_there_before_is_listed_with_its_sizes(tmp_path: Path) -> None:
    folder = fresh(tmp_path / "work")
    (folder / "link").symlink_to("tree/f1")
    recorded(["true"], folder, tmp_path / "x.parquet")
    listed = {
        call.path(): call.number("length")
        for call in open_recording(tmp_path / "x.parquet").existed()
        if call.name == EXISTED and call.number("mode") & 0o100000
    }
    there = {
        bytes(path.relative_to(folder)): path.lstat().st_size
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip
    assert listed == there
