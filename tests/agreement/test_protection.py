"""Encrypted and authenticated UBIFS, and checked read-only volumes, by the kernel itself.

What has none of it says so.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from flashbed.api.booting import boots
from flashbed.api.exec_options import ExecOptions
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.stacks import one_stack, stacks
from flashbed.running.programs import programs_of
from flashbed.targets import load_target
from flashbed.targets.base import Batch, RunOptions
from flashbed.targets.guest import layout_images
from flashbed.targets.guest.verity import Verity, with_hash_tree
from tests.agreement.test_layouts import _boots

ENCRYPTED, AUTHENTICATED = "ubifs:encrypted", "ubifs:authenticated"


def _run(mount: str, target: str = "uml", more: str = "layout=default") -> Batch:
    experiment = load_experiment("programs/config")
    chosen = plan(experiment, parse_settings(["fs=ubifs", f"mount={mount}", more]))
    programs = list(programs_of(experiment, [item.case for item in chosen]))
    (batch,) = load_target(target).run(programs, RunOptions())
    return batch


@pytest.mark.uml
@pytest.mark.timeout(900)
def test_a_new_file_costs_a_context_and_two_runs_are_alike() -> None:
    plain, encrypted, again = (_run(mount) for mount in ("default", ENCRYPTED, ENCRYPTED))
    assert encrypted.cases.equals(again.cases)
    assert not encrypted.requests.filter(encrypted.requests["result"] < 0).height
    files = 60  # settings.json.new, made as often as the settings are written
    more = _writes(encrypted) - _writes(plain)
    assert files <= more <= files + 5


@pytest.mark.uml
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_layer_is_over_an_encrypted_volume_that_is_authenticated() -> None:
    both = f"{AUTHENTICATED}+encrypted"
    batch = _run(both, more="layout=squashfs-overlay-ubifs")
    assert not batch.failures
    assert not batch.requests.filter(batch.requests["result"] < 0).height


def _writes(batch: Batch) -> int:
    (row,) = batch.cases.iter_rows(named=True)
    return int(row["flash_programs"] + row["flush_programs"])


@pytest.mark.emulator
@pytest.mark.timeout(900)
def test_the_emulated_board_has_what_fscrypt_asks_for() -> None:
    batch = _run(ENCRYPTED, "emulator")
    assert not batch.requests.filter(batch.requests["result"] < 0).height


@pytest.mark.extension
def test_who_has_it_not_says_so() -> None:
    (failure,) = _run(ENCRYPTED, "sim").failures
    assert "encrypted" in failure.message
    stack = one_stack(["fs=ubifs", f"mount={AUTHENTICATED}"])
    assert "--on uml has it" in str(stack.only_in_user_mode)


def _root(here: Path) -> None:
    (here / "root").mkdir()
    (here / "root" / "file").write_bytes(random.Random(1).randbytes(300_000))
    (here / "list").write_text("file\n")


CHECKED = ("--set", "layout=squashfs-overlay-ubifs", "--set", "layout.verity=0,1")


@pytest.mark.uml
@pytest.mark.parametrize("on", ["uml", pytest.param("emulator", marks=pytest.mark.emulator)])
def test_a_checked_root_costs_the_pages_of_its_hashes(on: str, tmp_path: Path) -> None:
    _root(tmp_path)
    words = ("--on", on, *CHECKED, "--image", "root")
    first, again = (_boots(*words, "--read", "list", here=tmp_path) for _ in range(2))
    assert first == again
    plain, checked = first
    assert plain["files"][0]["bytes"] == checked["files"][0]["bytes"] == 300_000
    more = sum(part["reads"] for part in checked["parts"])
    more -= sum(part["reads"] for part in plain["parts"])
    assert more > 0


@pytest.mark.uml
def test_a_byte_that_was_changed_on_the_flash_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _root(tmp_path)

    def changed(image: bytes) -> tuple[bytes, Verity]:
        whole, found = with_hash_tree(image)
        return whole[:100_000] + bytes([whole[100_000] ^ 1]) + whole[100_001:], found

    monkeypatch.setattr(layout_images, "with_hash_tree", changed)
    monkeypatch.chdir(tmp_path)
    options = ExecOptions(
        words=[], on="uml", put=[], env=[], memory=None, patience=None, keep=None, image=["root"]
    )
    wanted = stacks(["layout=squashfs-overlay-ubifs", "layout.verity=1"])
    (boot,) = boots(options, wanted, off="clean", files=["file"], say=print)
    assert [each.read for each in boot.files] == ["Input/output error"]
