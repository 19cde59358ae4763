/* SPDX-License-Identifier: Apache-2.0 */
/* The MTD partitions of a board, and which of them must not be erased. This check is final,
 * whatever the host was told.
 *
 * Kernel interfaces: /sys/class/mtd/mtdN (name, type, flags, size, offset), /proc/self/mountinfo (a
 * file system on MTD has device 31:N, whatever its source is called: get_tree_mtd_single of
 * drivers/mtd/mtdsuper.c), /sys/class/ubi/ubiN/mtd_num, /proc/swaps, /proc/cmdline. Leaves out:
 * overlaps on kernels before 4.1, which do not tell the offset of a partition; programs that have a
 * partition's device open.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "board/board.h"

enum { TEXT_BYTES = 65536, MTD_MAJOR = 31, MTD_WRITEABLE = 0x400, UBIS = 32 };

static bool has_mount(const char *mounts, int mtd)
{
	char device[24];

	(void)snprintf(device, sizeof(device), " %d:%d ", MTD_MAJOR, mtd);
	return strstr(mounts, device) != NULL;
}

int partition_ubi(int mtd)
{
	for (int ubi = 0; ubi < UBIS; ubi++) {
		char path[64];
		char text[16];

		(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d/mtd_num", ubi);
		if (read_file(path, text, sizeof(text)) > 0 && strtol(text, NULL, 10) == mtd)
			return ubi;
	}
	return -1;
}

/* Whether `KEY=` on the kernel's command line names this partition: by number (mtd5, mtdblock5,
 * 31:5, 5 of ubi.mtd) or by name, up to a comma. */
static bool names(const char *value, const struct partition *partition)
{
	static const char *const before[] = {
		"/dev/mtdblock", "/dev/mtd", "mtdblock", "mtd:", "mtd", "31:", ""};
	const size_t length = strcspn(value, ", \n\"");

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const size_t skipped = strlen(before[i]);
		char number[16];

		if (skipped > length || strncmp(value, before[i], skipped) != 0)
			continue;
		(void)snprintf(number, sizeof(number), "%d", partition->number);
		const char *rest = value + skipped;
		const size_t left = length - skipped;

		if (left == strlen(number) && strncmp(rest, number, left) == 0)
			return true;
		if (left == strlen(partition->name) && left &&
		    strncmp(rest, partition->name, left) == 0)
			return true;
	}
	return false;
}

static bool in_command_line(const char *line, const struct partition *partition)
{
	static const char *const keys[] = {"root=", "ubi.mtd="};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *at = line;

		while ((at = strstr(at, keys[i])) != NULL) {
			const bool begins =
				at == line || isspace((unsigned char)at[-1]) || at[-1] == '"';

			at += strlen(keys[i]);
			if (begins && names(at, partition))
				return true;
		}
	}
	return false;
}

/* Whether the name has a word that boot loaders and systems use for their own partitions, as a
 * whole word; for the long ones a part of a word suffices. */
static bool is_system_name(const char *name)
{
	static const char *const parts[] = {"boot",  "barebox", "firmware", "kernel",
					    "calib", "factory", "recovery", "rootfs"};
	static const char *const words[] = {
		"root",    "system", "spl", "env",   "mlo", "fsbl",  "ssbl",   "tpl",    "dtb",
		"dtbs",    "fdt",    "bcb", "fcb",   "bbt", "linux", "zimage", "uimage", "art",
		"caldata", "nvram",  "mac", "optee", "tee", "atf",   "fip"};
	char lower[PARTITION_NAME_BYTES];
	size_t length = 0;

	for (; name[length] && length + 1 < sizeof(lower); length++)
		lower[length] = (char)tolower((unsigned char)name[length]);
	lower[length] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(lower, parts[i]))
			return true;
	char *at = NULL;

	for (const char *word = strtok_r(lower, " -_.:,;/0123456789", &at); word;
	     word = strtok_r(NULL, " -_.:,;/0123456789", &at))
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(word, words[i]) == 0)
				return true;
	return false;
}

static void refuse(struct partition *partition, const char *why)
{
	(void)snprintf(partition->refused, sizeof(partition->refused), "%s", why);
}

/* Refuses a partition that the board itself uses, whatever is on it. */
static void look_at_use(struct partition *partition, const char *mounts, const char *swaps,
			const char *line)
{
	char device[32];
	char why[REASON_BYTES];
	const int ubi = partition_ubi(partition->number);

	(void)snprintf(device, sizeof(device), "/dev/mtdblock%d ", partition->number);
	if (has_mount(mounts, partition->number)) {
		refuse(partition, "it is mounted");
	} else if (strstr(swaps, device)) {
		refuse(partition, "it is used as swap");
	} else if (in_command_line(line, partition)) {
		refuse(partition, "the kernel's command line has the root file system on it");
	} else if (ubi >= 0) {
		(void)snprintf(why, sizeof(why),
			       "it is attached to UBI as ubi%d (ubidetach -m %d, if nothing of it "
			       "is needed)",
			       ubi, partition->number);
		refuse(partition, why);
	} else if (is_system_name(partition->name)) {
		refuse(partition, "by its name it is a boot loader's or the system's");
	}
}

static void look_at_chip(struct partition *partition)
{
	if (strcmp(partition->type, "nand") != 0 && strcmp(partition->type, "mlc-nand") != 0)
		refuse(partition, "it is no NAND flash");
	else if (!(partition->flags & MTD_WRITEABLE))
		refuse(partition, "it is read-only");
	else if (!partition->geometry.page_bytes || !partition->geometry.block_bytes)
		refuse(partition, "the kernel does not say how large its pages and blocks are");
}

static bool overlap(const struct partition *a, const struct partition *b)
{
	return a->has_offset && b->has_offset && a->chip[0] && strcmp(a->chip, b->chip) == 0 &&
	       a->offset_bytes < b->offset_bytes + b->geometry.size_bytes &&
	       b->offset_bytes < a->offset_bytes + a->geometry.size_bytes;
}

/* Finds the chip's own device. Where the whole chip is a partition, too, a partition's `device` may
 * be below it. */
static void find_chip(struct partition *partition)
{
	char path[64];
	char real[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/sys/class/mtd/mtd%d/device", partition->number);
	if (!realpath(path, real))
		return;
	char *within = strstr(real, "/mtd/mtd");

	if (within)
		*within = '\0';
	(void)snprintf(partition->chip, sizeof(partition->chip), "%.255s", real);
}

static bool read_partition(int number, struct partition *partition)
{
	memset(partition, 0, sizeof(*partition));
	partition->number = number;
	if (mtd_name(number, partition->name, sizeof(partition->name)))
		return false;
	(void)mtd_text(number, "type", partition->type, sizeof(partition->type));
	(void)mtd_value(number, "flags", &partition->flags);
	(void)mtd_geometry(number, &partition->geometry);
	partition->has_offset = mtd_value(number, "offset", &partition->offset_bytes) == 0;
	find_chip(partition);
	return true;
}

/* Of two partitions that share blocks, refuses both if one is refused. */
static void refuse_overlapping(struct partition *list, size_t count)
{
	bool refused[PARTITIONS];

	for (size_t i = 0; i < count; i++)
		refused[i] = list[i].refused[0] != '\0';
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count && !list[i].refused[0]; j++)
			if (j != i && refused[j] && overlap(&list[i], &list[j])) {
				char why[REASON_BYTES];

				(void)snprintf(why, sizeof(why), "it overlaps mtd%d (%s): %.90s",
					       list[j].number, list[j].name, list[j].refused);
				refuse(&list[i], why);
			}
}

size_t partitions_read(struct partition *list, size_t room)
{
	static char mounts[TEXT_BYTES];
	static char swaps[4096];
	static char line[8192];
	size_t count = 0;

	const bool blind = read_file("/proc/self/mountinfo", mounts, sizeof(mounts)) < 0;

	if (read_file("/proc/swaps", swaps, sizeof(swaps)) < 0)
		swaps[0] = '\0';
	if (read_file("/proc/cmdline", line, sizeof(line)) < 0)
		line[0] = '\0';
	for (int number = 0; number < PARTITIONS && count < room; number++) {
		if (!read_partition(number, &list[count]))
			continue;
		if (blind)
			refuse(&list[count],
			       "/proc/self/mountinfo, which says what is mounted, cannot be read");
		else
			look_at_use(&list[count], mounts, swaps, line);
		count++;
	}
	refuse_overlapping(list, count);
	for (size_t i = 0; i < count; i++)
		if (!list[i].refused[0])
			look_at_chip(&list[i]);
	return count;
}

int partition_check(int mtd, const char *name, char *why, size_t size)
{
	static struct partition list[PARTITIONS];
	const size_t count = partitions_read(list, PARTITIONS);

	for (size_t i = 0; i < count; i++) {
		if (list[i].number != mtd)
			continue;
		if (list[i].refused[0])
			(void)snprintf(why, size, "mtd%d (%s) is not erased: %s", mtd, list[i].name,
				       list[i].refused);
		else if (strcmp(name, list[i].name) != 0)
			(void)snprintf(why, size, "mtd%d is called %s, not %s", mtd, list[i].name,
				       name);
		else
			return 0;
		return -EPERM;
	}
	(void)snprintf(why, size, "there is no mtd%d", mtd);
	return -EPERM;
}
