// SPDX-License-Identifier: GPL-2.0-only
/* Loads a chip's image as it is written, in pieces of any size, into cells of its own. They become
 * the chip's when the image is complete.
 *
 * The counterpart of image.c. Invariants:
 * 1. Until an image is complete and accepted the chip does not change.
 * 2. A refused image prints one line, and the rest of the same file is ignored.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

enum stage { HEAD, BLOCK, PAGE, OOB, DATA, INTENDED, END, REFUSED };

/* `bytes` has the bytes of this stage so far, of `wanted`. */
struct fbn_loader {
	enum stage stage;
	u32 wanted;
	u32 there;
	u32 block;
	u32 pages_left;
	u32 page; /* within the block; the next one is higher */
	u8 areas;
	struct fbn_page *filling;
	struct fbn_cells cells;
	u8 bytes[];
};

static int refuse(struct fbn_loader *loader, const char *why)
{
	pr_err("chip image refused at block %u: %s\n", loader->block, why);
	loader->stage = REFUSED;
	return -EINVAL;
}

static void expect(struct fbn_loader *loader, enum stage stage)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u32 wanted[] = {
		[HEAD] = sizeof(struct fbn_image_head),
		[BLOCK] = sizeof(struct fbn_image_block),
		[PAGE] = sizeof(struct fbn_image_page),
		[OOB] = p->oob_bytes,
		[DATA] = p->page_bytes,
		[INTENDED] = p->page_bytes,
		[END] = 1,
	};

	loader->stage = stage;
	loader->wanted = wanted[stage];
	loader->there = 0;
}

static void expect_block(struct fbn_loader *loader)
{
	expect(loader, loader->block < flashbed.p.blocks ? BLOCK : END);
}

/* After an area of a page, or its head: expects the page's next area, the next page, or the next
 * block.
 */
static void expect_after(struct fbn_loader *loader, enum stage done)
{
	if (done < DATA && loader->areas & FBN_IMAGE_DATA)
		return expect(loader, DATA);
	if (done < INTENDED && loader->areas & FBN_IMAGE_INTENDED)
		return expect(loader, INTENDED);
	if (loader->pages_left)
		return expect(loader, PAGE);
	loader->block++;
	expect_block(loader);
}

static int take_head(struct fbn_loader *loader)
{
	const struct fbn_image_head *head = (const void *)loader->bytes;
	const struct fbn_parameters *p = &flashbed.p;

	if (memcmp(head->magic, FBN_IMAGE_MAGIC, sizeof(head->magic)))
		return refuse(loader, "this is no \"flashbed-chip 1\"");
	if (le32_to_cpu(head->page_bytes) != p->page_bytes ||
	    le32_to_cpu(head->oob_bytes) != p->oob_bytes ||
	    le32_to_cpu(head->pages_per_block) != p->pages_per_block ||
	    le32_to_cpu(head->blocks) != p->blocks)
		return refuse(loader, "it is of a chip with another geometry");
	expect_block(loader);
	return 0;
}

static int take_block(struct fbn_loader *loader)
{
	const struct fbn_image_block *head = (const void *)loader->bytes;
	struct fbn_block *block = &loader->cells.blocks[loader->block];

	if (head->state > FBN_WORN || head->zero)
		return refuse(loader, "no such state of a block");
	block->erases = le32_to_cpu(head->erases);
	block->state = head->state;
	loader->pages_left = le16_to_cpu(head->pages);
	if (loader->pages_left > flashbed.p.pages_per_block)
		return refuse(loader, "more pages than a block has");
	loader->page = 0;
	loader->areas = 0;
	expect_after(loader, INTENDED);
	return 0;
}

static int take_page(struct fbn_loader *loader)
{
	const struct fbn_image_page *head = (const void *)loader->bytes;
	const u32 page = le16_to_cpu(head->page);

	if (page < loader->page || page >= flashbed.p.pages_per_block)
		return refuse(loader, "pages out of order or past the block's end");
	if (!head->programs || head->touched >> FBN_SUBPAGES ||
	    head->areas & ~(FBN_IMAGE_DATA | FBN_IMAGE_INTENDED) ||
	    memchr_inv(head->zero, 0, sizeof(head->zero)))
		return refuse(loader, "no such state of a page");
	loader->filling = fbn_cells_own_page(
		&loader->cells, (loader->block << flashbed.p.page_in_block_shift) + page);
	if (!loader->filling)
		return -ENOMEM;
	loader->filling->programs = head->programs;
	loader->filling->touched = head->touched;
	loader->page = page + 1;
	loader->pages_left--;
	loader->areas = head->areas;
	if (flashbed.p.oob_bytes)
		expect(loader, OOB);
	else
		expect_after(loader, OOB);
	return 0;
}

static int take_area(struct fbn_loader *loader)
{
	const enum stage done = loader->stage;
	int err = 0;

	if (done == OOB)
		memcpy(loader->filling->oob, loader->bytes, flashbed.p.oob_bytes);
	else
		err = fbn_page_fill(done == DATA ? &loader->filling->data
						 : &loader->filling->intended,
				    loader->bytes);
	if (!err)
		expect_after(loader, done);
	return err;
}

static int take(struct fbn_loader *loader)
{
	switch (loader->stage) {
	case HEAD:
		return take_head(loader);
	case BLOCK:
		return take_block(loader);
	case PAGE:
		return take_page(loader);
	case OOB:
	case DATA:
	case INTENDED:
		return take_area(loader);
	default:
		return refuse(loader, "bytes after its end");
	}
}

static int start(void)
{
	const u32 most = max_t(u32, flashbed.p.page_bytes, sizeof(struct fbn_image_head));
	struct fbn_loader *loader = kzalloc(sizeof(*loader) + most, GFP_KERNEL);

	if (!loader)
		return -ENOMEM;
	if (fbn_cells_init(&loader->cells)) {
		kfree(loader);
		return -ENOMEM;
	}
	expect(loader, HEAD);
	flashbed.loader = loader;
	return 0;
}

/* Takes the next bytes of an image. */
int fbn_load_bytes(const u8 *bytes, size_t count)
{
	struct fbn_loader *loader;
	int err = flashbed.loader ? 0 : start();

	if (err)
		return err;
	loader = flashbed.loader;
	if (loader->stage == REFUSED)
		return -EINVAL;
	while (count && !err) {
		const size_t piece = min_t(size_t, count, loader->wanted - loader->there);

		memcpy(loader->bytes + loader->there, bytes, piece);
		loader->there += piece;
		bytes += piece;
		count -= piece;
		if (loader->there == loader->wanted)
			err = take(loader);
	}
	if (err)
		loader->stage = REFUSED;
	return err;
}

/* Makes the loaded image the chip's content, and drops the recording, which belongs to another
 * chip.
 */
int fbn_load_finish(void)
{
	struct fbn_loader *loader;
	int err = -EINVAL;

	mutex_lock(flashbed.core.lock);
	mutex_lock(&flashbed.lock);
	loader = flashbed.loader;
	if (loader && loader->stage == END) {
		swap(flashbed.cells, loader->cells);
		fbn_history_forget();
		fbn_forget_driver_state();
		err = 0;
	} else if (loader && loader->stage != REFUSED) {
		refuse(loader, "it ends too early");
	}
	fbn_load_abandon();
	mutex_unlock(&flashbed.lock);
	mutex_unlock(flashbed.core.lock);
	return err;
}

void fbn_load_abandon(void)
{
	if (!flashbed.loader)
		return;
	fbn_cells_free(&flashbed.loader->cells);
	kfree(flashbed.loader);
	flashbed.loader = NULL;
}
