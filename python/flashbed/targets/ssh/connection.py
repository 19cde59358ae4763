"""Runs commands on a board with the system's ssh client, and explains why they fail.

All short commands of a run share one connection (OpenSSH's ControlMaster), so that a slow board
does not negotiate keys each time. A job has a connection of its own: the shared one would outlive
this program if it is killed, and keep the job's end open. Keys, jump hosts and names come from the
user's ssh configuration; nothing here reads them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from flashbed.base.forks import by_owner
from flashbed.base.locking import LOCK, Scratch, scratch
from flashbed.targets.ssh.address import Address
from flashbed.targets.unavailable import Unavailable

__all__ = ["Connection", "RefusedCommand", "explained"]

CLIENT = "FLASHBED_SSH"
"""The environment variable that holds the client and its options."""
TIMEOUT_S = 120.0
_OPTIONS = {
    "ConnectTimeout": "20",
    # A board that is erasing may not answer for a while.
    "ServerAliveInterval": "10",
    "ServerAliveCountMax": "6",
}
_SHARED = {"ControlMaster": "auto", "ControlPersist": "60"}
_OWN = {"ControlMaster": "no", "ControlPath": "none"}
_FAILED = 255
"""ssh's exit status when ssh itself failed."""
_REASONS = (
    ("permission denied", "the login is refused: is the user right, and is your key on the board?"),
    ("too many authentication", "the login is refused: name one key with IdentityFile"),
    (
        "host key verification failed",
        "its host key is unknown or has changed: connect once by hand",
    ),
    ("could not resolve", "there is no host of that name"),
    ("connection refused", "it cannot be reached: no ssh server answers there"),
    ("no route to host", "it cannot be reached: is it on, and on this network?"),
    ("network is unreachable", "it cannot be reached: is it on, and on this network?"),
    ("timed out", "it cannot be reached, or no longer answers"),
    ("not responding", "the connection dropped: the board no longer answers"),
    ("broken pipe", "the connection dropped"),
    ("connection reset", "the connection dropped"),
    ("connection closed", "the connection dropped"),
    ("closed by remote host", "the connection dropped"),
    ("bad configuration option", "the ssh configuration is wrong"),
)


class RefusedCommand(Exception):
    """A command ran on the board and failed: its exit status, and its last line of output."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def explained(address: Address, said: str) -> str:
    """Explains ssh's failure in one line, from its output."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lower = said.lower()
    why = next((reason for words, reason in _REASONS if words in lower), "ssh failed")
    its = f" ({lines[-1]})" if lines else ""
    return f"{address.destination}: {why}{its}"


def _words(options: dict[str, str]) -> list[str]:
    return [part for key, value in options.items() for part in ("-o", f"{key}={value}")]


class Connection:
    """Runs commands on a board; closing it ends the master connection."""

    def __init__(self, address: Address) -> None:
        self.address = address
        words = shlex.split(os.environ.get(CLIENT, "ssh")) or ["ssh"]
        if shutil.which(words[0]) is None:
            raise Unavailable(
                f"{words[0]} is not installed (on Debian: apt-get install openssh-client)"
            )
        # A socket's path must be short, and TMPDIR may be long.
        self._folder = scratch(Path("/tmp"), "flashbed-ssh-")
        options = dict(_OPTIONS)
        if not sys.stdin.isatty():
            options["BatchMode"] = "yes"
        port = ["-p", str(address.port)] if address.port else []
        self._client = [*words, "-T", *port, *_words(options)]
        shared = {**_SHARED, "ControlPath": f"{self._folder.path}/%C"}
        self._sharing = [*self._client, *_words(shared)]
        ended = partial(_close, self._sharing, address, self._folder)
        self.close = weakref.finalize(self, by_owner(ended))

    def own(self, remote: str) -> list[str]:
        """The client's command line for a shell command on a connection of its own."""
        return [*self._client, *_words(_OWN), "--", self.address.destination, remote]

    def run(self, remote: str, given: bytes | Path = b"", timeout_s: float = TIMEOUT_S) -> bytes:
        """The output of a shell command on the board, given its standard input.

        Raises `Unavailable` if ssh failed, `RefusedCommand` if the command did.
        """
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as said:
            source.write(given.read_bytes() if isinstance(given, Path) else given)
            source.seek(0)
            try:
                # A master that stays open would hold a pipe's end: standard error is a file.
                done = subprocess.run(
                    [*self._sharing, "--", self.address.destination, remote],
                    stdin=source, stdout=subprocess.PIPE, stderr=said,
                    timeout=timeout_s, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                why = f"no answer in {timeout_s:g} s"
                raise Unavailable(f"{self.address.destination}: {why}") from None
            said.seek(0)
            words = said.read().decode("utf-8", "replace")
        if done.returncode == _FAILED:
            raise Unavailable(explained(self.address, words))
        if done.returncode:
            lines = [line.strip() for line in words.splitlines() if line.strip()]
            raise RefusedCommand(done.returncode, lines[-1] if lines else "it said nothing")
        return done.stdout


def _close(client: Sequence[str], address: Address, folder: Scratch) -> None:
    """Ends the master connection, if there is one."""
    if any(path.name != LOCK for path in folder.path.iterdir()):
        subprocess.run(
            [*client, "-O", "exit", "--", address.destination],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=20, check=False,
        )  # fmt: skip
    folder.close()
