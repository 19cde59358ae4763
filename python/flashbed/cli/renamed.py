"""Options under the names that they had before. They work until version 0.2, with a warning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from typer.core import TyperGroup

from flashbed.cli.progress import say

if TYPE_CHECKING:
    from typer._click.core import Command, Context

__all__ = ["Commands"]

OLD_NAMES = {
    "--repeat": "--rate",
    "--patience": "--host-timeout",
    "--since": "--age",
    "--every": "--step",
}
"""An option's name until version 0.1 -> its name now."""


class Commands(TyperGroup):
    """The program's commands, sorted; their options have their old names too."""

    order: ClassVar[list[str]] = []

    def list_commands(self, ctx: Context) -> list[str]:
        """In the order of the help; hidden ones last."""
        order = self.order
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As click does, with new names in place of old ones."""
        command = self.get_command(ctx, args[0]) if args else None
        if command is not None:
            own = _own_words(command, args)
            args = [*(_renamed(word) for word in args[:own]), *args[own:]]
        return super().parse_args(ctx, args)


def _renamed(word: str) -> str:
    name, equals, value = word.partition("=")
    if name not in OLD_NAMES:
        return word
    say(f"flashbed: {name} is called {OLD_NAMES[name]} now")
    return f"{OLD_NAMES[name]}{equals}{value}"


def _own_words(command: Command, args: Sequence[str]) -> int:
    """How many words are flashbed's: those of a program that it starts follow."""
    end = args.index("--") if "--" in args else len(args)
    if command.context_settings.get("allow_interspersed_args", True):
        return end
    flags = {
        name
        for option in command.params
        if getattr(option, "is_flag", False)
        for name in (*option.opts, *option.secondary_opts)
    }
    at = 1
    while at < end and args[at].startswith("-"):
        has_value = args[at] not in flags and "=" not in args[at]
        at += 2 if has_value else 1
    return min(at, end)
