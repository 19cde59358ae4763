"""`[software]` of a board: the prices of its code, in one table.

A price has a name that ends in its unit (`_ns`; `_ps` for a byte or a step), a description, and the
way it is found: fitted to a calibration's cases; folded, that is seen in single requests of those
cases or contained in another price; or by hand. sim/src/profile/mod.rs and sim/src/compress/work.rs
have the same fields; a test compares them.

The price of a file system or compressor that a board's kernel lacks is 0 and never used. A
compressor without a table has no price, and a case in which it worked has no time. A table without
any price is that of a board that is not calibrated: its code takes no time, and runs warn of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, model_validator

from flashbed.base.toml import Strict
from flashbed.stack.bounds import Ns, Ps
from flashbed.stack.names import Text

__all__ = ["CompressorCosts", "How", "Price", "Software", "known_price", "prices"]

How = Literal["fitted", "folded", "by hand"]


@dataclass(frozen=True)
class Price:
    """Its key in `[software]`, what it prices, how it is found, and why it is not fitted."""

    key: str
    meaning: str
    how: How
    why: str = ""


def _price(meaning: str, how: How, why: str, **more: Any) -> Any:
    return Field(description=meaning, json_schema_extra={"how": how, "why": why}, **more)


def fitted(meaning: str) -> Any:
    """A price that calibration fits."""
    return _price(meaning, "fitted", "")


def fitted_later(meaning: str) -> Any:
    """A fitted price that profiles of before lack: 0 there, as it was."""
    return _price(meaning, "fitted", "", default=0)


def folded(meaning: str, why: str) -> Any:
    """A price that no fit can determine: single requests show it, or another price contains it."""
    return _price(meaning, "folded", why)


def by_hand(meaning: str, why: str) -> Any:
    """A price that keeps its value in the profile."""
    return _price(meaning, "by hand", why)


def of_layer(meaning: str) -> Any:
    """A price of overlayfs, which profiles of before lack: 0 there."""
    return _price(meaning, "by hand", _OF_LAYER, default=0)


_OF_LAYER = "calls on a layer"


class UnpackCosts(Strict):
    """Prices of decompression; the following classes include them."""

    node_ns: Ns = fitted("One piece: checks, tables, codes.")
    packed_byte_ps: Ps = fitted("One compressed byte: literals, codes.")
    saved_byte_ps: Ps = fitted(
        "One byte produced by copying earlier ones.",
    )


class LzoCosts(Strict):
    """LZO."""

    node_ns: Ns = fitted("One piece: clearing the dictionary.")
    search_ns: Ns = fitted("Searching for a match at one position.")
    match_ns: Ns = fitted("Writing one match.")
    matched_byte_ps: Ps = fitted("One byte of a match.")
    literal_byte_ps: Ps = fitted("One byte outside of matches.")
    unpack: UnpackCosts


class DeflateCosts(Strict):
    """The compressor that JFFS2 and UBIFS call zlib."""

    node_ns: Ns = fitted("One piece: clearing the hashes.")
    byte_ps: Ps = fitted("One byte: copying it into the window, and its checksum.")
    position_ns: Ns = fitted("One iteration of the search: counting a literal or a match.")
    insert_ps: Ps = fitted("Entering one position into the hashes.")
    candidate_ps: Ps = fitted("Examining one earlier position.")
    compared_byte_ps: Ps = fitted("Comparing one byte.")
    block_ns: Ns = fitted("One block, besides its symbols.")
    symbol_ns: Ns = fitted("One leaf of a block's trees.")
    code_ps: Ps = fitted("Writing one literal or match as a code.")
    slide_ns: Ns = fitted("Moving the window.")
    unpack: UnpackCosts
    unpack_codes_ns: Ns = fitted(
        "Decompression: building the tables of a block that has its own codes.",
    )


class ZstdCosts(Strict):
    """zstd."""

    node_ns: Ns = fitted("One piece: parameters, tables.")
    search_ns: Ns = fitted("Searching for a match at one position.")
    sequence_ns: Ns = fitted("Storing and coding one sequence: its lengths and offset.")
    matched_byte_ps: Ps = fitted("One byte of a match.")
    literal_byte_ps: Ps = fitted("Counting the value of one literal.")
    symbol_ns: Ns = fitted("One value of a Huffman code for literals.")
    huffman_byte_ps: Ps = fitted("Writing one literal in that code.")
    codes_ns: Ns = fitted("Codes for the sequences of a block.")
    unpack: UnpackCosts


class RtimeCosts(Strict):
    """JFFS2's own compressor."""

    node_ns: Ns = fitted("One piece: clearing its table.")
    pair_ns: Ns = fitted("One byte with the length of a run.")
    run_byte_ps: Ps = fitted("One byte of a run.")
    unpack: UnpackCosts


class CompressorCosts(Strict):
    """`[software] compressors`: prices of each compressor, for every file system.

    A case in which a compressor without a price worked has no time. Published figures do not
    separate the work of those that are `included` from the file systems' own costs. The kernel's
    default compressor therefore costs nothing extra there, and one chosen by `compr=` has no price.
    So it is with one of whose prices `not_known` names some: the others count for the default.
    """

    included: Annotated[tuple[Literal["lzo-2.02", "zlib", "rtime"], ...], Field(strict=False)] = ()
    """Compressors whose work is part of the file systems' own costs."""

    lzo: LzoCosts | None = None
    lzo_2_02: LzoCosts | None = None
    deflate: DeflateCosts | None = None
    zstd: ZstdCosts | None = None
    rtime: RtimeCosts | None = None


def of_squashfs(meaning: str) -> Any:
    """A price of squashfs."""
    return _price(meaning, "by hand", _OF_SQUASHFS)


_OF_SQUASHFS = "boots of a root"


class SquashfsUnpackCosts(Strict):
    """Decompression by one compressor: a block mixes what compresses and what does not."""

    block_ns: Ns = of_squashfs("One block.")
    packed_byte_ps: Ps = of_squashfs("One compressed byte.")
    kept_byte_ps: Ps = of_squashfs("One byte of what does not compress.")
    saved_byte_ps: Ps = of_squashfs("One byte that compression saved.")


class SquashfsUnpackAll(Strict):
    """A price for each compressor. A boot or a case with another has no time of the processor."""

    gzip: SquashfsUnpackCosts | None = None
    lzo: SquashfsUnpackCosts | None = None
    xz: SquashfsUnpackCosts | None = None
    lz4: SquashfsUnpackCosts | None = None
    zstd: SquashfsUnpackCosts | None = None


class SquashfsCosts(Strict):
    """`[software] squashfs`: a read-only root."""

    request_ns: Ns = of_squashfs("A request to the block device: its queue, its worker.")
    request_byte_ps: Ps = of_squashfs("One byte of it.")
    page_ns: Ns = of_squashfs("A page that is added to the cache (readahead_expand).")
    inode_ns: Ns = of_squashfs("Reading an inode (squashfs_read_inode).")
    mount_ns: Ns = of_squashfs("A mount, besides its reads.")
    unpack: SquashfsUnpackAll = SquashfsUnpackAll()


class Software(Strict):
    """`[software]`: CPU time, layer by layer."""

    source: Text
    """Where the numbers of this table come from."""
    syscall_ns: Ns = fitted("A read or write system call: entry, fd, exit.")
    wake_ns: Ns = folded(
        "From a timer's interrupt to the task that it wakes (try_to_wake_up, schedule).",
        why="how late a program continues after a pause",
    )
    open_ns: Ns = fitted(
        "Opening a file besides its system call.",
    )
    close_ns: Ns = fitted_later("Closing a file besides its system call.")
    path_ns: Ns = fitted_later(
        "The walk along a path: of stat, chmod, readlink, xattr, link's old name.",
    )
    path_folder_ns: Ns = fitted_later("A folder on that path.")
    stat_ns: Ns = fitted_later("Copying an inode's attributes to the program (cp_new_stat64).")
    attribute_ns: Ns = fitted_later(
        "Changing an inode's attributes (notify_change), besides what the file system writes.",
    )
    list_ns: Ns = fitted_later(
        "Listing a folder, besides its system calls, names and flash reads.",
    )
    map_ns: Ns = fitted_later(
        "Mapping a file besides the system call (do_mmap).",
    )
    unmap_ns: Ns = fitted_later("Ending a mapping besides the system call (do_munmap).")
    unmap_page_ns: Ns = fitted_later("A page that was mapped there (zap_present_pte).")
    fault_ns: Ns = fitted_later(
        "A page fault besides entry (a system call's) and finding the page (handle_mm_fault).",
    )
    fault_page_ns: Ns = fitted_later(
        "A cached page that a fault maps besides its own (filemap_map_pages).",
    )
    name_add_ns: Ns = fitted("Creating a name, besides the cost of flash and nodes.")
    name_remove_ns: Ns = fitted("Removing a name, likewise.")
    name_move_ns: Ns = fitted("Renaming, likewise.")
    fill_byte_ps: Ps = folded(
        "Generating a byte to be written (the agent's data_fill), in no request's time.",
        why="between the requests of the cases",
    )
    write_ns: Ns = fitted("A write call besides the system call and its pages.")
    page_find_ns: Ns = fitted("Finding one page in the page cache (filemap_get_pages).")
    copy_to_user_byte_ps: Ps = fitted(
        "Copying one byte to the program (copy_page_to_iter).",
    )
    copy_from_user_byte_ps: Ps = fitted(
        "Copying one byte from the program (copy_page_from_iter_atomic).",
    )
    page_add_ns: Ns = fitted(
        "Adding a page to the page cache: allocation, insertion, read-ahead.",
    )
    page_write_ns: Ns = fitted(
        "One page of a write, besides its copy and the file system's write_begin and write_end.",
    )
    page_dirty_ns: Ns = fitted("Making a clean cached page dirty.")
    page_drop_ns: Ns = fitted(
        "Dropping a page from the cache at a truncation or deletion.",
    )
    inode_drop_ns: Ns = fitted(
        "Dropping an inode and its name from memory at an unmount.",
    )
    page_slot_ps: Ps = fitted(
        "Passing an empty slot of the cache in a search for pages to drop (xas_find).",
    )
    truncate_ns: Ns = fitted(
        "Changing a file's size (do_truncate, notify_change), besides the call, pages and nodes.",
    )
    sync_ns: Ns = fitted(
        "sync, besides the call and the writes.",
    )
    time_update_ns: Ns = fitted(
        "Updating the inode's time at a write, once a second (file_update_time).",
    )
    drop_caches_ns: Ns = fitted(
        "Writing 3 into drop_caches: it calls every shrinker several times.",
    )
    mtd_call_ns: Ns = fitted("A call into MTD (mtd_read, mtd_write).")
    nand_read_ns: Ns = fitted("A read command besides chip time.")
    nand_program_ns: Ns = fitted("A program command besides chip time.")
    nand_erase_ns: Ns = fitted("An erase command besides chip time.")
    nand_byte_ps: Ps = folded(
        "Moving one byte between controller and memory.",
        why="in ecc_step_ns, or in nand_read_ns where pages are read whole",
    )
    nand_bounce_byte_ps: Ps = fitted(
        "Copying one byte from the page buffer to the caller (`use_bounce_buf`).",
    )
    spi_operation_ns: Ns = fitted_later(
        "One operation of spi-mem besides the bus (spi_mem_exec_op, spi_mem_dirmap_read).",
    )
    ecc_step_ns: Ns = fitted("Calculating one ECC step in software.")
    jffs2_node_ns: Ns = fitted("Finding, reading and checking one node, besides its bytes.")
    jffs2_inode_ns: Ns = fitted("Reading an inode (jffs2_iget), besides its nodes.")
    jffs2_byte_ps: Ps = fitted("CRC and copy of one node byte.")
    jffs2_write_node_ns: Ns = fitted(
        "Writing one data node, besides its bytes and compression.",
    )
    jffs2_write_byte_ps: Ps = fitted(
        "CRC and copies of one data byte of a written node.",
    )
    jffs2_add_node_ns: Ns = fitted(
        "Writing any node: space, header, checksums, lists.",
    )
    jffs2_obsolete_ns: Ns = fitted(
        "One node that becomes obsolete at a truncation or deletion.",
    )
    jffs2_erased_byte_ps: Ps = by_hand(
        "Checking one byte of an erased block.",
        why="between two reads of a check",
    )
    jffs2_gc_pass_ns: Ns = fitted(
        "One pass of garbage collection, besides the nodes it reads and writes.",
    )
    jffs2_listed_ns: Ns = fitted_later("A name that a listing returns (jffs2_readdir).")
    ubi_attach_ns: Ns = fitted(
        "Detaching and attaching, besides the reads.",
    )
    ubi_write_ns: Ns = fitted("A write to a logical block, besides MTD's cost.")
    ubifs_node_ns: Ns = fitted("Looking up and reading one data node, besides its bytes.")
    ubifs_bulk_node_ns: Ns = fitted(
        "Checking one node of a bulk-read and finding the next one (validate_data_node).",
    )
    ubifs_hole_ns: Ns = fitted(
        "Zeroing a page without a node, in a hole or beyond the end (do_readpage).",
    )
    ubifs_inode_ns: Ns = fitted(
        "Looking up and reading the node of a name or an inode, without a page to fill.",
    )
    ubifs_znode_ns: Ns = fitted("Reading one index node into a znode.")
    ubifs_leaf_drop_ns: Ns = fitted(
        "Removing one entry of the index in a truncation or deletion.",
    )
    ubifs_byte_ps: Ps = fitted("CRC and copy of one node byte.")
    ubifs_write_node_ns: Ns = fitted(
        "Putting one node or group of nodes into a write-buffer, besides its bytes.",
    )
    ubifs_commit_ns: Ns = fitted(
        "A commit, besides its index nodes.",
    )
    ubifs_write_byte_ps: Ps = fitted(
        "CRC and copies of one data byte of a written node.",
    )
    ubifs_budget_ns: Ns = fitted(
        "The budget of one page that is about to be written (ubifs_write_begin).",
    )
    ubifs_listed_ns: Ns = fitted_later(
        "A name that a listing returns (ubifs_readdir, ubifs_tnc_next_ent)."
    )
    yaffs2_chunk_ns: Ns = fitted("One chunk read or written: tnode walk, tags, copy.")
    yaffs2_write_ns: Ns = fitted(
        "Writing one chunk, besides the cost of any chunk.",
    )
    yaffs2_header_ns: Ns = fitted(
        "Building an object's header, besides its chunk.",
    )
    yaffs2_inode_ns: Ns = fitted("Creating an object's inode (yfs_iget).")
    yaffs2_delete_ns: Ns = fitted(
        "Deleting one chunk at a truncation or deletion.",
    )
    yaffs2_checkpoint_byte_ps: Ps = fitted(
        "One byte of a checkpoint, written or read.",
    )
    yaffs2_entry_ns: Ns = fitted(
        "Passing one directory entry in a search for a name (yaffs_find_by_name).",
    )
    yaffs2_listed_ns: Ns = fitted_later("A name that a listing returns (yaffs_readdir).")
    yaffs2_mount_ns: Ns = fitted(
        "Unmounting and mounting, besides the reads.",
    )
    yaffs2_object_ns: Ns = fitted("Creating one object at a mount.")
    yaffs2_erased_byte_ps: Ps = by_hand(
        "Checking one byte of an erased page at the first mount (memchr_inv), in picoseconds.",
        why="from a log of instructions",
    )
    overlay_open_ns: Ns = of_layer(
        "Overlayfs: opening the file below as well (ovl_open).",
    )
    overlay_close_ns: Ns = of_layer(
        "Overlayfs: closing it (ovl_release).",
    )
    overlay_read_ns: Ns = of_layer(
        "Overlayfs: a read of the file below (ovl_read_iter).",
    )
    overlay_write_ns: Ns = of_layer(
        "Overlayfs: a write to it (ovl_write_iter).",
    )
    overlay_inode_ns: Ns = of_layer(
        "Overlayfs: a call about an inode or a listing, which asks the inode below.",
    )
    overlay_lookup_ns: Ns = of_layer(
        "Overlayfs: looking a name up (ovl_lookup), besides what the file system does.",
    )
    overlay_create_ns: Ns = of_layer(
        "Overlayfs: making a name (ovl_create_or_link), likewise.",
    )
    overlay_remove_ns: Ns = of_layer(
        "Overlayfs: removing a name (ovl_do_remove), likewise.",
    )
    overlay_rename_ns: Ns = of_layer(
        "Overlayfs: renaming (ovl_rename), likewise.",
    )
    compute_step_ps: Ps = fitted("One step of a `compute` operation.")
    compressors: CompressorCosts = CompressorCosts()
    squashfs: SquashfsCosts | None = None
    not_known: Annotated[tuple[str, ...], Field(strict=False, max_length=200)] = ()
    """Prices that no source has; each counts as 0."""
    sched_clock_ns: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    """The unit of the scheduler's clock: a nanosecond, or a tick."""
    clock_read_ns: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The agent's reading of the clock, where nothing else takes time (user-mode Linux)."""
    pointer_bytes: Literal[4, 8] = 4
    """Bytes of the kernel's pointers, which some structures on flash have."""

    @model_validator(mode="before")
    @classmethod
    def _none_at_all(cls, values: Any) -> Any:
        """Takes a table without any price as one of no cost."""
        if not isinstance(values, dict) or "compressors" in values:
            return values
        own = [price.key for price in prices(cls) if "." not in price.key]
        return values if set(own) & set(values) else dict.fromkeys(own, 0) | values

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_not_known(cls, values: Any) -> Any:
        """Gives prices that are not known the 0 with which they count."""
        if not isinstance(values, dict) or not isinstance(values.get("not_known"), (list, tuple)):
            return values
        names = [name for name in values["not_known"] if isinstance(name, str)]
        counted: dict[str, Any] = dict(values)
        for name in names:
            *folders, key = name.split(".")
            table = counted
            for folder in folders:
                table[folder] = dict(table.get(folder) or {})
                table = table[folder]
            if table.get(key):
                raise ValueError(f"{name}: has a price, and not_known names it")
            table[key] = 0
        return counted

    @property
    def is_free(self) -> bool:
        """Whether no code takes any time: the board is not calibrated."""
        return not any(known_price(self, price.key) for price in prices())


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


def known_price(software: Software, key: str) -> int | None:
    """The price of this key; None if it is not known, or of a compressor without a price there."""
    if key in software.not_known:
        return None
    at: Any = software
    for name in key.split("."):
        at = getattr(at, name) if at is not None else None
    return at if isinstance(at, int) else None
