"""What user-mode Linux needs, in the order in which it is used."""

from __future__ import annotations

import platform

from flashbed.base.paths import cache_folder
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.requirements import Requirement, agents, program, ziglang
from flashbed.targets.uml.uml_kernel import BUILD_TOOLS, KERNELS, cached_kernel

__all__ = ["check"]


_PREPARED_AS = {series: "uml" if series == KERNELS[0] else f"uml-{series}" for series in KERNELS}


def check() -> list[Requirement]:
    """Everything the target needs; the build tools are needed once for each kernel."""
    machine = platform.machine()
    return [
        Requirement("x86_64", machine == "x86_64", machine, "user-mode Linux runs on x86_64"),
        ziglang(),
        *agents("host"),
        *(program(tool, f"apt-get install {package}") for tool, package in BUILD_TOOLS.items()),
        *(_kernel(series) for series in KERNELS),
        yaffs2.core_found(),
    ]


def _kernel(series: str) -> Requirement:
    kernel = cached_kernel(cache_folder(), series)
    return Requirement(
        f"user-mode Linux {series}",
        kernel is not None,
        kernel.version if kernel else "not built yet",
        f"flashbed prepare --on {_PREPARED_AS[series]}, or the first run, builds it",
    )
