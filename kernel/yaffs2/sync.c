// SPDX-License-Identifier: GPL-2.0-only
/* Writes what the core has cached: an object's chunks, everything, or everything with a checkpoint.
 *
 * sync(2) and unmounting write a checkpoint, unless the collector has urgent work or there already
 * is one. Only the headers of directories are written by a timer (background.c).
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_flush_inodes, yaffs_flush_super, yaffs_do_sync_fs with
 * yaffs_auto_checkpoint=1) of July 2013.
 */
#include "glue.h"

/* The core does not say whether a flush succeeded. What is still dirty afterwards could not be
 * written.
 */
static bool held_back(const struct yaffs_dev *dev, const struct yaffs_obj *obj)
{
	int i;

	for (i = 0; i < dev->param.n_caches; i++)
		if (dev->cache[i].object == obj && dev->cache[i].dirty)
			return true;
	return false;
}

int yfs_flush_obj(struct yfs *yfs, struct yaffs_obj *obj, bool datasync)
{
	if (!obj)
		return 0;
	const int result = yaffs_flush_file(obj, 1, datasync);

	return result != YAFFS_OK || held_back(&yfs->dev, obj) ? -ENOSPC : 0;
}

/* Each inode is held while it is flushed, and released without any lock. */
static int flush_inodes(struct super_block *sb)
{
	struct inode *inode, *held = NULL;
	int err = 0;

	spin_lock(&sb->s_inode_list_lock);
	list_for_each_entry(inode, &sb->s_inodes, i_sb_list)
	{
		struct yfs *yfs;
		int failed;

		if (!igrab(inode))
			continue;
		spin_unlock(&sb->s_inode_list_lock);
		iput(held);
		held = inode;
		yfs = yfs_lock(sb);
		failed = yfs_flush_obj(yfs, yfs_obj(inode), false);
		yfs_unlock(yfs);
		err = err ? err : failed;
		spin_lock(&sb->s_inode_list_lock);
	}
	spin_unlock(&sb->s_inode_list_lock);
	iput(held);
	return err;
}

/* Called under the lock. */
static void flush_rest(struct yfs *yfs, bool checkpoint)
{
	yaffs_update_dirty_dirs(&yfs->dev);
	yaffs_flush_whole_cache(&yfs->dev);
	/* A mount without a checkpoint scans. */
	if (checkpoint && !yaffs_checkpoint_save(&yfs->dev))
		pr_debug("yaffs2: %s: no checkpoint\n", yfs->dev.param.name);
}

int yfs_sync_fs(struct super_block *sb, int wait)
{
	struct yfs *yfs;
	bool checkpoint, dirty;
	int err;

	if (sb_rdonly(sb))
		return 0;
	yfs = yfs_lock(sb);
	checkpoint = !yfs_urgency(&yfs->dev) && !yfs->dev.is_checkpointed;
	dirty = yfs->dirty;
	yfs_unlock(yfs);
	if (!dirty && !checkpoint)
		return 0;
	err = flush_inodes(sb);
	yfs = yfs_lock(sb);
	flush_rest(yfs, checkpoint);
	yfs->dirty = false;
	yfs_unlock(yfs);
	return err;
}

/* Called at the end, when no inode is left. */
void yfs_save(struct yfs *yfs)
{
	struct yfs *locked = yfs_lock(yfs->sb);

	flush_rest(locked, true);
	yfs_unlock(locked);
}
