"""`flashbed lifetime PRODUCT.toml` as a user meets it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.conftest import Run
from tests.support import PROJECT
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]
ONE = ("board=emulated", "kernel=6.1", "pattern=sequential", "requests=8", "seed=1",
       "read_ahead_kib=128")  # fmt: skip
SLOTS = (*ONE, "fs=ubifs", "layout=two-slots", "layout.image_kib=2048")
PRODUCT = """\
name = "thing"

[[stack]]
name = "nand"
set = [{settings}]

[[program]]
name = "small/one"
run = "small/one"
rate = "1/d"

[[update]]
volume = "rootfs_b"
rate = "1/mo"
"""


def written(settings: tuple[str, ...] = SLOTS, text: str = PRODUCT) -> str:
    quoted = ", ".join(f'"{one}"' for one in settings)
    Path("product.toml").write_text(text.replace("{settings}", quoted), encoding="utf-8")
    return "product.toml"


def mixes(run: Run, *words: str) -> list[dict[str, Any]]:
    status, out, err = run("lifetime", *words, "--format", "json")
    assert status == 0, err
    found: list[dict[str, Any]] = json.loads(out)["lifetime"]
    return found


def set_of(settings: tuple[str, ...]) -> list[str]:
    return [word for one in settings for word in ("--set", one)]


def test_the_file_and_the_command_line_give_the_same_bytes(
    small: Path, fakes: Fakes, run: Run
) -> None:
    words = ("small/one@1/d", "update:rootfs_b@1/mo", *set_of(SLOTS))
    (by_file,) = mixes(run, written())
    (by_words,) = mixes(run, *words)
    assert (by_file.pop("product"), by_file.pop("stack")) == ("thing", "nand")
    assert (by_words.pop("product"), by_words.pop("stack")) == (None, None)
    assert json.dumps(by_file) == json.dumps(by_words)
    text = run("lifetime", "product.toml")[1]
    assert text.replace("thing, nand: ", "") == run("lifetime", *words)[1]
    assert text.startswith("thing, nand: 1 program and 1 update, ubifs-emulated-6.1-")
    assert "\n  hottest block <= " in text
    assert "\n  most wear     small/one: " in text


def test_a_setting_of_the_command_line_replaces_the_files(
    small: Path, fakes: Fakes, run: Run
) -> None:
    plain = PRODUCT.partition("[[update]]")[0]
    product = written((*ONE, "fs=jffs2"), plain)
    (found,) = mixes(run, product, "--set", "fs=ubifs")
    assert found["fs"] == "ubifs"
    status, out, _ = run("lifetime", product, "--set", "fs=jffs2,ubifs")
    assert status == 0
    heads, first, second, note = out.splitlines()
    assert heads.split()[:4] == ["flash", "erases", "a", "day"]
    assert (first.split()[0], second.split()[0]) == ("jffs2", "ubifs")
    assert note.startswith("hottest block: its erases in ten years")


def test_stacks_are_lines_and_one_is_chosen(small: Path, fakes: Fakes, run: Run) -> None:
    other = (*SLOTS[:-1], "layout.image_kib=4096")
    text = PRODUCT.replace(
        "[[program]]",
        f'[[stack]]\nname = "large"\nset = [{", ".join(json.dumps(one) for one in other)}]\n'
        "\n[[program]]",
    )
    product = written(text=text)
    out = run("lifetime", product)[1]
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["nand", "large"]
    (large,) = mixes(run, product, "--stack", "large")
    (nand,) = mixes(run, product, "--stack", "nand")
    assert large["programs"][1]["erases_per_day"] > nand["programs"][1]["erases_per_day"]
    status, _, err = run("lifetime", product, "--stack", "huge")
    assert status == 2
    assert "--stack huge: no such stack in product.toml; there are nand, large" in err


def test_a_check_adds_the_updates_up_too(small: Path, fakes: Fakes, run: Run) -> None:
    (found,) = mixes(run, written())
    daily = sum(part["erases_per_day"] for part in found["programs"])
    product = written(text=f"{PRODUCT}\n[together]\nerases_per_day = {daily * 1.001}\n")
    status, out, err = run("check", product)
    assert status == 0, (out, err)
    product = written(text=f"{PRODUCT}\n[together]\nerases_per_day = {daily * 0.999}\n")
    assert run("check", product)[0] == 1


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('volume = "rootfs_b"', 'volume = "data"', "nand, update:data: layout two-slots has"),
        ('rate = "1/mo"', 'rate = "1/mo"\nsize = 3', "update.1.size: unknown key"),
        ('rate = "1/mo"', 'rate = "monthly"', "update.1.rate: monthly: N/UNIT"),
        ('rate = "1/mo"', "", "update.1.rate: missing"),
        ('run = "small/one"', 'run = "gone.rec"', "nand, small/one: gone.rec: no such file"),
        ('run = "small/one"', 'run = "small/one"\nruns = 3', "program.1.runs: unknown key"),
        ("[[update]]", "[[updates]]", "updates: unknown key, update is meant?"),
        ('"layout=two-slots", ', "", "layout.image_kib: of a layout; set layout=NAME too"),
        ('"fs=ubifs"', '"fs=moon"', "nand, small/one: set fs=moon"),
        ('name = "thing"', 'name = "thing', "not TOML"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(
    small: Path, fakes: Fakes, run: Run, right: str, wrong: str, said: str
) -> None:
    product = Path(written())
    text = product.read_text()
    assert right in text
    product.write_text(text.replace(right, wrong))
    status, out, err = run("lifetime", "product.toml")
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("flashbed: product.toml: ") or "product.toml" in line
    assert said in line
    assert not fakes["sim"].ran


@pytest.mark.extension
def test_a_products_paths_are_relative_to_its_file(run: Run, tmp_path: Path) -> None:
    """And its recordings give what the command line gives, to the byte."""
    os.chdir(tmp_path)
    folder = PROJECT / "experiments" / "stacks" / "camera"
    (by_file,) = mixes(run, str(folder / "product.toml"), "--set", "layout.image_kib=15360")
    layout = ("layout=nor-squashfs-overlay-jffs2", "layout.image_kib=15360")
    settings = ("chip=W25Q128JV", *layout, "fs=jffs2")
    recordings = [f"{folder}/settings.parquet@10/d", f"{folder}/events.parquet@1/d"]
    (by_words,) = mixes(run, *recordings, *set_of(settings))
    assert by_file["steady"], "bytes of NOR, not pages, are held against its erases"
    for found in (by_file, by_words):
        del found["product"], found["stack"], found["assumes"], found["most_wear"]["program"]
        for part in found["programs"]:
            del part["program"]
    assert json.dumps(by_file) == json.dumps(by_words)
