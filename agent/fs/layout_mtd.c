/* SPDX-License-Identifier: Apache-2.0 */
/* A layout's partitions of MTD: found by their names, filled with an image as nandwrite and
 * flashcp do. flashbed_nand has made them (`parts`), and format.c has erased them.
 *
 * Kernel interfaces: /sys/class/mtd/mtdN/name, /dev/mtdN. Leaves out bad blocks within an image,
 * which mtdblock does not know either.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/fs.h"

/* The number of the device with this name; -ENOENT for none. */
int partition_number(const char *name)
{
	char found[80];

	for (int mtd = 0; mtd <= LAYOUT_VOLUMES; mtd++)
		if (mtd_name(mtd, found, sizeof(found)) == 0 && strcmp(found, name) == 0)
			return mtd;
	return -ENOENT;
}

/* An image has whole pages. */
int partition_fill(int number, const char *image)
{
	char path[32];
	const int from = open(image, O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/dev/mtd%d", number);
	const int to = open(path, O_RDWR | O_CLOEXEC);
	int err = to < 0 ? -errno : copy_file(from, to);

	if (to >= 0 && close(to) && !err)
		err = -errno;
	(void)close(from);
	return err;
}
