"""The profiles nearest to a release of Linux, and what they differ in.

A kernel between two profiles has what did not change between them. What did may hold for it or not:
`unlike` says what that is, so that nothing is answered by a neighbour without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flashbed.base.paths import own_kernels_folder
from flashbed.stack.profiles import Kernel, ProfileError, kernel_names, load_kernel

__all__ = ["Nearest", "chosen_kernel", "differing_keys", "nearest", "release_of"]

_TABLES = tuple(table for table in Kernel.model_fields if table != "uml")
_RELEASE = re.compile(r"\d+(\.\d+)+")
_NOT_RULES = ("source", "name", "title", "targets", "like")


def release_of(text: str) -> tuple[int, ...]:
    """Parses a release: 6.1.0-50-armmp is (6, 1, 0)."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def differing_keys(one: Kernel, other: Kernel) -> list[str]:
    """The keys in which two profiles differ, such as `readahead.previous_position`."""
    found = []
    for table in _TABLES:
        own, others = (kernel.model_dump().get(table) or {} for kernel in (one, other))
        found += [
            f"{table}.{key}"
            for key in {**own, **others}
            if key not in _NOT_RULES and own.get(key) != others.get(key)
        ]
    return found


@dataclass(frozen=True)
class Nearest:
    """The newest profile that is not newer than a release, and the oldest that is newer."""

    release: str
    before: str | None
    after: str | None
    """None where a profile is for the release itself."""

    @property
    def names(self) -> list[str]:
        """The profiles, the older one first."""
        return [name for name in (self.before, self.after) if name is not None]

    @property
    def unlike(self) -> str | None:
        """A line that names what is not known of the release; None if it has a profile."""
        if self.before is not None and _is_of(self.before, self.release):
            return None
        said = f"Linux {self.release} has no profile of its own"
        if self.before is None or self.after is None:
            end = "older" if self.before is None else "newer"
            return f"{said} and is {end} than any: what changed since is not known"
        keys = differing_keys(load_kernel(self.before), load_kernel(self.after))
        return (
            f"{said}: compare {self.before}, the newest before it, with {self.after}, the oldest"
            f" after it; they differ in {', '.join(keys) or 'nothing that is modelled'}"
        )


def nearest(release: str) -> Nearest:
    """The neighbours of a release; of profiles that match alike, those for 32 bits."""
    own = {path.name for path in own_kernels_folder().glob("*")}
    known = [name for name in kernel_names() if name not in own and _RELEASE.fullmatch(name)]
    wanted = release_of(release)
    older = [name for name in known if release_of(name) <= wanted]
    before = max(older, key=release_of, default=None)
    if before is not None and _is_of(before, release):
        return Nearest(release, before, None)
    newer = [name for name in known if release_of(name) > wanted]
    return Nearest(release, before, min(newer, key=release_of, default=None))


def chosen_kernel(name: str) -> Kernel:
    """The kernel that the user chose. Raises `ProfileError`, for a release with its neighbours."""
    try:
        return load_kernel(name)
    except ProfileError as unknown:
        unlike = nearest(name).unlike if _RELEASE.fullmatch(name) else None
        if unlike is None or name in kernel_names():
            raise
        raise ProfileError(f"{unknown}. {unlike}") from None


def _is_of(profile: str, release: str) -> bool:
    """Whether a profile is of the release's series."""
    version = release_of(profile)
    return version == release_of(release)[: len(version)]
