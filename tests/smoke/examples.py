"""Examples of the documents: their commands, and whether what is said is what is shown.

An example is a console block: commands behind `$`, and what they print. A command that ends in a
backslash continues below it. A line of `...` stands for any lines. Numbers are exactly those
that are printed, until the page runs a program of this machine: from then on they may be off by a
quarter, or by one.

A file that a step needs is a block whose first line is a comment that holds its name, and nothing
else: `# mine.toml`. What needs more than the simulator says so in an HTML comment of the page:
`<!-- needs: uml -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
RELEASE = re.compile(r"Linux \d[\w.-]*")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"(?:#|--|//|;|/\*) ([\w.-]+(?:/[\w.-]+)*\.\w+)(?: \*/)?\n")
NEEDS = re.compile(r"<!-- needs: ([\w, -]+?) -->")
OF_THIS_MACHINE = re.compile(
    r"flashbed (?:exec|record|doctor|prepare|playground)\b|--on (?!sim\b)|sqlite3"
)
"""Commands whose output, or what they leave, depends on the programs that a machine has."""
USES = {
    "uml": re.compile(r"flashbed exec\b(?!.*--on )|--on \S*\buml\b"),
    "emulator": re.compile(r"--on \S*\bemulator\b|flashbed boot\b(?!.*--on )"),
}
"""What a command needs even where the page does not say so."""


@dataclass(frozen=True)
class Step:
    """A command and the lines that are shown of what it prints."""

    command: str
    shown: list[str]


@dataclass(frozen=True)
class File:
    """A text file that a page shows."""

    name: str
    text: str


def steps(document: Path, section: str) -> list[Step]:
    """The commands of a section, in their order."""
    text = document.read_text()
    body = text[text.index(f"\n## {section}\n") + 4 :].split("\n## ")[0]
    return [part for part in parts(body) if isinstance(part, Step)]


def parts(text: str) -> list[Step | File]:
    """What is to be done on a page: its commands and its files, in their order."""
    found: list[Step | File] = []
    for language, block in BLOCK.findall(text):
        if language == "console":
            found += _steps(block.splitlines())
        elif language != "sh" and (named := NAMED.match(block)):
            found.append(File(named[1], block))
    return found


def _steps(lines: list[str]) -> list[Step]:
    found: list[Step] = []
    goes_on = False
    for line in lines:
        if goes_on:
            before = found.pop().command.removesuffix("\\")
            found.append(Step(before + line.removeprefix("> ").strip(), []))
        elif line.startswith("$ "):
            found.append(Step(line[2:], []))
        else:
            assert found, f"an output without a command: {line}"
            found[-1].shown.append(line)
            continue
        goes_on = found[-1].command.endswith("\\")
    return found


def needs(text: str) -> list[str]:
    """What a page says that it needs, by its comments and by its commands."""
    said = [word for words in NEEDS.findall(text) for word in re.split(r"[,\s]+", words)]
    commands = [part.command for part in parts(text) if isinstance(part, Step)]
    for command in commands:
        said += [name for name, words in USES.items() if words.search(command)]
    return sorted(set(said))


def words_and_numbers(line: str) -> tuple[str, list[float]]:
    plain = RELEASE.sub("Linux", line)
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(plain)]
    return " ".join(NUMBER.sub("#", plain).split()), numbers


def same(shown: str, said: str, exact: bool) -> bool:
    """Whether a line that is shown is a line that is printed."""
    (words, numbers), (other, others) = words_and_numbers(shown), words_and_numbers(said)
    if exact:
        return (words, numbers) == (other, others)
    close = (abs(a - b) <= max(1.0, abs(a) / 4) for a, b in zip(numbers, others, strict=False))
    return words == other and all(close)


def check(shown: list[str], said: list[str], exact: bool = True) -> None:
    """Checks that the output is what the page shows, except where `...` leaves lines out."""
    at, gap = 0, False
    for line in shown:
        if line == "...":
            gap = True
            continue
        while gap and at < len(said) and not same(line, said[at], exact):
            at += 1
        assert at < len(said), f"not said: {line}"
        assert same(line, said[at], exact), (line, said[at])
        at, gap = at + 1, False
    assert gap or at == len(said), f"not shown: {said[at]}"


def moved(shown: list[str], said: list[str]) -> list[tuple[str, str]]:
    """Lines that are shown with other numbers or spaces, and as they are printed."""
    found, at = [], 0
    for line in shown:
        words, _ = words_and_numbers(line)
        rest = [n for n in range(at, len(said)) if words_and_numbers(said[n])[0] == words]
        if line != "..." and rest:
            at = rest[0] + 1
            if said[rest[0]] != line:
                found.append((line, said[rest[0]]))
    return found
