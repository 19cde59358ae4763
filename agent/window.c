/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead window of a mounted file system: read_ahead_kb of its backing device.
 *
 * Kernel interfaces: /sys/class/bdi/NAME/read_ahead_kb. UBIFS has a device for each volume. JFFS2 and YAFFS2 share MTD's, which is called mtd-0
 * since 4.12, mtd from 4.2 on, and before that mtd-unmap, -romap or -rwmap by what mmap may do (drivers/mtd/mtdbdi.c): of NAND the first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

int window_path(const char *fs, int ubi, int volume, char *path, size_t size)
{
	static const char *const names[] = {"mtd-0", "mtd", "mtd-unmap"};

	if (strcmp(fs, "ubifs") == 0) {
		(void)snprintf(path, size, "/sys/class/bdi/ubifs_%d_%d/read_ahead_kb", ubi, volume);
		return access(path, F_OK) ? -errno : 0;
	}
	if (strcmp(fs, "jffs2") != 0 && strcmp(fs, "yaffs2") != 0)
		return -ENODEV;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, size, "/sys/class/bdi/%s/read_ahead_kb", names[i]);
		if (access(path, F_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

int window_read(const char *fs, int ubi, int volume, uint64_t *kib)
{
	char path[WINDOW_PATH_BYTES];
	char text[24];
	int err = window_path(fs, ubi, volume, path, sizeof(path));

	if (err)
		return err;
	err = read_file(path, text, sizeof(text));
	*kib = err > 0 ? strtoull(text, NULL, 10) : 0;
	return err < 0 ? err : 0;
}

int window_set(const char *fs, int ubi, int volume, uint64_t kib)
{
	char path[WINDOW_PATH_BYTES];
	char text[24];
	uint64_t now = 0;
	int err = window_read(fs, ubi, volume, &now);

	/* Who may not write may still find it right. */
	if (err || now == kib)
		return err;
	err = window_path(fs, ubi, volume, path, sizeof(path));
	(void)snprintf(text, sizeof(text), "%" PRIu64, kib);
	return err ? err : write_file(path, text);
}
