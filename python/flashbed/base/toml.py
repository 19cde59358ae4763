"""TOML files as frozen pydantic models: one reader, one form of error.

A wrong file is refused with a line for each error, which names the file and the key
(toml_errors.py). The models say what the keys mean (profiles.py, plan/experiment.py).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.paths import sha256_of, shown
from flashbed.base.toml_errors import wrong_lines

__all__ = [
    "TOML_BYTES_MAX", "FromFile", "Hashed", "Strict", "loads", "read_model", "read_toml",
]  # fmt: skip


class Strict(BaseModel):
    """A table in which every key is known and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Hashed(Strict):
    """A table that is an axis's value: every case with it needs its hash, so it is cached."""

    @cached_property
    def _hashed(self) -> int:
        """The hash."""
        return hash((type(self), *(getattr(self, name) for name in type(self).model_fields)))

    def __hash__(self) -> int:
        return self._hashed

    def __getstate__(self) -> dict[Any, Any]:
        """Without the hash, which another process computes otherwise."""
        state = super().__getstate__()
        values = {name: value for name, value in state["__dict__"].items() if name != "_hashed"}
        return state | {"__dict__": values}


class FromFile(Strict):
    """A whole file as a model; the function that reads it sets `_path`."""

    _path: Path = PrivateAttr(default=Path())

    @property
    def path(self) -> Path:
        """The file it was read from."""
        return self._path

    @cached_property
    def sha256(self) -> str:
        """Hash of its file."""
        return sha256_of(self._path)

    @cached_property
    def values_json(self) -> str:
        """All its values, which may be others than the file's."""
        return self.model_dump_json()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values and without this one's cached properties."""
        copied = super().model_copy(update=update, deep=deep)
        for name in [name for name in copied.__dict__ if name not in type(self).model_fields]:
            del copied.__dict__[name]
        return copied


TOML_BYTES_MAX = 1 << 20
DEPTH_MAX = 20
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_DEEP_KEY = re.compile(rf"(?m)(?:^|[{{,[])[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART}){{64}}")
"""A key of so many parts that `tomllib`, whose time grows with their square, is not given it."""
M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path, error: type[InputError]) -> dict[str, Any]:
    """Reads a TOML file; raises `error` with one line if it is missing or is not TOML."""
    text = read_text(path, TOML_BYTES_MAX, error)
    try:
        values = loads(text)
    except RecursionError:
        raise error(f"{shown(path)}: nested too deeply, {DEPTH_MAX} levels at most") from None
    except ValueError as why:  # bad syntax, or a number with thousands of digits
        raise error(f"{shown(path)}: not TOML: {why}") from None
    _check_depth(values, path, error)
    return values


def loads(text: str) -> dict[str, Any]:
    """TOML's values. Raises `ValueError`, and `RecursionError` for what is nested too deeply."""
    if _DEEP_KEY.search(text):
        raise RecursionError
    return tomllib.loads(text)


def _check_depth(values: dict[str, Any], path: Path, error: type[InputError]) -> None:
    level: list[Any] = [values]
    for _ in range(DEPTH_MAX):
        level = [
            below
            for value in level
            if isinstance(value, (dict, list))
            for below in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise error(f"{shown(path)}: nested too deeply, {DEPTH_MAX} levels at most")


def read_model(model: type[M], values: dict[str, Any], path: Path, error: type[InputError]) -> M:
    """Makes a model from a file's values; raises `error`, which names file and wrong keys."""
    try:
        return model.model_validate(values)
    except ValidationError as why:
        first, *others = [f"{shown(path)}: {line}" for line in wrong_lines(model, why)]
        raised = error(first)
        raised.also = tuple(others)
        raise raised from None
