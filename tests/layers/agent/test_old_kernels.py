"""The agent on kernels that cannot be had here: /sys and tracefs as their sources lay them out.

Read-ahead of 2.6.29 to 6.12: fs/inode.c, mm/backing-dev.c, drivers/mtd/mtdsuper.c, mtdcore.c and
mtdbdi.c, fs/ubifs/super.c. Tracing before instances (2.6.33 to 3.9): kernel/trace/trace.c.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers.agent.test_agent import AGENT, agent

pytestmark = pytest.mark.skipif(not AGENT.is_file(), reason="the agent is not built; make build")

OLD = {"default": 128, "mtd-unmap": 0, "mtd-romap": 0, "mtd-rwmap": 0, "31:5": 128}
MIDDLE = {"mtd": 0, "31:5": 128, "ubifs_0_0": 0}
NEW = {"mtd-0": 0, "31:5": 128, "ubifs_1_2": 0}
YAFFS2_ON_DISKS = "nodev\tsysfs\nnodev\tjffs2\nnodev\tubifs\n\tyaffs2\n\text3\n"
YAFFS2_ON_MTD = "nodev\tsysfs\nnodev\tjffs2\nnodev\tubifs\nnodev\tyaffs2\n\text3\n"


def kernel(folder: Path, devices: dict[str, int], file_systems: str) -> Path:
    for name, kib in devices.items():
        path = folder / "sys" / "class" / "bdi" / name / "read_ahead_kb"
        path.parent.mkdir(parents=True)
        path.write_text(f"{kib}\n")
    (folder / "proc").mkdir()
    (folder / "proc" / "filesystems").write_text(file_systems)
    return folder


@pytest.mark.parametrize(
    ("devices", "file_systems", "fs", "found"),
    [
        (OLD, YAFFS2_ON_DISKS, "jffs2", "default 128"),
        (OLD, YAFFS2_ON_DISKS, "yaffs2", "31:5 128"),
        (OLD, YAFFS2_ON_MTD, "yaffs2", "default 128"),
        (OLD, YAFFS2_ON_DISKS, "ubifs", None),
        ({**OLD, "ubifs_1_2": 0}, YAFFS2_ON_DISKS, "ubifs", "ubifs_1_2 0"),
        (MIDDLE, YAFFS2_ON_DISKS, "jffs2", "mtd 0"),
        (MIDDLE, YAFFS2_ON_DISKS, "yaffs2", "31:5 128"),
        (NEW, YAFFS2_ON_MTD, "jffs2", "mtd-0 0"),
        (NEW, YAFFS2_ON_MTD, "yaffs2", "mtd-0 0"),
        (NEW, YAFFS2_ON_MTD, "ubifs", "ubifs_1_2 0"),
        ({}, YAFFS2_ON_DISKS, "jffs2", None),
        ({"31:5": 128}, YAFFS2_ON_DISKS, "jffs2", None),
    ],
)
def test_a_window_is_set_where_the_inodes_look(
    tmp_path: Path, devices: dict[str, int], file_systems: str, fs: str, found: str | None
) -> None:
    """Before 4.0 `mtd-unmap` was written, which JFFS2's and YAFFS2's inodes do not look at.

    Cases without read-ahead were measured with the 128 KiB of default_backing_dev_info. JFFS2's
    device number is mtdblock's on all kernels, and so does not say whose window it has.
    """
    root = kernel(tmp_path, devices, file_systems)
    done = agent("window", "--root", root, "--fs", fs, "--device", "31:5", "--volume", "1_2")
    if found is None:
        assert (done.stdout, done.returncode) == ("none\n", 1)
    else:
        name, kib = found.split()
        assert done.stdout == f"{root}/sys/class/bdi/{name}/read_ahead_kb {kib}\n"


def test_a_file_is_read_to_see_its_window(tmp_path: Path) -> None:
    done = agent("window", "--dir", tmp_path)
    assert int(done.stdout) >= -1
    assert not list(tmp_path.iterdir())
    assert agent("window", "--dir", tmp_path / "none").returncode == 1


STATS = "entries: {entries}\noverrun: 0\ncommit overrun: 0\n\n"
HEADER_PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""


def tracefs(folder: Path, files: dict[str, str], entries: int = 0) -> Path:
    """/sys/kernel/debug/tracing of 2.6.37, as kernel/trace/trace.c makes it: two processors."""
    there = {
        "kprobe_events": "",
        "kprobe_profile": "",
        "trace_clock": "[local] global \n",
        "buffer_size_kb": "7 (expanded: 1408)\n",
        "tracing_on": "1\n",
        "trace_marker": "",
        "trace": "# tracer: nop\n",
        "current_tracer": "nop\n",
        "events/enable": "0\n",
        "events/header_page": HEADER_PAGE,
        **{f"per_cpu/cpu{cpu}/trace_pipe_raw": "" for cpu in (0, 1)},
        **{f"per_cpu/cpu{cpu}/stats": STATS.format(entries=entries * cpu) for cpu in (0, 1)},
        **files,
    }
    for name, text in there.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_kernel_without_instances_is_traced_and_put_back(tmp_path: Path) -> None:
    """A kernel without instances was refused if it also lacks options/overwrite (2.6.39).

    A buffer that was never used was restored to 7 KiB, while the kernel makes it 1,408.
    """
    root = tracefs(tmp_path, {"tracing_on": "0\n"})
    before = {path.name: path.read_text() for path in root.rglob("*") if path.is_file()}
    done = agent("session", "--root", root)
    assert (done.stdout, done.returncode) == ("yes\n", 0)
    changed = {
        path.name: path.read_text()
        for path in root.rglob("*")
        if path.is_file() and path.read_text() != before.get(path.name)
    }
    # A file of the kernel takes what is written as its value; these keep the bytes behind it.
    assert changed.pop("trace_clock").startswith("local")
    assert changed.pop("buffer_size_kb").startswith("1408")
    assert changed == {"trace_marker": "flashbed", "trace": ""}
    assert not (root / "options").exists()


def test_the_option_to_keep_what_came_first_is_put_back(tmp_path: Path) -> None:
    root = tracefs(tmp_path, {"options/overwrite": "1\n", "buffer_size_kb": "1408\n"})
    assert agent("session", "--root", root).stdout == "yes\n"
    assert (root / "options" / "overwrite").read_text() == "1\n"
    assert (root / "buffer_size_kb").read_text() == "1408\n"


@pytest.mark.parametrize(
    ("entries", "files", "why"),
    [
        (0, {"current_tracer": "function\n"}, "current_tracer is function"),
        (0, {"events/enable": "X\n"}, "events/enable is X"),
        (0, {"buffer_size_kb": "X\n"}, "buffer_size_kb is X"),
        (3, {}, "it holds somebody's events"),
    ],
)
def test_somebodys_trace_in_the_only_buffer_is_left_alone(
    tmp_path: Path, entries: int, files: dict[str, str], why: str
) -> None:
    root = tracefs(tmp_path, files, entries)
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file()}
    done = agent("session", "--root", root)
    assert done.returncode == 1
    assert done.stdout.startswith("tracing: the kernel has one buffer (instances came with Linux")
    assert why in done.stdout
    assert {path: path.read_text() for path in root.rglob("*") if path.is_file()} == before


def test_a_kernel_with_instances_has_its_buffer_left_alone(tmp_path: Path) -> None:
    root = tracefs(tmp_path, {"current_tracer": "function\n", "instances/README": ""}, 3)
    agent("session", "--root", root)
    assert (root / "trace_clock").read_text() == "[local] global \n"
    assert (root / "buffer_size_kb").read_text() == "7 (expanded: 1408)\n"
