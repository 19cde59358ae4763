"""Calls that once ended badly, or could: each bends one thing in a good file."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hostile.calls import Call

EXPERIMENT = """[experiment]
id = "t/x"
title = "t"
question = "q"
source = "s"

[workload]
kind = "micro-read"
request_bytes = 4096
file_bytes = 65_536
settle_ns = 10_000_000_000

[[grid]]
targets = ["sim"]
board = ["emulated-small"]
kernel = ["6.1"]
fs = ["jffs2"]
read_ahead_kib = [0]
pattern = ["sequential"]
requests = [8]
seed = [1]
"""
NAMES = (
    "nope", "../../../../etc/passwd", "/etc/passwd", "a\\u0000b", "b" * 5000, "", "\\u001b[2J",
    "a\\nb", "\\u202eabc",
)  # fmt: skip
INTEGERS = (
    '"8"', "8.5", "true", "nan", "inf", "-8", "-1", "9223372036854775808", "9" * 400, "9" * 5000,
    "4611686018427387904", "1_000_000_000_000", "[8]", "{}", "1979-05-27",
)  # fmt: skip
_BENT: tuple[tuple[str, str], ...] = (
    *(("requests = [8]", f"requests = [{number}]") for number in INTEGERS),
    *(("seed = [1]", f"seed = [{number}]") for number in INTEGERS),
    *(("request_bytes = 4096", f"request_bytes = {number}") for number in INTEGERS),
    *(("file_bytes = 65_536", f"file_bytes = {number}") for number in INTEGERS),
    *(("settle_ns = 10_000_000_000", f"settle_ns = {number}") for number in INTEGERS),
    *(("read_ahead_kib = [0]", f"read_ahead_kib = [{number}]") for number in INTEGERS),
    *(('board = ["emulated-small"]', f'board = ["{name}"]') for name in NAMES),
    *(('kernel = ["6.1"]', f'kernel = ["{name}"]') for name in NAMES),
    *(('fs = ["jffs2"]', f'fs = ["{name}"]') for name in NAMES),
    *(('targets = ["sim"]', f'targets = ["{name}"]') for name in NAMES),
    *(('pattern = ["sequential"]', f'pattern = ["{name}"]') for name in NAMES),
    *(('kind = "micro-read"', f'kind = "{name}"') for name in NAMES),
    *(('id = "t/x"', f'id = "{name}"') for name in (*NAMES, "a/b/c", "t/ü☃", "../x")),
    ('title = "t"', 'title = "t"\nfoo = 1'),
    ('title = "t"', f'title = "{"x" * 1_000_000}"'),
    ('title = "t"', "title = " + "{a=" * 3000 + "1" + "}" * 3000),
    ("requests = [8]", "requests = []"),
    ("requests = [8]", "requests = [8, 8]"),
    ("requests = [8]", "requests = [8]\nrequests = [9]"),
    ("requests = [8]", "requests = " + "[" * 2000 + "]" * 2000),
    ("requests = [8]", "requests = " + "[" * 100_000 + "]" * 100_000),
    ("requests = [8]", f"requests = {[*range(1, 3001)]}\nadvice = {['none'] * 3000}"),
    ("[[grid]]", "[grid]"),
    ("[[grid]]", "[foo]\na = 1\n[[grid]]"),
    ("[[grid]]", "[a" + ".a" * 1200 + "]\nb = 1\n[[grid]]"),
    ("[[grid]]", "[a" + ".a" * 20_000 + "]\nb = 1\n[[grid]]"),
    *(
        ("seed = [1]", f"seed = [1]\n{axis} = {value}")
        for axis in ("state", "faults", "database", "advice", "pause_ns", "compressor", "window")
        for value in ("0", "[0]", '""', "[]", "{}", "[{}]", "[[]]", "[{valid = nan}]", "[{a = 1}]",
                      "[{valid = 1.5}]", "[{valid = -0.1}]", '[{script = 0}]', '[{file = "x:"}]')
    ),
)  # fmt: skip
"""Text of the experiment, and what stands in its place."""
OPERATIONS = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 4096 1 50\nfsync 0\nclose 0\n"
_HUGE = (2**62, 2**63 - 1, 2**63, 2**64, 10**30, -1)
_LINES = (
    "open 0 ../../etc/passwd rw,create", "open 0 /etc/passwd rw", "open 0 a/./b rw,create",
    "open 0 a//b rw,create", f"open 0 {'a' * 256} rw,create", "open 64 a rw,create",
    f"open 0 {'/'.join(['a' * 200] * 6)} rw,create", "open -1 a rw,create", "open 00 a rw,create",
    *(f"open 0 a rw,create\nwrite 0 {at} 1 1 1\nclose 0" for at in _HUGE),
    *(f"open 0 a rw,create\nread 0 {at} 1\nclose 0" for at in _HUGE),
    *(f"open 0 a rw,create\nread 0 1 {at}\nclose 0" for at in _HUGE),
    *(f"open 0 a rw,create\ntruncate 0 {at}\nread 0 0 4096\nclose 0" for at in _HUGE),
    *(f"open 0 a rw,create\nwrite 0 0 1 1 1\npause {at}\nclose 0" for at in _HUGE),
    *(f"compute {at}" for at in _HUGE), "open 0 a rw,create\nwrite 0 0 1073741825 1 1",
    "open 0 a rw,create\ntruncate 0 2147483647\nread 0 0 1073741824\nclose 0",
    "open 0 a rw,create\nwrite 0 0 0 1 1", "open 0 a rw,create\nwrite 0 0 1 1 101", "open  0 a rw",
    "open 0 a rw ", "frobnicate 0", "open 0 a rw,create,create", "open 0 a rwx", "open 0 a create",
    "open 0 a rw,create\nfadvise 0 0 0 fast", "read 0 0 1", "open 0 a rw,create\nopen 0 a rw",
    "prepared\nprepared", "mark\nmark", "mark\nprepared", "open 0 a rw,create\nremount",
    "sql_open db 1 fsync PRAGMA page_size=4096\nsql db SELECT 1\nsql_close db",
    "sql_open db 1 fsync PRAGMA page_size=4096\nsql db SELECT \\q", "mkdir a\nrename a a/b",
    "open 0 partition rw\nerase 0 9223372036854775806 1\nclose 0", "rmdir a", "open 0 a rw,cre",
    "open 0 partition rw\nerase 0 1 1\nclose 0", "open 0 partition rw\nwrite 0 1 1 1 1\nclose 0",
    "open 0 partition rw\nwrite 0 0 2048 1 1\nwrite 0 0 2048 1 1\nclose 0",
    "open 0 a rw,create\nunlink a\nwrite 0 0 4096 1 1\nclose 0",
    "\n".join(f"mkdir {'/'.join(['a'] * depth)}" for depth in range(1, 500)),
)  # fmt: skip
_LINES_2 = (
    "open 0 %2e%2e/x rw,create", "open 0 %00 rw,create", "open 0 a%2Fb rw,create", "mkdir %",
    f"mkdir {'%20' * 255}", f"mkdir {'%20' * 256}", "open 1023 a rw,create", "open 1024 a rw",
    "mkdir .", "rename . a", "unlink .", "rmdir .", "open 0 . rw,tmpfile", "stat .", "link . a",
    *(f"open 0 a rw,create\nwrite 0 0 {length} 1 {fill}"
      for length in (1, 4096, 4097, 2**30) for fill in ("1+0", "0+1x2", "4096+0", "0+0x262144")),
    *(f"open 0 a rw,create\nwrite 0 {at} 1 1 1+0" for at in _HUGE),
    *(f"open 0 a rw,create\nopen 1 b rw,create\nwrite 0 0 9 1 1\ncopy 0 0 1 {at} 9"
      for at in _HUGE),
    *(f"open 0 a rw,create\nsend 0 {at} 9" for at in _HUGE),
    *(f"open 0 a rw,create\nfallocate 0 {at} 9 keep" for at in _HUGE),
    *(f"open 0 a rw,create\nsync_range 0 {at} 9 write" for at in _HUGE),
    *(f"pause {at}\nspawn 1\ntask 1\npause {at}\ntask 0\nwait 1" for at in _HUGE),
    "data YQ==\nopen 0 a rw", "data =\n", "data", "data YQ==", "task 1", "wait 0", "spawn 0",
    "open 0 a rw,create\ndata YQ==\nwrite 0 0 1 0 data\nwrite 0 0 1 0 data", "touch 0 0 1",
    "open 0 a rw,create\nmmap 0 0 0 1 rw\nstore 0 0 4096 1 0\nmunmap 0", "readlink a",
    "setxattr a user.a 1 1 0", "symlink / a", "readdir 0", "chmod a 0", "utimens a",
)  # fmt: skip
_FILES = (
    b"", b"\0", b"\xff", bytes(range(256)) * 40, b"\xef\xbb\xbf", b"x" * 5000, b"\n" * 5000,
    b"flashbed-ops 2\n", b"{}", b"[]", b"PAR1PAR1", b"PK\x03\x04", b"[[[[",
)  # fmt: skip
_READERS: tuple[tuple[str, ...], ...] = (
    ("run", "f.toml"), ("trace", "--on", "sim", "f.ops"), ("trace", "--read", "f"),
    ("lifetime", "f", "--age", "3y", "--endurance", "9"), ("power", "fit", "f"),
    ("lifetime", "f.parquet", "--rate", "1/h", "--endurance", "9"), ("report", "f"),
    ("power", "fit", "good.csv", "--windows", "f"), ("table", "f", "cases"), ("run", "f"),
    ("predict", "f", "--pattern", "insert", "--requests", "1", "--request-bytes", "9"),
    ("power", "fit", "f.sr"), ("power", "fit", "f.csv"), ("model", "sqlite", "f"),
    ("verdicts", "f"), ("powercut", "f.toml", "--on", "sim"), ("reproduce", "f"),
    ("lifetime", "f", "--rate", "1/min"), ("power", "draw", "f"),
)  # fmt: skip


def experiments() -> Iterator[Call]:
    """Runs of experiments, each with one thing in it that may be wrong."""
    for old, new in _BENT:
        assert old in EXPERIMENT, old
        text = EXPERIMENT.replace(old, new)
        yield Call(("run", "x.toml", "--out", "o"), {"x.toml": text.encode()})
    head = EXPERIMENT.split("[[grid]]", maxsplit=1)[0]
    for text in ("", head, f"{head}grid = []"):
        yield Call(("run", "x.toml", "--out", "o"), {"x.toml": text.encode()})
    begin, grid = EXPERIMENT.split("[workload]", 1)[0], EXPERIMENT.split("[[grid]]", 1)[1]
    grid = grid.replace("sequential", "recorded").replace("requests = [8]", "requests = [1]")
    for name in NAMES:
        workload = f'[workload]\nkind = "program"\nrecording = "{name}"'
        text = f"{begin}{workload}\n[[grid]]{grid}"
        yield Call(("run", "x.toml", "--out", "o"), {"x.toml": text.encode()})
    for encoding in ("utf-16", "utf-32", "utf-8-sig"):
        yield Call(("run", "x.toml", "--out", "o"), {"x.toml": EXPERIMENT.encode(encoding)})


def operations() -> Iterator[Call]:
    """Traces of operations, on every file system."""
    texts = [f"flashbed-ops 1\n{lines}\n" for lines in _LINES]
    texts += [f"flashbed-ops 2\n{lines}\n" for lines in _LINES_2]
    for text in texts:
        for fs in ("jffs2", "ubifs", "yaffs2", "mtd"):
            arguments = (
                "trace",
                "--on",
                "sim",
                "--flash",
                "--set",
                f"fs={fs}",
                "x.ops",
                "--out",
                "o",
            )
            files = {"x.ops": text.encode()}
            yield Call((*arguments, "--set", "board=emulated-small"), files)
    begin = ("trace", "--on", "sim", "--flash", "x.ops", "--out", "o")
    for number in _HUGE:
        words = ("--set", f"read_ahead_kib={number}")
        yield Call((*begin, *words), {"x.ops": OPERATIONS.encode()})


def files() -> Iterator[Call]:
    """Every reader of files, given those of others and none."""
    names = ("f", "f.toml", "f.ops", "f.parquet", "f.sr", "f.csv")
    good = b"time_s,cpu_W\n0,1\n1,1\n2,1\n"
    for arguments in _READERS:
        for data in _FILES:
            yield Call(arguments, {**dict.fromkeys(names, data), "good.csv": good})
        yield Call(arguments, {"good.csv": good})
        yield Call(arguments, {**dict.fromkeys(names), "good.csv": good})


def commands() -> Iterator[Call]:
    """Command lines that hold no file."""
    for text in ("", "x", "../x", "/", "\n", "\x1b[2J", "a" * 5000, "-", "--", "sim,", ",", "ü"):
        for begin in (
            ("run",), ("reproduce",), ("verdicts",), ("validate",), ("calibrate",), ("table",),
            ("doctor", "--on"), ("prepare", "--on"), ("doctor", "--format"), ("list",),
            ("run", "x", "--on"), ("validate", "emulated", "--on"), ("power",), ("model",),
            ("validate", "emulated", "--on", "sim", "--suite"), ("fuzz", "--on", "sim", "--class"),
            ("fuzz", "--cases", "0", "--on"), ("fuzz", "--on", "sim", "--set"), ("powercut",),
            ("board", "new", "--blank"), ("doctor", "--partition"), ("lifetime",), ("predict",), (),
            ("cost", "fit"), ("report",), ("merge", "-o", "o"),
            ("verdicts", "x", "--results"), ("calibrate", "emulated", "--on"), ("trace", "--on"),
        ):  # fmt: skip
            yield Call((*begin, text))
    for folder in ("", ".", "..", "/", "x/..", "."):
        yield Call(("report", "o", "--out", folder), {"o": None})
        yield Call(("power", "draw", "o", "--out", folder), {"o": None})
        yield Call(("model", "sqlite", "o", "--out", folder), {"o": None})


KNOWN = {
    "experiments": experiments, "operations": operations, "files": files, "commands": commands,
}  # fmt: skip
