// SPDX-License-Identifier: GPL-2.0-only
/* The map rebuilt when the disk is attached, from the records of all pages.
 *
 * Of several pages of a logical page the newest is its: that of the block that was opened last, and
 * in a block the last one. A power cut leaves at most one torn page, which was programmed last, and
 * one torn block, of which nothing lives any more. sim/src/block/ftl_scan.rs does the same.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_ftl.h"

#define RESERVED_BLOCKS 2
#define RESERVED_BLOCKS_WITH_MAP 3
#define ENTRY_BYTES 4

/* What the scan knows besides the map. */
struct scan {
	u32 *found; /* the logical page of each page's valid record */
	u32 *used;  /* pages of each block up to the last one that was programmed */
	u32 *torn;  /* logical pages whose newest page has a record and no whole data */
	u32 torn_count;
};

static u32 page_at(const struct ftl *ftl, u32 block, u32 at)
{
	return block * ftl->block_pages + at;
}

/* The first page of a block is read whole: a torn program can leave its record blank. */
static int scan_block(struct ftl *ftl, struct scan *scan, u32 block)
{
	u32 at;

	for (at = 0; at < ftl->block_pages; at++) {
		u8 *data = at ? NULL : ftl->part;
		struct ftl_record record;
		const int err = ftl_read_record(ftl, page_at(ftl, block, at), data, &record);
		const bool blank = ftl_record_blank(&record) &&
				   !(data && (err || memchr_inv(data, 0xff, ftl->page_bytes)));

		if (err && err != -EBADMSG)
			return err;
		if (!blank)
			scan->used[block] = at + 1;
		if (blank || !ftl_record_valid(&record) ||
		    le32_to_cpu(record.logical) >= ftl->logical)
			continue;
		scan->found[page_at(ftl, block, at)] = le32_to_cpu(record.logical);
		ftl->block[block].sequence = le32_to_cpu(record.sequence);
	}
	return 0;
}

/* The block with the highest sequence below a limit; FTL_NONE if there is none. */
static u32 newest_below(const struct ftl *ftl, u32 limit)
{
	u32 best = FTL_NONE;
	u32 at;

	for (at = 0; at < ftl->blocks; at++) {
		const u32 sequence = ftl->block[at].sequence;

		if (sequence && sequence < limit &&
		    (best == FTL_NONE || sequence > ftl->block[best].sequence))
			best = at;
	}
	return best;
}

/* Goes back from the page that was programmed last to the first one that is whole. */
static int drop_torn(struct ftl *ftl, struct scan *scan)
{
	u32 block = newest_below(ftl, FTL_NONE);

	while (block != FTL_NONE) {
		u32 at;

		for (at = scan->used[block]; at-- > 0;) {
			const u32 page = page_at(ftl, block, at);
			struct ftl_record record;
			int err;

			if (scan->found[page] == FTL_NONE)
				continue;
			err = ftl_read_record(ftl, page, ftl->part, &record);
			if (err && err != -EBADMSG)
				return err;
			if (!err && ftl_data_intact(ftl, &record, ftl->part))
				return 0;
			scan->torn[scan->torn_count++] = scan->found[page];
			scan->found[page] = FTL_NONE;
		}
		block = newest_below(ftl, ftl->block[block].sequence);
	}
	return 0;
}

static bool is_newer(const struct ftl *ftl, u32 page, u32 other)
{
	const u32 one = ftl->block[page / ftl->block_pages].sequence;
	const u32 two = ftl->block[other / ftl->block_pages].sequence;

	return one != two ? one > two : page > other;
}

static void fill_map(struct ftl *ftl, const struct scan *scan)
{
	u32 page;

	for (page = 0; page < ftl->pages; page++) {
		const u32 logical = scan->found[page];

		if (logical != FTL_NONE &&
		    (ftl->map[logical] == FTL_NONE || is_newer(ftl, page, ftl->map[logical])))
			ftl->map[logical] = page;
	}
	for (page = 0; page < ftl->logical; page++) {
		if (ftl->map[page] == FTL_NONE)
			continue;
		ftl->owner[ftl->map[page]] = page;
		ftl->block[ftl->map[page] / ftl->block_pages].live++;
	}
}

/* Continues in the block that was opened last, after what a torn program may have left. */
static int open_newest(struct ftl *ftl, const struct scan *scan)
{
	const u32 block = newest_below(ftl, FTL_NONE);

	if (block == FTL_NONE)
		return 0;
	ftl->open_block = block;
	ftl->opened = ftl->block[block].sequence;
	for (ftl->open_page = scan->used[block]; ftl->open_page < ftl->block_pages;
	     ftl->open_page++) {
		struct ftl_record record;
		const int err = ftl_read_record(ftl, page_at(ftl, block, ftl->open_page), ftl->part,
						&record);

		if (err && err != -EBADMSG)
			return err;
		if (!err && ftl_record_blank(&record) &&
		    !memchr_inv(ftl->part, 0xff, ftl->page_bytes))
			break;
	}
	return 0;
}

/* Blank blocks are erased; so are, now, those in which nothing lives. */
static int sort_blocks(struct ftl *ftl, const struct scan *scan)
{
	u32 block;

	for (block = 0; block < ftl->blocks; block++)
		if (!scan->used[block] &&
		    !mtd_block_isbad(ftl->mtd, (loff_t)block * ftl->mtd->erasesize))
			ftl_add_erased(ftl, block);
	for (block = 0; block < ftl->blocks; block++) {
		struct ftl_block *about = &ftl->block[block];

		if (!scan->used[block] || block == ftl->open_block)
			continue;
		about->full = about->live > 0;
		if (!about->full) {
			const int err = ftl_erase_block(ftl, block);

			if (err)
				return err;
			about->sequence = 0;
			ftl_add_erased(ftl, block);
		}
	}
	return ftl->open_block == FTL_NONE ? ftl_open_block(ftl) : 0;
}

/* Writes again what a torn page would give at the next scan: what the logical page had before. */
static int replace_torn(struct ftl *ftl, const struct scan *scan)
{
	u32 at;

	for (at = 0; at < scan->torn_count; at++) {
		int err = ftl_make_space(ftl);

		if (!err)
			err = ftl_get(ftl, scan->torn[at], 0, ftl->page_bytes, ftl->part);
		if (!err)
			err = ftl_put(ftl, scan->torn[at], ftl->part);
		if (err)
			return err;
	}
	return 0;
}

static bool is_stale(const struct ftl *ftl, u32 map_page)
{
	const u32 entries = ftl->page_bytes / ENTRY_BYTES;
	const u32 first = (map_page - ftl->shown) * entries;
	const u32 end = min(first + entries, ftl->shown);
	u32 logical;

	for (logical = first; logical < end; logical++)
		if (ftl->map[logical] != FTL_NONE &&
		    (ftl->map[map_page] == FTL_NONE ||
		     is_newer(ftl, ftl->map[logical], ftl->map[map_page])))
			return true;
	return false;
}

/* Writes the map pages that changed in the cache of before, and only there. */
static int write_stale_map_pages(struct ftl *ftl)
{
	u32 page;

	bitmap_zero(ftl->changed, ftl->logical - ftl->shown);
	if (!ftl->options.map_pages)
		return 0;
	for (page = ftl->shown; page < ftl->logical; page++) {
		int err = is_stale(ftl, page) ? ftl_make_space(ftl) : 0;

		if (!err && is_stale(ftl, page))
			err = ftl_put_map_page(ftl, page);
		if (err)
			return err;
	}
	return 0;
}

static int rebuild(struct ftl *ftl, struct scan *scan)
{
	u32 block;
	int err = 0;

	for (block = 0; block < ftl->blocks && !err; block++)
		if (!mtd_block_isbad(ftl->mtd, (loff_t)block * ftl->mtd->erasesize))
			err = scan_block(ftl, scan, block);
	if (!err)
		err = drop_torn(ftl, scan);
	if (err)
		return err;
	fill_map(ftl, scan);
	err = open_newest(ftl, scan);
	if (!err)
		err = sort_blocks(ftl, scan);
	if (!err)
		err = replace_torn(ftl, scan);
	return err ? err : write_stale_map_pages(ftl);
}

static u32 *numbers(u32 count)
{
	u32 *made = kvmalloc_array(max(count, 1U), sizeof(*made), GFP_KERNEL);

	if (made)
		memset(made, 0xff, count * sizeof(*made));
	return made;
}

static int allocate(struct ftl *ftl)
{
	ftl->map = numbers(ftl->logical);
	ftl->owner = numbers(ftl->pages);
	ftl->erased = numbers(ftl->blocks);
	ftl->block = kvcalloc(ftl->blocks, sizeof(*ftl->block), GFP_KERNEL);
	ftl->cache = kvcalloc(ftl->options.map_pages + 1, sizeof(*ftl->cache), GFP_KERNEL);
	ftl->changed = bitmap_zalloc(ftl->logical - ftl->shown + 1, GFP_KERNEL);
	ftl->moved = kmalloc(ftl->page_bytes, GFP_KERNEL);
	ftl->part = kmalloc(ftl->page_bytes, GFP_KERNEL);
	ftl->entries = kmalloc(ftl->page_bytes, GFP_KERNEL);
	ftl->request = kvmalloc(FTL_REQUEST_SECTORS * FTL_SECTOR, GFP_KERNEL);
	return ftl->map && ftl->owner && ftl->erased && ftl->block && ftl->cache && ftl->changed &&
			       ftl->moved && ftl->part && ftl->entries && ftl->request
		       ? 0
		       : -ENOMEM;
}

/* The disk's size: of the pages of its good blocks, without those in reserve, it does not show
 * `spare_permille`. The map pages are among these.
 */
static int measure(struct ftl *ftl)
{
	const u32 entries = ftl->page_bytes / ENTRY_BYTES;
	u32 good = 0;
	u32 block;

	for (block = 0; block < ftl->blocks; block++)
		good += !mtd_block_isbad(ftl->mtd, (loff_t)block * ftl->mtd->erasesize);
	if (good <= ftl->reserved_blocks + 1)
		return -ENOSPC;
	ftl->shown = div_u64((u64)(good - ftl->reserved_blocks) * ftl->block_pages *
				     (1000 - ftl->options.spare_permille),
			     1000);
	ftl->logical = ftl->shown;
	if (ftl->options.map_pages)
		ftl->logical += DIV_ROUND_UP(ftl->shown, entries);
	return 0;
}

/* Makes the disk of ftl->mtd; after a failure ftl_free() frees what there is. */
int ftl_make(struct ftl *ftl, const struct ftl_options *options)
{
	struct scan scan = {};
	int err;

	ftl->options = *options;
	ftl->reserved_blocks = options->map_pages ? RESERVED_BLOCKS_WITH_MAP : RESERVED_BLOCKS;
	ftl->page_bytes = ftl->mtd->writesize;
	ftl->block_pages = ftl->mtd->erasesize / ftl->mtd->writesize;
	ftl->blocks = mtd_div_by_eb(ftl->mtd->size, ftl->mtd);
	ftl->pages = ftl->blocks * ftl->block_pages;
	ftl->open_block = FTL_NONE;
	if (ftl->mtd->oobavail < sizeof(struct ftl_record))
		return -EOPNOTSUPP;
	err = measure(ftl);
	if (!err)
		err = allocate(ftl);
	scan.found = numbers(ftl->pages);
	scan.torn = numbers(ftl->pages);
	scan.used = kvcalloc(ftl->blocks, sizeof(*scan.used), GFP_KERNEL);
	if (!err)
		err = scan.found && scan.torn && scan.used ? rebuild(ftl, &scan) : -ENOMEM;
	kvfree(scan.found);
	kvfree(scan.torn);
	kvfree(scan.used);
	return err;
}

void ftl_free(struct ftl *ftl)
{
	kvfree(ftl->map);
	kvfree(ftl->owner);
	kvfree(ftl->erased);
	kvfree(ftl->block);
	kvfree(ftl->cache);
	bitmap_free(ftl->changed);
	kfree(ftl->moved);
	kfree(ftl->part);
	kfree(ftl->entries);
	kvfree(ftl->request);
}
