"""A kernel without a profile has two neighbours, and a line that names what they differ in."""

from __future__ import annotations

import pytest

from flashbed.stack.nearest_kernel import chosen_kernel, differing_keys, nearest, release_of
from flashbed.stack.profiles import ProfileError, kernel_names, load_kernel


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("6.1.0-50-armmp", ["6.1"]),
        ("3.12.74+", ["3.12"]),
        ("2.6.37", ["2.6.37"]),
        ("4.19.210", ["4.0", "5.4"]),
        ("5.15.32", ["5.15"]),
        ("5.19.1", ["5.15", "6.1"]),
        ("6.6.1-yocto-standard", ["6.6"]),
        ("6.9", ["6.6", "6.12"]),
        ("2.6.18", ["2.6.29"]),
        ("99.0", ["7.3"]),
    ],
)
def test_the_neighbours_of_a_release(release: str, names: list[str]) -> None:
    assert nearest(release).names == names


@pytest.mark.parametrize("release", ["4.19", "5.19.3", "6.9", "7.2", "99.0", "2.6.18"])
def test_a_release_without_a_profile_is_told(release: str) -> None:
    """A board with 5.15 was given the profile of 4.0 without a word, when there was none."""
    unlike = nearest(release).unlike
    assert unlike is not None
    assert unlike.startswith(f"Linux {release} has no profile of its own")


def test_the_line_names_each_key_that_differs() -> None:
    unlike = nearest("5.19.3").unlike
    assert unlike is not None
    keys = differing_keys(load_kernel("5.15"), load_kernel("6.1"))
    assert "readahead.past_end_reads_last_page" in keys
    assert all(key in unlike for key in keys)


def test_a_kernel_with_a_profile_is_not_told() -> None:
    for name in kernel_names():
        if "-" not in name:
            assert nearest(name).unlike is None


def test_an_unknown_kernel_is_refused_with_its_neighbours() -> None:
    with pytest.raises(ProfileError, match=r"no such kernel.*compare 6\.6.*with 6\.12"):
        chosen_kernel("6.9")


def test_a_release_is_its_leading_numbers() -> None:
    assert release_of("6.1.0-50-armmp") == (6, 1, 0)
    assert release_of("next") == ()
