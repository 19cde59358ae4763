"""Reads the answer of a guest or board that sends everything in one stream.

The stream holds lines and the program's output: `stdout BYTES` and `stderr BYTES` are followed by
that many bytes. The files for `--keep` follow after `end` (agent/host/launch.c).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from flashbed.targets.exec.outcome import ExecOutcome, NotRunError, outcome_of
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.exec.unpacking import unpack

__all__ = ["AnswerStream", "hand_on", "read_answer"]

_LINE_BYTES_MAX = 65_536


@dataclass
class AnswerStream:
    """The answer's lines, and what the program printed."""

    text: str
    stdout: bytes = b""
    stderr: bytes = b""


def read_answer(stream: BinaryIO) -> AnswerStream:
    """Reads up to `end`; what follows stays in the stream."""
    lines: list[bytes] = []
    printed = {b"stdout": b"", b"stderr": b""}
    while True:
        line = stream.readline(_LINE_BYTES_MAX)
        word, _, rest = line.strip().partition(b" ")
        if word in printed:
            if not rest.isdigit():
                raise NotRunError("the guest sent an answer of unknown format")
            printed[word] = stream.read(int(rest))
            continue
        lines.append(line)
        if not line or line == b"end\n":
            text = b"".join(lines).decode("utf-8", "surrogateescape")
            return AnswerStream(text, printed[b"stdout"], printed[b"stderr"])


def hand_on(
    stream: BinaryIO, request: ExecRequest, output_aside: bool, last_words: Callable[[], str]
) -> ExecOutcome:
    """Prints the program's output, unpacks the kept files, and returns the outcome.

    With `output_aside` the program's standard output goes to standard error. Raises `NotRunError`
    with `last_words` if the answer ends early.
    """
    answer = read_answer(stream)
    aside = sys.stderr if output_aside else sys.stdout
    for printed, to in ((answer.stdout, aside), (answer.stderr, sys.stderr)):
        to.buffer.write(printed)
        to.flush()
    outcome = outcome_of(answer.text, request.name)
    if outcome is None:
        raise NotRunError(last_words())
    if request.keep is not None:
        outcome.kept = unpack(stream, request.keep, request.board.partition_bytes)
    return outcome
