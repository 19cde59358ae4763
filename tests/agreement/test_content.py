"""Python generates the bytes the simulator generates: sim/tests/content.rs reads the same table.

The agent is held to the same definition in tests/layers/agent/test_agent.py.
"""

from __future__ import annotations

import csv
import zlib

from flashbed.formats.content import generated
from tests.support import PROJECT

TABLE = PROJECT / "tests" / "corpus" / "content" / "generated.csv"


def test_the_bytes_are_those_the_simulator_generates() -> None:
    with TABLE.open() as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 10
    for row in rows:
        content = generated(row["offset"], row["length"], row["seed"], row["compressibility"])
        assert zlib.crc32(content.tobytes()) == row["crc32"], row
