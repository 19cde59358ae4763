/* SPDX-License-Identifier: GPL-2.0-only */
/* What the core of YAFFS2 needs of its system, here the Linux kernel. Replaces U-Boot's header of
 * the same name.
 *
 * Times of objects are seconds in 32 bits. Names are bytes: no Unicode, no case folding.
 */
#ifndef YPORTENV_H
#define YPORTENV_H

#include <linux/bug.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/vmalloc.h>
#include <linux/xattr.h>

#define YCHAR char
#define YUCHAR unsigned char
#define _Y(text) text

#define yaffs_strcat(to, from) strcat(to, from)
#define yaffs_strcpy(to, from) strcpy(to, from)
#define yaffs_strncpy(to, from, count) strncpy(to, from, count)
#define yaffs_strnlen(text, count) strnlen(text, count)
#define yaffs_strcmp(one, other) strcmp(one, other)
#define yaffs_strncmp(one, other, count) strncmp(one, other, count)

#define YAFFS_LOSTNFOUND_NAME "lost+found"
#define YAFFS_LOSTNFOUND_PREFIX "obj"
#define YAFFS_ROOT_MODE 0755
#define YAFFS_LOSTNFOUND_MODE 0700

#define Y_CURRENT_TIME ((u32)ktime_get_real_seconds())

#define yaffs_trace(mask, format, ...)                                                             \
	do {                                                                                       \
		if (yaffs_trace_mask & (mask))                                                     \
			printk(KERN_DEBUG "yaffs2: " format "\n", ##__VA_ARGS__);                  \
	} while (0)

#endif
