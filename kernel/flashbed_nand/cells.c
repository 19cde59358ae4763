// SPDX-License-Identifier: GPL-2.0-only
/* The content of the chip's array, sparse: pages that were not programmed since their block was
 * erased take no memory.
 *
 * In the place of the page array of drivers/mtd/nand/raw/nandsim.c. The chip and its snapshots
 * share pages (`users`). A page is copied when one of them programs it, so a snapshot costs one
 * pointer a programmed page. Main and spare area are allocated separately: a page with only its
 * spare area programmed (JFFS2's clean markers) costs its OOB, and main areas are powers of two.
 *
 * Leaves out loss of the paired page (MLC), interference of partial
 * programs. Invariants:
 * 1. A program only clears bits; only an erase sets them.
 * 2. `data`, `intended` are never all 0xff and `intended` differs from `data`: equal content is
 *    stored in only one way.
 * 3. next_page is one more than the highest page that exists.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

int fbn_pools_create(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	int err;

	fbn_host_find();
	err = fbn_pool_create(&flashbed.page_pool, "flashbed_page",
			      sizeof(struct fbn_page) + p->oob_bytes);
	if (!err)
		err = fbn_pool_create(&flashbed.data_pool, "flashbed_data", p->page_bytes);
	flashbed.scratch = kmalloc(p->raw_bytes, GFP_KERNEL);
	if (!err && flashbed.scratch)
		return 0;
	fbn_pools_destroy();
	return -ENOMEM;
}

void fbn_pools_destroy(void)
{
	fbn_pool_destroy(&flashbed.page_pool);
	fbn_pool_destroy(&flashbed.data_pool);
	kfree(flashbed.scratch);
	flashbed.scratch = NULL;
}

static void free_area(u8 **area)
{
	if (*area)
		fbn_pool_put(&flashbed.data_pool, *area);
	*area = NULL;
}

/* Sets the content of a page's area to `bytes`. */
int fbn_page_fill(u8 **area, const u8 *bytes)
{
	if (!*area)
		*area = fbn_pool_get(&flashbed.data_pool);
	if (!*area)
		return -ENOMEM;
	memcpy(*area, bytes, flashbed.p.page_bytes);
	return 0;
}

static void put_page_of_chip(struct fbn_page *page)
{
	if (!page || --page->users)
		return;
	free_area(&page->data);
	free_area(&page->intended);
	fbn_pool_put(&flashbed.page_pool, page);
}

static struct fbn_page *new_page(void)
{
	struct fbn_page *page = fbn_pool_get(&flashbed.page_pool);

	if (!page)
		return NULL;
	memset(page, 0, sizeof(*page));
	page->users = 1;
	memset(page->oob, 0xff, flashbed.p.oob_bytes);
	return page;
}

static struct fbn_page *copy_of(const struct fbn_page *page)
{
	struct fbn_page *copy = new_page();

	if (!copy)
		return NULL;
	copy->programs = page->programs;
	copy->touched = page->touched;
	copy->reads = page->reads;
	copy->programmed_ns = page->programmed_ns;
	memcpy(copy->oob, page->oob, flashbed.p.oob_bytes);
	if ((page->data && fbn_page_fill(&copy->data, page->data)) ||
	    (page->intended && fbn_page_fill(&copy->intended, page->intended))) {
		put_page_of_chip(copy);
		return NULL;
	}
	return copy;
}

int fbn_cells_init(struct fbn_cells *cells)
{
	cells->blocks = kvcalloc(flashbed.p.blocks, sizeof(*cells->blocks), GFP_KERNEL);
	return cells->blocks ? 0 : -ENOMEM;
}

void fbn_cells_free(struct fbn_cells *cells)
{
	const struct fbn_parameters *p = &flashbed.p;
	u32 block;
	u32 page;

	if (!cells->blocks)
		return;
	for (block = 0; block < p->blocks; block++) {
		struct fbn_page **pages = cells->blocks[block].pages;

		if (!pages)
			continue;
		for (page = 0; page < cells->blocks[block].next_page; page++)
			put_page_of_chip(pages[page]);
		kfree(pages);
	}
	kvfree(cells->blocks);
	cells->blocks = NULL;
}

/* Makes a second owner of the same content. On failure `to` is empty. */
int fbn_cells_share(struct fbn_cells *to, const struct fbn_cells *from)
{
	const struct fbn_parameters *p = &flashbed.p;
	u32 block;
	u32 page;

	if (fbn_cells_init(to))
		return -ENOMEM;
	for (block = 0; block < p->blocks; block++) {
		const struct fbn_block *source = &from->blocks[block];
		struct fbn_block *copy = &to->blocks[block];

		copy->erases = source->erases;
		copy->state = source->state;
		if (!source->next_page)
			continue;
		copy->pages = kcalloc(p->pages_per_block, sizeof(*copy->pages), GFP_NOIO);
		if (!copy->pages) {
			fbn_cells_free(to);
			return -ENOMEM;
		}
		copy->next_page = source->next_page;
		memcpy(copy->pages, source->pages, source->next_page * sizeof(*copy->pages));
		for (page = 0; page < copy->next_page; page++)
			if (copy->pages[page])
				copy->pages[page]->users++;
	}
	return 0;
}

/* NULL for an erased page, and for one beyond the chip's end (the NAND core's scan rounds the chip
 * up to a power of two).
 */
struct fbn_page *fbn_cells_page(const struct fbn_cells *cells, u32 page)
{
	const struct fbn_parameters *p = &flashbed.p;
	const struct fbn_block *block;

	if (page >= p->pages)
		return NULL;
	block = &cells->blocks[page >> p->page_in_block_shift];
	page &= p->pages_per_block - 1;
	return page < block->next_page ? block->pages[page] : NULL;
}

/* The page for a program: allocated, and not shared. */
struct fbn_page *fbn_cells_own_page(struct fbn_cells *cells, u32 page)
{
	const struct fbn_parameters *p = &flashbed.p;
	struct fbn_block *block = &cells->blocks[page >> p->page_in_block_shift];
	const u32 index = page & (p->pages_per_block - 1);
	struct fbn_page *old;
	struct fbn_page *own;

	if (!block->pages)
		block->pages = kcalloc(p->pages_per_block, sizeof(*block->pages), GFP_NOIO);
	if (!block->pages)
		return NULL;
	old = block->pages[index];
	if (old && old->users == 1)
		return old;
	own = old ? copy_of(old) : new_page();
	if (!own)
		return NULL;
	put_page_of_chip(old);
	block->pages[index] = own;
	if (block->next_page <= index)
		block->next_page = index + 1;
	return own;
}

void fbn_cells_read(const struct fbn_cells *cells, u32 page, u32 column, u8 *to, u32 bytes)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	const struct fbn_page *from = fbn_cells_page(cells, page);
	u32 main_bytes = column < page_bytes ? min(bytes, page_bytes - column) : 0;
	u32 oob_bytes = 0;

	if (from && from->data)
		memcpy(to, from->data + column, main_bytes);
	else
		memset(to, 0xff, main_bytes);
	if (from && column + bytes > page_bytes) {
		const u32 at = column + main_bytes - page_bytes;

		oob_bytes = at < flashbed.p.oob_bytes
				    ? min(bytes - main_bytes, flashbed.p.oob_bytes - at)
				    : 0;
		memcpy(to + main_bytes, from->oob + at, oob_bytes);
	}
	memset(to + main_bytes + oob_bytes, 0xff, bytes - main_bytes - oob_bytes);
}

static void clear_bits(u8 *cells, const u8 *bytes, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		cells[i] &= bytes[i];
}

/* The bytes as they reach the cells; uses `scratch` if that is not all of them. */
static const u8 *weakened(const struct fbn_program *program, struct fbn_effect effect)
{
	const u32 count = program->to - program->from;
	u8 *bytes = flashbed.scratch;
	u32 kept;
	u32 i;

	if (effect.how == FBN_WHOLE)
		return program->bytes;
	memcpy(bytes, program->bytes, count);
	if (effect.how == FBN_PART) {
		kept = fbn_below(&effect.seed, count + 1);
		memset(bytes + kept, 0xff, count - kept);
	} else {
		for (i = 0; i < count; i++)
			bytes[i] |= (u8)fbn_next(&effect.seed);
	}
	return bytes;
}

/* Stores what the controller's ECC was calculated over, if the cells hold something else. */
static int set_intended(struct fbn_page *page, const u8 *intended)
{
	const u32 page_bytes = flashbed.p.page_bytes;

	if (page->data && !memcmp(page->data, intended, page_bytes)) {
		free_area(&page->intended);
		return 0;
	}
	return page->intended == intended ? 0 : fbn_page_fill(&page->intended, intended);
}

static int program_main(struct fbn_page *page, const struct fbn_program *program, const u8 *bytes)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	const u32 count =
		program->from < page_bytes ? min(program->to, page_bytes) - program->from : 0;

	if (!count || !memchr_inv(program->bytes, 0xff, count))
		return 0;
	if (memchr_inv(bytes, 0xff, count)) {
		if (!page->data) {
			page->data = fbn_pool_get(&flashbed.data_pool);
			if (!page->data)
				return -ENOMEM;
			memset(page->data, 0xff, page_bytes);
		}
		clear_bits(page->data + program->from, bytes, count);
	}
	if (flashbed.p.ecc == FBN_ECC_HARDWARE && count == page_bytes)
		return set_intended(page, program->bytes);
	return 0;
}

/* The sub-pages that a program changes, one bit each. */
u8 fbn_subpages_touched(const struct fbn_program *program)
{
	const u32 bytes = flashbed.p.page_bytes / FBN_SUBPAGES;
	u8 touched = 0;
	u32 i;

	for (i = 0; i < FBN_SUBPAGES; i++) {
		const u32 from = max(program->from, i * bytes);
		const u32 to = min(program->to, (i + 1) * bytes);

		if (from < to && memchr_inv(program->bytes + from - program->from, 0xff, to - from))
			touched |= 1U << i;
	}
	return touched;
}

/* Half of the bits of an area are undetermined. */
static void blur(u8 *area, u32 count, u64 *state)
{
	u32 i;

	for (i = 0; i < count; i++)
		area[i] ^= (u8)fbn_next(state);
}

/* The power failed while the second page of a pair was programmed: its cells hold neither that page
 * nor the first one, which they held.
 */
static int spoil_paired(struct fbn_cells *cells, u32 number, u64 state)
{
	const struct fbn_parameters *p = &flashbed.p;
	const s32 before = fbn_paired_before(number);
	struct fbn_page *page;
	int err = 0;

	if (before < 0 || !fbn_cells_page(cells, before))
		return 0;
	page = fbn_cells_own_page(cells, before);
	if (!page)
		return -ENOMEM;
	if (page->data && p->ecc == FBN_ECC_HARDWARE && !page->intended)
		err = fbn_page_fill(&page->intended, page->data);
	if (page->data)
		blur(page->data, p->page_bytes, &state);
	blur(page->oob + NAND_BBM_POS_LARGE + 1, p->oob_bytes - NAND_BBM_POS_LARGE - 1, &state);
	return err;
}

int fbn_cells_program(struct fbn_cells *cells, const struct fbn_program *program,
		      struct fbn_effect effect)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	const u8 *bytes;
	struct fbn_page *page;
	u32 skip;
	int err;

	if (effect.how == FBN_NOTHING || program->from == program->to)
		return 0;
	page = fbn_cells_own_page(cells, program->page);
	if (!page)
		return -ENOMEM;
	bytes = weakened(program, effect);
	err = program_main(page, program, bytes);
	if (err)
		return err;
	if (program->to > page_bytes) {
		skip = program->from < page_bytes ? page_bytes - program->from : 0;
		clear_bits(page->oob + program->from + skip - page_bytes, bytes + skip,
			   program->to - program->from - skip);
	}
	page->touched |= fbn_subpages_touched(program);
	page->programs += page->programs < U8_MAX;
	if (effect.torn && effect.how != FBN_WHOLE)
		return spoil_paired(cells, program->page, effect.seed);
	return 0;
}

/* Sets some of the bits of an area. */
static void set_bits(u8 *area, u32 count, u64 *state)
{
	u32 i;

	for (i = 0; i < count; i++)
		area[i] |= (u8)fbn_next(state);
}

static int half_erase_page(struct fbn_cells *cells, u32 number, u64 *state)
{
	const struct fbn_parameters *p = &flashbed.p;
	struct fbn_page *page = fbn_cells_own_page(cells, number);
	int err = 0;

	if (!page)
		return -ENOMEM;
	if (page->data && p->ecc == FBN_ECC_HARDWARE && !page->intended)
		err = fbn_page_fill(&page->intended, page->data);
	if (page->data)
		set_bits(page->data, p->page_bytes, state);
	set_bits(page->oob, p->oob_bytes, state);
	if (page->data && !memchr_inv(page->data, 0xff, p->page_bytes))
		free_area(&page->data);
	if (page->intended && !err)
		err = set_intended(page, page->intended);
	return err;
}

/* What a torn erase leaves: pages that are unchanged, and pages that lost some of their zeros. */
static int half_erase(struct fbn_cells *cells, u32 number, struct fbn_effect effect)
{
	struct fbn_block *block = &cells->blocks[number];
	const u32 first = number << flashbed.p.page_in_block_shift;
	u32 left = 0;
	u32 page;
	int err = 0;

	for (page = 0; page < block->next_page && !err; page++) {
		const bool erased = effect.how == FBN_PART && (fbn_next(&effect.seed) & 1);

		if (!block->pages[page])
			continue;
		if (erased) {
			put_page_of_chip(block->pages[page]);
			block->pages[page] = NULL;
			continue;
		}
		left = page + 1;
		if (effect.how == FBN_BITS)
			err = half_erase_page(cells, first + page, &effect.seed);
	}
	if (!err)
		block->next_page = left;
	return err;
}

int fbn_cells_erase(struct fbn_cells *cells, u32 number, struct fbn_effect effect)
{
	struct fbn_block *block = &cells->blocks[number];
	u32 page;

	if (effect.worn)
		block->state = FBN_WORN;
	if (effect.how == FBN_NOTHING)
		return 0;
	block->erases++;
	block->reads = 0;
	if (effect.how != FBN_WHOLE)
		return half_erase(cells, number, effect);
	for (page = 0; page < block->next_page; page++) {
		put_page_of_chip(block->pages[page]);
		block->pages[page] = NULL;
	}
	block->next_page = 0;
	return 0;
}

/* Column of the byte that marks a bad block, in its first page. */
u32 fbn_marker_column(void)
{
	return flashbed.p.page_bytes +
	       (flashbed.p.page_bytes > 512 ? NAND_BBM_POS_LARGE : NAND_BBM_POS_SMALL);
}

bool fbn_cells_marked_bad(const struct fbn_cells *cells, u32 block)
{
	u8 marker;

	fbn_cells_read(cells, block << flashbed.p.page_in_block_shift, fbn_marker_column(), &marker,
		       1);
	return marker != 0xff;
}
