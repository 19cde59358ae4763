"""The table of prices is one, written down in Python, Rust and the profiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flashbed.formats import prices as table
from flashbed.formats.prices import prices

SOURCES = {
    "Software": ("profile.rs", "SoftwareCosts"),
    "CompressorCosts": ("compress/work.rs", "CompressorCosts"),
    "UnpackCosts": ("compress/work.rs", "UnpackCosts"),
    "LzoCosts": ("compress/work.rs", "LzoCosts"),
    "DeflateCosts": ("compress/work.rs", "DeflateCosts"),
    "ZstdCosts": ("compress/work.rs", "ZstdCosts"),
    "RtimeCosts": ("compress/work.rs", "RtimeCosts"),
}
NOT_IN_RUST = {("Software", "source"), ("CompressorCosts", "included")}
FIELD = re.compile(r"((?: *///[^\n]*\n)*)(?: *#\[[^\n]*\n)* *pub (\w+): ")


def rust_fields(file: Path, struct: str) -> dict[str, str]:
    """Field -> its documentation in one line."""
    text = file.read_text(encoding="utf-8")
    body = text[text.index(f"pub struct {struct} {{") :].split("\n}", 1)[0]
    return {
        name: " ".join(line.strip().removeprefix("///").strip() for line in doc.splitlines())
        for doc, name in FIELD.findall(body)
    }


@pytest.mark.parametrize("model", SOURCES)
def test_the_simulator_has_the_same_prices_with_the_same_meanings(
    model: str, project: Path
) -> None:
    file, struct = SOURCES[model]
    here = getattr(table, model).model_fields
    said = {name: field.description for name, field in here.items()}
    there = rust_fields(project / "sim" / "src" / file, struct)
    assert set(there) == {name for name in said if (model, name) not in NOT_IN_RUST}
    assert {name: doc for name, doc in there.items() if said[name] not in (None, doc)} == {}


def test_a_price_ends_in_its_unit_and_says_what_it_prices() -> None:
    for price in prices():
        assert price.key.endswith(("_ns", "_ps")), price.key
        assert price.meaning.endswith("."), price.key
        assert bool(price.why) == (price.how != "fitted"), price.key
