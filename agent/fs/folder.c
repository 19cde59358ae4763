/* SPDX-License-Identifier: Apache-2.0 */
/* A mounted directory, in which cases get a folder: its file system and the flash below.
 *
 * Kernel interfaces: /proc/self/mounts, /sys/class/ubi (volume names, mtd_num). Leaves out file
 * systems on several devices.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/fs.h"

enum { MTDS = 64, VOLUMES = 128 };

static int mtd_of(const char *source)
{
	int number;
	char name[160];

	if (sscanf(source, "/dev/mtdblock%d", &number) == 1 ||
	    sscanf(source, "/dev/mtd%d", &number) == 1 || sscanf(source, "mtd%d", &number) == 1)
		return number;
	for (number = 0; strncmp(source, "mtd:", 4) == 0 && number < MTDS; number++)
		if (!mtd_text(number, "name", name, sizeof(name)) && strcmp(name, source + 4) == 0)
			return number;
	return -1;
}

static int volume_named(int ubi, const char *name)
{
	char path[64];
	char text[160];

	for (int volume = 0; volume < VOLUMES; volume++) {
		(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d_%d/name", ubi, volume);
		const int got = read_file(path, text, sizeof(text));

		if (got > 0 && strncmp(text, name, strlen(name)) == 0 &&
		    strcmp(text + strlen(name), "\n") == 0)
			return volume;
	}
	return -1;
}

/* Parses ubiX_Y, ubiX:NAME, ubi:NAME (of ubi0), and the first as a device. */
static void find_volume(struct mounted *mounted)
{
	const char *source =
		strncmp(mounted->source, "/dev/", 5) == 0 ? mounted->source + 5 : mounted->source;
	char path[64];
	char text[16];
	int at = 0;

	if (sscanf(source, "ubi%d_%d", &mounted->ubi, &mounted->volume) != 2) {
		mounted->ubi = 0;
		mounted->volume = -1;
		if (sscanf(source, "ubi%d%n", &mounted->ubi, &at) != 1)
			at = 3;
		if (strncmp(source, "ubi", 3) == 0 && (source[at] == ':' || source[at] == '!'))
			mounted->volume = volume_named(mounted->ubi, source + at + 1);
	}
	(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d/mtd_num", mounted->ubi);
	if (mounted->volume >= 0 && read_file(path, text, sizeof(text)) > 0)
		mounted->mtd = (int)strtol(text, NULL, 10);
}

/* A root file system may be mounted as /dev/root. A file system on MTD has device 31:N. */
static int mtd_by_device(const char *path)
{
	struct stat about;

	if (stat(path, &about))
		return -1;
	return (about.st_dev >> 8 & 0xfff) == 31 ? (int)(about.st_dev & 0xff) : -1;
}

int folder_mounted(const char *directory, struct mounted *mounted)
{
	char real[PATH_MAX];
	size_t longest = 0;
	struct mntent entry;
	struct stat about;
	char text[4096];

	memset(mounted, 0, sizeof(*mounted));
	mounted->mtd = mounted->ubi = mounted->volume = -1;
	if (!realpath(directory, real))
		return -errno;
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	if (!mounts)
		return -errno;
	while (getmntent_r(mounts, &entry, text, sizeof(text))) {
		const size_t length = strcmp(entry.mnt_dir, "/") == 0 ? 0 : strlen(entry.mnt_dir);

		/* The last mount on a path hides earlier ones. */
		if (length < longest || strncmp(real, entry.mnt_dir, length) != 0 ||
		    (real[length] != '/' && real[length] != '\0'))
			continue;
		longest = length;
		(void)snprintf(mounted->path, sizeof(mounted->path), "%s", entry.mnt_dir);
		(void)snprintf(mounted->source, sizeof(mounted->source), "%s", entry.mnt_fsname);
		(void)snprintf(mounted->type, sizeof(mounted->type), "%s", entry.mnt_type);
	}
	(void)endmntent(mounts);
	if (stat(real, &about) == 0)
		mounted->device = about.st_dev;
	if (strcmp(mounted->type, "ubifs") == 0)
		find_volume(mounted);
	else if ((mounted->mtd = mtd_of(mounted->source)) < 0)
		mounted->mtd = mtd_by_device(real);
	return mounted->type[0] ? 0 : -ENOENT;
}
