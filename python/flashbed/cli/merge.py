"""The command `merge`: joins the shards of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashbed.cli.answers import say_answer
from flashbed.cli.options import OUT
from flashbed.cli.progress import say

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "merge",
        epilog="Example: `flashbed merge shards/1 shards/2 -o results/figure3`",
    )(merge)


def merge(
    shards: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The results of all `run --shard`.")
    ],
    out: Annotated[Path, typer.Option(*OUT, metavar="DIR", help="A new folder.")],
) -> None:
    """Joins the shards of a run into the results of one run, byte for byte.

    docs/guide/many-machines.md shows how.
    """
    from flashbed.api.answering import answer_of_names
    from flashbed.api.merged_shards import merge_shards
    from flashbed.results.run_directory import read_table

    cases = merge_shards(shards, out)
    say(f"{len(shards)} shards: {cases} cases")
    names = list(read_table(out, "cases")["case_id"]) if cases else []
    say_answer(answer_of_names(out, names), out)
