"""What is read from a kernel's sources: release, functions, rules of read-ahead, differences."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from flashbed.stack.imported.begun_kernel import begun_kernel_text
from flashbed.stack.imported.kernel_facts import facts_of, options_of_storage, read_options
from flashbed.stack.imported.kernel_tree import KernelTree, mirrored_of
from flashbed.stack.profiles import Kernel, load_kernel

COLLECTOR = """
static struct jffs2_eraseblock *jffs2_find_gc_block(struct jffs2_sb_info *c)
{
	int n = jiffies % 128;	/* at random */

	if (n < 50)
		return c->first;
	return NULL;
}

#define LIMIT 4
"""
AHEAD = """
static void ondemand_readahead(struct readahead_control *ractl,
		unsigned long req_size)
{
	ra->size = get_next_ra_size(ra, max_pages);
	if (index == ra->start) {
		ra->async_size = max_pages >> 1;
	}
}
void page_cache_ra_unbounded(void)
{
	;
}
"""
LATER_AHEAD = """
static void do_page_cache_ra(struct readahead_control *ractl)
{
	if (nr_to_read > end_index - index)
		lookahead_size = 0;
}
void page_cache_ra_unbounded(void)
{
	;
}
void page_cache_async_ra(struct readahead_control *ractl)
{
	ra->size = max(ra->size, get_next_ra_size(ra, max_pages));
	aligned_end = round_down(end, align);
}
"""
READS = """last_pos = 0;
	do {
		if (unlikely(iocb->ki_pos >= i_size_read(inode)))
			break;
	} while (0);"""
CACHE = """
pgoff_t page_cache_next_miss(struct address_space *mapping,
		pgoff_t index, unsigned long max_scan)
{
	while (max_scan--) {
		return xas.xa_index;
	}
	return xas.xa_index%s;
}
pgoff_t page_cache_prev_miss(struct address_space *mapping,
		pgoff_t index, unsigned long max_scan)
{
	return xas.xa_index%s;
}
ssize_t %s(struct kiocb *iocb)
{
	%s
}
"""


def _tree(folder: Path, files: dict[str, str]) -> KernelTree:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return KernelTree(folder)


def _old(folder: Path) -> KernelTree:
    reads = CACHE % ("", "", "generic_file_buffered_read", "return 0;")
    return _tree(folder, {"mm/readahead.c": AHEAD, "mm/filemap.c": reads})


def _new(folder: Path) -> KernelTree:
    reads = CACHE % (" + 1", " - 1", "filemap_read", READS)
    return _tree(folder, {"mm/readahead.c": LATER_AHEAD, "mm/filemap.c": reads})


def test_a_release_is_that_of_the_makefile(tmp_path: Path) -> None:
    makefile = "# comment\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n"
    assert _tree(tmp_path, {"Makefile": makefile}).release == "6.1.192"
    assert KernelTree(tmp_path / "none").release is None
    assert _tree(tmp_path / "other", {"Makefile": "all:\n"}).release is None


def test_a_changed_collector_is_found_and_a_comment_is_not(tmp_path: Path) -> None:
    gc = "fs/jffs2/gc.c"
    own = _tree(tmp_path / "own", {gc: COLLECTOR})
    same = _tree(tmp_path / "same", {gc: COLLECTOR.replace("at random", "by chance")})
    other = _tree(tmp_path / "other", {gc: COLLECTOR.replace("n < 50", "n < 40")})
    assert own.differing(same) == {}
    assert other.differing(own) == {gc: ["jffs2_find_gc_block"]}
    assert mirrored_of(other.differing(own)) == {gc: ["jffs2_find_gc_block"]}
    limit = _tree(tmp_path / "limit", {gc: COLLECTOR.replace("LIMIT 4", "LIMIT 5")})
    assert limit.differing(own) == {gc: ["LIMIT"]}
    assert own.sha256() != other.sha256()


@pytest.mark.parametrize(("name", "make"), [("5.10", _old), ("7.3", _new)])
def test_the_rules_of_read_ahead_are_read_from_the_sources(
    name: str, make: object, tmp_path: Path
) -> None:
    tree = (_old if make is _old else _new)(tmp_path)
    like = load_kernel(name)
    facts = facts_of(tree, {}, like, None)["readahead"]
    assert like.readahead is not None
    shipped = like.readahead.model_dump()
    for key, known in facts.items():
        if key not in ("faults_around", "stream_keeps_its_window"):
            assert known.value == shipped[key], key
    assert facts["faults_around"].value is False


def test_a_configuration_decides_compressors_and_ticks(tmp_path: Path) -> None:
    text = (
        "CONFIG_HZ=100\nCONFIG_SMP=y\n# CONFIG_JFFS2_SUMMARY is not set\n"
        "CONFIG_JFFS2_COMPRESSION_OPTIONS=y\nCONFIG_JFFS2_ZLIB=y\n# CONFIG_JFFS2_LZO is not set\n"
        "CONFIG_USB=y\n"
    )
    options = read_options(text)
    assert options_of_storage(options) == [
        "# CONFIG_JFFS2_SUMMARY is not set",
        "CONFIG_JFFS2_COMPRESSION_OPTIONS=y",
        "CONFIG_JFFS2_ZLIB=y",
        "# CONFIG_JFFS2_LZO is not set",
    ]
    facts = facts_of(_old(tmp_path), options, load_kernel("5.10"), None)
    assert facts["kernel"]["ticks_per_second"].value == 100
    assert facts["jffs2"]["compressors"].value == ["zlib"]
    assert facts["jffs2"]["summary"].value is False


@pytest.mark.parametrize("verifies", [True, False])
def test_a_configuration_decides_that_nothing_is_compressed_and_what_is_read_back(
    tmp_path: Path, verifies: bool
) -> None:
    text = "CONFIG_JFFS2_COMPRESSION_OPTIONS=y\nCONFIG_JFFS2_ZLIB=y\nCONFIG_JFFS2_CMODE_NONE=y\n"
    if verifies:
        text += "CONFIG_JFFS2_FS_WBUF_VERIFY=y\n"
    facts = facts_of(_old(tmp_path), read_options(text), load_kernel("5.10"), None)
    assert facts["jffs2"]["compressors"].value == []
    assert facts["jffs2"]["wbuf_verify"].value is verifies


@pytest.mark.parametrize(
    ("source", "scheduler"),
    [
        ("static void check_preempt_tick(void)\n{\n}\n", "cfs"),
        ("struct sched_entity *pick_eevdf(void)\n{\n}\n", "eevdf-6.6"),
        ("void f(void)\n{\npick_eevdf();\nrequeue_delayed_entity();\n}\n", "eevdf-6.12"),
        ("void f(void)\n{\npick_eevdf();\nupdate_protect_slice();\n}\n", "eevdf-7.3"),
    ],
)
def test_the_scheduler_of_a_kernel_is_read_from_its_sources(
    source: str, scheduler: str, tmp_path: Path
) -> None:
    tree = _old(tmp_path)
    like = load_kernel("5.10")
    assert "scheduler" not in facts_of(tree, {}, like, None)["kernel"], "no such file"
    (tree.folder / "kernel" / "sched").mkdir(parents=True)
    (tree.folder / "kernel" / "sched" / "fair.c").write_text(source)
    assert facts_of(tree, {}, like, None)["kernel"]["scheduler"].value == scheduler


def test_a_begun_profile_is_one_and_says_what_it_took_from_another(tmp_path: Path) -> None:
    like = load_kernel("5.10")
    facts = facts_of(_old(tmp_path), {}, like, None)
    text = begun_kernel_text("mine", "5.15.32", '5.15.32 "vendor"', facts=facts, like=like)
    kernel = Kernel.model_validate(tomllib.loads(text))
    assert (kernel.kernel.name, kernel.kernel.like) == ("mine", "5.10")
    assert kernel.kernel.targets == ("sim", "uml")
    assert 'context = "conservative"  # as 5.10' in text
    assert 'hole_not_found = "last-page"  # mm/filemap.c page_cache_next_miss' in text
    assert '"like"' not in kernel.sim_json


@pytest.mark.parametrize(("calls", "sleeps"), [("spi_mem_poll_status", True), ("read", False)])
def test_whether_the_core_of_spi_nand_sleeps_between_polls_is_read(
    calls: str, *, sleeps: bool, tmp_path: Path
) -> None:
    core = f"static int spinand_wait(struct spinand_device *spinand)\n{{\n\treturn {calls}();\n}}\n"
    tree = _tree(tmp_path, {"drivers/mtd/nand/spi/core.c": core})
    facts = facts_of(tree, {}, load_kernel("6.1"), None)["kernel"]
    assert facts["spi_polls_sleep"].value is sleeps
