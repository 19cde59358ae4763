"""The simulator mounts images that have wrong bytes, or says why it does not; it never panics."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.broken_images import broken
from tests.support.mounted_images import images, mounted, stacks

IMAGES = 60


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_broken_images_are_mounted_or_refused(kind: str, tmp_path: Path) -> None:
    draw, good = random.Random(f"mounted {kind}"), images(tmp_path, [kind])
    stack = stacks()[kind]
    found = [mounted(broken(draw, draw.choice(list(good.values()))), stack) for _ in range(IMAGES)]
    assert {"ran", "refused"} <= set(found)
