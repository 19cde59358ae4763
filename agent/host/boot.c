/* SPDX-License-Identifier: Apache-2.0 */
/* A boot of the stack, once what the device did before is over: it is switched off, unmounted or in
 * the middle of it, attached and mounted again, and files of a list are read.
 *
 * Switched off in the middle means that nothing is synced or unmounted: the chip returns to the
 * state that it had when the program ended. Only flashbed_nand can do that.
 *
 * A dump of a device without a program is booted as it is, for the first time.
 *
 * With cuts the power goes in so many of the changes that the program makes, evenly spread. Each
 * time the device is booted and its files are looked at.
 *
 * The answer: `boot NAME ...` for each step of the mount, with the numbers of `step`, and for each
 * file `read NS BYTES [READS PROGRAMS ERASES BUSY_NS]`, or `unread ERRNO`. `changes N` before cuts,
 * then `cut CHANGE NS` or `unbootable CHANGE WHY`. `before`, `after` and each `cut` are followed by
 * `space BYTES`, and of each file by `found CRC BYTES` or `nofile ERRNO`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/host.h"

enum { READ_BYTES = 131072 };

static const uint64_t CUT_SEED = 1;
/* The kernel writes back what is dirty for 30 s, and looks every 5 s. */
static const uint64_t WRITTEN_BACK_NS = 40000000000;

int host_boot_begin(const struct host_request *request)
{
	return request->boot == BOOT_UNCLEAN ? nandlog_command("record") : 0;
}

/* Reads a file to its end: its size, or -errno. `crc` gets its checksum, or is NULL, as that costs
 * time. */
static int64_t read_whole(const char *path, uint32_t *crc)
{
	static uint8_t bytes[READ_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t whole = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, bytes, sizeof(bytes))) > 0) {
		if (crc)
			*crc = *crc * 31 + data_crc32(bytes, (size_t)got);
		whole += got;
	}
	const int err = got < 0 ? -errno : 0;

	(void)close(fd);
	return err ? err : whole;
}

/* What df calls available. */
static int say_space(const struct fs *fs, struct channel *out)
{
	struct statfs now;

	if (statfs(fs->mount_point, &now))
		return -errno;
	return channel_printf(out, "space %" PRIu64 "\n",
			      (uint64_t)now.f_bavail * (uint64_t)now.f_bsize);
}

static int say_files(const struct host_request *request, const struct fs *fs, struct channel *out)
{
	char path[2 * MAX_PATH_BYTES];
	int err = say_space(fs, out);

	for (char **each = request->reads; each && *each && !err; each++) {
		uint32_t crc = 0;

		(void)snprintf(path, sizeof(path), "%s/%s", layout_root(fs), *each);
		const int64_t bytes = read_whole(path, &crc);

		err = bytes < 0
			      ? channel_printf(out, "nofile %" PRId64 "\n", -bytes)
			      : channel_printf(out, "found %" PRIu32 " %" PRId64 "\n", crc, bytes);
	}
	return err;
}

int host_boot_before(const struct host_request *request, const struct fs *fs, struct channel *out)
{
	if (!request->cuts)
		return 0;
	const int err = channel_printf(out, "before\n");

	return err ? err : say_files(request, fs, out);
}

/* Takes the chip back to a power cut in one of its changes. What is mounted belongs to another
 * state of it, so errors of the unmount are ignored. */
static int cut(struct fs *fs, int64_t change)
{
	char command[64];

	(void)fs_unmount(fs);
	if (fs->mounted != FS_NONE)
		return fs_fail(fs, -EBUSY, "unmounting before a power cut");
	(void)snprintf(command, sizeof(command), "rewind %" PRId64 " %" PRIu64, change, CUT_SEED);
	return fs_fail(fs, nandlog_command(command), "returning to a power cut");
}

/* The change after the last one of the program is never made, so nothing is torn. */
static int cut_and_mount(struct fs *fs)
{
	const int64_t changes = nandlog_changes();
	const int err = changes < 0 ? (int)changes : cut(fs, changes + 1);

	return err ? err : fs_mount(fs);
}

static int boot_once(const struct host_request *request, struct fs *fs, struct channel *out,
		     int64_t change)
{
	int err = cut(fs, change);

	if (err)
		return err;
	const uint64_t start = now_ns();

	if (fs_mount(fs))
		return channel_printf(out, "unbootable %" PRId64 " %s\n", change, fs->detail);
	err = channel_printf(out, "cut %" PRId64 " %" PRIu64 "\n", change, now_ns() - start);
	return err ? err : say_files(request, fs, out);
}

/* Changes are the program's and those of write-back after it. The last cut is that after all of
 * them: what it finds is what the program made. */
static int boot_after_cuts(const struct host_request *request, struct fs *fs, struct channel *out)
{
	(void)phase_sleep_until(now_ns() + WRITTEN_BACK_NS);
	const int64_t changes = nandlog_changes();
	const int64_t cuts = changes < request->cuts ? changes : request->cuts;
	int err =
		changes < 0 ? (int)changes : channel_printf(out, "changes %" PRId64 "\n", changes);

	for (int64_t number = 0; number < cuts && !err; number++)
		err = boot_once(request, fs, out, 1 + number * changes / cuts);
	if (!err)
		err = cut(fs, changes + 1);
	if (!err)
		err = fs_mount(fs);
	if (!err)
		err = channel_printf(out, "after\n");
	return err ? err : say_files(request, fs, out);
}

static void read_one(struct channel *out, const char *folder, const char *path)
{
	char whole[2 * MAX_PATH_BYTES];
	struct flash_counts before = {0};
	struct flash_counts after = {0};
	const int known = nandlog_there() ? nandlog_counts(&before) : -ENOENT;
	const uint64_t start = now_ns();

	(void)snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	const int64_t bytes = read_whole(whole, NULL);
	const uint64_t ns = now_ns() - start;

	if (bytes < 0) {
		(void)channel_printf(out, "unread %" PRId64 "\n", -bytes);
		return;
	}
	(void)channel_printf(out, "read %" PRIu64 " %" PRId64, ns, bytes);
	if (!known && !nandlog_counts(&after))
		(void)channel_printf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
				     after.of[FLASH_READ] - before.of[FLASH_READ],
				     after.of[FLASH_PROGRAM] - before.of[FLASH_PROGRAM],
				     after.of[FLASH_ERASE] - before.of[FLASH_ERASE],
				     after.busy_ns - before.busy_ns);
	(void)channel_printf(out, "\n");
}

int host_boot(const struct host_request *request, struct fs *fs, struct channel *out,
	      const char **what)
{
	*what = fs->detail;
	if (request->boot == BOOT_NONE)
		return 0;
	int err = request->arguments ? host_hide_flash(request) : 0;

	if (!err && request->cuts)
		return boot_after_cuts(request, fs, out);
	if (!err && fs->mounted == FS_NONE)
		err = fs_mount(fs);
	else if (!err)
		err = request->boot == BOOT_UNCLEAN ? cut_and_mount(fs) : fs_remount(fs);
	if (err)
		return err;
	host_say_steps(out, fs, "boot");
	for (char **path = request->reads; path && *path; path++)
		read_one(out, layout_root(fs), *path);
	return 0;
}
