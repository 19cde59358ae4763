"""reference/profiles.md: every key of boards and kernels, from their pydantic models."""

from __future__ import annotations

import ast
import inspect
import types
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

An unknown key is an error. So is a missing one, unless the table below says that it may be missing.
Every table names in `source` where its numbers come from.
"""
_PRICES = """The kernel's code costs these, layer by layer, on the CPU. `flashbed calibrate BOARD
--write` fits them. How a price is found: `fitted`, to the cases of a calibration; `folded`, seen in
single requests of these cases or part of another price; `by hand`. A price that ends in `_ps` is
for a byte or a step. Each is 0 to 1,000,000,000. A table without any price is that of a board that
is not calibrated: code takes no time there, and runs warn of it. docs/models/costs.md explains the
model."""
_FILE_SYSTEMS = """`boards/parts/file_systems.toml` is the project's own: a row for each file
system, with what is true of it whatever the kernel and the board, one for each way to use a
partition without a file system, and one for each file system of disks. Everything else asks these
rows; nothing else lists file systems. Another file system needs a row here, its code in the
simulator, and its name in the agent."""
_LAYOUTS = """A layout is a file `boards/layouts/NAME.toml`: what lies on the flash of a product,
which `--set layout=NAME` chooses for `exec` and `boot`. docs/models/layouts.md says how it is made.
`--set layout.KEY=VALUE` changes `fastmap`, and the keys of all volumes that have an image."""
_NAMES = {int: "integer", str: "text", bool: "true or false", float: "number"}


def page() -> str:
    """The page."""
    parts = [_HEAD]
    for title, model in (("Boards", Board), ("Kernels", Kernel)):
        parts.append(f"## {title}")
        for name, needed, below in _tables(model):
            parts += _one_table(name, needed, below)
    parts += ["## File systems", prose(_FILE_SYSTEMS)]
    rows = (("file_system", FileSystemFacts), ("raw", RawFacts), ("on_ftl", OnFtlFacts))
    for name, row in rows:
        parts += _one_table(f"[{name}]", True, row)
    parts += [
        "A row of `files_pct`:",
        "\n".join(key_of(FilesPct, one) for one in FilesPct.model_fields),
    ]
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


def _one_table(name: str, needed: bool, model: type[BaseModel]) -> Iterator[str]:
    yield f"### [{name}]"
    text = about(model)
    yield prose(f"{text}{'' if needed else ' The table may be missing.'}")
    if model is Software:
        yield prose(_PRICES)
        yield "\n".join(_priced())
    keys = [key for key, field in model.model_fields.items() if not field.json_schema_extra]
    rows = [key_of(model, key) for key in keys if model is not Software or key != "compressors"]
    if rows:
        yield "\n".join(rows)
    for key in keys:
        rows_of = _model_of(model.model_fields[key].annotation)
        if rows_of is not None and issubclass(rows_of, MeanPower):
            yield prose(f"A row of `{key}`:")
            yield "\n".join(key_of(rows_of, one) for one in rows_of.model_fields)


def _priced() -> Iterator[str]:
    for price in prices():
        found = f"{price.how}: {price.why}" if price.why else price.how
        meaning = price.meaning.removesuffix(".").replace(", in picoseconds", "")
        yield entry(f"`{price.key}` ({unit_of(price.key)})", f"{meaning}. Found: {found}.")


def about(model: type[BaseModel]) -> str:
    """A model's docstring, without the name of its table."""
    text = inspect.cleandoc(model.__doc__ or "")
    first, colon, rest = text.partition(": ")
    if colon and first.startswith("`["):
        return rest[0].upper() + rest[1:]
    return text


def key_of(model: type[BaseModel], key: str) -> str:
    """A key as the pages have it: its unit and type, and what it is."""
    facts = "; ".join(filter(None, (unit_of(key), _type(model, key))))
    return entry(f"`{key}` ({facts})", described(model)[key])


def _type(model: type[BaseModel], key: str) -> str:
    field = model.model_fields[key]
    text = _kind(field.annotation)
    given = [*field.metadata, *(one for kind in get_args(field.annotation) for one in _given(kind))]
    bounds = {type(one).__name__.lower(): one for one in given}
    low, high = _bound(bounds, "ge", "gt", 1), _bound(bounds, "le", "lt", -1)
    if low is not None or high is not None:
        text += f", {low:,} to {high:,}"
    if not field.is_required():
        default = field.get_default()
        nothing = default is None or default is PydanticUndefined or default == ()
        text += "; may be missing" if nothing else f"; default `{default}`"
    return text


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
