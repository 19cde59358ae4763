/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a board has of what the cases need, as `flashbed-board 1`
 * (docs/reference/boards-over-ssh.md). Changes nothing on it, except that modprobe may load modules
 * of file systems.
 *
 * Kernel interfaces: uname(2), /proc/filesystems, /proc/meminfo, those of partition.c and folder.c,
 * tracefs by tracefs_open().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board/board.h"

/* A line of /proc/meminfo, KiB. */
static uint64_t amount(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static int say_facts(struct channel *out)
{
	static const uint16_t one = 1;
	const bool little = *(const uint8_t *)&one == 1;
	struct utsname names;
	char text[1024];
	char user[16] = "root";

	if (uname(&names))
		return -errno;
	if (geteuid())
		(void)snprintf(user, sizeof(user), "%u", (unsigned int)geteuid());
	const int got = read_file("/proc/meminfo", text, sizeof(text));
	const uint64_t ram_kib = got > 0 ? amount(text, "MemTotal:") : 0;
	const uint64_t free_kib = got > 0 ? amount(text, "MemFree:") : 0;

	return channel_printf(out,
			      "fact kernel %s\nfact machine %s\nfact endian %s\nfact word_bits "
			      "%u\nfact user %s\nfact ram_kib %" PRIu64 "\nfact free_kib %" PRIu64
			      "\n",
			      names.release, names.machine, little ? "little" : "big",
			      8 * kernel_word(), user, ram_kib, free_kib);
}

static int say_can(struct channel *out, const char *name, const char *why)
{
	return *why ? channel_printf(out, "can %s no %s\n", name, why)
		    : channel_printf(out, "can %s yes\n", name);
}

static int say_kprobes(struct channel *out)
{
	const struct tracefs_options options = {64, false};
	struct tracefs *session = NULL;
	char detail[TRACE_DETAIL] = "";

	if (tracefs_open(&session, &options, detail) == 0)
		detail[0] = '\0';
	tracefs_close(session);
	return say_can(out, "kprobes", detail);
}

static const char *why_not_written(const char *path)
{
	return access(path, W_OK) ? errno == ENOENT ? "the kernel has none" : "it needs root" : "";
}

/* Whether the kernel has a file system, or gets it when modprobe loads its module. */
static bool has_file_system(const char *name)
{
	char text[8192];
	char wanted[32];

	(void)snprintf(wanted, sizeof(wanted), "\t%s\n", name);
	for (int attempt = 0; attempt < 2; attempt++) {
		if (read_file("/proc/filesystems", text, sizeof(text)) > 0 && strstr(text, wanted))
			return true;
		if (attempt || geteuid())
			break;
		const pid_t child = fork();

		if (child == 0) {
			const int null = open("/dev/null", O_RDWR);

			if (null >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0)
				(void)execlp("modprobe", "modprobe", name, (char *)NULL);
			_exit(127);
		}
		if (child < 0 || waitpid(child, NULL, 0) < 0)
			break;
	}
	return false;
}

static int say_abilities(struct channel *out)
{
	static const char *const names[] = {"jffs2", "yaffs2", "ubifs"};
	int err = say_kprobes(out);

	if (!err)
		err = say_can(out, "drop_caches", why_not_written("/proc/sys/vm/drop_caches"));
	if (!err)
		err = say_can(out, "mount", geteuid() ? "it needs root" : "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		err = channel_printf(
			out, "fs %s %s\n", names[i],
			has_file_system(names[i])
				? "yes"
				: "no the kernel does not have it, and modprobe loads none");
	return err;
}

static int say_partitions(struct channel *out)
{
	static struct partition list[PARTITIONS];
	const size_t count = partitions_read(list, PARTITIONS);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct partition *p = &list[i];
		const struct flash_geometry *g = &p->geometry;

		char offset[24] = "-";

		if (p->has_offset)
			(void)snprintf(offset, sizeof(offset), "%" PRIu64, p->offset_bytes);
		err = channel_printf(
			out, "mtd %d %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %s %s %s\n",
			p->number, g->page_bytes, g->oob_bytes, g->block_bytes, g->size_bytes,
			offset, p->type[0] ? p->type : "-", p->name[0] ? p->name : "-");
		if (!err)
			err = p->refused[0]
				      ? channel_printf(out, "use %d no %s\n", p->number, p->refused)
				      : channel_printf(out, "use %d yes\n", p->number);
	}
	return err;
}

static int say_directory(struct channel *out, const char *directory)
{
	struct mounted mounted;
	uint64_t kib = 0;
	char path[WINDOW_PATH_BYTES];
	char window[24] = "-";
	char mtd[16] = "-";
	const int err = folder_mounted(directory, &mounted);

	if (err)
		return channel_printf(out, "dir - - - %s\n", strerror(-err));
	if (access(directory, W_OK))
		return channel_printf(out, "dir - - - %s\n", strerror(errno));
	const struct window_of of = {mounted.type, mounted.device, mounted.ubi, mounted.volume};

	if (window_path(&of, path, sizeof(path)) == 0 && window_read(path, &kib) == 0)
		(void)snprintf(window, sizeof(window), "%" PRIu64, kib);
	if (mounted.mtd >= 0)
		(void)snprintf(mtd, sizeof(mtd), "%d", mounted.mtd);
	return channel_printf(out, "dir %s %s %s\n", mounted.type, mtd, window);
}

int board_say(struct channel *out, const char *directory)
{
	int err = channel_printf(out, "flashbed-board 1\n");

	if (!err)
		err = say_facts(out);
	if (!err)
		err = say_abilities(out);
	if (!err)
		err = say_partitions(out);
	if (!err && directory)
		err = say_directory(out, directory);
	if (!err)
		err = channel_printf(out, "end\n");
	return err ? err : channel_flush(out);
}
