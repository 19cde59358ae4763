"""What `import flashbed` offers, from its docstrings, printed for the site's page of Python.

docs/site/asked_pages.py runs this file; the page in the tree keeps no copy.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import flashbed as fb
from docs.generate.markdown import entry, prose

__all__ = ["names"]

SIGNATURE_COLUMNS = 100
SECTIONS = ("Args:", "Raises:", "Returns:")
"""Heads of what docstrings list."""


def names() -> str:
    """Functions, classes and errors, in Markdown."""
    offered = [name for name in fb.__all__ if name not in ("errors", "__version__")]
    functions = [name for name in offered if inspect.isfunction(getattr(fb, name))]
    classes = [name for name in offered if name not in functions]
    parts = ["## Functions"]
    for name in functions:
        parts += _function(f"fb.{name}", getattr(fb, name))
    parts.append("## Classes")
    for name in classes:
        parts += _class(f"fb.{name}", getattr(fb, name))
    parts += ["## Errors", prose(inspect.getdoc(fb.errors) or "")]
    parts.append("\n".join(_error(getattr(fb.errors, name)) for name in fb.errors.__all__))
    parts += ["## Version", prose("`fb.__version__` is the version, as text.")]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _function(name: str, function: Any) -> Iterator[str]:
    yield f"### {name}"
    yield f"```python\n{_signature(name, function)}\n```"
    yield _documented(function)


def _class(name: str, kind: Any) -> Iterator[str]:
    yield f"### {name}"
    if "__init__" in vars(kind):
        yield f"```python\n{_signature(name, kind)}\n```"
    yield _documented(kind)
    members = [(key, one) for key, one in vars(kind).items() if not key.startswith("_")]
    properties = [
        entry(f"`{key}`", inspect.getdoc(one) or "")
        for key, one in members
        if not callable(getattr(kind, key)) and inspect.getdoc(one)
        and not isinstance(one, (str, int, tuple))
    ]  # fmt: skip
    if properties:
        yield "\n".join(properties)
    calls = [(key, getattr(one, "__func__", one)) for key, one in members
             if callable(getattr(kind, key))]  # fmt: skip
    short = [(key, call) for key, call in calls if _fits_a_line(key, call)]
    if short:
        yield "\n".join(
            entry(f"`{_signature(key, call)}`", inspect.getdoc(call) or "") for key, call in short
        )
    for key, call in calls:
        if (key, call) not in short:
            yield f"#### {name}.{key}"
            yield f"```python\n{_signature(key, call)}\n```"
            yield _documented(call)


def _fits_a_line(key: str, call: Any) -> bool:
    """Whether a method is one entry of a list: a line of call, a paragraph of text."""
    said = inspect.getdoc(call) or ""
    return "\n" not in _signature(key, call) and "\n\n" not in said


def _signature(name: str, call: Any) -> str:
    """As it is called: without `self`; a parameter a line where all do not fit into one."""
    signature = inspect.signature(call)
    given = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    words = []
    for at, one in enumerate(given):
        if one.kind == one.KEYWORD_ONLY and (at == 0 or given[at - 1].kind < one.KEYWORD_ONLY):
            words.append("*")
        words.append(_parameter(one))
    back = signature.return_annotation
    end = "" if inspect.isclass(call) or back is signature.empty else f" -> {_plain(back)}"
    line = f"{name}({', '.join(words)}){end}"
    if len(line) <= SIGNATURE_COLUMNS:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){end}"])


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" if one.kind == one.VAR_POSITIONAL else "**" if one.kind == one.VAR_KEYWORD else ""
    default = "" if one.default is one.empty else f" = {one.default!r}"
    return f"{stars}{one.name}: {_plain(one.annotation)}{default}"


def _plain(annotation: Any) -> str:
    """An annotation with the names that `flashbed` gives its classes."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for name in fb.__all__:
        inside = getattr(getattr(fb, name), "__name__", name)
        text = re.sub(rf"\b{inside}\b", name, text)
    return text


def _documented(one: Any) -> str:
    """A docstring: its paragraphs, and the lists of its sections."""
    parts = []
    for part in (inspect.getdoc(one) or "").split("\n\n"):
        head, _, below = part.partition("\n")
        if head not in SECTIONS:
            parts.append(prose(part))
            continue
        lines = textwrap.dedent(below)
        if head == "Returns:":
            parts.append(prose(f"Returns: {lines}"))
            continue
        if head == "Raises:":
            parts.append(head)
        found = [one.partition(": ") for one in re.split(r"\n(?! )", lines)]
        parts.append("\n".join(entry(f"`{name}`", text) for name, _, text in found))
    return "\n\n".join(parts)


def _error(kind: Any) -> str:
    text = (inspect.getdoc(kind) or "").split("\n\n")[0]
    status = f" Exit status {kind.exit_status}."
    return entry(f"`fb.errors.{kind.__name__}`", text + status)


if __name__ == "__main__":
    print(names(), end="")
