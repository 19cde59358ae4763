"""A command with commands of its own, such as `flashbed chip list`, and their examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

__all__ = ["add_group"]


def add_group(
    app: typer.Typer,
    name: str,
    *,
    about: str,
    commands: Mapping[str, tuple[Callable[..., None], str]],
) -> None:
    """Adds commands to the program, each under its name with an example: its arguments."""
    group = typer.Typer(no_args_is_help=True, help=about)
    for command, (run, arguments) in commands.items():
        example = f"flashbed {name} {command} {arguments}".rstrip()
        group.command(command, epilog=f"Example: `{example}`")(run)
    app.add_typer(group, name=name)
