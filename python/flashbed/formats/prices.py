"""`[software]` of a board: what its code costs, and the prices of compressors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from flashbed.formats.bounds import Ns, Ps
from flashbed.formats.names import Text
from flashbed.formats.toml import Strict

__all__ = ["CompressorCosts", "Software"]


class UnpackCosts(Strict):
    """What unpacking costs; see sim/src/compress/work.rs, for what is in the following as well."""

    node_ns: Ns
    packed_byte_ps: Ps
    saved_byte_ps: Ps


class LzoCosts(Strict):
    """LZO."""

    node_ns: Ns
    search_ns: Ns
    match_ns: Ns
    matched_byte_ps: Ps
    literal_byte_ps: Ps
    unpack: UnpackCosts


class DeflateCosts(Strict):
    """What JFFS2 and UBIFS call zlib."""

    node_ns: Ns
    byte_ps: Ps
    position_ns: Ns
    insert_ps: Ps
    candidate_ps: Ps
    compared_byte_ps: Ps
    block_ns: Ns
    symbol_ns: Ns
    code_ps: Ps
    slide_ns: Ns
    unpack: UnpackCosts
    unpack_codes_ns: Ns


class ZstdCosts(Strict):
    """zstd."""

    node_ns: Ns
    search_ns: Ns
    sequence_ns: Ns
    matched_byte_ps: Ps
    literal_byte_ps: Ps
    symbol_ns: Ns
    huffman_byte_ps: Ps
    codes_ns: Ns
    unpack: UnpackCosts


class RtimeCosts(Strict):
    """JFFS2's own."""

    node_ns: Ns
    pair_ns: Ns
    run_byte_ps: Ps
    unpack: UnpackCosts


class CompressorCosts(Strict):
    """`[software] compressors`: what each costs, whichever file system uses it.

    A case in which one that is missing did something has no time. The work of those that are
    `included` is in the file systems' own costs, as published figures do not tell them apart: the
    kernel's own choice has that price, and a choice by `compr=` has none.
    """

    included: Annotated[tuple[Literal["lzo-2.02", "zlib", "rtime"], ...], Field(strict=False)] = ()

    lzo: LzoCosts | None = None
    lzo_2_02: LzoCosts | None = None
    deflate: DeflateCosts | None = None
    zstd: ZstdCosts | None = None
    rtime: RtimeCosts | None = None


class Software(Strict):
    """`[software]`: what the CPU needs, layer by layer; meanings in sim/src/profile.rs."""

    source: Text
    syscall_ns: Ns
    wake_ns: Ns
    open_ns: Ns
    name_add_ns: Ns
    name_remove_ns: Ns
    name_move_ns: Ns
    fill_byte_ps: Ps
    write_ns: Ns
    page_find_ns: Ns
    copy_to_user_byte_ps: Ps
    copy_from_user_byte_ps: Ps
    page_add_ns: Ns
    page_write_ns: Ns
    page_dirty_ns: Ns
    page_drop_ns: Ns
    inode_drop_ns: Ns
    page_slot_ps: Ps
    truncate_ns: Ns
    sync_ns: Ns
    time_update_ns: Ns
    drop_caches_ns: Ns
    mtd_call_ns: Ns
    nand_read_ns: Ns
    nand_program_ns: Ns
    nand_erase_ns: Ns
    nand_byte_ps: Ps
    nand_bounce_byte_ps: Ps
    ecc_step_ns: Ns
    jffs2_node_ns: Ns
    jffs2_inode_ns: Ns
    jffs2_byte_ps: Ps
    jffs2_write_node_ns: Ns
    jffs2_write_byte_ps: Ps
    jffs2_add_node_ns: Ns
    jffs2_obsolete_ns: Ns
    jffs2_erased_byte_ps: Ps
    jffs2_gc_pass_ns: Ns
    ubi_attach_ns: Ns
    ubi_write_ns: Ns
    ubifs_node_ns: Ns
    ubifs_bulk_node_ns: Ns
    ubifs_hole_ns: Ns
    ubifs_inode_ns: Ns
    ubifs_znode_ns: Ns
    ubifs_leaf_drop_ns: Ns
    ubifs_byte_ps: Ps
    ubifs_write_node_ns: Ns
    ubifs_commit_ns: Ns
    ubifs_write_byte_ps: Ps
    ubifs_budget_ns: Ns
    yaffs2_chunk_ns: Ns
    yaffs2_write_ns: Ns
    yaffs2_header_ns: Ns
    yaffs2_inode_ns: Ns
    yaffs2_delete_ns: Ns
    yaffs2_checkpoint_byte_ps: Ps
    yaffs2_entry_ns: Ns
    yaffs2_mount_ns: Ns
    yaffs2_object_ns: Ns
    yaffs2_erased_byte_ps: Ps
    compute_step_ps: Ps
    compressors: CompressorCosts = CompressorCosts()
    sched_clock_ns: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    """What the scheduler's clock counts in: nanoseconds, but for kernels that only count ticks."""
    pointer_bytes: Literal[4, 8] = 4
    """Of the kernel: some structures are as long on the flash as in memory."""
