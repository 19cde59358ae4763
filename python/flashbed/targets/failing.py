"""Failed calls of a case: measured operations that did not do what they were to do.

The simulator counts by the same rule (sim/src/run/failed.rs). Some errors are answers: programs
call `stat`, `open`, `unlink` or `mkdir` to learn whether a name is there, as SQLite does for a
journal. A recording keeps such a call because it failed when it was recorded. The `close` of what
was not opened loses nothing; a read or write of it counts. No file system here has a `fallocate`,
and JFFS2 has no extended attributes by default: programs meet that everywhere.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

__all__ = ["SHORT", "failure", "failure_of", "failures_text"]

SHORT = "short"
"""How a write is counted that wrote fewer bytes than it was given."""
_OF_NAMES = frozenset((
    "mkdir", "unlink", "rmdir", "rename", "stat", "link", "symlink", "readlink", "chmod", "chown",
    "utimens", "getxattr", "listxattr", "removexattr",
))  # fmt: skip
_ANSWERS = frozenset(
    -number
    for number in (
        errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG,
        errno.ENOTEMPTY, errno.ELOOP, errno.ENODATA,
    )
)  # fmt: skip
_NOT_EVERYWHERE = frozenset(("fallocate", "getxattr", "listxattr", "removexattr"))


def failure(op: str, length: int | None, result: int) -> str | None:
    """The kind of a failure: `ENOSPC`, `short`, `SQLite 13`; None if the operation did its work."""
    if result >= 0:
        return SHORT if op == "write" and length is not None and result < length else None
    if op.startswith("sql"):
        return f"SQLite {-result}"
    answered = (
        (op in _OF_NAMES and result in _ANSWERS)
        or (op in _NOT_EVERYWHERE and result == -errno.EOPNOTSUPP)
        or (op == "open" and result in (-errno.ENOENT, -errno.EEXIST))
        or (op == "close" and result == -errno.EBADF)
        or (op == "flock" and result == -errno.EAGAIN)
    )
    return None if answered else failure_of(result)


def failure_of(result: int) -> str:
    """The name of a negative result; `short` for 0."""
    return errno.errorcode.get(-result, f"errno {-result}") if result else SHORT


def failures_text(failures: Mapping[str, int]) -> str | None:
    """The column `failed_errno`: kinds and how often, the most frequent first; None for none."""
    order = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} {count}" for kind, count in order) or None
