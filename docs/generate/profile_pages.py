"""reference/profiles.md: every key of boards and kernels, from their pydantic models."""

from __future__ import annotations

import ast
import inspect
import types
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from docs.generate.markdown import NOTE, entry, prose, unit_of
from flashbed.stack.energy import MeanPower
from flashbed.stack.file_systems import FilesPct, FileSystemFacts, OnFtlFacts, RawFacts
from flashbed.stack.layouts import Layer, Layout, Volume
from flashbed.stack.prices import Software, prices
from flashbed.stack.profiles import Board, Kernel

__all__ = ["about", "described", "key_of", "models", "page"]

_HEAD = f"""# Profiles

{NOTE}

A board is a file `boards/NAME.toml`, a kernel a file `boards/kernels/NAME.toml`: in your working
folder, or flashbed's own. This is the beginning of one:

```toml
[board]
name = "mine"
title = "my board"
ram_mib = 128
source = "its manual"

[chip]
source = "W25N01GV data sheet"
page_bytes = 2048
```

`flashbed board new mine --chip W25N01GV --processor cortex-a7@528MHz` begins one for you, and
[my chip](../guide/my-chip.md) explains it. Two tables may name a chip or a board instead of
numbers:

```toml
[chip]
part = "W25N01GV"    # a chip of the catalogue, docs/reference/chips.md

[controller]
clock_hz = 52_000_000
lines = 4

[software]
like = "emulated"    # its prices, by the clocks of both boards (board.cpu_mhz): an estimate
pointer_bytes = 4
```

An unknown key is an error. So is a missing one that is neither optional nor has a default. Every
table has a text `source`, which says where its numbers come from. A key with a unit is a whole
number, at most 1,000,000,000. `From` says where to find a value.
"""
_PRICES = """`flashbed calibrate BOARD --write` fits these prices to the cases of a calibration.
Those that it cannot fit say so: `folded`, seen in single requests of these cases or part of another
price; `by hand`. `_ns` are nanoseconds; `_ps` picoseconds for a byte or a step. A table without any
price is that of a board that is not calibrated: code takes no time there, and runs warn of it.
docs/models/costs.md explains the model."""
_FILE_SYSTEMS = """`boards/parts/file_systems.toml` is the project's own: what is true of each file
system whatever the kernel and the board. `python/flashbed/stack/file_systems.py` explains its keys.
Another file system needs a row there, its code in the simulator, and its name in the agent."""
_LAYOUTS = """A layout is a file `boards/layouts/NAME.toml`: what lies on the flash of a product,
which `--set layout=NAME` chooses. docs/models/layouts.md says how it is made.
`--set layout.KEY=VALUE` changes `fastmap`, `files`, and the keys of all volumes with an image."""
_OF_PRICES = ("compressors", "squashfs")
"""Tables whose keys are among the prices."""
COMMON = 3
"""A place is said of a table as a whole if so many keys are found there."""
_USUAL = (0, 1_000_000_000)
"""Bounds of a number with a unit that need no word."""
_NAMES = {int: "integer", str: "text", bool: "boolean", float: "number"}


def page() -> str:
    """The page."""
    parts, had = [_HEAD], dict[str, str]()
    for title, model in (("Boards", Board), ("Kernels", Kernel)):
        parts.append(f"## {title}")
        for name, needed, below in _tables(model):
            parts += _one_table(name, needed, below, had)
    parts += ["## File systems", prose(_FILE_SYSTEMS)]
    parts += ["## Layouts", prose(_LAYOUTS)]
    parts += _one_table("[volume]", True, Volume)
    parts += _one_table("layer", False, Layer)
    parts += ["Beside these tables:"]
    parts += ["\n".join(key_of(Layout, one) for one in _plain(Layout))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _plain(model: type[BaseModel]) -> list[str]:
    """The keys of a file that are not tables."""
    return [name for name in model.model_fields if name not in ("volume", "layer")]


def models() -> list[type[BaseModel]]:
    """Every model that has keys on the page."""
    of_profiles = [below for model in (Board, Kernel) for _, _, below in _tables(model)]
    return [*of_profiles, FileSystemFacts, FilesPct, RawFacts, OnFtlFacts, Volume, Layer]


def _tables(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, bool, Any]]:
    """Tables of a profile: name, whether it must be there, model."""
    for name, field in model.model_fields.items():
        below = _model_of(field.annotation)
        if below is None:
            continue
        if all(_model_of(one.annotation) for one in below.model_fields.values()):
            yield from _tables(below, f"{before}{name}.")
        else:
            yield f"{before}{name}", field.is_required(), below


def _model_of(kind: Any) -> type[BaseModel] | None:
    for one in (kind, *get_args(kind)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None


def _one_table(
    name: str, needed: bool, model: type[BaseModel], had: dict[str, str] | None = None
) -> Iterator[str]:
    """A table and its keys; `had` has the lines of tables before it, which are not said again."""
    yield f"### [{name}]"
    text = about(model)
    yield prose(f"{text}{'' if needed else ' The table may be missing.'}")
    if model is Software:
        yield prose(_PRICES)
        yield "\n".join(_priced())
    keys = [key for key, field in model.model_fields.items() if not field.json_schema_extra]
    rows = [
        key for key in keys if key != "source" and (model is not Software or key not in _OF_PRICES)
    ]
    common = _common_place(model, rows)
    if common:
        yield prose(f"From, where a key does not say it: {common}")
    if rows:
        said = {key: key_of(model, key, common) for key in rows}
        yield "\n".join(_lines(name, said, had))
    for key in keys:
        rows_of = _model_of(model.model_fields[key].annotation)
        if rows_of is not None and issubclass(rows_of, MeanPower):
            yield prose(f"A row of `{key}`:")
            rows_said = {one: key_of(rows_of, one) for one in rows_of.model_fields}
            yield "\n".join(_lines(name, rows_said, had))


def _lines(name: str, rows: dict[str, str], had: dict[str, str] | None) -> Iterator[str]:
    """The entries of keys; those that an earlier table has alike are named in one line."""
    before = {} if had is None else {key: had[row] for key, row in rows.items() if row in had}
    for table in dict.fromkeys(before.values()):
        alike = ", ".join(f"`{key}`" for key, where in before.items() if where == table)
        yield entry(alike, f"As in `[{table}]`.")
    yield from (row for key, row in rows.items() if key not in before)
    if had is not None:
        had.update({row: name for row in rows.values() if row not in had})


def _common_place(model: type[BaseModel], keys: list[str]) -> str:
    """Where most of these keys are found, if several are."""
    places = Counter(
        found[2] for key in keys if (found := described(model)[key].partition("From: "))[1]
    )
    place, count = places.most_common(1)[0] if places else ("", 0)
    return place if count >= COMMON else ""


def _priced() -> Iterator[str]:
    """Each price; those of several compressors that mean the same are one entry."""
    said: dict[str, list[str]] = {}
    for price in prices():
        meaning = price.meaning.removesuffix(".").replace(", in picoseconds", "")
        how = "" if price.how == "fitted" and not price.why else f" Found {price.how}"
        text = f"{meaning}.{how}{f': {price.why}' if price.why else ''}"
        said.setdefault(f"{text.removesuffix('.')}.", []).append(price.key)
    for text, keys in said.items():
        yield entry(", ".join(f"`{key}`" for key in _folded(keys)), text)


def _folded(keys: list[str]) -> list[str]:
    """Keys that differ in the compressor alone are one: `compressors.{lzo,zstd}.search_ns`."""
    parts = [key.split(".") for key in keys]
    differ = [at for at, names in enumerate(zip(*parts, strict=False)) if len(set(names)) > 1]
    alike = len(differ) == 1 and len({len(each) for each in parts}) == 1
    if not alike or differ[0] + 1 == len(parts[0]):
        return keys
    (at,) = differ
    names = ",".join(each[at] for each in parts)
    return [".".join([*parts[0][:at], f"{{{names}}}", *parts[0][at + 1 :]])]


def about(model: type[BaseModel]) -> str:
    """A model's docstring, without the name of its table."""
    text = inspect.cleandoc(model.__doc__ or "")
    first, colon, rest = text.partition(": ")
    if colon and first.startswith("`["):
        return rest[0].upper() + rest[1:]
    return text


def key_of(model: type[BaseModel], key: str, common: str = "") -> str:
    """A key as the pages have it: its unit and type, and what it is; `common` is not repeated."""
    facts = "; ".join(filter(None, (unit_of(key), _type(model, key))))
    text = described(model)[key]
    if common:
        text = text.removesuffix(f"From: {common}").strip()
    return entry(f"`{key}` ({facts})", text)


def _type(model: type[BaseModel], key: str) -> str:
    field = model.model_fields[key]
    text = _kind(field.annotation)
    unit = unit_of(key)
    given = [*field.metadata, *(one for kind in get_args(field.annotation) for one in _given(kind))]
    bounds = {type(one).__name__.lower(): one for one in given}
    low, high = _bound(bounds, "ge", "gt", 1), _bound(bounds, "le", "lt", -1)
    if text == "integer" and unit:
        bounds_said = {_USUAL: "", (1, _USUAL[1]): "not 0"}
        text = bounds_said.get((low or 0, high or 0), f"{low or 0:,} to {high or 0:,}")
    elif low is not None or high is not None:
        text += f", {low:,} to {high:,}"
    if not field.is_required():
        default = field.get_default()
        nothing = default is None or default is PydanticUndefined or default == ()
        text += "; optional" if nothing else f"; default `{default}`"
    return text.removeprefix("; ")


def _given(kind: Any) -> tuple[Any, ...]:
    """What is said of a type beside its name, as pydantic keeps it."""
    found: list[Any] = []
    for one in getattr(kind, "__metadata__", ()):
        found += getattr(one, "metadata", None) or [one]
    return tuple(found)


def _bound(bounds: dict[str, Any], within: str, beyond: str, step: int) -> int | None:
    """The last number that is allowed; None if there is no bound."""
    if within in bounds:
        return int(getattr(bounds[within], within))
    return int(getattr(bounds[beyond], beyond)) + step if beyond in bounds else None


def _kind(kind: Any) -> str:
    """A type in words."""
    origin = get_origin(kind)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if origin in (Union, types.UnionType):
        return _kind(next(one for one in get_args(kind) if one is not type(None)))
    if origin in (list, tuple):
        (one, *_) = get_args(kind)
        return f"list of {_kind(one)}" if _model_of(one) is None else "list of tables"
    if origin is dict:
        return "table of integers"
    if origin is not None:  # Annotated
        return _kind(get_args(kind)[0])
    return _NAMES[kind]


@cache
def described(model: type[BaseModel]) -> dict[str, str]:
    """Key -> what the docstring below it says, in the model or in those it extends."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if not (issubclass(one, BaseModel) and one.__module__.startswith("flashbed.stack")):
            continue
        (tree,) = ast.parse(inspect.getsource(one)).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                assert isinstance(field.target, ast.Name)
                found[field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return found
