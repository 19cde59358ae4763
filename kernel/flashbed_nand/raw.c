// SPDX-License-Identifier: GPL-2.0-only
/* `partition` of /sys/kernel/debug/flashbed_nand: a read or write of it calls MTD with a buffer of
 * the kernel. No byte is copied to or from the program, so a system call over many pages costs what
 * the driver costs.
 *
 * Mirrors drivers/mtd/mtdchar.c, which copies. Left out: erases, the spare area.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

#define BUFFER_BYTES (128 << 10)
#define FILLED_WITH 0xa5

struct raw {
	struct mtd_info *mtd;
	u8 buffer[BUFFER_BYTES];
};

static int raw_open(struct inode *inode, struct file *file)
{
	struct raw *raw = kvmalloc(sizeof(*raw), GFP_KERNEL);

	if (!raw)
		return -ENOMEM;
	memset(raw->buffer, FILLED_WITH, sizeof(raw->buffer));
	raw->mtd = get_mtd_device_nm(FBN_PARTITION);
	if (IS_ERR(raw->mtd)) {
		const int err = PTR_ERR(raw->mtd);

		kvfree(raw);
		return err;
	}
	file->private_data = raw;
	return 0;
}

static int raw_release(struct inode *inode, struct file *file)
{
	struct raw *raw = file->private_data;

	put_mtd_device(raw->mtd);
	kvfree(raw);
	return 0;
}

/* Moves the part of a request within the partition, a buffer at a time. */
static ssize_t raw_move(struct raw *raw, size_t count, loff_t *at, bool write)
{
	const u64 left = *at < raw->mtd->size ? raw->mtd->size - *at : 0;
	ssize_t moved = 0;

	count = min_t(u64, count, left);
	while (count) {
		const size_t bytes = min_t(size_t, count, BUFFER_BYTES);
		size_t done = 0;
		const int err = write ? mtd_write(raw->mtd, *at, bytes, &done, raw->buffer)
				      : mtd_read(raw->mtd, *at, bytes, &done, raw->buffer);

		if (err && !mtd_is_bitflip(err))
			return moved ? moved : err;
		*at += done;
		moved += done;
		count -= done;
	}
	return moved;
}

static ssize_t raw_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	return raw_move(file->private_data, count, at, false);
}

static ssize_t raw_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	struct raw *raw = file->private_data;

	return count && *at >= raw->mtd->size ? -ENOSPC : raw_move(raw, count, at, true);
}

const struct file_operations fbn_raw_fops = {
	.owner = THIS_MODULE,
	.open = raw_open,
	.release = raw_release,
	.read = raw_read,
	.write = raw_write,
	.llseek = default_llseek,
};
