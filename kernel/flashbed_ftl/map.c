// SPDX-License-Identifier: GPL-2.0-only
/* The map, writes and collection: sim/src/block/ftl.rs in C, step by step.
 *
 * With `map_pages` the map is on the flash as well, in pages among the data, of which a few are
 * cached; what is read and written for it is read and written, but the answers come from the map in
 * memory. Left out: a write cache, discards, levelling of blocks that are never written again.
 */
#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "flashbed_ftl.h"

#define ENTRY_BYTES 4

void ftl_add_erased(struct ftl *ftl, u32 block)
{
	ftl->erased[(ftl->erased_first + ftl->erased_count++) % ftl->blocks] = block;
}

/* Opens the block that was erased first. */
int ftl_open_block(struct ftl *ftl)
{
	if (!ftl->erased_count)
		return -ENOSPC;
	ftl->open_block = ftl->erased[ftl->erased_first];
	ftl->open_page = 0;
	ftl->erased_first = (ftl->erased_first + 1) % ftl->blocks;
	ftl->erased_count--;
	ftl->block[ftl->open_block].sequence = ++ftl->opened;
	return 0;
}

/* Programs the next page of the open block, which then holds the logical page. */
int ftl_put(struct ftl *ftl, u32 logical, const u8 *data)
{
	u32 page;
	int err = 0;

	if (ftl->open_page == ftl->block_pages) {
		ftl->block[ftl->open_block].full = true;
		err = ftl_open_block(ftl);
	}
	if (err)
		return err;
	page = ftl->open_block * ftl->block_pages + ftl->open_page;
	err = ftl_program_page(ftl, page, logical, ftl->opened, data);
	if (err)
		return err;
	ftl->open_page++;
	if (ftl->map[logical] != FTL_NONE) {
		ftl->owner[ftl->map[logical]] = FTL_NONE;
		ftl->block[ftl->map[logical] / ftl->block_pages].live--;
	}
	ftl->map[logical] = page;
	ftl->owner[page] = logical;
	ftl->block[ftl->open_block].live++;
	return 0;
}

/* Reads a part of a logical page; one that was never written is not read. */
int ftl_get(const struct ftl *ftl, u32 logical, u32 column, u32 bytes, u8 *to)
{
	if (ftl->map[logical] == FTL_NONE) {
		memset(to, 0, bytes);
		return 0;
	}
	return ftl_read_page(ftl, ftl->map[logical], column, bytes, to);
}

/* The map page that has a logical page; FTL_NONE if it is in memory. */
u32 ftl_map_page_of(const struct ftl *ftl, u32 logical)
{
	const u32 entries = ftl->page_bytes / ENTRY_BYTES;

	if (!ftl->options.map_pages || logical >= ftl->shown)
		return FTL_NONE;
	return ftl->shown + logical / entries;
}

int ftl_put_map_page(struct ftl *ftl, u32 map_page)
{
	const u32 entries = ftl->page_bytes / ENTRY_BYTES;
	const u32 first = (map_page - ftl->shown) * entries;
	u32 i;

	memset(ftl->entries, 0xff, ftl->page_bytes);
	for (i = 0; i < entries && first + i < ftl->shown; i++)
		((__le32 *)ftl->entries)[i] = cpu_to_le32(ftl->map[first + i]);
	return ftl_put(ftl, map_page, ftl->entries);
}

static struct ftl_cached *find_cached(struct ftl *ftl, u32 page)
{
	u32 i;

	for (i = 0; i < ftl->cached; i++)
		if (ftl->cache[i].page == page)
			return &ftl->cache[i];
	return NULL;
}

static struct ftl_cached take_cached(struct ftl *ftl, struct ftl_cached *at)
{
	const struct ftl_cached taken = *at;

	memmove(at, at + 1, (u8 *)(ftl->cache + ftl->cached) - (u8 *)(at + 1));
	ftl->cached--;
	return taken;
}

/* Brings the map page of a logical page into memory, and notes whether it changes. */
static int look_up(struct ftl *ftl, u32 logical, bool changes)
{
	const u32 wanted = ftl_map_page_of(ftl, logical);
	struct ftl_cached used = {.page = wanted};
	struct ftl_cached *found;
	int err = 0;

	if (wanted == FTL_NONE)
		return 0;
	found = find_cached(ftl, wanted);
	if (found) {
		used = take_cached(ftl, found);
	} else {
		if (ftl->cached == ftl->options.map_pages) {
			const struct ftl_cached oldest = take_cached(ftl, ftl->cache);

			if (oldest.dirty)
				err = ftl_put_map_page(ftl, oldest.page);
		}
		if (!err)
			err = ftl_get(ftl, wanted, 0, ftl->page_bytes, ftl->entries);
	}
	if (err)
		return err;
	used.dirty |= changes;
	ftl->cache[ftl->cached++] = used;
	return 0;
}

/* The block with the fewest live pages, of equal ones the oldest. */
static u32 find_victim(const struct ftl *ftl)
{
	u32 best = FTL_NONE;
	u32 at;

	for (at = 0; at < ftl->blocks; at++) {
		const struct ftl_block *block = &ftl->block[at];
		const struct ftl_block *other = best == FTL_NONE ? NULL : &ftl->block[best];

		if (!block->full)
			continue;
		if (!other || block->live < other->live ||
		    (block->live == other->live && block->sequence < other->sequence))
			best = at;
	}
	return best;
}

static int write_changed_map_pages(struct ftl *ftl)
{
	u32 at;

	for_each_set_bit(at, ftl->changed, ftl->logical - ftl->shown)
	{
		struct ftl_cached *cached = find_cached(ftl, ftl->shown + at);
		int err;

		if (cached) {
			cached->dirty = true;
			continue;
		}
		err = ftl_get(ftl, ftl->shown + at, 0, ftl->page_bytes, ftl->entries);
		if (!err)
			err = ftl_put_map_page(ftl, ftl->shown + at);
		if (err)
			return err;
	}
	return 0;
}

/* Moves what lives in a block, and erases it. */
static int collect(struct ftl *ftl, u32 victim)
{
	const u32 first = victim * ftl->block_pages;
	u32 page;
	int err;

	ftl->block[victim].full = false;
	bitmap_zero(ftl->changed, ftl->logical - ftl->shown);
	for (page = first; page < first + ftl->block_pages; page++) {
		const u32 logical = ftl->owner[page];
		const u32 map_page = logical == FTL_NONE ? FTL_NONE : ftl_map_page_of(ftl, logical);

		if (logical == FTL_NONE)
			continue;
		err = ftl_read_page(ftl, page, 0, ftl->page_bytes, ftl->moved);
		if (!err)
			err = ftl_put(ftl, logical, ftl->moved);
		if (err)
			return err;
		if (map_page != FTL_NONE)
			__set_bit(map_page - ftl->shown, ftl->changed);
	}
	err = write_changed_map_pages(ftl);
	if (!err)
		err = ftl_erase_block(ftl, victim);
	if (!err)
		ftl_add_erased(ftl, victim);
	return err;
}

/* Collects until a block is left for the next writes. */
int ftl_make_space(struct ftl *ftl)
{
	u32 tries = 0;

	while (ftl->erased_count < ftl->reserved_blocks) {
		const u32 victim = find_victim(ftl);
		int err;

		if (tries++ > ftl->blocks)
			return -ENOSPC; /* too little spare for its map pages */
		if (victim == FTL_NONE)
			return 0;
		err = collect(ftl, victim);
		if (err)
			return err;
	}
	return 0;
}

int ftl_read(struct ftl *ftl, u32 logical, u32 column, u32 bytes, u8 *to)
{
	int err = ftl->options.map_pages ? ftl_make_space(ftl) : 0;

	if (!err)
		err = look_up(ftl, logical, false);
	return err ? err : ftl_get(ftl, logical, column, bytes, to);
}

/* Writes a part of a logical page. The other bytes are read from where they are, and written again.
 */
int ftl_write(struct ftl *ftl, u32 logical, u32 column, u32 bytes, const u8 *from)
{
	int err = ftl_make_space(ftl);

	if (!err)
		err = look_up(ftl, logical, true);
	if (!err && bytes < ftl->page_bytes) {
		err = ftl_get(ftl, logical, 0, ftl->page_bytes, ftl->part);
		memcpy(ftl->part + column, from, bytes);
		from = ftl->part;
	}
	return err ? err : ftl_put(ftl, logical, from);
}
