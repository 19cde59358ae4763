// SPDX-License-Identifier: GPL-2.0-only
/* Attributes of objects: owner, times, device. Replaces the core's yaffs_attribs.c, whose struct
 * iattr is U-Boot's and which leaves the times of a new object at 0.
 *
 * Mirrors yaffs_attribs.c of July 2013. Times are whole seconds. Here a change that cannot be
 * written is an error.
 */
#include <linux/uidgid.h>

#include "glue.h"
#include "yaffs_attribs.h"

void yaffs_load_attribs(struct yaffs_obj *obj, struct yaffs_obj_hdr *oh)
{
	obj->yst_uid = oh->yst_uid;
	obj->yst_gid = oh->yst_gid;
	obj->yst_atime = oh->yst_atime;
	obj->yst_mtime = oh->yst_mtime;
	obj->yst_ctime = oh->yst_ctime;
	obj->yst_rdev = oh->yst_rdev;
}

void yaffs_load_attribs_oh(struct yaffs_obj_hdr *oh, struct yaffs_obj *obj)
{
	oh->yst_uid = obj->yst_uid;
	oh->yst_gid = obj->yst_gid;
	oh->yst_atime = obj->yst_atime;
	oh->yst_mtime = obj->yst_mtime;
	oh->yst_ctime = obj->yst_ctime;
	oh->yst_rdev = obj->yst_rdev;
}

void yaffs_load_current_time(struct yaffs_obj *obj, int do_a, int do_c)
{
	obj->yst_mtime = Y_CURRENT_TIME;
	if (do_a)
		obj->yst_atime = obj->yst_mtime;
	if (do_c)
		obj->yst_ctime = obj->yst_mtime;
}

void yaffs_attribs_init(struct yaffs_obj *obj, u32 gid, u32 uid, u32 rdev)
{
	yaffs_load_current_time(obj, 1, 1);
	obj->yst_rdev = rdev;
	obj->yst_uid = uid;
	obj->yst_gid = gid;
}

int yaffs_set_attribs(struct yaffs_obj *obj, struct iattr *attr)
{
	const unsigned int valid = attr->ia_valid;

	if (valid & ATTR_MODE)
		obj->yst_mode = attr->ia_mode;
	if (valid & ATTR_UID)
		obj->yst_uid = from_kuid(&init_user_ns, attr->ia_uid);
	if (valid & ATTR_GID)
		obj->yst_gid = from_kgid(&init_user_ns, attr->ia_gid);
	if (valid & ATTR_ATIME)
		obj->yst_atime = (u32)attr->ia_atime.tv_sec;
	if (valid & ATTR_CTIME)
		obj->yst_ctime = (u32)attr->ia_ctime.tv_sec;
	if (valid & ATTR_MTIME)
		obj->yst_mtime = (u32)attr->ia_mtime.tv_sec;
	if ((valid & ATTR_SIZE) && yaffs_resize_file(obj, attr->ia_size) != YAFFS_OK)
		return YAFFS_FAIL;
	return yaffs_update_oh(obj, NULL, 1, 0, 0, NULL) < 0 ? YAFFS_FAIL : YAFFS_OK;
}
