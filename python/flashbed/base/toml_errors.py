"""Explains all errors in a TOML file to its author, a line each.

Pydantic reports what a model expected; this says what to write in the file instead. Unknown keys
come before missing ones, because a typo causes both; the key that was probably meant is then not
reported as missing. A table's name that is wrong makes all its keys unknown or missing: several of
a table are one line. Left out: line numbers, which the TOML reader does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

__all__ = ["wrong_lines"]

LINES_MAX = 20
VALUE_CHARACTERS = 40
NAMES_MAX = 10
MEANT_MAX = 100
"""Unknown keys that are compared with the known ones."""

_KIND_NAMES = ("int", "float", "str", "bool", "none")
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": 'a text, as in "…"',
    "bool_type": "true or false",
    "model_type": "a table, as in {key = value}",
    "model_attributes_type": "a table, as in {key = value}",
    "dict_type": "a table, as in {key = value}",
    "finite_number": "a number that is not inf or nan",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}

Found = Mapping[str, Any]
Place = tuple[str | int | None, ...]


def wrong_lines(model: type[BaseModel], why: ValidationError) -> list[str]:
    """A line `key: what is wrong with it` for each error, `LINES_MAX` at most."""
    errors = list(_of_their_own(why.errors(include_url=False)))
    unknown = [error for error in errors if error["type"] == "extra_forbidden"]
    meant: dict[Place, str | None] = dict.fromkeys(error["loc"] for error in unknown)
    for error in unknown[:MEANT_MAX]:
        meant[error["loc"]] = _meant(model, error, errors)
    missed = {(*at[:-1], name) for at, name in meant.items() if name is not None}
    moved = [
        (error, (*error["loc"][:-1], name))
        for error in unknown
        if (name := meant[error["loc"]]) is not None
    ]
    others = [
        error
        for error in errors
        if error["type"] != "extra_forbidden"
        and not (error["type"] == "missing" and error["loc"] in missed)
        and not any(error["type"] == "missing" and _is_in(error, *there) for there in moved)
    ]
    lines = [
        f"{_key(at)}: unknown key, {name} is meant?"
        for at, name in meant.items()
        if name is not None
    ]
    strange = [at for at, name in meant.items() if name is None]
    lacking = [error["loc"] for error in others if error["type"] == "missing"]
    lines += _of_tables(strange, lacking)
    lines += [_line(error) for error in _firsts_of_lists(others)]
    lines = list(dict.fromkeys(lines))
    if len(lines) > LINES_MAX:
        left = len(lines) - LINES_MAX
        lines[LINES_MAX:] = [f"{left:,} more errors, listed when these are fixed"]
    return lines


def _is_in(missing: Found, unknown: Found, meant: Place) -> bool:
    """Whether a missing key stands in the table of an unknown name, which means this place."""
    found, rest = unknown["input"], missing["loc"][len(meant) :]
    if not rest or tuple(missing["loc"][: len(meant)]) != meant:
        return False
    for part in rest:
        if not isinstance(found, Mapping) or part not in found:
            return False
        found = found[part]
    return True


def _of_tables(unknown: Sequence[Place], missing: Sequence[Place]) -> Iterator[str]:
    """Lines for keys that tables do not know, or lack: one for a table with several."""
    tables: dict[Place, tuple[list[Place], list[Place]]] = {}
    for which, places in enumerate((unknown, missing)):
        for at in places:
            tables.setdefault(at[:-1], ([], []))[which].append(at)
    for table, (strange, lacking) in tables.items():
        if max(len(strange), len(lacking)) < 2:
            yield from (f"{_key(at)}: unknown key" for at in strange)
            yield from (f"{_key(at)}: missing" for at in lacking)
            continue
        said = [f"unknown {_names(strange)}"] if strange else []
        said += [f"missing {_names(lacking)}"] if lacking else []
        yield (f"{_key(table)}: " if table else "") + "; ".join(said)


def _names(places: Sequence[Place]) -> str:
    names = ", ".join(str(at[-1])[:VALUE_CHARACTERS] for at in places[:NAMES_MAX])
    more = f" and {len(places) - NAMES_MAX:,} more" if len(places) > NAMES_MAX else ""
    return f"{'key' if len(places) == 1 else 'keys'} {names}{more}"


def _firsts_of_lists(errors: Sequence[Found]) -> Iterator[Found]:
    """All errors but missing keys; of values in one list only the first."""
    lists = set()
    for error in errors:
        *above, last = error["loc"] or ("",)
        if error["type"] == "missing" or (isinstance(last, int) and tuple(above) in lists):
            continue
        if isinstance(last, int):
            lists.add(tuple(above))
        yield error


def _of_their_own(errors: Sequence[Found]) -> Iterator[Found]:
    """Drops the error of a list that is too short only because its elements are wrong."""
    places = [_place(error) for error in errors]
    above = {place[:length] for place in places for length in range(len(place))}
    for error, place in zip(errors, places, strict=True):
        hollow = error["type"] == "too_short" or place != tuple(error["loc"])
        if not (hollow and place in above):
            yield {**error, "loc": place}


def _place(error: Found) -> tuple[str | int, ...]:
    """An error's place in the file, without pydantic's names for alternative types."""
    loc = error["loc"]
    end = len(loc) - (error["type"] in ("extra_forbidden", "missing"))
    keys = [part for part in loc[:end] if isinstance(part, int) or _is_key(part)]
    return (*keys, *loc[end:])


def _is_key(part: str) -> bool:
    return part not in _KIND_NAMES and not re.search(r"[A-Z\[(]|constrained-", part)


def _meant(model: type[BaseModel], unknown: Found, errors: Sequence[Found]) -> str | None:
    """The known key that an unknown one resembles, preferably one that is missing there."""
    *above, key = unknown["loc"]
    missing = [
        str(error["loc"][-1])
        for error in errors
        if error["type"] == "missing" and list(error["loc"][:-1]) == above
    ]
    for names in (missing, _fields(model, above)):
        close = get_close_matches(str(key), names, 1)
        if close:
            return close[0]
    return None


def _fields(model: type[BaseModel], above: Sequence[str | int]) -> list[str]:
    """Keys of the table at a place, if the model determines which table stands there."""
    here: type[BaseModel] | None = model
    for part in above:
        if here is None or isinstance(part, int):
            continue
        field = here.model_fields.get(part)
        if field is not None:
            here = _model_in(field.annotation)
        elif here.__name__ != part:  # otherwise `part` names one of several alternative tables
            return []
    return [] if here is None else list(here.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [model for part in get_args(annotation) if (model := _model_in(part)) is not None]
    return found[0] if found else None


def _key(place: Sequence[str | int | None]) -> str:
    """A key with its path; positions in a list count from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in place)


def _line(error: Found) -> str:
    place = _key(error["loc"])
    kind, given = error["type"], _given(error["input"])
    context = error.get("ctx", {})
    if kind in ("tuple_type", "list_type"):
        return f"{place}: {given} is not a list, as [{given}] is"
    if kind in _KINDS:
        return f"{place}: {given} is not {_KINDS[kind]}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        shown = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
        return f"{place}: {given} is not {words} {shown}"
    if kind in ("literal_error", "enum"):
        return f"{place}: {given} is not {context['expected']}"
    if kind in ("too_short", "too_long"):
        return f"{place}: {_count(context)} in the list"
    detail = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {detail}" if place else detail


def _count(context: Mapping[str, Any]) -> str:
    if "min_length" in context:
        return f"at least {context['min_length']}"
    return f"at most {context['max_length']:,}"


def _given(value: Any) -> str:
    """A value as TOML writes it, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, dict):
        text = "a table"
    elif isinstance(value, (list, tuple)):
        text = "a list"
    if len(text) <= VALUE_CHARACTERS:
        return text
    return f"{text[:VALUE_CHARACTERS]}…"
