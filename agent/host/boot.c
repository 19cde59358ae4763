/* SPDX-License-Identifier: Apache-2.0 */
/* A boot of the stack, once what the device did before is over: it is switched off, unmounted or in
 * the middle of it, attached and mounted again, and files of a list are read.
 *
 * Switched off in the middle means that nothing is synced or unmounted: the chip returns to the
 * state that it had when the program ended. Only flashbed_nand can do that.
 *
 * The answer: `boot NAME ...` for each step of the mount, with the numbers of `step`, and for each
 * file `read NS BYTES [READS PROGRAMS ERASES BUSY_NS]`, or `unread ERRNO`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host.h"

enum { READ_BYTES = 131072 };

static const uint64_t CUT_SEED = 1;

int host_boot_begin(const struct host_request *request)
{
	return request->boot == BOOT_UNCLEAN ? nandlog_command("record") : 0;
}

/* The change after the last one of the program is never made, so nothing is torn. */
static int cut_and_mount(struct fs *fs)
{
	const int64_t changes = nandlog_changes();
	char command[64];

	if (changes < 0)
		return (int)changes;
	(void)fs_unmount(fs);
	if (fs->mounted != FS_NONE)
		return -EBUSY;
	(void)snprintf(command, sizeof(command), "rewind %" PRId64 " %" PRIu64, changes + 1,
		       CUT_SEED);
	const int err = nandlog_command(command);

	return err ? err : fs_mount(fs);
}

static int64_t read_whole(const char *path)
{
	static char bytes[READ_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t whole = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		whole += got;
	const int err = got < 0 ? -errno : 0;

	(void)close(fd);
	return err ? err : whole;
}

static void read_one(struct channel *out, const char *folder, const char *path)
{
	char whole[2 * MAX_PATH_BYTES];
	struct flash_counts before = {0};
	struct flash_counts after = {0};
	const int known = nandlog_there() ? nandlog_counts(&before) : -ENOENT;
	const uint64_t start = now_ns();

	(void)snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	const int64_t bytes = read_whole(whole);
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

	if (!err)
		err = request->boot == BOOT_UNCLEAN ? cut_and_mount(fs) : fs_remount(fs);

	if (err)
		return err;
	host_say_steps(out, fs, "boot");
	for (char **path = request->reads; path && *path; path++)
		read_one(out, layout_root(fs), *path);
	return 0;
}
