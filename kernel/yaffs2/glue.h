/* SPDX-License-Identifier: GPL-2.0-only */
/* YAFFS2 in the Linux VFS: the one header of our glue. Each section names the file that implements
 * it.
 *
 * Each inode has one object of the core (struct yaffs_obj) from yfs_iget to yfs_evict_inode:
 * `i_private` and `my_inode`. Their numbers are equal. Invariants:
 * 1. The core is entered only with the gross lock held. It is not reentrant and allocates memory,
 *    so under the lock memory is not reclaimed through a file system.
 * 2. Nothing that can enter the file system again is called under the lock: no iput, no iget, no
 *    copy to user space.
 */
#ifndef YAFFS2_GLUE_H
#define YAFFS2_GLUE_H

#include <linux/fs.h>
#include <linux/mtd/mtd.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/version.h>

#include "yaffs_guts.h"
#include "yaffs_trace.h"

/* Identifies the id mapping of a mount; only passed through. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
typedef struct mnt_idmap yfs_idmap;
#else
typedef struct user_namespace yfs_idmap;
#endif

/* A mounted file system. */
struct yfs {
	struct yaffs_dev dev;
	struct super_block *sb;
	struct mutex gross_lock;
	unsigned int nofs; /* of memalloc_nofs_save, under the lock */
	struct task_struct *collector;
	bool initialised; /* the core has allocated its memory */
	bool dirty;       /* changed since the last sync */
	struct {
		unsigned int ours;    /* first tags of a block, tags of a checkpoint */
		unsigned int foreign; /* blocks whose first tags are something else */
	} seen;                       /* by the mount's scan */
};

static inline struct yfs *yfs_of(const struct super_block *sb)
{
	return sb->s_fs_info;
}

static inline struct yfs *yfs_of_dev(const struct yaffs_dev *dev)
{
	return dev->os_context;
}

static inline struct yaffs_obj *yfs_obj(const struct inode *inode)
{
	return inode->i_private;
}

static inline struct yfs *yfs_lock(const struct super_block *sb)
{
	struct yfs *yfs = yfs_of(sb);

	mutex_lock(&yfs->gross_lock);
	yfs->nofs = memalloc_nofs_save();
	return yfs;
}

static inline void yfs_unlock(struct yfs *yfs)
{
	memalloc_nofs_restore(yfs->nofs);
	mutex_unlock(&yfs->gross_lock);
}

/* sync.c */
int yfs_sync_fs(struct super_block *sb, int wait);
void yfs_save(struct yfs *yfs);
int yfs_flush_obj(struct yfs *yfs, struct yaffs_obj *obj, bool datasync);

/* inode.c */
struct inode *yfs_iget(struct super_block *sb, unsigned long number);
void yfs_evict_inode(struct inode *inode);
void yfs_touch(struct inode *dir);
int yfs_setattr(yfs_idmap *idmap, struct dentry *dentry, struct iattr *attr);

/* file.c */
extern const struct address_space_operations yfs_file_aops;
extern const struct file_operations yfs_file_fops;
int yfs_fsync(struct file *file, loff_t start, loff_t end, int datasync);

/* names.c */
extern const struct inode_operations yfs_dir_iops;
extern const struct inode_operations yfs_file_iops;
extern const struct inode_operations yfs_symlink_iops;

/* readdir.c */
extern const struct file_operations yfs_dir_fops;

/* nand.c */
void yfs_nand_install(struct yaffs_dev *dev);
int yfs_nand_fits(const struct mtd_info *mtd);
int yfs_nand_foreign(struct yfs *yfs);

/* background.c */
unsigned int yfs_urgency(const struct yaffs_dev *dev);
int yfs_collector_start(struct yfs *yfs);
void yfs_collector_stop(struct yfs *yfs);

#endif
