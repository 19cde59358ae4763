"""What compressors cost, and what is reported where a price is unknown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from flashbed.bench import validation
from flashbed.plan.experiment import ExperimentError, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.stack.profiles import ProfileError, load_board, load_kernel
from flashbed.targets.base import Batch, Program
from flashbed.targets.sim import ChipOnlyTarget, SimTarget


def text(fs: str, compressor: str, board: str = "emulated") -> Program:
    """A case of text that is written and synced."""
    name = f"validate-{fs}-default-text-pieces"
    programs = validation.programs("compressors", load_board(board), load_kernel("6.1"))
    (found,) = [program for program in programs if program.case_id == name]
    return replace(found, stack=replace(found.stack, compressor=compressor))


def ran(program: Program, target: SimTarget | None = None) -> Batch:
    (batch,) = (target or SimTarget()).run([program])
    assert not batch.failures
    return batch


@pytest.mark.parametrize(("fs", "compressor"), [("jffs2", "zlib"), ("ubifs", "lzo")])
def test_a_compressor_without_a_price_leaves_the_time_unknown(fs: str, compressor: str) -> None:
    """Zlib was once the fastest compressor of all: it had no price, and cost nothing."""
    batch = ran(text(fs, compressor, "omap3evm"))
    (case,) = batch.cases.rows(named=True)
    assert case["time_ns"] is None
    assert case["time_unknown"].startswith(f"{compressor} has no price on omap3evm")
    assert case["flash_programs"] > 0
    assert batch.requests["latency_ns"].null_count() == batch.requests.height


def test_without_compressing_every_board_knows_the_time() -> None:
    (case,) = ran(text("ubifs", "none", "omap3evm")).cases.rows(named=True)
    assert case["time_ns"] > 0
    assert case["time_unknown"] is None


def test_where_code_takes_no_time_no_price_is_missed() -> None:
    (case,) = ran(text("ubifs", "zlib", "omap3evm"), ChipOnlyTarget()).cases.rows(named=True)
    assert case["time_unknown"] is None


def test_a_mount_option_is_told_to_the_agent_and_becomes_the_simulators_compressor() -> None:
    program = text("ubifs", "zstd")
    assert (program.stack.mounted, program.stack.simulated_fs) == ("ubifs,compr=zstd", "ubifs")
    assert json.loads(program.stack.simulated_kernel)["ubifs"] == {"compressor": "zstd-1.4.10"}
    jffs2 = json.loads(text("jffs2", "none").stack.simulated_kernel)["jffs2"]
    assert jffs2["compressors"] == []


def test_a_compressor_that_the_kernel_cannot_be_mounted_with_is_refused() -> None:
    with pytest.raises(
        ProfileError, match=r"jffs2 of Linux 2\.6\.37 cannot be mounted with compr="
    ):
        load_kernel("2.6.37").sim_json_with("jffs2", "zlib")


def test_an_experiment_varies_the_compressor() -> None:
    experiment = load_experiment("methodology/layout")
    settings = parse_settings(["fs=ubifs", "compressor=zlib"])
    assert {item.case.compressor for item in plan(experiment, settings)} == {"zlib"}
    assert all(item.case.case_id.endswith("-zlibcompr") for item in plan(experiment, settings))


def test_yaffs2_has_no_compressor_to_choose() -> None:
    settings = parse_settings(["compressor=zlib"])
    with pytest.raises(ExperimentError, match="compressor: yaffs2 takes default, not zlib"):
        plan(load_experiment("methodology/layout"), settings)
