"""Examples of the documents: their commands, and whether what is said is what is shown.

An example is the console blocks of one section: commands behind `$`, and what they print. A line of
`...` stands for any lines. Numbers may be off by a quarter, or by one: they are to tell a reader
what to expect, and how right they are is other tests' question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
RELEASE = re.compile(r"Linux \d[\w.-]*")


@dataclass(frozen=True)
class Step:
    """A command and the lines that are shown of what it prints."""

    command: str
    shown: list[str]


def steps(document: Path, section: str) -> list[Step]:
    """Those of a section, in their order."""
    text = document.read_text()
    body = text[text.index(f"\n## {section}\n") + 4 :].split("\n## ")[0]
    found: list[Step] = []
    for block in re.findall(r"```console\n(.*?)```", body, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            else:
                found[-1].shown.append(line)
    return found


def words_and_numbers(line: str) -> tuple[str, list[float]]:
    plain = RELEASE.sub("Linux", line)
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(plain)]
    return " ".join(NUMBER.sub("#", plain).split()), numbers


def same(shown: str, said: str) -> bool:
    (words, numbers), (other, others) = words_and_numbers(shown), words_and_numbers(said)
    close = (abs(a - b) <= max(1.0, abs(a) / 4) for a, b in zip(numbers, others, strict=False))
    return words == other and all(close)


def check(shown: list[str], said: list[str]) -> None:
    """Checks that the output is what the page shows, except where `...` leaves lines out."""
    at, gap = 0, False
    for line in shown:
        if line == "...":
            gap = True
            continue
        while gap and at < len(said) and not same(line, said[at]):
            at += 1
        assert at < len(said), f"not said: {line}"
        assert same(line, said[at]), (line, said[at])
        at, gap = at + 1, False
    assert gap or at == len(said), f"not shown: {said[at]}"
