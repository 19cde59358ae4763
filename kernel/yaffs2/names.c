// SPDX-License-Identifier: GPL-2.0-only
/* Names: looking up, creating, linking, renaming, removing; symbolic links.
 *
 * The core stores 254 bytes of a name, whatever it gets; a longer one is refused here. Errors
 * follow from the core's refusal, ENOSPC if it gives no reason.
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_lookup, yaffs_mknod, yaffs_link, yaffs_symlink, yaffs_rename,
 * yaffs_unlink) of July 2013.
 */
#include <linux/cred.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "glue.h"

#define NAME_BYTES (YAFFS_MAX_NAME_LENGTH - 1)

static const char *name_of(const struct dentry *dentry)
{
	return (const char *)dentry->d_name.name;
}

static bool too_long(const struct dentry *dentry)
{
	return dentry->d_name.len > NAME_BYTES;
}

static struct dentry *lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = NULL;
	unsigned long number = 0;
	struct yaffs_obj *obj;
	struct yfs *yfs;

	if (too_long(dentry))
		return ERR_PTR(-ENAMETOOLONG);
	yfs = yfs_lock(dir->i_sb);
	obj = yaffs_get_equivalent_obj(yaffs_find_by_name(yfs_obj(dir), name_of(dentry)));
	if (obj)
		number = obj->obj_id;
	yfs_unlock(yfs);
	if (number)
		inode = yfs_iget(dir->i_sb, number);
	return d_splice_alias(inode, dentry);
}

/* Attaches a new object to its dentry; NULL for one that could not be created. `number` was read
 * under the lock.
 */
static int instantiate(struct inode *dir, struct dentry *dentry, unsigned long number)
{
	struct inode *inode;

	if (!number)
		return -ENOSPC;
	inode = yfs_iget(dir->i_sb, number);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	d_instantiate(dentry, inode);
	yfs_touch(dir);
	return 0;
}

static u32 new_gid(const struct inode *dir)
{
	return dir->i_mode & S_ISGID ? i_gid_read(dir) : from_kgid(&init_user_ns, current_fsgid());
}

static int make(struct inode *dir, struct dentry *dentry, umode_t mode, dev_t rdev)
{
	const u32 uid = from_kuid(&init_user_ns, current_fsuid());
	const u32 gid = new_gid(dir);
	struct yaffs_obj *parent = yfs_obj(dir);
	unsigned long number;
	struct yaffs_obj *obj;
	struct yfs *yfs;

	if (too_long(dentry))
		return -ENAMETOOLONG;
	if ((dir->i_mode & S_ISGID) && S_ISDIR(mode))
		mode |= S_ISGID;
	yfs = yfs_lock(dir->i_sb);
	if (S_ISREG(mode))
		obj = yaffs_create_file(parent, name_of(dentry), mode, uid, gid);
	else if (S_ISDIR(mode))
		obj = yaffs_create_dir(parent, name_of(dentry), mode, uid, gid);
	else
		obj = yaffs_create_special(parent, name_of(dentry), mode, uid, gid,
					   old_encode_dev(rdev));
	number = obj ? obj->obj_id : 0;
	yfs_unlock(yfs);
	return instantiate(dir, dentry, number);
}

static int mknod(yfs_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode,
		 dev_t rdev)
{
	return make(dir, dentry, mode, rdev);
}

static int create(yfs_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode,
		  bool excl)
{
	return make(dir, dentry, mode | S_IFREG, 0);
}

static int mkdir(yfs_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	return make(dir, dentry, mode | S_IFDIR, 0);
}

static int symlink(yfs_idmap *idmap, struct inode *dir, struct dentry *dentry, const char *target)
{
	const u32 uid = from_kuid(&init_user_ns, current_fsuid());
	const u32 gid = new_gid(dir);
	unsigned long number;
	struct yaffs_obj *obj;
	struct yfs *yfs;

	if (too_long(dentry) || strlen(target) > YAFFS_MAX_ALIAS_LENGTH)
		return -ENAMETOOLONG;
	yfs = yfs_lock(dir->i_sb);
	obj = yaffs_create_symlink(yfs_obj(dir), name_of(dentry), S_IFLNK | 0777, uid, gid, target);
	number = obj ? obj->obj_id : 0;
	yfs_unlock(yfs);
	return instantiate(dir, dentry, number);
}

static const char *get_link(struct dentry *dentry, struct inode *inode, struct delayed_call *done)
{
	struct yfs *yfs;
	char *target;

	/* A path walk in RCU mode, which must not sleep. */
	if (!dentry)
		return ERR_PTR(-ECHILD);
	yfs = yfs_lock(inode->i_sb);
	target = yaffs_get_symlink_alias(yfs_obj(inode));
	yfs_unlock(yfs);
	if (!target)
		return ERR_PTR(-ENOMEM);
	set_delayed_call(done, kfree_link, target);
	return target;
}

static int link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old);
	struct yaffs_obj *obj = yfs_obj(inode);
	struct yfs *yfs;
	bool made;

	if (too_long(dentry))
		return -ENAMETOOLONG;
	yfs = yfs_lock(dir->i_sb);
	made = yaffs_link_obj(yfs_obj(dir), name_of(dentry), obj) != NULL;
	if (made)
		set_nlink(inode, yaffs_get_obj_link_count(obj));
	yfs_unlock(yfs);
	if (!made)
		return -ENOSPC;
	ihold(inode);
	d_instantiate(dentry, inode);
	yfs_touch(dir);
	return 0;
}

static bool full_directory(struct yaffs_obj *obj)
{
	return obj && obj->variant_type == YAFFS_OBJECT_TYPE_DIRECTORY &&
	       yaffs_is_non_empty_dir(obj);
}

static int remove(struct inode *dir, struct dentry *dentry)
{
	struct yfs *yfs = yfs_lock(dir->i_sb);
	struct yaffs_obj *obj = yaffs_find_by_name(yfs_obj(dir), name_of(dentry));
	int err = 0;

	if (!obj)
		err = -ENOENT;
	else if (!obj->unlink_allowed)
		err = -EPERM;
	else if (full_directory(obj))
		err = -ENOTEMPTY;
	else if (yaffs_unlinker(yfs_obj(dir), name_of(dentry)) != YAFFS_OK)
		err = -ENOSPC;
	yfs_unlock(yfs);
	if (err)
		return err;
	drop_nlink(d_inode(dentry));
	yfs_touch(dir);
	return 0;
}

static int rename(yfs_idmap *idmap, struct inode *old_dir, struct dentry *old,
		  struct inode *new_dir, struct dentry *new, unsigned int flags)
{
	struct yaffs_obj *from, *target;
	struct yfs *yfs;
	int err = 0;

	if (flags & ~RENAME_NOREPLACE)
		return -EINVAL;
	if (too_long(new))
		return -ENAMETOOLONG;
	yfs = yfs_lock(old_dir->i_sb);
	from = yaffs_find_by_name(yfs_obj(old_dir), name_of(old));
	target = yaffs_find_by_name(yfs_obj(new_dir), name_of(new));
	if (!from)
		err = -ENOENT;
	else if (!from->rename_allowed || (target && !target->unlink_allowed))
		err = -EPERM;
	else if (full_directory(target))
		err = -ENOTEMPTY;
	else if (yaffs_rename_obj(yfs_obj(old_dir), name_of(old), yfs_obj(new_dir), name_of(new)) !=
		 YAFFS_OK)
		err = -ENOSPC;
	yfs_unlock(yfs);
	if (err)
		return err;
	if (d_really_is_positive(new))
		drop_nlink(d_inode(new));
	yfs_touch(old_dir);
	yfs_touch(new_dir);
	return 0;
}

const struct inode_operations yfs_dir_iops = {
	.lookup = lookup,
	.create = create,
	.link = link,
	.unlink = remove,
	.symlink = symlink,
	.mkdir = mkdir,
	.rmdir = remove,
	.mknod = mknod,
	.rename = rename,
	.setattr = yfs_setattr,
};

const struct inode_operations yfs_file_iops = {
	.setattr = yfs_setattr,
};

const struct inode_operations yfs_symlink_iops = {
	.get_link = get_link,
	.setattr = yfs_setattr,
};
