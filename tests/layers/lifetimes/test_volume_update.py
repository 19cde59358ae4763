"""The update of a volume: what it costs, by hand, and its part in a product's lifetime."""

from __future__ import annotations

import pytest

from flashbed.answers.lifetimes.estimate import DAY_S, Observed
from flashbed.answers.lifetimes.mix import mixes_of
from flashbed.answers.lifetimes.observed import _space_bytes
from flashbed.answers.lifetimes.subject import RoundWork, Subject
from flashbed.answers.lifetimes.volume_update import cost_of, update_of
from flashbed.base.errors import InputError
from flashbed.cli.lifetime import lifetime
from flashbed.stack.profiles import load_board

LEB_BYTES = 126_976


def _logger(layout: str = "two-slots") -> Subject:
    observed = Observed(seconds=DAY_S, blocks=400, erases=100.0, worst=1, programmed_blocks=100.0)
    work = RoundWork(
        seconds=60.0, rounds_per_day=1.0, given_rate=True, bytes_written=1000,
        bytes_by_cause=None, bytes_programmed=1e7, bytes_erased=1e7, programs=6400.0,
    )  # fmt: skip
    return Subject(
        name="logger", observed=observed, board=load_board("emulated"), blocks_erased=100,
        target="sim", fs="ubifs", workload=work, axes={"layout": layout},
    )  # fmt: skip


def test_an_update_writes_the_image_its_headers_and_the_table_four_times() -> None:
    """62 pages and two headers for each of two LEBs, a page and two headers for the third.

    128 records of 172 bytes are 11 pages, with two headers 13, four times.
    """
    cost = cost_of(2 * LEB_BYTES + 1, leb_bytes=LEB_BYTES, page_bytes=2048)
    assert cost.programs == 2 * (62 + 2) + (1 + 2) + 4 * 13
    assert cost.erases == 3 + 4


def test_an_update_shares_the_flash_with_a_program() -> None:
    logger = _logger()
    update = update_of("rootfs_b", logger, leb_bytes=LEB_BYTES, rounds=1.0)
    assert update.workload is not None
    assert update.workload.bytes_written == 8192 << 10, "as large as the image of rootfs_a"
    (mix,) = mixes_of({"logger": [logger], "update:rootfs_b": [update]})
    erases = -(-(8192 << 10) // LEB_BYTES) + 4
    assert [row["erases_per_day"] for row in mix.rows()] == pytest.approx([100, erases])
    alone = logger.lasting(100_000)
    both = mix.lasting(100_000)
    assert alone is not None
    assert both is not None
    assert alone.mean_block_per_day is not None
    assert both.mean_block_per_day == pytest.approx(alone.mean_block_per_day + erases / 400)


@pytest.mark.parametrize(
    ("volume", "layout", "why"),
    [
        ("data", "two-slots", "has rootfs_a, rootfs_b to update"),
        ("none", "two-slots", "has rootfs_a, rootfs_b to update"),
        ("rootfs", "default", "--set layout=NAME too"),
    ],
)
def test_a_volume_without_an_image_has_no_update(volume: str, layout: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        update_of(volume, _logger(layout), leb_bytes=LEB_BYTES, rounds=1.0)


def test_an_update_alone_says_no_lifetime() -> None:
    with pytest.raises(InputError, match="a program of the product comes first"):
        lifetime(["update:rootfs_b@1/mo"], settings=["layout=two-slots"])


def test_what_a_program_leaves_is_a_share_of_its_volume() -> None:
    """A volume beside two slots of 10 MiB has less than the partition without UBI's part."""
    board = load_board("emulated")
    whole, volume = (
        _space_bytes({"fs": "ubifs", "layout": layout}, board) for layout in (None, "two-slots")
    )
    assert whole == 50 << 20
    assert volume == 20_736 << 10, "what df says on the kernel"
