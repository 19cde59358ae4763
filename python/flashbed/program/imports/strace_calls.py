"""Turns arguments that strace printed into those of a recording.

Each call has a row of words, one for each argument in the kernel's order. `at` is the descriptor
that the next path is relative to, `-` is ignored, the others name the recording's argument. A call
of 32-bit machines has the row of its 64-bit counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from flashbed.program.imports.constants import number_of, signed
from flashbed.program.imports.strace_line import strip_place, text_of

__all__ = ["ALIASES", "ROWS", "Parsed", "parse_call"]

ALIASES = {
    **{f"{name}64": name for name in ("stat", "lstat", "fstat", "truncate", "ftruncate", "fcntl",
                                      "sendfile")},
    **{f"{name}32": name for name in ("chown", "lchown", "fchown")},
    "fstatat64": "newfstatat", "fadvise64_64": "fadvise64", "mmap2": "mmap",
    "utimensat_time64": "utimensat", "oldstat": "stat", "oldlstat": "lstat", "oldfstat": "fstat",
    "waitpid": "wait4", "pread": "pread64", "pwrite": "pwrite64",
}  # fmt: skip

_WORDS = {
    "open": "path flags mode",
    "openat": "at path flags mode",
    "openat2": "at path how",
    "creat": "path mode",
    "close fsync fdatasync syncfs": "descriptor",
    "fstat": "descriptor stat",
    "close_range": "descriptor to_descriptor flags",
    "dup": "descriptor",
    "dup2": "descriptor to_descriptor",
    "dup3": "descriptor to_descriptor flags",
    "fcntl": "descriptor command flags",
    "lseek": "descriptor offset command",
    "_llseek": "descriptor offset sought command",
    "read": "descriptor - length",
    "pread64": "descriptor - length offset",
    "readv": "descriptor vector",
    "preadv": "descriptor vector - offset",
    "preadv2": "descriptor vector - offset flags",
    "write": "descriptor data length",
    "pwrite64": "descriptor data length offset",
    "writev": "descriptor vector",
    "pwritev": "descriptor vector - offset",
    "pwritev2": "descriptor vector - offset flags",
    "ftruncate": "descriptor length",
    "truncate": "path length",
    "fallocate": "descriptor mode offset length",
    "fadvise64": "descriptor offset length command",
    "arm_fadvise64_64": "descriptor command offset length",
    "readahead": "descriptor offset length",
    "copy_file_range": "descriptor place to_descriptor to_place length flags",
    "sendfile": "to_descriptor descriptor place length",
    "splice": "descriptor place to_descriptor to_place length flags",
    "sync": "",
    "sync_file_range": "descriptor offset length flags",
    "sync_file_range2": "descriptor flags offset length",
    "flock": "descriptor command",
    "mkdir": "path mode",
    "mkdirat": "at path mode",
    "rmdir unlink": "path",
    "unlinkat": "at path flags",
    "rename": "path to_path",
    "renameat": "at path at to_path",
    "renameat2": "at path at to_path flags",
    "link": "path to_path",
    "linkat": "at path at to_path flags",
    "symlink": "target path",
    "symlinkat": "target at path",
    "readlink": "path told",
    "readlinkat": "at path told",
    "getdents getdents64": "descriptor - length",
    "stat lstat": "path stat",
    "newfstatat": "at path stat flags",
    "statx": "at path flags - stat",
    "access": "path",
    "faccessat": "at path",
    "faccessat2": "at path - flags",
    "chmod": "path mode",
    "fchmodat": "at path mode",
    "fchmodat2": "at path mode flags",
    "fchmod": "descriptor mode",
    "chown lchown": "path user group",
    "fchownat": "at path user group flags",
    "fchown": "descriptor user group",
    "utime utimes": "path",
    "futimesat": "at path",
    "utimensat": "at path - flags",
    "setxattr lsetxattr": "path name data length flags",
    "fsetxattr": "descriptor name data length flags",
    "getxattr lgetxattr": "path name - length",
    "fgetxattr": "descriptor name - length",
    "listxattr llistxattr": "path - length",
    "flistxattr": "descriptor - length",
    "removexattr lremovexattr": "path name",
    "fremovexattr": "descriptor name",
    "mmap": "address length mode flags descriptor offset",
    "mprotect": "address length mode",
    "mremap": "address length to_offset flags",
    "munmap": "address length",
    "msync": "address length flags",
    "madvise": "address length command",
    "fork vfork": "",
    "exit exit_group wait4 waitid": "",
    "execve": "path",
    "execveat": "at path",
    "chdir": "path",
    "fchdir": "descriptor",
}
ROWS: Mapping[str, tuple[str, ...]] = {
    name: tuple(words.split()) for names, words in _WORDS.items() for name in names.split()
}
"""Call -> its arguments."""
_DESCRIPTORS = frozenset({"descriptor", "to_descriptor"})
_SIZE = re.compile(rb"\bstx?_size=(\d{1,18})\b")
_MODE = re.compile(rb"\bstx?_mode=(S_IF[A-Z]{2,4})")
_VECTOR = re.compile(
    rb'\{(?:iov_base=)?(?:("(?:[^"\\]|\\.)*"(?:\.\.\.)?)|[^,"{}]+), (?:iov_len=)?(\d{1,20})\}',
    re.DOTALL,
)
_BRACKETS = re.compile(rb"\[(-?\d{1,20})\b")
_LEADING = re.compile(rb"-?\d{1,20}")
_FLAGS = re.compile(rb"flags=([^,}]*)")
_OF_A_PROCESS = re.compile(rb"/proc/(?:self|\d+)/fd/(\d{1,9})\Z")


@dataclass(slots=True, kw_only=True)
class Parsed:
    """The arguments of a call, before its paths are resolved.

    `at` has the descriptor that a path is relative to, by the path's name: a number, or None for
    the working folder. `places` are the paths that -y prints for descriptors.
    """

    name: str
    arguments: dict[str, int | bytes] = field(default_factory=dict)
    at: dict[str, int | None] = field(default_factory=dict)
    places: dict[int, bytes] = field(default_factory=dict)
    working: bytes | None = None
    data: bytes | None = None
    kind: int | None = None
    size: int | None = None
    target: bytes = b""
    result: int | None = None
    """Index of the argument in which strace prints it."""


def parse_call(name: str, texts: Sequence[bytes], *, joined: bool = False) -> Parsed:
    """Parses a call; `name` is empty if the call changes nothing here.

    The program's own output follows the last argument of one that is `joined`. Raises
    `ValueError` for a malformed argument.
    """
    canonical = ALIASES.get(name, name)
    parsed = Parsed(name=_CANONICAL.get(canonical, canonical))
    if canonical == "fcntl" and not _changes_a_descriptor(texts):
        parsed.name = ""
        return parsed
    at: int | None = None
    for number, (word, given) in enumerate(zip(ROWS[canonical], texts, strict=False), start=1):
        cut = (joined or canonical == "write") and number == len(texts)
        leading = _LEADING.match(given) if cut else None
        text = leading[0] if leading else given
        if word == "at":
            at = _begin(parsed, text)
        elif word in ("path", "to_path"):
            found = text_of(text)
            if found is not None:
                if not found[1]:
                    raise ValueError(f"{name}: a path that is cut short")
                parsed.arguments[word] = found[0]
                parsed.at[word] = at
            elif at is not None:
                parsed.arguments["descriptor"] = at
            at = None
        else:
            _READERS.get(word, _number)(parsed, word, text)
    _settle(parsed)
    return parsed


_CANONICAL = {"arm_fadvise64_64": "fadvise64", "sync_file_range2": "sync_file_range",
              "_llseek": "lseek"}  # fmt: skip


def _changes_a_descriptor(texts: Sequence[bytes]) -> bool:
    """Whether a fcntl changes what a descriptor refers to, or how it writes; locks are free."""
    try:
        return len(texts) > 1 and number_of(texts[1]) in _COMMANDS
    except ValueError:
        return False


def _begin(parsed: Parsed, text: bytes) -> int | None:
    word, place = strip_place(text)
    number = _CWD if word == b"AT_FDCWD" else number_of(word)
    if number in (_CWD, _CWD & 0xFFFFFFFF):
        parsed.working = place
        return None
    if place is not None:
        parsed.places[number] = place
    return number


def _number(parsed: Parsed, word: str, text: bytes) -> None:
    shown, place = strip_place(text)
    value = number_of(shown)
    parsed.arguments[word] = value
    if word in _DESCRIPTORS and place is not None:
        parsed.places[value] = place


def _data(parsed: Parsed, _word: str, text: bytes) -> None:
    found = text_of(text)
    if found is not None and found[1]:
        parsed.data = found[0]


def _vector(parsed: Parsed, _word: str, text: bytes) -> None:
    """The whole length; the bytes too if strace printed all of them."""
    parts = _VECTOR.findall(text)
    parsed.arguments["length"] = signed(sum(int(length) for _, length in parts))
    texts = [text_of(base) for base, _ in parts]
    known = [found[0] for found in texts if found is not None and found[1]]
    if len(known) == len(parts) and b"]..." not in text and b", ..." not in text:
        parsed.data = b"".join(known)


def _place(parsed: Parsed, word: str, text: bytes) -> None:
    """`[offset]`, `[offset => offset]`, or NULL for the descriptor's own position."""
    found = _BRACKETS.search(text)
    if found is not None:
        parsed.arguments["offset" if word == "place" else "to_offset"] = signed(int(found[1]))


def _sought(parsed: Parsed, _word: str, text: bytes) -> None:
    found = _BRACKETS.search(text)
    parsed.result = signed(int(found[1])) if found else None


def _stat(parsed: Parsed, _word: str, text: bytes) -> None:
    size, mode = _SIZE.search(text), _MODE.search(text)
    parsed.size = int(size[1]) if size else None
    parsed.kind = number_of(mode[1]) if mode else None


def _how(parsed: Parsed, _word: str, text: bytes) -> None:
    found = _FLAGS.search(text)
    parsed.arguments["flags"] = number_of(found[1]) if found else 0


def _text(parsed: Parsed, word: str, text: bytes) -> None:
    found = text_of(text)
    if found is None or not found[1]:
        raise ValueError(f"{parsed.name}: {word} that is cut short")
    parsed.arguments[word] = found[0]


def _told(parsed: Parsed, _word: str, text: bytes) -> None:
    found = text_of(text)
    parsed.target = found[0] if found is not None and found[1] else b""


def _nothing(_parsed: Parsed, _word: str, _given: bytes) -> None:
    """Ignores the argument."""


_READERS: Mapping[str, Callable[[Parsed, str, bytes], None]] = {
    "-": _nothing, "data": _data, "vector": _vector, "place": _place, "to_place": _place,
    "sought": _sought, "stat": _stat, "how": _how, "name": _text, "target": _text, "told": _told,
}  # fmt: skip


def _settle(parsed: Parsed) -> None:
    """Turns a descriptor with an empty path, or /proc/self/fd, into the call on a descriptor."""
    arguments = parsed.arguments
    path = arguments.get("path")
    through = _OF_A_PROCESS.match(path) if isinstance(path, bytes) else None
    if through is not None and parsed.name == "linkat":
        del arguments["path"]
        arguments["descriptor"] = int(through[1])
    elif path == b"" and parsed.at.get("path") is not None:
        del arguments["path"]
        arguments["descriptor"] = parsed.at["path"] or 0
        arguments.pop("flags", None)
        parsed.name = _OF_DESCRIPTOR.get(parsed.name, parsed.name)
    if arguments.get("offset") == -1 and parsed.name in ("preadv2", "pwritev2"):
        del arguments["offset"]


_OF_DESCRIPTOR = {"newfstatat": "fstat", "statx": "fstat", "fchownat": "fchown",
                  "fchmodat2": "fchmod", "execveat": "execve"}  # fmt: skip
_COMMANDS = (0, 1030, 2, 4)
"""F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD, F_SETFL."""
_CWD = -100
"""AT_FDCWD as a number."""
