"""The table of prices is one, written down in Python, Rust and the profiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flashbed.stack import prices as table
from flashbed.stack.prices import Software, known_price, prices
from flashbed.stack.profiles import board_names, load_board

SOURCES = {
    "Software": ("profile/mod.rs", "SoftwareCosts"),
    "CompressorCosts": ("compress/work.rs", "CompressorCosts"),
    "UnpackCosts": ("compress/work.rs", "UnpackCosts"),
    "LzoCosts": ("compress/work.rs", "LzoCosts"),
    "DeflateCosts": ("compress/work.rs", "DeflateCosts"),
    "ZstdCosts": ("compress/work.rs", "ZstdCosts"),
    "RtimeCosts": ("compress/work.rs", "RtimeCosts"),
}
NOT_IN_RUST = {
    ("Software", "source"), ("Software", "not_known"), ("CompressorCosts", "included"),
}  # fmt: skip
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


def test_a_price_that_is_not_known_counts_as_0_and_is_no_price() -> None:
    given = {price.key: 7 for price in prices(Software) if "." not in price.key}
    del given["open_ns"]
    software = Software.model_validate({"source": "x", **given, "not_known": ["open_ns"]})
    assert software.open_ns == 0
    assert known_price(software, "open_ns") is None
    assert known_price(software, "close_ns") == 7
    assert Software.model_validate(software.model_dump()) == software


def test_one_price_of_a_compressor_may_be_all_that_is_known_of_it() -> None:
    given: dict[str, Any] = {price.key: 7 for price in prices(Software) if "." not in price.key}
    keys = [price.key for price in prices(Software) if ".deflate." in price.key]
    known = "compressors.deflate.unpack.packed_byte_ps"
    given["compressors"] = {"deflate": {"unpack": {"packed_byte_ps": 5}}}
    unknown = [key for key in keys if key != known]
    software = Software.model_validate({"source": "x", **given, "not_known": unknown})
    assert known_price(software, known) == 5
    assert {known_price(software, key) for key in unknown} == {None}
    assert software.compressors.deflate is not None
    assert software.compressors.deflate.block_ns == 0


@pytest.mark.parametrize(
    ("name", "said"), [("close_ns", "has a price, and not_known names it"), ("no_ns", "no_ns")]
)
def test_only_a_price_that_is_missing_is_not_known(name: str, said: str) -> None:
    given = {price.key: 7 for price in prices(Software) if "." not in price.key}
    with pytest.raises(ValidationError, match=said):
        Software.model_validate({"source": "x", **given, "not_known": [name]})


def test_no_profile_of_ours_gives_0_for_a_price_that_is_not_known(project: Path) -> None:
    for name in board_names():
        text = (project / "boards" / f"{name}.toml").read_text(encoding="utf-8")
        assert not re.findall(r"^\w+_[np]s = 0 *# not known(?! *:)", text, re.MULTILINE), name
    assert known_price(load_board("omap3evm").software, "open_ns") is None
