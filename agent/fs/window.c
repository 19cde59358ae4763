/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead window of a mounted file system: `ra_pages` of its inodes' backing device, which
 * sysfs shows as read_ahead_kb.
 *
 * Kernel interfaces: /sys/class/bdi/NAME/read_ahead_kb, /proc/filesystems. file_ra_state_init
 * (mm/readahead.c) copies the window when a file is opened. The backing device, from the sources of
 * 2.6.29 to 6.12:
 *
 *   UBIFS                        its own device, ubifs_U_V (fs/ubifs/super.c, dir.c)
 *   mounted on a block device    the disk's, MAJOR:MINOR: YAFFS2 as its project has it, on mtdblock
 *                                (`nodev` of /proc/filesystems is missing)
 *   else, before 4.0             `default`: default_backing_dev_info (fs/inode.c
 *                                inode_init_always). sb->s_bdi, mtd-unmap of NAND
 *                                (drivers/mtd/mtdsuper.c), serves write-back only
 *   else, since 4.0              sb->s_bdi of mtdsuper.c: `mtd`, since 4.12 mtd-0
 *                                (drivers/mtd/mtdcore.c). `default` is gone
 *
 * A mount's device number does not tell them apart, because JFFS2 also has that of mtdblock
 * (get_sb_mtd_set). Where it matters, trial.c verifies the choice. Leaves out: kernels before
 * 2.6.26, whose backing devices have no names.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/fs.h"

enum { ROOT_BYTES = 200, DEVICES = 8 };

static char root[ROOT_BYTES];

/* What devices had before they were set, which is what a fresh mount has. */
static struct {
	char path[WINDOW_PATH_BYTES];
	uint64_t kib;
} shipped[DEVICES];

void window_below(const char *folder)
{
	(void)snprintf(root, sizeof(root), "%s", folder);
}

bool window_needs_disk(const char *fs)
{
	char path[ROOT_BYTES + 32];
	char wanted[40];
	char text[8192];

	(void)snprintf(path, sizeof(path), "%s/proc/filesystems", root);
	(void)snprintf(wanted, sizeof(wanted), "\n\t%s\n", fs);
	text[0] = '\n';
	return read_file(path, text + 1, sizeof(text) - 1) > 0 && strstr(text, wanted);
}

static bool names(char *path, size_t size, const char *device)
{
	(void)snprintf(path, size, "%s/sys/class/bdi/%s/read_ahead_kb", root, device);
	return access(path, F_OK) == 0;
}

int window_path(const struct window_of *of, char *path, size_t size)
{
	static const char *const devices[] = {"default", "mtd-0", "mtd"};
	char device[32];

	if (strcmp(of->fs, "ubifs") == 0) {
		(void)snprintf(device, sizeof(device), "ubifs_%d_%d", of->ubi, of->volume);
		return names(path, size, device) ? 0 : -ENOENT;
	}
	if (window_needs_disk(of->fs)) {
		(void)snprintf(device, sizeof(device), "%u:%u", major(of->device),
			       minor(of->device));
		return names(path, size, device) ? 0 : -ENOENT;
	}
	if (strcmp(of->fs, "jffs2") != 0 && strcmp(of->fs, "yaffs2") != 0)
		return -ENODEV;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (names(path, size, devices[i]))
			return 0;
	return -ENOENT;
}

int window_disk_path(unsigned int mtd, char *path, size_t size)
{
	char device[32];

	(void)snprintf(device, sizeof(device), "%d:%u", MTD_DISKS_MAJOR, mtd);
	return names(path, size, device) ? 0 : -ENOENT;
}

int window_read(const char *path, uint64_t *kib)
{
	char text[24];
	const int got = read_file(path, text, sizeof(text));

	*kib = got > 0 ? strtoull(text, NULL, 10) : 0;
	return got < 0 ? got : 0;
}

int window_shipped(const char *path, uint64_t *kib)
{
	size_t at = 0;

	while (at < DEVICES && shipped[at].path[0] && strcmp(shipped[at].path, path) != 0)
		at++;
	if (at == DEVICES)
		return -ENOSPC;
	if (!shipped[at].path[0]) {
		const int err = window_read(path, &shipped[at].kib);

		if (err)
			return err;
		(void)snprintf(shipped[at].path, sizeof(shipped[at].path), "%s", path);
	}
	*kib = shipped[at].kib;
	return 0;
}

int window_set(const char *path, uint64_t kib)
{
	char text[24];
	uint64_t now = 0;
	int err = window_shipped(path, &now);

	if (!err)
		err = window_read(path, &now);
	/* Who may not write may still find it right. */
	if (err || now == kib)
		return err;
	(void)snprintf(text, sizeof(text), "%" PRIu64, kib);
	err = write_file(path, text);
	if (!err)
		err = window_read(path, &now);
	/* The kernel keeps whole pages. */
	return err ? err : now == kib ? 0 : -ERANGE;
}
