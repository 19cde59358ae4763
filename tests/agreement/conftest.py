"""Kernels that only a few tests need, built before the clock of those tests runs.

Such a test has `timeout(…, func_only=True)`, so that the minutes of a build are not its own.
"""

from __future__ import annotations

import pytest

from flashbed.targets.uml.kernel_options import FASTMAP, options_of_stacks
from flashbed.targets.uml.uml_program import prepare
from flashbed.targets.uml.uml_target import UmlTarget

KERNEL = "6.1"


@pytest.fixture(scope="session")
def programs_with_fastmap() -> None:
    """The kernel of programs that writes fastmaps."""
    prepare(KERNEL, print, [FASTMAP])


@pytest.fixture(scope="session")
def cases_with_fastmap() -> None:
    """The kernel of cases on layouts that writes fastmaps."""
    UmlTarget().prepare(print, KERNEL, [*options_of_stacks(), FASTMAP])
