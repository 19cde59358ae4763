"""Programs of Debian that `flashbed exec` is tried with (evidence/programs.md).

`python -m tests.support.exec_programs` runs those that are there, twice on each file system, and
prints the table.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PROGRAMS", "TriedProgram", "row", "run"]

FLASHBED = Path(sys.executable).parent / "flashbed"
FILE_SYSTEMS = ("ubifs", "jffs2")
_PYTHON = """
import os, sqlite3, subprocess, threading
d = sqlite3.connect('p.db'); d.execute('pragma journal_mode=persist')
d.execute('create table t(a)')
for n in range(20):
    d.execute('insert into t values (?)', ('x' * n * 10,)); d.commit()
def work(n):
    with open(f'f{n}', 'wb') as out:
        out.write(os.urandom(5000)); out.flush(); os.fsync(out.fileno())
ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(subprocess.check_output(['ls', '-l']).decode())
print(d.execute('select count(*) from t').fetchone())
"""
_REDIS = """
redis-server --dir . --port 7777 --save '' --appendonly yes --appendfsync always >log &
sleep 1
for n in 1 2 3 4 5 6 7 8; do redis-cli -p 7777 set k$n v$n; done
redis-cli -p 7777 get k5; redis-cli -p 7777 shutdown nosave; wait; ls -R
"""
_GIT = """
git init -q r; cd r; git config user.email a@b; git config user.name a
for n in 1 2 3; do seq $n 2000 >f$n; git add .; git commit -qm $n; done
git gc -q; git fsck; git log --format=%H
"""
_DPKG = """
mkdir -p p/DEBIAN p/usr/share/a; seq 1 20000 >p/usr/share/a/b
{ printf 'Package: a\\nVersion: 1\\nArchitecture: all\\n'
printf 'Maintainer: a <a@b>\\nDescription: a\\n'; } >p/DEBIAN/control
dpkg-deb -b p a.deb; dpkg-deb -I a.deb; dpkg-deb -x a.deb out; wc out/usr/share/a/b
"""


@dataclass(frozen=True)
class TriedProgram:
    """Its command, the program that has to be there, and where it is known to fail."""

    needs: str
    words: Sequence[str]
    fails: tuple[str, ...] = ()
    """File systems on which it ends with an error of its own."""


def _sh(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


PROGRAMS = {
    "sqlite3": TriedProgram("sqlite3", ("sqlite3", "x.db", "create table t(a); with recursive"
        " c(n) as (select 1 union all select n + 1 from c where n < 500) insert into t select"
        " hex(n * n) from c; update t set a = a || 'x' where rowid % 7 = 0; select count(*),"
        " sum(length(a)) from t")),
    "python3": TriedProgram("/usr/bin/python3", ("/usr/bin/python3", "-c", _PYTHON)),
    "git": TriedProgram("git", _sh(_GIT)),
    "tar": TriedProgram("tar", _sh("mkdir d; for n in 1 2 3 4; do seq $n 3000 >d/$n; done;"
        " tar czf t.tgz d; rm -r d; tar xvf t.tgz; cksum d/*")),
    "fio": TriedProgram("fio", ("fio", "--name=a", "--rw=randwrite", "--size=1m", "--bs=4k",
        "--ioengine=psync", "--fsync=8", "--output-format=terse")),
    "busybox": TriedProgram("busybox", ("busybox", "sh", "-c", "busybox seq 1 5000 >a;"
        " busybox gzip -k a; busybox cp a.gz b; busybox sync; busybox md5sum a a.gz b")),
    "postmark": TriedProgram("postmark", _sh(
        "printf 'set number 50\\nset transactions 100\\nrun\\nquit\\n' | postmark")),
    "dbench": TriedProgram("dbench", _sh(
        "dbench -t 1 -D . -c $(ls /usr/share/dbench/client.txt* | head -1) 1")),
    "redis-server": TriedProgram("redis-server", _sh(_REDIS)),
    "dpkg-deb": TriedProgram("dpkg-deb", _sh(_DPKG)),
    "rsync": TriedProgram("rsync", _sh("mkdir a; for n in 1 2 3; do seq $n 2000 >a/$n; done;"
        " rsync -av a/ b; echo x >>a/2; rsync -avc --inplace a/ b; cksum b/*")),
    "mdb_load": TriedProgram("mdb_load", _sh("seq 1 400 | mdb_load -n -T m.mdb; mdb_stat -n -e"
        " m.mdb; mdb_dump -n m.mdb | cksum"), fails=("jffs2",)),
    "db5.3_load": TriedProgram("db5.3_load", _sh("seq 1 400 | db5.3_load -T -t btree b.db;"
        " db5.3_verify b.db; db5.3_dump b.db | cksum")),
}  # fmt: skip


def run(
    program: TriedProgram, fs: str, *, record: Path | None = None
) -> tuple[dict[str, Any], str, str]:
    """Its answer: all output on standard output and on standard error."""
    recorded = [] if record is None else ["--record", str(record)]
    done = subprocess.run(
        [FLASHBED, "exec", "--fs", fs, "--format", "json", *recorded, "--", *program.words],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=500,
        env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    if not out:
        raise AssertionError(err)
    # How long it took on this machine is no part of what it did.
    err = "".join(line for line in err.splitlines(True) if not line.startswith("flashbed: "))
    return json.loads(out)["exec"][0], out, err


def row(name: str, fs: str, answer: dict[str, Any]) -> str:
    """Of the table."""
    ran, flushed = answer["run"], answer["flush"]
    counts = [f"{ran[kind] + flushed[kind]:,}" for kind in ("reads", "programs", "erases")]
    calls = sum(call["calls"] for call in answer["system_calls"])
    cells = [f"`{name}`", fs, f"{calls:,}", f"{answer['bytes_written'] / 1024:,.0f}", *counts,
             f"{answer['time_ns'] / 1e6:,.1f}"]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints the table."""
    print("| program | on | calls | written, KiB | reads | programs | erases | time, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, program in PROGRAMS.items():
        for fs in FILE_SYSTEMS:
            if shutil.which(program.needs) is None or fs in program.fails:
                continue
            first, second = run(program, fs), run(program, fs)
            assert first == second, (name, fs)
            print(row(name, fs, first[0]), flush=True)


if __name__ == "__main__":
    main()
