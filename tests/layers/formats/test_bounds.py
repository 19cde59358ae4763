"""No number of a file is beyond what it can be: each is one line with its key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from flashbed.base.toml import read_model
from flashbed.plan.experiment import Experiment, ExperimentError, read_experiment
from flashbed.stack.bit_errors import ErrorCurve
from flashbed.stack.chips import CatalogueChip
from flashbed.stack.file_systems import FileSystemTable
from flashbed.stack.layouts import Layout
from flashbed.stack.profiles import Board, Kernel, ProfileError
from tests.support import PROJECT as ROOT
from tests.support import SMALL

MODELS: dict[str, type[BaseModel]] = {
    "boards": Board, "chips": CatalogueChip, "kernels": Kernel, "parts": FileSystemTable,
    "errors": ErrorCurve, "layouts": Layout,
}  # fmt: skip


def integers(values: Any, key: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The place of every integer."""
    if isinstance(values, int) and not isinstance(values, bool):
        yield key
    if isinstance(values, (dict, list)):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        for name, value in items:
            yield from integers(value, (*key, name))


def changed(values: Any, key: tuple[str | int, ...], value: int) -> Any:
    name, *rest = key
    copy: Any = dict(values) if isinstance(values, dict) else list(values)
    copy[name] = changed(values[name], tuple(rest), value) if rest else value
    return copy


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "boards").rglob("*.toml")),
    ids=lambda path: path.stem,
)
@pytest.mark.parametrize("value", [2**31, 2**62, 2**64, 10**4000, -1])
def test_every_number_of_a_profile_has_a_bound(path: Path, value: int) -> None:
    values = tomllib.loads(path.read_text())
    model = MODELS[path.parent.name]
    places = list(integers(values))
    for key in places:
        with pytest.raises(ProfileError) as why:
            read_model(model, changed(values, key, value), path, ProfileError)
        assert str(key[-1]) in str(why.value) or ".".join(map(str, key[:-1])) in str(why.value)
        assert len(str(why.value).splitlines()) == 1
    assert places or model is Layout


@pytest.mark.parametrize("key", ["requests", "request_bytes", "file_bytes", "settle_ns", "seed"])
def test_numbers_of_an_experiment_have_bounds(key: str) -> None:
    values = tomllib.loads(SMALL.read_text())
    places = [place for place in integers(values) if key in place]
    for place in places:
        with pytest.raises(ExperimentError, match=key):
            read_model(Experiment, changed(values, place, 2**40), SMALL, ExperimentError)
    assert places


def test_a_grid_is_counted_before_it_is_made(tmp_path: Path) -> None:
    text = SMALL.read_text()
    many = ", ".join(map(str, range(1, 3001)))
    path = tmp_path / "x.toml"
    grid = text.replace("requests = [8, 64]", f"requests = [{many}]", 1)
    path.write_text(grid.replace("seed = [1, 2]", f"seed = [{many}]", 1))
    with pytest.raises(ExperimentError, match=r"grid: 144,0\d\d,\d{3} cases, 1,000,000 at most"):
        read_experiment(path)


def test_pages_of_a_chip_are_counted() -> None:
    path = ROOT / "boards" / "emulated.toml"
    values = tomllib.loads(path.read_text())
    values["chip"] |= {"pages_per_block": 1024, "blocks": 65_536}
    with pytest.raises(ProfileError, match="chip: blocks: 67,108,864 pages, 8,388,608 at most"):
        read_model(Board, values, path, ProfileError)
