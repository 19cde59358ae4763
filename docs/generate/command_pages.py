"""What the site puts into reference/command-line.md: every command, from the program's own parser.

docs/site/asked_pages.py runs this file; the page in the tree keeps no copy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from docs.generate.markdown import entry, prose
from flashbed.cli import GROUPS, app

__all__ = ["commands"]

_OWN_STATUS = {
    "exec": "It is the program's own. Where no program was run it is as for all commands.",
}
COMMON = 3
"""An option is common if so many commands have it alike."""


def commands() -> str:
    """Every command, and the options that several have."""
    root: Any = get_command(app)
    common = _common(root)
    parts = ["## Options of several commands",
             prose("A command that has one names it only."), "\n".join(common)]  # fmt: skip
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            parts += _command(name, root.commands[name], common)
    parts += ["## Options of the program", *(_option(option) for option in root.params)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _common(root: Any) -> list[str]:
    """The entries that most commands have for an option, where several have the same."""
    entries = Counter(_option(option) for one in _all(root) for option in _options(one))
    first: dict[str, str] = {}
    for text, count in entries.most_common():
        if count >= COMMON:
            first.setdefault(text.split("`")[1], text)
    return list(first.values())


def _all(command: Any) -> Iterator[Any]:
    """The commands below one that a user sees."""
    for one in getattr(command, "commands", {}).values():
        if not one.hidden:
            yield one
            yield from _all(one)


def _options(command: Any) -> list[Any]:
    found = [one for one in command.params if one.param_type_name == "option"]
    return [one for one in found if not one.hidden]


def _command(name: str, command: Any, common: Container[str]) -> Iterator[str]:
    """A command, or a group and its commands."""
    yield f"### flashbed {name}"
    yield prose(command.help or "")
    below = getattr(command, "commands", {})
    if not below:
        yield from _used(name, command, common)
    for under, one in below.items():
        yield from _command(f"{name} {under}", one, common)


def _used(name: str, command: Any, common: Container[str]) -> Iterator[str]:
    examples = re.findall(r"`([^`]+)`", command.epilog or "")
    if examples:
        yield "\n".join(["```console", *(f"$ {example}" for example in examples), "```"])
    given = [one for one in command.params if one.param_type_name == "argument"]
    options = _options(command)
    words = " ".join(_word(one) for one in given)
    yield f"Usage: `flashbed {name}{' [OPTIONS]' if options else ''} {words}".rstrip() + "`"
    lines = [entry(f"`{one.metavar or one.name.upper()}`", one.help or "") for one in given]
    lines += [said for one in options if (said := _option(one)) not in common]
    alike = [f"`{one.opts[0]}`" for one in options if _option(one) in common]
    if alike:
        lines.append(entry(", ".join(alike), "As above."))
    yield "\n".join(lines)
    if name in _OWN_STATUS:
        yield prose(f"Exit status: {_OWN_STATUS[name]}")


def _word(argument: Any) -> str:
    word = str(argument.metavar or argument.name.upper())
    return word if argument.required or word.startswith("[") else f"[{word}]"


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.metavar or option.name.upper()}`"
    said = (option.help or "").strip()
    said += "." if said and not said.endswith(".") else ""
    if option.multiple and "again for more" not in said:
        said += " Repeatable."
    if option.required:
        said += " Required."
    default = option.default
    if isinstance(option.show_default, str):
        said += f" Default: {option.show_default}."
    elif default not in (None, False, "", ()) and not option.is_flag:
        said += f" Default: `{default.as_posix() if isinstance(default, Path) else default}`."
    elif option.is_flag and default:
        said += f" Default: `{option.opts[0]}`."
    return entry(names + value, said)


if __name__ == "__main__":
    print(commands(), end="")
