// SPDX-License-Identifier: GPL-2.0-only
/* Inodes: created from an object of the core, given new attributes, evicted.
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_fill_inode_from_obj, yaffs_iget, yaffs_setattr,
 * yaffs_evict_inode) of July 2013. Left out: extended attributes, export by NFS.
 */
#include <linux/pagemap.h>

#include "glue.h"
#include "yaffs_attribs.h"

/* i_atime and its like are fields up to 6.5; later kernels have functions, added one by one. */
static void set_times(struct inode *inode, const struct yaffs_obj *obj)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	inode_set_atime(inode, obj->yst_atime, 0);
	inode_set_mtime(inode, obj->yst_mtime, 0);
#else
	inode->i_atime = (struct timespec64){.tv_sec = obj->yst_atime};
	inode->i_mtime = (struct timespec64){.tv_sec = obj->yst_mtime};
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	inode_set_ctime(inode, obj->yst_ctime, 0);
#else
	inode->i_ctime = (struct timespec64){.tv_sec = obj->yst_ctime};
#endif
}

/* Updates the times of a directory that has changed. */
void yfs_touch(struct inode *dir)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	inode_set_mtime_to_ts(dir, inode_set_ctime_current(dir));
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	dir->i_mtime = inode_set_ctime_current(dir);
#else
	dir->i_mtime = dir->i_ctime = current_time(dir);
#endif
}

/* A lost or damaged header can leave an object's mode without its type. */
static int mend_mode(struct yaffs_obj *obj)
{
	static const u32 types[] = {
		[YAFFS_OBJECT_TYPE_FILE] = S_IFREG,
		[YAFFS_OBJECT_TYPE_SYMLINK] = S_IFLNK,
		[YAFFS_OBJECT_TYPE_DIRECTORY] = S_IFDIR,
	};

	if (obj->variant_type == YAFFS_OBJECT_TYPE_SPECIAL)
		return 0;
	if (obj->variant_type >= ARRAY_SIZE(types) || !types[obj->variant_type])
		return -EIO;
	obj->yst_mode = (obj->yst_mode & ~S_IFMT) | types[obj->variant_type];
	return 0;
}

static void set_operations(struct inode *inode)
{
	switch (inode->i_mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &yfs_file_iops;
		inode->i_fop = &yfs_file_fops;
		inode->i_mapping->a_ops = &yfs_file_aops;
		break;
	case S_IFDIR:
		inode->i_op = &yfs_dir_iops;
		inode->i_fop = &yfs_dir_fops;
		break;
	case S_IFLNK:
		inode->i_op = &yfs_symlink_iops;
		break;
	default:
		inode->i_op = &yfs_file_iops;
		init_special_inode(inode, inode->i_mode, inode->i_rdev);
	}
}

static int fill(struct inode *inode, struct yaffs_obj *obj)
{
	const int err = obj ? mend_mode(obj) : -ESTALE;

	if (err)
		return err;
	inode->i_flags |= S_NOATIME;
	inode->i_mode = obj->yst_mode;
	i_uid_write(inode, obj->yst_uid);
	i_gid_write(inode, obj->yst_gid);
	inode->i_rdev = old_decode_dev(obj->yst_rdev);
	set_times(inode, obj);
	i_size_write(inode, yaffs_get_obj_length(obj));
	inode->i_blocks = (inode->i_size + 511) >> 9;
	set_nlink(inode, yaffs_get_obj_link_count(obj));
	set_operations(inode);
	inode->i_private = obj;
	obj->my_inode = inode;
	return 0;
}

struct inode *yfs_iget(struct super_block *sb, unsigned long number)
{
	struct inode *inode = iget_locked(sb, number);
	struct yfs *yfs;
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!(inode->i_state & I_NEW))
		return inode;
	yfs = yfs_lock(sb);
	err = fill(inode, yaffs_find_by_number(&yfs->dev, number));
	yfs_unlock(yfs);
	if (err) {
		iget_failed(inode);
		return ERR_PTR(err);
	}
	unlock_new_inode(inode);
	return inode;
}

/* The core keeps an object without a name until its inode is evicted. */
void yfs_evict_inode(struct inode *inode)
{
	struct yaffs_obj *obj = yfs_obj(inode);

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (!obj)
		return;
	struct yfs *yfs = yfs_lock(inode->i_sb);

	if (!inode->i_nlink && !is_bad_inode(inode) && yaffs_del_obj(obj) != YAFFS_OK)
		pr_err("yaffs2: object %u could not be deleted\n", obj->obj_id);
	obj->my_inode = NULL;
	inode->i_private = NULL;
	yaffs_handle_defered_free(obj);
	yfs_unlock(yfs);
}

int yfs_setattr(yfs_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = setattr_prepare(idmap, dentry, attr);

	if (err)
		return err;
	setattr_copy(idmap, inode, attr);
	/* Until here mapped pages could be written beyond the new end. */
	if (attr->ia_valid & ATTR_SIZE)
		truncate_setsize(inode, attr->ia_size);
	struct yfs *yfs = yfs_lock(inode->i_sb);
	struct yaffs_obj *obj = yfs_obj(inode);

	if (yaffs_set_attribs(obj, attr) != YAFFS_OK)
		err = -ENOSPC;
	if (attr->ia_valid & ATTR_SIZE) {
		i_size_write(inode, yaffs_get_obj_length(obj));
		inode->i_blocks = (inode->i_size + 511) >> 9;
	}
	yfs_unlock(yfs);
	return err;
}
