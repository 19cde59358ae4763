/* SPDX-License-Identifier: Apache-2.0 */
/* The partition itself, below any file system: `partition`, the only file of the directory that
 * operations are relative to.
 *
 * FS_MTD is MTD's character device, read and written from user space. FS_MTD_DRIVER is a file of
 * our driver that calls MTD within the kernel and passes no byte to the program, to show the cost
 * of the driver alone. FS_MTDBLOCK is MTD's block device, FS_FTL that of disk.c. Leaves out the
 * spare area and other chips' drivers, which have no such file.
 *
 * Kernel interfaces: drivers/mtd/mtdchar.c, mtdblock.c; `partition` of flashbed_nand in debugfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mtd/mtd-user.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fs/fs.h"

enum { PATH_BYTES = 256 };

/* The device of each kind, with the partition's number. */
static const char *const devices[FS_KINDS] = {
	[FS_MTD] = "/dev/mtd%d",
	[FS_MTD_DRIVER] = "/sys/kernel/debug/flashbed_nand/partition",
	[FS_MTDBLOCK] = "/dev/mtdblock%d",
	[FS_FTL] = "/dev/flashbed_ftl",
};

bool raw_kind(enum fs_kind kind)
{
	return devices[kind];
}

static void name(const struct fs *fs, char *path)
{
	(void)snprintf(path, PATH_BYTES, "%s/partition", fs->mount_point);
}

int raw_unlink(const struct fs *fs)
{
	char path[PATH_BYTES];

	name(fs, path);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

int raw_link(const struct fs *fs, enum fs_kind kind)
{
	char path[PATH_BYTES];
	char device[64];
	const int err = raw_unlink(fs);

	if (err)
		return err;
	name(fs, path);
	(void)snprintf(device, sizeof(device), devices[kind], fs->mtd);
	if (access(device, R_OK | W_OK))
		return -errno;
	return symlink(device, path) ? -errno : 0;
}

/* Erases whole blocks; ENOTTY for what is no MTD device. */
int raw_erase(int fd, uint64_t offset, uint64_t length)
{
	struct erase_info_user64 blocks = {.start = offset, .length = length};

	return ioctl(fd, MEMERASE64, &blocks) ? -errno : 0;
}
