"""`ssh://[USER@]HOST[:PORT][/DIRECTORY]`, and the partition that may be erased there.

As one text, so that a board goes wherever the name of a target goes: what `--erase` has confirmed
is its fragment, `#mtd5:data`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from flashbed.errors import InputError

__all__ = ["SCHEME", "Address", "Partition", "is_address", "parse_address", "parse_partition"]

SCHEME = "ssh://"
_PARTITION = re.compile(r"mtd(\d+)(?::([^\s:#]+))?")


@dataclass(frozen=True)
class Partition:
    """An MTD partition that is named to be erased; `name` is what the board has to call it."""

    number: int
    name: str | None = None

    def __str__(self) -> str:
        return f"mtd{self.number}{f':{self.name}' if self.name else ''}"


@dataclass(frozen=True)
class Address:
    """Where a board is, and what of it may be used."""

    host: str
    user: str | None = None
    port: int | None = None
    directory: str | None = None
    erase: Partition | None = None

    @property
    def destination(self) -> str:
        """As the ssh client is told; the port is told apart."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        used = f"#{self.erase}" if self.erase else ""
        return f"{SCHEME}{self.destination}{port}{self.directory or ''}{used}"


def is_address(name: str) -> bool:
    """Whether a target's name is the address of a board."""
    return name.startswith(SCHEME)


def parse_partition(text: str, said: str) -> Partition:
    """`mtd5` or `mtd5:data`. Raises `InputError`, which quotes `said`."""
    found = _PARTITION.fullmatch(text)
    if not found:
        raise InputError(f"{said}: not a partition, such as mtd5 or mtd5:data")
    return Partition(int(found[1]), found[2])


def parse_address(text: str) -> Address:
    """An address as it is written. Raises `InputError`."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    # A host that begins so would be an option to the client.
    user = parts.username if host else None
    if not host or host.startswith("-") or (user or "").startswith("-") or parts.query:
        raise InputError(f"--on {text}: not ssh://[USER@]HOST[:PORT][/DIRECTORY]")
    if parts.password is not None:
        raise InputError(
            f"--on {SCHEME}{user}:...@{host}: no password there; ssh asks, or has keys"
        )
    directory = unquote(parts.path).rstrip("/")
    # urlsplit makes host names small, which names of ~/.ssh/config need not be.
    written = re.search(re.escape(host), text, re.IGNORECASE)
    return Address(
        host=written[0] if written else host,
        user=unquote(user) if user else None,
        port=port,
        directory=directory or None,
        erase=parse_partition(parts.fragment, text) if parts.fragment else None,
    )
