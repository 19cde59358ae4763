// SPDX-License-Identifier: GPL-2.0-only
/* The names in a directory, in the order of their objects' numbers.
 *
 * A position is the number of an object plus 2, so creating or removing names meanwhile neither
 * hides nor repeats another name. The Linux glue of July 2013 counts along the core's list instead,
 * newest first, and starts over after a removal. A long name is read from flash, as there.
 */
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "glue.h"

static int by_number(const void *one, const void *other)
{
	const u32 a = *(const u32 *)one;
	const u32 b = *(const u32 *)other;

	return a < b ? -1 : a > b;
}

/* The numbers of a directory's objects from `first` on, in order; returns their count, or -ENOMEM.
 * The caller frees them.
 */
static int collect(struct yaffs_obj *dir, loff_t first, u32 **numbers)
{
	struct list_head *children = &dir->variant.dir_variant.children;
	struct yaffs_obj *obj;
	size_t count = 0;

	list_for_each_entry(obj, children, siblings) count++;
	*numbers = kvmalloc_array(count + 1, sizeof(**numbers), GFP_KERNEL);
	if (!*numbers)
		return -ENOMEM;
	count = 0;
	list_for_each_entry(obj, children, siblings) if (obj->obj_id >= first)(*numbers)[count++] =
		obj->obj_id;
	sort(*numbers, count, sizeof(**numbers), by_number, NULL);
	return (int)count;
}

struct entry {
	char name[YAFFS_MAX_NAME_LENGTH + 1];
	unsigned long inode;
	unsigned int type;
};

static unsigned int type_of(struct yaffs_obj *obj)
{
	static const unsigned int types[] = {
		[YAFFS_OBJECT_TYPE_FILE] = DT_REG,
		[YAFFS_OBJECT_TYPE_SYMLINK] = DT_LNK,
		[YAFFS_OBJECT_TYPE_DIRECTORY] = DT_DIR,
	};
	const unsigned int type =
		obj->variant_type < ARRAY_SIZE(types) ? types[obj->variant_type] : DT_UNKNOWN;

	return obj->variant_type == YAFFS_OBJECT_TYPE_SPECIAL ? (obj->yst_mode >> 12) & 15 : type;
}

/* Fills the entry of an object; returns whether the object still exists. */
static bool describe(struct yfs *yfs, const struct yaffs_obj *dir, u32 number, struct entry *entry)
{
	struct yaffs_obj *obj = yaffs_find_by_number(&yfs->dev, number);
	struct yaffs_obj *same = obj && obj->parent == dir ? yaffs_get_equivalent_obj(obj) : NULL;

	if (!same)
		return false;
	entry->inode = same->obj_id;
	entry->type = type_of(same);
	return yaffs_get_obj_name(obj, entry->name, sizeof(entry->name)) > 0;
}

static int emit_all(struct inode *inode, struct dir_context *ctx, const u32 *numbers, int count)
{
	struct entry *entry = kmalloc(sizeof(*entry), GFP_KERNEL);
	int i;

	if (!entry)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct yfs *yfs = yfs_lock(inode->i_sb);
		const bool there = describe(yfs, yfs_obj(inode), numbers[i], entry);

		yfs_unlock(yfs);
		ctx->pos = numbers[i] + 2LL;
		if (there &&
		    !dir_emit(ctx, entry->name, strlen(entry->name), entry->inode, entry->type))
			break;
		ctx->pos++;
	}
	kfree(entry);
	return 0;
}

static int iterate(struct file *file, struct dir_context *ctx)
{
	struct inode *inode = file_inode(file);
	u32 *numbers = NULL;
	struct yfs *yfs;
	int count;
	int err = 0;

	if (!dir_emit_dots(file, ctx))
		return 0;
	yfs = yfs_lock(inode->i_sb);
	count = collect(yfs_obj(inode), ctx->pos - 2, &numbers);
	yfs_unlock(yfs);
	if (count < 0)
		return count;
	if (count)
		err = emit_all(inode, ctx, numbers, count);
	kvfree(numbers);
	return err;
}

const struct file_operations yfs_dir_fops = {
	.llseek = generic_file_llseek,
	.read = generic_read_dir,
	.iterate_shared = iterate,
	.fsync = yfs_fsync,
};
