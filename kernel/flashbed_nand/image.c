// SPDX-License-Identifier: GPL-2.0-only
/* The chip as a file: reading it returns an image, writing one loads it. Format "flashbed-chip 1",
 * kernel/flashbed_nand/README.md.
 *
 * Mirrors fs/seq_file.c. An image is a sequence of items (head; a block's head; a programmed page),
 * numbered so that an item's content follows from its number. Items are generated as they are read,
 * so there is never a second chip in memory. Leaves out a chip that changes between two reads of
 * the file: its image then mixes both states.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "flashbed_nand.h"

#define BUFFER_BYTES (128 << 10)

static u32 items_a_block(void)
{
	return flashbed.p.pages_per_block + 1;
}

/* The item at `number`, or the next one that exists; false after the last. */
static bool find_item(u32 *number)
{
	const u32 items = items_a_block();

	while (*number) {
		const u32 block = (*number - 1) / items;
		const u32 in_block = (*number - 1) % items;

		if (block >= flashbed.p.blocks)
			return false;
		if (!in_block)
			return true;
		if (in_block > flashbed.cells.blocks[block].next_page)
			*number = 1 + (block + 1) * items;
		else if (flashbed.cells.blocks[block].pages[in_block - 1])
			return true;
		else
			++*number;
	}
	return true;
}

static void *item_at(loff_t *at)
{
	u32 number = *at;
	const bool found = find_item(&number);

	*at = number;
	return found ? (void *)((unsigned long)number + 1) : NULL;
}

static void *start(struct seq_file *file, loff_t *at)
{
	mutex_lock(&flashbed.lock);
	return item_at(at);
}

static void *next(struct seq_file *file, void *item, loff_t *at)
{
	++*at;
	return item_at(at);
}

static void stop(struct seq_file *file, void *item)
{
	mutex_unlock(&flashbed.lock);
}

static void show_head(struct seq_file *file)
{
	const struct fbn_parameters *p = &flashbed.p;
	struct fbn_image_head head = {
		.page_bytes = cpu_to_le32(p->page_bytes),
		.oob_bytes = cpu_to_le32(p->oob_bytes),
		.pages_per_block = cpu_to_le32(p->pages_per_block),
		.blocks = cpu_to_le32(p->blocks),
	};

	memcpy(head.magic, FBN_IMAGE_MAGIC, sizeof(head.magic));
	seq_write(file, &head, sizeof(head));
}

static void show_block(struct seq_file *file, const struct fbn_block *block)
{
	struct fbn_image_block head = {
		.erases = cpu_to_le32(block->erases),
		.state = block->state,
	};
	u16 pages = 0;
	u32 page;

	for (page = 0; page < block->next_page; page++)
		pages += block->pages[page] != NULL;
	head.pages = cpu_to_le16(pages);
	seq_write(file, &head, sizeof(head));
}

static void show_page(struct seq_file *file, const struct fbn_page *page, u32 number)
{
	struct fbn_image_page head = {
		.page = cpu_to_le16(number),
		.programs = page->programs,
		.touched = page->touched,
		.areas = (page->data ? FBN_IMAGE_DATA : 0) |
			 (page->intended ? FBN_IMAGE_INTENDED : 0),
	};

	seq_write(file, &head, sizeof(head));
	seq_write(file, page->oob, flashbed.p.oob_bytes);
	if (page->data)
		seq_write(file, page->data, flashbed.p.page_bytes);
	if (page->intended)
		seq_write(file, page->intended, flashbed.p.page_bytes);
}

static int show(struct seq_file *file, void *item)
{
	const u32 number = (unsigned long)item - 1;
	const u32 items = items_a_block();
	const struct fbn_block *block;

	if (!number) {
		show_head(file);
		return 0;
	}
	block = &flashbed.cells.blocks[(number - 1) / items];
	if ((number - 1) % items)
		show_page(file, block->pages[(number - 1) % items - 1], (number - 1) % items - 1);
	else
		show_block(file, block);
	return 0;
}

static const struct seq_operations items = {
	.start = start,
	.next = next,
	.stop = stop,
	.show = show,
};

/* Allocates a large buffer at once: one read by a program then returns many items, not one. */
static int open(struct inode *inode, struct file *file)
{
	struct seq_file *seq;
	int err;

	if (file->f_mode & FMODE_WRITE) {
		mutex_lock(&flashbed.lock);
		fbn_load_abandon();
		mutex_unlock(&flashbed.lock);
	}
	err = seq_open(file, &items);
	if (err)
		return err;
	seq = file->private_data;
	seq->buf = kvmalloc(BUFFER_BYTES, GFP_KERNEL);
	if (!seq->buf) {
		seq_release(inode, file);
		return -ENOMEM;
	}
	seq->size = BUFFER_BYTES;
	return 0;
}

static ssize_t write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	const size_t most = min_t(size_t, count, BUFFER_BYTES);
	u8 *bytes = kvmalloc(most, GFP_KERNEL);
	int err;

	if (!bytes)
		return -ENOMEM;
	if (copy_from_user(bytes, from, most)) {
		err = -EFAULT;
	} else {
		mutex_lock(&flashbed.lock);
		err = fbn_load_bytes(bytes, most);
		mutex_unlock(&flashbed.lock);
	}
	kvfree(bytes);
	return err ? err : most;
}

/* The image takes effect here, unless `load` was written to ctl before. */
static int release(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_WRITE && flashbed.loader)
		(void)fbn_load_finish();
	return seq_release(inode, file);
}

const struct file_operations fbn_image_fops = {
	.owner = THIS_MODULE,
	.open = open,
	.read = seq_read,
	.write = write,
	.llseek = seq_lseek,
	.release = release,
};
