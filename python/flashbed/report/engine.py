"""Starts the engine that draws figures, which ends the process where it gets no memory.

V8 reserves far more addresses than it uses, and aborts under a limit of addresses (`ulimit -v`).
"""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import cache

from flashbed.base.errors import RunError

__all__ = ["need_engine"]

_TRIAL = """
import vl_convert
vl_convert.vegalite_to_svg({"mark": "bar", "data": {"values": [{}]}})
"""


@cache
def need_engine() -> None:
    """Raises `RunError` if the engine cannot start under this process's limit of addresses."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    tried = subprocess.run(
        [sys.executable, "-P", "-c", _TRIAL], stdin=subprocess.DEVNULL, capture_output=True,
        check=False,
    )  # fmt: skip
    if tried.returncode:
        raise RunError(
            f"figures cannot be drawn in {limit >> 20:,} MiB of addresses: raise `ulimit -v`"
        )
