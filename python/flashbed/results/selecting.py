"""Selects rows and columns of a table by a user's text: `requests>=64`, `time_ns`, `-flash_reads`.

Works on lazy frames, so that only the selected columns are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from flashbed.base.errors import InputError

__all__ = ["select"]

_CONDITION = re.compile(r"\s*([a-z0-9_]+)\s*(<=|>=|!=|=|<|>)(.*)\Z", re.DOTALL)
_ORDERED = {
    "<": pl.Expr.lt, "<=": pl.Expr.le, ">": pl.Expr.gt, ">=": pl.Expr.ge,
}  # fmt: skip


def select(
    rows: pl.LazyFrame, columns: Sequence[str], sort: Sequence[str], where: Sequence[str]
) -> pl.LazyFrame:
    """The rows that fulfil all of `where`, sorted by `sort` (a `-` before a column: largest first).

    Only `columns` are kept, all if none is named. A condition is COLUMN OPERATOR VALUE;
    `fs=jffs2,ubifs` means either value. Raises `InputError` for what the table does not have.
    """
    schema = rows.collect_schema()
    for condition in where:
        rows = rows.filter(_condition(condition, schema))
    if sort:
        keys = [key.removeprefix("-") for key in sort]
        for key in keys:
            _known(key, schema, "--sort")
        descending = [key.startswith("-") for key in sort]
        rows = rows.sort(keys, descending=descending, nulls_last=True, maintain_order=True)
    for column in columns:
        _known(column, schema, "--columns")
    return rows.select(columns) if columns else rows


def _known(column: str, schema: pl.Schema, option: str) -> None:
    if column not in schema:
        raise InputError(f"{option} {column}: the table has {', '.join(schema)}")


def _condition(text: str, schema: pl.Schema) -> pl.Expr:
    found = _CONDITION.match(text)
    if found is None:
        raise InputError(f"--where {text}: COLUMN, one of = != < <= > >=, and a value")
    column, operator, word = found.groups()
    _known(column, schema, "--where")
    value = pl.col(column)
    if operator in _ORDERED:
        return _ORDERED[operator](value, _value(word, schema[column], text))
    words = word.split(",") if word else [""]
    anyone = value.is_in([_value(each, schema[column], text) for each in words])
    return anyone if operator == "=" else ~anyone


def _value(word: str, kind: pl.DataType, text: str) -> str | int | float | bool:
    try:
        if kind.is_integer():
            return int(word)
        if kind.is_float():
            return float(word)
    except ValueError:
        raise InputError(f"--where {text}: {word[:80]!r} is not a number") from None
    if kind == pl.Boolean:
        if word not in ("true", "false"):
            raise InputError(f"--where {text}: true or false")
        return word == "true"
    return word
