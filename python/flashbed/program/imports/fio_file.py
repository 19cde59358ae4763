"""Reads fio's job files: sections, defaults, files that are included, variables, comments."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.paths import shown
from flashbed.program.imports.fio_options import (
    ALIASES,
    ENGINES,
    IGNORED,
    READERS,
    REFUSED,
    Amount,
    Distribution,
    Splits,
    Triple,
    Value,
    refused_engine,
)
from flashbed.program.imports.lines import ImportedError, lines_of, refuse
from flashbed.program.imports.looks import refuse_foreign

__all__ = ["FioJob", "jobs_of"]

_JOBS_MAX = 4096
_DEPTH_MAX = 16
_LINES_MAX = 100_000
_VARIABLE = re.compile(r"\$\{(\w{1,100})\}")
_COMMENT = re.compile(r"[;#].*\Z", re.DOTALL)


@dataclass(kw_only=True)
class FioJob:
    """A job: its name, where it begins, and its options."""

    name: str
    path: Path
    line: int
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def error(self, why: str, *keys: str) -> ImportedError:
        """The error of a job, at the line of the first of these options that it has."""
        line = next((self.lines[key] for key in keys if key in self.lines), self.line)
        return refuse(self.path, line, f"{self.name[:40]}: {why}")

    def number(self, key: str, default: int = 0) -> int:
        """A whole number."""
        value = self.values.get(key, default)
        assert isinstance(value, int)
        return value

    def text(self, key: str, default: str = "") -> str:
        """A word."""
        return str(self.values.get(key, default))

    def amount(self, key: str) -> Amount | None:
        """A size, or per cent of one."""
        value = self.values.get(key)
        assert value is None or isinstance(value, Amount)
        return value

    def triple(self, key: str) -> Triple:
        """Numbers for reads, writes and trims."""
        value: object = self.values.get(key, (0, 0, 0))
        assert isinstance(value, tuple)
        return value

    def splits(self, key: str) -> Splits | None:
        """Block sizes for reads, writes and trims."""
        value: object = self.values.get(key)
        assert value is None or isinstance(value, tuple)
        return value

    def distribution(self) -> Distribution | None:
        """How random offsets are distributed."""
        value: object = self.values.get("random_distribution")
        assert value is None or isinstance(value, tuple)
        return value if value is not None and value[0] != "random" else None


@dataclass(kw_only=True)
class _FioReader:
    jobs: list[FioJob] = field(default_factory=list)
    usual: FioJob = field(default_factory=lambda: FioJob(name="global", path=Path(), line=0))
    job: FioJob | None = None
    lines: int = 0
    reading: list[Path] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Reads a file, and those that it includes."""
        self.reading.append(path)
        for line, raw in lines_of(path):
            self.lines += 1
            if self.lines > _LINES_MAX:
                raise refuse(path, line, f"more than {_LINES_MAX:,} lines")
            text = _COMMENT.sub("", raw.decode("utf-8", "replace")).strip()
            if not text:
                continue
            words = text.split(None, 1)
            if words[0] == "include" and len(words) > 1:
                self._include(path, line, words[1].strip())
            elif text.startswith("["):
                self._section(path, line, text)
            else:
                self._option(path, line, text)
        self.reading.pop()

    def _include(self, path: Path, line: int, name: str) -> None:
        other = path.parent / name
        if other in self.reading or len(self.reading) >= _DEPTH_MAX:
            raise refuse(path, line, f"include {name[:80]}: files that include one another")
        if not other.is_file():
            raise refuse(path, line, f"include {name[:80]}: no such file")
        self.read(other)

    def _section(self, path: Path, line: int, text: str) -> None:
        if not text.endswith("]") or len(text) < 3:
            raise refuse(path, line, "no [NAME]")
        name = text[1:-1]
        if name == "global":
            self.job = self.usual
            return
        if len(self.jobs) >= _JOBS_MAX:
            raise refuse(path, line, f"more than {_JOBS_MAX:,} jobs")
        self.job = FioJob(
            name=name,
            path=path,
            line=line,
            values=dict(self.usual.values),
            lines=dict(self.usual.lines),
        )
        self.jobs.append(self.job)

    def _option(self, path: Path, line: int, text: str) -> None:
        key, _, value = (part.strip() for part in text.partition("="))
        key = ALIASES.get(key, key)
        if self.job is None:
            raise refuse(path, line, f"{key[:40]}: before the first [NAME]")
        if key in IGNORED:
            return
        reader = READERS.get(key)
        if reader is None:
            why = REFUSED.get(key, "not an option of fio that is known here")
            raise refuse(path, line, f"{key[:40]}: {why}")
        try:
            read = reader(_expanded(value.strip("\"'")))
        except ValueError as why:
            raise refuse(path, line, f"{key}: {why}") from None
        if key == "ioengine" and read not in ENGINES:
            raise refuse(path, line, f"ioengine: {refused_engine(str(read))}")
        self.job.values[key] = read
        self.job.lines[key] = line
        if key == "name" and self.job is not self.usual:
            self.job.name = str(read)


def _expanded(value: str) -> str:
    """A value with the environment's variables put in."""

    def replaced(found: re.Match[str]) -> str:
        given = os.environ.get(found[1])
        if given is None:
            raise ValueError(f"${{{found[1]}}} is not set; set {found[1]} in the environment")
        return given

    return _VARIABLE.sub(replaced, value)


def jobs_of(path: Path) -> list[FioJob]:
    """The jobs of a file. Raises `ImportedError` with FILE:LINE."""
    reader = _FioReader()
    try:
        reader.read(path)
    except ImportedError:
        if not reader.jobs:
            refuse_foreign(path, "fio-job")
        raise
    if not reader.jobs:
        refuse_foreign(path, "fio-job")
        raise ImportedError(f"{shown(path)}: no job")
    return reader.jobs
