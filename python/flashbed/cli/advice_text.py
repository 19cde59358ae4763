"""What `advise` prints: a headline, the table, and lines under titles; JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashbed.base.paths import shown
from flashbed.cli.laid_out import markdown_of, print_table
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

    from flashbed.answers.advice.settings import Combination
    from flashbed.answers.advice.words import Durability
    from flashbed.api.advising import Advice

__all__ = ["CutChoices", "advice_json", "in_short", "print_advice"]

_UNCUT = "what changes what a power cut takes; no power was cut"


@dataclass(frozen=True)
class CutChoices:
    """What power cuts found, and why some were not made, each reason once."""

    found: Mapping[Combination, Durability]
    failed: Mapping[str, None]

    def with_more(self, more: CutChoices) -> CutChoices:
        """With what further cuts found."""
        return CutChoices({**self.found, **more.found}, {**self.failed, **more.failed})


def in_short(row: Mapping[str, Any]) -> str:
    """A row in a few words, before the search is over."""
    from flashbed.base.human import count_text, time_text

    failed = f", {row['failed']:,} calls failed" if row["failed"] else ""
    time_ns = row["flash_time_ns"] if row["time_ns"] is None else row["time_ns"]
    return f"{time_text(time_ns)}, {count_text(row['page_writes'])} page writes{failed}"


def print_advice(
    found: Advice, orders: Sequence[str], lost: CutChoices, *,
    directory: Path, output: str,
) -> None:  # fmt: skip
    """Prints advice; `orders` says whether a kernel agrees, `lost` what power cuts took."""
    if output == "json":
        print(json.dumps(advice_json(found, orders, lost, directory), indent=1))
        return
    from flashbed.answers.analysis.compared_choices import HEADS

    table = _table(found)
    sections = list(_sections(found, orders, lost))
    if output == "markdown":
        print(f"{escaped(_headline(found))}\n\n{markdown_of(table, HEADS)}")
        for title, lines in sections:
            print(f"\n**{title}**\n")
            print("\n".join(f"- {escaped(line)}" for line in lines))
        return
    print(escaped(_headline(found)))
    print_table(table, HEADS)
    for title, lines in sections:
        print(f"\n{title}:")
        print("\n".join(f"  {escaped(line)}" for line in lines))
    print(f"\n{escaped(shown(directory.absolute()))}")


def _headline(found: Advice) -> str:
    from flashbed.answers.advice.words import headline

    text = headline(found.advised, found.now, found.rows, found.measure)
    missed = [limit.text for limit in found.missed]
    return f"{text}; no configuration keeps {', '.join(missed)}" if missed else text


def _table(found: Advice) -> pl.DataFrame:
    """The front, the best first, and now."""
    from flashbed.answers.advice.table import front_table
    from flashbed.answers.analysis.compared_choices import years_words

    rows = front_table(
        found.front, found.rows, advised=found.advised, now=found.now, measure=found.measure
    )
    if "years_low" not in rows.columns:
        return rows
    return rows.drop("years_low", "years_high").with_columns(years_words(rows))


def _sections(
    found: Advice, orders: Sequence[str], lost: CutChoices
) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines below the table."""
    from flashbed.answers.advice.paste import pasted
    from flashbed.answers.advice.words import durability_lines, effects, weaker_lines

    base = found.base
    single = effects(found.alone, base, found.rows, calls=found.calls, measure=found.measure)
    if single:
        yield f"each setting alone, on {base.label}", single
    if found.weaker:
        yield (
            "better, but a power cut takes more than now",
            weaker_lines(
                found.weaker, found.advised, found.rows, lost.found, measure=found.measure
            ),
        )
    cut = durability_lines(
        lost.found, now=found.now, advised=found.advised, apart=found.apart, rows=found.rows,
        calls=found.calls, measure=found.measure,
    )  # fmt: skip
    if cut:
        most = max((each.cuts for each in lost.found.values()), default=0)
        yield f"what a power cut takes ({most:,} cuts each)" if most else _UNCUT, cut
    failed = [f"power was not cut: {why}" for why in lost.failed]
    if orders or failed:
        yield "confirmed by the kernel's own code", [*orders, *failed]
    lines = pasted(found.advised)
    yield "to set it", [f"{where}: {line}" for where, line in lines]
    if found.left_out:
        yield "left out", [f"{label}: {why}" for label, why in found.left_out.items()]


def advice_json(
    found: Advice, orders: Sequence[str], lost: CutChoices, directory: Path
) -> dict[str, Any]:
    """Advice for a program to read."""
    from flashbed.answers.advice.paste import pasted

    def told(choice: Combination) -> dict[str, Any]:
        cut = lost.found.get(choice)
        words = None if cut is None else {**asdict(cut), "word": cut.word}
        return {"set": dict(choice.sets), **found.rows[choice], "power_cuts": words}

    return {
        "directory": str(directory),
        "goal": found.question.goal,
        "by": found.measure,
        "missed": [limit.text for limit in found.missed],
        "headline": _headline(found),
        "advised": told(found.advised),
        "now": told(found.now),
        "front": [told(choice) for choice in found.front],
        "alone": [told(choice) for choice in found.alone],
        "weaker": [told(choice) for choice in found.weaker],
        "apart": [told(choice) for choice in found.apart],
        "orders": list(orders),
        "to_set": [{"where": where, "line": line} for where, line in pasted(found.advised)],
        "left_out": dict(found.left_out),
    }
