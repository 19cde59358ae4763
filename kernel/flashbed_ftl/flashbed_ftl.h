/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of flashbed_ftl share: a disk with a flash translation layer on an MTD partition.
 *
 * A model of a controller that no maker publishes; docs/models/ftl.md says what it does. The
 * simulator has the same layer (sim/src/block/ftl.rs): equal requests are equal reads, programs
 * and erases.
 * Files, each of which uses only those above it:
 *   pages       pages of the flash with their records, read, programmed and erased
 *   map         the map, writes and collection
 *   scan        the map rebuilt from the records
 *   disk        the block device
 *   control     the file `ctl`, loading and unloading
 *
 * Invariants:
 * 1. A logical page has at most one live page, and a live page one logical page.
 * 2. Between attach and detach the thread of disk.c alone uses struct ftl.
 */
#ifndef FLASHBED_FTL_H
#define FLASHBED_FTL_H

#include <linux/mtd/mtd.h>
#include <linux/types.h>

#define FTL_NAME "flashbed_ftl"
#define FTL_SECTOR 512U
#define FTL_REQUEST_SECTORS 255U /* BLK_SAFE_MAX_SECTORS: a request of any queue without limits */
#define FTL_NONE U32_MAX         /* no page, and no logical page */

/* In the OOB of each page. A torn program can leave any part of page and record. */
struct ftl_record {
	__le32 logical;
	__le32 sequence; /* of the block: when it was opened, as a count of blocks */
	__le32 data_crc;
	__le32 crc; /* of the fields before */
} __packed;

struct ftl_options {
	u32 spare_permille; /* of the pages, which the disk does not show */
	u32 map_pages;      /* that are cached; 0 for a map that is in memory */
};

struct ftl_cached {
	u32 page;
	bool dirty;
};

struct ftl_block {
	u32 live;
	u32 sequence;
	bool full; /* written to its end, and not yet collected */
};

struct ftl {
	struct mtd_info *mtd; /* NULL: there is no disk */
	struct ftl_options options;
	u32 blocks;
	u32 pages;
	u32 block_pages;
	u32 page_bytes;
	u32 shown;   /* logical pages that the disk shows; the map pages come after them */
	u32 logical; /* with the map pages */
	u32 reserved_blocks;
	u32 *map;   /* the page that holds each logical page */
	u32 *owner; /* the logical page of each page */
	struct ftl_block *block;
	u32 *erased; /* a ring of erased blocks, in the order in which they were erased */
	u32 erased_first;
	u32 erased_count;
	u32 open_block;
	u32 open_page;            /* its next page */
	u32 opened;               /* blocks opened so far */
	struct ftl_cached *cache; /* the map page that was used last at the end */
	u32 cached;
	unsigned long *changed; /* map pages that a collection changed */
	u8 *moved;              /* a page that is moved */
	u8 *part;               /* a page of which a part is written */
	u8 *entries;            /* a map page */
	u8 *request;            /* the bytes of a request */
};

/* pages.c */

int ftl_read_page(const struct ftl *ftl, u32 page, u32 column, u32 bytes, u8 *to);
int ftl_read_record(const struct ftl *ftl, u32 page, u8 *data, struct ftl_record *record);
int ftl_program_page(const struct ftl *ftl, u32 page, u32 logical, u32 sequence, const u8 *data);
int ftl_erase_block(const struct ftl *ftl, u32 block);
bool ftl_record_valid(const struct ftl_record *record);
bool ftl_record_blank(const struct ftl_record *record);
bool ftl_data_intact(const struct ftl *ftl, const struct ftl_record *record, const u8 *data);

/* map.c */

void ftl_add_erased(struct ftl *ftl, u32 block);
int ftl_open_block(struct ftl *ftl);
int ftl_make_space(struct ftl *ftl);
int ftl_put(struct ftl *ftl, u32 logical, const u8 *data);
int ftl_get(const struct ftl *ftl, u32 logical, u32 column, u32 bytes, u8 *to);
u32 ftl_map_page_of(const struct ftl *ftl, u32 logical);
int ftl_put_map_page(struct ftl *ftl, u32 map_page);
int ftl_read(struct ftl *ftl, u32 logical, u32 column, u32 bytes, u8 *to);
int ftl_write(struct ftl *ftl, u32 logical, u32 column, u32 bytes, const u8 *from);

/* scan.c */

int ftl_make(struct ftl *ftl, const struct ftl_options *options);
void ftl_free(struct ftl *ftl);

/* disk.c */

int ftl_disk_add(struct ftl *ftl);
void ftl_disk_remove(void);

#endif
