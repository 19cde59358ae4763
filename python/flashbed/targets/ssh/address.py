"""`ssh://[USER@]HOST[:PORT][/DIRECTORY]`, and what flashbed may use on the board behind it.

An address is text and allows nothing. What the user confirmed is an `AllowedBoard`; no text turns
into one except through `--erase` and its question (cli/boards.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from flashbed.base.errors import InputError

__all__ = [
    "SCHEME",
    "Address",
    "AllowedBoard",
    "BoardPartition",
    "ChosenTarget",
    "ConfirmedPartition",
    "is_address",
    "is_board",
    "parse_address",
    "parse_partition",
]

SCHEME = "ssh://"
_PARTITION = re.compile(r"mtd(\d{1,6})(?::([^\s:#]+))?", re.ASCII)


@dataclass(frozen=True)
class BoardPartition:
    """An MTD partition as the user names it; `name` must be its name on the board."""

    number: int
    name: str | None = None

    def __str__(self) -> str:
        return f"mtd{self.number}{f':{self.name}' if self.name else ''}"


@dataclass(frozen=True)
class ConfirmedPartition:
    """A partition that may be erased as long as the board gives it this name."""

    number: int
    name: str


@dataclass(frozen=True)
class Address:
    """A board's address."""

    host: str
    user: str | None = None
    port: int | None = None
    directory: str | None = None

    @property
    def destination(self) -> str:
        """The argument of the ssh client; the port is an option of its own."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{SCHEME}{self.destination}{port}{self.directory or ''}"


@dataclass(frozen=True)
class AllowedBoard:
    """A board and what may be used on it: the address's directory, or a partition to erase."""

    address: Address
    erase: ConfirmedPartition | None = None

    def __str__(self) -> str:
        return str(self.address)

    @property
    def conditions(self) -> str:
        """The part of a board's address that results depend on."""
        used = f"#mtd{self.erase.number}:{self.erase.name}" if self.erase else ""
        return f"{self.address}{used}"


ChosenTarget = str | AllowedBoard
"""A target that cases may run on: a target's name, or a board."""


def is_address(name: str) -> bool:
    """Whether a target's name is the address of a board."""
    return name.startswith(SCHEME)


def is_board(target: ChosenTarget) -> bool:
    """Whether a target is a board over ssh."""
    return isinstance(target, AllowedBoard)


def parse_partition(text: str, said: str) -> BoardPartition:
    """Parses `mtd5` or `mtd5:data`. Raises `InputError`, which quotes `said`."""
    found = _PARTITION.fullmatch(text)
    if not found or not text.isprintable():
        raise InputError(f"{said}: not a partition, such as mtd5 or mtd5:data")
    return BoardPartition(int(found[1]), found[2])


def parse_address(text: str) -> Address:
    """Parses an address. Raises `InputError`."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host and "#" in text:
        raise InputError(f"--on {text}: an address has no #; --erase mtdN:NAME names a partition")
    user = unquote(parts.username or "") if host else ""
    directory = unquote(parts.path).rstrip("/") if host else ""
    # urlsplit drops line feeds, and the client would take a host that begins with - for an option.
    strange = not (text.isprintable() and f"{user}{directory}".isprintable()) or " " in user
    if not host or strange or host.startswith("-") or user.startswith("-") or parts.query:
        raise InputError(f"--on {text}: not ssh://[USER@]HOST[:PORT][/DIRECTORY]")
    if parts.password is not None:
        raise InputError(
            f"--on {SCHEME}{user}:...@{host}: remove the password; ssh asks for it, or uses keys"
        )
    # urlsplit lower-cases host names, but names in ~/.ssh/config are case-sensitive.
    written = re.search(re.escape(host), text, re.IGNORECASE)
    return Address(
        host=written[0] if written else host,
        user=user or None,
        port=port,
        directory=directory or None,
    )
