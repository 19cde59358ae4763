"""Summarises a recording for the user: calls by kind, files, bytes, gaps, cost."""

from __future__ import annotations

from collections.abc import Iterator

from flashbed.base.paths import shown
from flashbed.targets.recorder.recorded_run import RecordedRun

__all__ = ["in_brief", "summary"]

_KINDS = {
    "opened or closed": "open openat openat2 creat close close_range dup dup2 dup3 fcntl",
    "read": "read readv pread64 preadv preadv2 getdents getdents64 readlink readlinkat lseek"
    " fadvise64 readahead",
    "written": "write writev pwrite64 pwritev pwritev2 ftruncate truncate fallocate"
    " copy_file_range sendfile splice",
    "synced": "fsync fdatasync syncfs sync sync_file_range",
    "names": "mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink"
    " symlinkat",
    "metadata": "stat lstat newfstatat statx access faccessat faccessat2 fstat chmod fchmodat"
    " fchmodat2 fchmod chown lchown fchownat fchown utime utimes futimesat utimensat setxattr"
    " lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr"
    " lremovexattr fremovexattr",
    "mapped": "mmap mprotect mremap munmap msync madvise mapped_read mapped_write",
    "locks": "flock",
    "tasks": "clone clone3 fork vfork execve execveat exit exit_group wait4 waitid",
}
_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_SHOWN = 4


def summary(recorded: RecordedRun) -> Iterator[str]:
    """The summary's lines."""
    calls = sum(recorded.calls.values())
    yield (
        f"recorded {calls:,} calls of {recorded.tasks:,} {_many(recorded.tasks, 'task')} on"
        f" {len(recorded.files):,} opened {_many(len(recorded.files), 'file')};"
        f" {recorded.existed:,} {_many(recorded.existed, 'file')} and folders were there before"
    )
    yield f"bytes: {recorded.written_bytes:,} written, {recorded.read_bytes:,} read"
    yield from _by_kind(recorded)
    for name, count in sorted(recorded.about.not_followed.items()):
        yield f"not followed: {name} ({count:,})"
    if not recorded.complete:
        yield "the recorder ended before the program; the recording stops there"
    yield from _cost(recorded)
    path = shown(recorded.path)
    yield f"{path}: next, `flashbed run {path}` replays it on flash; `flashbed ops stat {path}`"


def in_brief(recorded: RecordedRun) -> Iterator[str]:
    """A short summary for virtual time, in which a recorder costs nothing."""
    calls = sum(recorded.calls.values())
    yield (
        f"{calls:,} calls of {recorded.tasks:,} {_many(recorded.tasks, 'task')}"
        f" in {shown(recorded.path)}"
    )
    for name, count in sorted(recorded.about.not_followed.items()):
        yield f"not followed: {name} ({count:,})"


def _by_kind(recorded: RecordedRun) -> Iterator[str]:
    for kind in _KINDS:
        of = [(count, name) for name, count in recorded.calls.items() if _OF.get(name) == kind]
        if not of:
            continue
        of.sort(key=lambda each: (-each[0], each[1]))
        names = ", ".join(f"{name} {count:,}" for count, name in of[:_SHOWN])
        more = ", …" if len(of) > _SHOWN else ""
        yield f"  {kind:<17}{sum(count for count, _ in of):>10,}  {names}{more}"


def _cost(recorded: RecordedRun) -> Iterator[str]:
    end, begin = recorded.end, recorded.begin
    if end is None or begin is None:
        return
    stops, calls = end.number("stops"), end.number("calls")
    busy_ns, blocked_ns = end.number("busy_ns"), end.number("blocked_ns")
    wall_ns = end.number("wall_ns")
    each = f", {busy_ns / stops / 1e3:.1f} µs each" if stops else ""
    share = f" of {wall_ns / 1e9:.3f} s" if wall_ns else ""
    yield (
        f"the recorder: {stops:,} stops for {calls:,} rows took it {busy_ns / 1e9:.3f} s{share}"
        f"{each}; a stop cost the program about {begin.number('stop_cpu_ns') / 1e3:.1f} µs of the"
        " processor, which is not in the recording"
    )
    if wall_ns and blocked_ns * 10 > wall_ns:
        yield (
            f"the recorder fell behind: the program waited {blocked_ns / 1e9:.2f} s while written"
            " data was compressed; no call is lost"
        )


def _many(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
