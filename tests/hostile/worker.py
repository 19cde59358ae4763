"""Runs the program in this process again and again, with limits: one JSON line a call.

A call names its folder and arguments; the answer is its status and what it said on standard error,
also what no Python code said (a panic). The process has little memory, and whoever started it ends
it when a call takes too long.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

MEMORY_BYTES = 4 << 30
FILE_BYTES = 256 << 20
SAID_BYTES = 100_000


def call(folder: str, arguments: list[str]) -> tuple[int | None, str]:
    """Status, None for what is none, and standard error."""
    from flashbed import cli

    os.chdir(folder)
    kept = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as said, Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(said.fileno(), 2)
        sys.argv = ["flashbed", *arguments]
        status: int | None = None
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else None
        except BaseException as error:  # what came through would be a traceback
            os.write(2, f"{type(error).__name__} came through: {error}\n".encode())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, before in enumerate(kept, start=1):
                os.dup2(before, number)
                os.close(before)
        said.seek(0)
        return status, said.read(SAID_BYTES).decode("utf-8", "replace")


def main() -> None:
    """Answers until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(call(asked["folder"], asked["arguments"])), flush=True)


if __name__ == "__main__":
    main()
