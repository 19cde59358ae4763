"""`[software]` of a board: the prices of its code, in one table.

A price has a name that ends in its unit (`_ns`; `_ps` for a byte or a step), a description, and the
way it is found: fitted to a calibration's cases; folded, that is seen in single requests of those
cases or contained in another price; or by hand. sim/src/profile.rs and sim/src/compress/work.rs
have the same fields; a test compares them.

The price of a file system or compressor that a board's kernel lacks is 0 and never used. A
compressor without a table has no price, and a case in which it worked has no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field

from flashbed.formats.bounds import Ns, Ps
from flashbed.formats.names import Text
from flashbed.formats.toml import Strict

__all__ = ["CompressorCosts", "How", "Price", "Software", "prices"]

How = Literal["fitted", "folded", "by hand"]


@dataclass(frozen=True)
class Price:
    """Its key in `[software]`, what it prices, how it is found, and why it is not fitted."""

    key: str
    meaning: str
    how: How
    why: str = ""


def _price(meaning: str, how: How, why: str) -> Any:
    return Field(description=meaning, json_schema_extra={"how": how, "why": why})


def fitted(meaning: str) -> Any:
    """A price that calibration fits."""
    return _price(meaning, "fitted", "")


def folded(meaning: str, why: str) -> Any:
    """A price that no fit can determine: single requests show it, or another price contains it."""
    return _price(meaning, "folded", why)


def by_hand(meaning: str, why: str) -> Any:
    """A price that keeps its value in the profile."""
    return _price(meaning, "by hand", why)


class UnpackCosts(Strict):
    """Prices of decompression; the following classes include them."""

    node_ns: Ns = fitted("One piece: checks, tables, codes.")
    packed_byte_ps: Ps = fitted("One packed byte, in picoseconds: literals, codes.")
    saved_byte_ps: Ps = fitted(
        "One byte that comes out and was not stored, in picoseconds: a copy of earlier ones.",
    )


class LzoCosts(Strict):
    """LZO."""

    node_ns: Ns = fitted("One piece: its dictionary is emptied.")
    search_ns: Ns = fitted("Looking for a match at one position.")
    match_ns: Ns = fitted("Writing one match.")
    matched_byte_ps: Ps = fitted("One byte of a match, in picoseconds.")
    literal_byte_ps: Ps = fitted("One byte outside, in picoseconds.")
    unpack: UnpackCosts


class DeflateCosts(Strict):
    """The compressor that JFFS2 and UBIFS call zlib."""

    node_ns: Ns = fitted("One piece: the hashes are emptied.")
    byte_ps: Ps = fitted("One byte, in picoseconds: into the window, and its checksum.")
    position_ns: Ns = fitted("One turn of the search: a literal or a match is counted.")
    insert_ps: Ps = fitted("One position entered into the hashes, in picoseconds.")
    candidate_ps: Ps = fitted("One earlier position looked at, in picoseconds.")
    compared_byte_ps: Ps = fitted("One byte compared, in picoseconds.")
    block_ns: Ns = fitted("One block, besides its symbols.")
    symbol_ns: Ns = fitted("One leaf of a block's trees.")
    code_ps: Ps = fitted("One literal or match that is written with its code, in picoseconds.")
    slide_ns: Ns = fitted("Moving the window.")
    unpack: UnpackCosts
    unpack_codes_ns: Ns = fitted(
        "Unpacking: making the tables of a block that has codes of its own.",
    )


class ZstdCosts(Strict):
    """zstd."""

    node_ns: Ns = fitted("One piece: parameters, tables.")
    search_ns: Ns = fitted("Looking for a match at one position.")
    sequence_ns: Ns = fitted("One sequence: its lengths and offset, stored and coded.")
    matched_byte_ps: Ps = fitted("One byte of a match, in picoseconds.")
    literal_byte_ps: Ps = fitted("Counting the value of one literal, in picoseconds.")
    symbol_ns: Ns = fitted("One value in a Huffman code for literals.")
    huffman_byte_ps: Ps = fitted("One literal put into that code, in picoseconds.")
    codes_ns: Ns = fitted("Codes for the sequences of a block.")
    unpack: UnpackCosts


class RtimeCosts(Strict):
    """JFFS2's own compressor."""

    node_ns: Ns = fitted("One piece: its table is emptied.")
    pair_ns: Ns = fitted("One byte with the length of a run.")
    run_byte_ps: Ps = fitted("One byte of a run, in picoseconds.")
    unpack: UnpackCosts


class CompressorCosts(Strict):
    """`[software] compressors`: prices of each compressor, for every file system.

    A case in which a compressor without a price worked has no time. Published figures do not
    separate the work of those that are `included` from the file systems' own costs. The kernel's
    default compressor therefore costs nothing extra there, and one chosen by `compr=` has no price.
    """

    included: Annotated[tuple[Literal["lzo-2.02", "zlib", "rtime"], ...], Field(strict=False)] = ()
    """Compressors whose work is part of the file systems' own costs."""

    lzo: LzoCosts | None = None
    lzo_2_02: LzoCosts | None = None
    deflate: DeflateCosts | None = None
    zstd: ZstdCosts | None = None
    rtime: RtimeCosts | None = None


class Software(Strict):
    """`[software]`: CPU time, layer by layer."""

    source: Text
    """Where the numbers of this table come from."""
    syscall_ns: Ns = fitted("A read or write system call: entry, fd, exit.")
    wake_ns: Ns = folded(
        "From the interrupt of a timer to the program that it wakes (try_to_wake_up, "
        "schedule), or to a thread.",
        why="how late a program goes on after a pause",
    )
    open_ns: Ns = fitted(
        "Opening a file besides its system call: the walk along its path, the open file.",
    )
    name_add_ns: Ns = fitted("A name made, besides what the flash and the nodes cost.")
    name_remove_ns: Ns = fitted("A name removed, likewise.")
    name_move_ns: Ns = fitted("A name changed, likewise.")
    fill_byte_ps: Ps = folded(
        "Making a byte that is written, before the call, in picoseconds: the program's own "
        "work (the agent's data_fill), in no request's time.",
        why="the agent's own work, between the requests of the cases",
    )
    write_ns: Ns = fitted("A write call besides any call and its pages.")
    page_find_ns: Ns = fitted("Finding one page in the page cache (filemap_get_pages).")
    copy_to_user_byte_ps: Ps = fitted(
        "Copying one byte to the program (copy_page_to_iter), in picoseconds.",
    )
    copy_from_user_byte_ps: Ps = fitted(
        "Copying one byte from the program (copy_page_from_iter_atomic), in picoseconds.",
    )
    page_add_ns: Ns = fitted(
        "Adding a page to the page cache: allocation, insertion, read-ahead's bookkeeping.",
    )
    page_write_ns: Ns = fitted(
        "One page write besides its copy: write_begin and write_end, without what the file "
        "system does in them.",
    )
    page_dirty_ns: Ns = fitted("A page of the cache that was clean becomes dirty.")
    page_drop_ns: Ns = fitted(
        "Taking a page out of the cache as its file ends before it or is gone.",
    )
    inode_drop_ns: Ns = fitted(
        "Taking an inode and its name out of memory as the file system is unmounted.",
    )
    page_slot_ps: Ps = fitted(
        "A slot of the cache's array without a page that is passed while pages are looked for "
        "that go (xas_find), in picoseconds.",
    )
    truncate_ns: Ns = fitted(
        "Giving a file another size (do_truncate, notify_change), besides the call, pages and "
        "nodes.",
    )
    sync_ns: Ns = fitted(
        "sync, besides the call and what is written: asking each mounted file system, several "
        "times.",
    )
    time_update_ns: Ns = fitted(
        "Noting the time of a write in the inode, once a second (file_update_time).",
    )
    drop_caches_ns: Ns = fitted(
        "Writing 3 into drop_caches: asking every shrinker, several times, whatever there is "
        "to free.",
    )
    mtd_call_ns: Ns = fitted("A call into MTD (mtd_read, mtd_write): partition offset, chip lock.")
    nand_read_ns: Ns = fitted("A read command besides chip time.")
    nand_program_ns: Ns = fitted("A program command besides chip time.")
    nand_erase_ns: Ns = fitted("An erase command besides chip time.")
    nand_byte_ps: Ps = folded(
        "Moving one byte between controller and memory, in picoseconds.",
        why="in ecc_step_ns, or in nand_read_ns where pages are read whole",
    )
    nand_bounce_byte_ps: Ps = fitted(
        "Copying one byte from the page buffer to the caller (`use_bounce_buf` of "
        "nand_do_read_ops), in picoseconds: of parts of pages, and of pages that the buffer "
        "already holds.",
    )
    ecc_step_ns: Ns = fitted("Calculating one ECC step in software.")
    jffs2_node_ns: Ns = fitted("JFFS2: finding, reading and checking one node, besides its bytes.")
    jffs2_inode_ns: Ns = fitted("JFFS2: reading in an inode (jffs2_iget), besides its nodes.")
    jffs2_byte_ps: Ps = fitted("JFFS2: CRC and copy of one node byte, in picoseconds.")
    jffs2_write_node_ns: Ns = fitted(
        "JFFS2: one data node written, besides its bytes and what compressors do.",
    )
    jffs2_write_byte_ps: Ps = fitted(
        "JFFS2: CRC and copies of one byte of data in a node that is written, in picoseconds.",
    )
    jffs2_add_node_ns: Ns = fitted(
        "JFFS2: a node that is written, whatever is in it: space for it, its header and "
        "checksums, its place in the lists.",
    )
    jffs2_obsolete_ns: Ns = fitted(
        "JFFS2: one node that nothing refers to any more as a file becomes shorter or is gone.",
    )
    jffs2_erased_byte_ps: Ps = by_hand(
        "JFFS2: a byte of an erased block that is looked at, in picoseconds.",
        why="between two reads of a check; by hand, for the thread erases as well",
    )
    jffs2_gc_pass_ns: Ns = fitted(
        "JFFS2: one pass of garbage collection, besides the nodes it reads and writes.",
    )
    ubi_attach_ns: Ns = fitted(
        "UBI: detaching and attaching, besides the reads: devices, a thread. As many "
        "instructions for 200 blocks as for 400.",
    )
    ubi_write_ns: Ns = fitted("UBI: a write to a logical block, besides MTD's.")
    ubifs_node_ns: Ns = fitted("UBIFS: looking up and reading one data node, besides its bytes.")
    ubifs_bulk_node_ns: Ns = fitted(
        "UBIFS: checking one node of a bulk-read and finding the next one (validate_data_node).",
    )
    ubifs_hole_ns: Ns = fitted(
        "UBIFS: filling a page without a node with zeroes, in a hole or past the end "
        "(do_readpage).",
    )
    ubifs_inode_ns: Ns = fitted(
        "UBIFS: looking up and reading the node of a name or an inode: no page to fill.",
    )
    ubifs_znode_ns: Ns = fitted("UBIFS: reading one index node into a znode.")
    ubifs_leaf_drop_ns: Ns = fitted(
        "UBIFS: one entry that leaves the index with others, as a file becomes shorter or is gone.",
    )
    ubifs_byte_ps: Ps = fitted("UBIFS: CRC and copy of one node byte, in picoseconds.")
    ubifs_write_node_ns: Ns = fitted(
        "UBIFS: one node, or group of nodes, put into a write-buffer, besides its bytes.",
    )
    ubifs_commit_ns: Ns = fitted(
        "UBIFS: a commit, besides its index nodes: log, LPT and master are made and summed up.",
    )
    ubifs_write_byte_ps: Ps = fitted(
        "UBIFS: one byte of data in a node that is written, in picoseconds: CRC and copies.",
    )
    ubifs_budget_ns: Ns = fitted(
        "UBIFS: one page that is about to be written: its budget (ubifs_write_begin).",
    )
    yaffs2_chunk_ns: Ns = fitted("YAFFS2: one chunk read or written: tnode walk, tags, copy.")
    yaffs2_write_ns: Ns = fitted(
        "YAFFS2: one chunk written, besides what any chunk costs: collection is asked for, a "
        "chunk allocated, the file's tree changed.",
    )
    yaffs2_header_ns: Ns = fitted(
        "YAFFS2: making the header of an object, which is a chunk besides.",
    )
    yaffs2_inode_ns: Ns = fitted("YAFFS2: making an inode of an object (yfs_iget).")
    yaffs2_delete_ns: Ns = fitted(
        "YAFFS2: one chunk that a file does without as it becomes shorter or is gone.",
    )
    yaffs2_checkpoint_byte_ps: Ps = fitted(
        "YAFFS2: one byte of a checkpoint, written or read, in picoseconds.",
    )
    yaffs2_entry_ns: Ns = fitted(
        "YAFFS2: an entry of a directory that is passed on the way to a name (yaffs_find_by_name).",
    )
    yaffs2_mount_ns: Ns = fitted(
        "YAFFS2: mounting, and unmounting before, besides what is read: memory, a thread.",
    )
    yaffs2_object_ns: Ns = fitted("YAFFS2: an object that a mount makes.")
    yaffs2_erased_byte_ps: Ps = by_hand(
        "YAFFS2: a byte of an erased page that the first mount looks at (memchr_inv), in "
        "picoseconds.",
        why="in a fresh mount alone; by hand, from a log of instructions",
    )
    compute_step_ps: Ps = fitted("One step of a `compute` operation, in picoseconds.")
    compressors: CompressorCosts = CompressorCosts()
    sched_clock_ns: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    """The unit of the scheduler's clock: nanoseconds, or a tick for kernels that count ticks."""
    pointer_bytes: Literal[4, 8] = 4
    """Bytes of the kernel's pointers: some structures are stored on flash as in memory."""


def prices(model: type[BaseModel] = Software, prefix: str = "") -> Iterator[Price]:
    """Every price in the table's order, compressors' prices last."""
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from prices(kind, f"{prefix}{name}.")
        known = field.json_schema_extra
        if isinstance(known, dict) and "how" in known:
            how: Any = known["how"]
            yield Price(f"{prefix}{name}", field.description or "", how, str(known["why"]))
