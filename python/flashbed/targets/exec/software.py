"""Prices for the time of software while a program runs in virtual time.

On user-mode Linux running code takes no time. `flat` charges `syscall_ns` for every system call.
`calls` adds the board's prices for a call of its kind and for each byte that it moves. Neither
charges for file systems, compressors or the program itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from flashbed.base.errors import InputError
from flashbed.stack.prices import Software

__all__ = ["FREE", "SOFTWARE", "CallCost", "Costs", "costs_of"]

SOFTWARE = ("flat", "calls", "none")
PAGE_BYTES = 4096
_OPEN = ("open", "openat", "creat")
_ADD = ("mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat")
_REMOVE = ("unlink", "unlinkat", "rmdir")
_MOVE = ("rename", "renameat", "renameat2")
_SIZE = ("truncate", "ftruncate")
_SYNC = ("sync", "syncfs")
_READ = ("read", "pread64", "readv", "preadv", "preadv2")
_WRITE = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
_STAT = ("newstat", "newlstat", "newfstatat", "statx")
_PATH = ("access", "faccessat", "faccessat2", "readlink", "readlinkat")
_ATTRIBUTE = ("chmod", "fchmodat", "chown", "lchown", "fchownat", "utimensat")
_LIST = ("getdents", "getdents64")


@dataclass(frozen=True)
class CallCost:
    """The price of one kind of call: of each call, and of each byte it moves."""

    name: str
    ns: int
    byte_ps: int


@dataclass(frozen=True)
class Costs:
    """The prices of all calls: `kinds`, and `each_ns` for those without a price of their own."""

    how: str
    each_ns: int
    kinds: tuple[CallCost, ...] = ()

    def description(self) -> str:
        """A phrase for the program's account."""
        if self.how == "none":
            return "CPU time counts as 0"
        if self.how == "flat":
            return f"{self.each_ns / 1000:g} us charged per call; other CPU time counts as 0"
        return (
            f"{self.each_ns / 1000:g} us charged per call, {len(self.kinds)} kinds by the board's"
            " prices; other CPU time counts as 0"
        )


FREE = Costs("none", 0)


def costs_of(software: Software, how: str) -> Costs:
    """What a board's calls cost. Raises `InputError` if `how` is not one of `SOFTWARE`."""
    if how not in SOFTWARE:
        raise InputError(f"--software {how}: must be one of {', '.join(SOFTWARE)}")
    if how != "calls":
        return Costs(how, software.syscall_ns if how == "flat" else 0)
    page_read_ps = software.page_find_ns * 1000 // PAGE_BYTES
    page_written_ps = (software.page_find_ns + software.page_write_ns) * 1000 // PAGE_BYTES
    more = [
        (_OPEN, software.open_ns, 0),
        (_ADD, software.name_add_ns, 0),
        (_REMOVE, software.name_remove_ns, 0),
        (_MOVE, software.name_move_ns, 0),
        (_SIZE, software.truncate_ns, 0),
        (_SYNC, software.sync_ns, 0),
        (_STAT, software.path_ns + software.stat_ns, 0),
        (_PATH, software.path_ns, 0),
        (_ATTRIBUTE, software.path_ns + software.attribute_ns, 0),
        (_LIST, software.list_ns, 0),
        (("close",), software.close_ns, 0),
        (("mmap",), software.map_ns, 0),
        (("munmap",), software.unmap_ns, 0),
        (_READ, 0, software.copy_to_user_byte_ps + page_read_ps),
        (_WRITE, software.write_ns, software.copy_from_user_byte_ps + page_written_ps),
    ]
    each = software.syscall_ns
    kinds = tuple(
        CallCost(name, each + ns, byte_ps) for names, ns, byte_ps in more for name in names
    )
    return Costs(how, each, kinds)
