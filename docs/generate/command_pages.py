"""reference/command-line.md: every command, from the program's own parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from docs.generate.markdown import NOTE, entry, prose, table
from flashbed.base.errors import FlashbedError, InputError, Interrupted
from flashbed.cli import GROUPS, app

__all__ = ["page"]

_HEAD = f"""# Command line

{NOTE}

```console
$ flashbed run figure3 --set kernel=6.1 --set requests=8,64
$ flashbed table results/readahead/figure3 cases --sort time_ns
```

`flashbed COMMAND --help` prints the same. Results go to standard output, everything else goes to
standard error. [environment.md](environment.md) lists environment variables and the places of
files, [experiment-file.md](experiment-file.md) the axes that `--set` takes.
"""
_STATUSES = (
    ("0", "The command did what you asked for."),
    (str(FlashbedError.exit_status), "Something failed while it ran: a case, a target, a disk."),
    (str(InputError.exit_status), "The command line, a file or a name is wrong. Nothing was run."),
    (str(Interrupted.exit_status), "You interrupted it. Finished cases are kept."),
)
_OWN_STATUS = {
    "exec": "It is the program's own. Where no program was run it is as for all commands.",
}
_STATUS = re.compile(r"[^.]*\bstatus \d[^.]*\.")


def page() -> str:
    """The page."""
    root: Any = get_command(app)
    groups = {name: group for group, names in GROUPS.items() for name in names}
    parts = [_HEAD, "## Exit status", prose("An error is one line on standard error."),
             table(("status", "when"), _STATUSES)]  # fmt: skip
    current = None
    for name, command in root.commands.items():
        if command.hidden:
            continue
        if groups[name] != current:
            current = groups[name]
            parts.append(f"## {current}")
        parts += _command(name, command)
    parts += ["## Options of the program", *(_option(option) for option in root.params)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    """A command, or a group and its commands."""
    yield f"### flashbed {name}"
    yield prose(command.help or "")
    below = getattr(command, "commands", {})
    if not below:
        yield from _used(name, command)
    for under, one in below.items():
        yield from _command(f"{name} {under}", one)


def _used(name: str, command: Any) -> Iterator[str]:
    examples = re.findall(r"`([^`]+)`", command.epilog or "")
    if examples:
        yield "\n".join(["```console", *(f"$ {example}" for example in examples), "```"])
    given = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    words = " ".join(_word(one) for one in given)
    yield f"Usage: `flashbed {name}{' [OPTIONS]' if options else ''} {words}".rstrip() + "`"
    lines = [entry(f"`{one.metavar or one.name.upper()}`", one.help or "") for one in given]
    lines += [_option(one) for one in options]
    yield "\n".join(lines)
    own = _OWN_STATUS.get(name) or " ".join(_STATUS.findall(" ".join((command.help or "").split())))
    if own:
        yield prose(f"Exit status: {own.strip()}")


def _word(argument: Any) -> str:
    word = str(argument.metavar or argument.name.upper())
    return word if argument.required or word.startswith("[") else f"[{word}]"


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.metavar or option.name.upper()}`"
    said = (option.help or "").strip()
    said += "." if said and not said.endswith(".") else ""
    if option.multiple and "again for more" not in said:
        said += " May be given again."
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
