"""What mkfs.ubifs says, and what the kernel says of the image on a volume."""

from __future__ import annotations

import pytest

from flashbed.answers.space.image_needs import ImageNeeds, max_leb_cnt_needed, needs_of, refusals
from flashbed.base.errors import RunError

SAID = """mkfs.ubifs
\troot:         /tmp/rootfs/
\tmin_io_size:  2048
\tleb_size:     126976
\tmax_leb_cnt:  656
\toutput:       /tmp/image.ubifs
\tjrn_size:     8388608
\treserved:     0
\tcompr:        lzo
\tlog_lebs:     5
\tlpt_lebs:     2
\torph_lebs:    1
\tmain_lebs:    10
\tgc lebs:      1
\tindex lebs:   1
\tleb_cnt:      21
\tUUID:         07EFDDE7-B80A-4D65-AE41-72203225C060
Success!
"""


def needs(**changes: int) -> ImageNeeds:
    own = {
        "leb_bytes": 126_976, "lebs": 21, "max_lebs": 656, "journal_bytes": 8_388_608,
        "main_lebs": 10,
    }  # fmt: skip
    return ImageNeeds(**(own | changes))


def test_mkfs_ubifs_is_read() -> None:
    assert needs_of(SAID) == needs()
    assert max_leb_cnt_needed("Error: max_leb_cnt too low (272 needed)\n") == 272
    assert max_leb_cnt_needed(SAID) is None
    with pytest.raises(RunError, match="does not print"):
        needs_of("Success!")


def test_a_journal_is_refused_where_the_main_area_is_smaller() -> None:
    """Published: 8,388,608 bytes refused where 3,555,328 are there, which are 28 LEBs."""
    assert needs().volume_lebs_min == 11 + 67
    (line,) = refusals(needs(), 11 + 28)
    assert line.startswith(
        "too large journal size (8,388,608 bytes), only 3,555,328 bytes available in the main area"
    )
    assert refusals(needs(), 78) == []
    assert refusals(needs(), 77) != []


def test_a_root_that_never_fitted() -> None:
    """Published: 726 LEBs asked of 656."""
    root = needs(lebs=726, main_lebs=715, max_lebs=2047)
    (line,) = refusals(root, 656)
    assert line.startswith("the image has 726 LEBs, the volume 656: 70 LEBs (8,888,320 bytes)")


def test_a_volume_has_nine_lebs_for_the_main_area() -> None:
    small = needs(lebs=14, main_lebs=3, max_lebs=2047, journal_bytes=500_000)
    assert small.volume_lebs_min == 20
    (line,) = refusals(small, 19)
    assert line.startswith("bad superblock, error 4: the main area has 1,015,808 bytes")
    assert refusals(small, 20) == []


def test_an_image_grows_to_c_at_most() -> None:
    assert needs(max_lebs=30).main_bytes(656) == 19 * 126_976
