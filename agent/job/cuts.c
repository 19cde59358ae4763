/* SPDX-License-Identifier: Apache-2.0 */
/* Power cuts: puts the chip into the state of a power cut in one of a case's changes, mounts it and
 * surveys it.
 *
 * The chip's driver records the changes (`record`) and can return to any of them (`rewind`,
 * kernel/flashbed_nand/README.md), so nothing is run again. The mounted file system belongs to the
 * other state of the chip, so it is unmounted first, and errors of that are ignored. A mount that
 * fails is a result. Left out: the rest of the machine, which keeps its memory. Nothing of the
 * unmounted file system is in it, because caches belong to a mount.
 *
 * Kernel interfaces: those of fs.c and nandlog.c, posix_fadvise(2) so that bytes are read back from
 * the chip.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "job/job.h"

enum { PROBE_BYTES = 6000 };

static const char probe_name[] = "flashbed-probe";
static const uint64_t probe_seed = 0x70726f6265; /* "probe" */

static int write_and_read(int fd)
{
	static uint8_t wanted[PROBE_BYTES];
	static uint8_t got[PROBE_BYTES];

	data_fill(wanted, 0, PROBE_BYTES, probe_seed, 0);
	memset(got, 0, sizeof(got));
	const ssize_t put = pwrite(fd, wanted, PROBE_BYTES, 0);

	if (put != PROBE_BYTES)
		return put < 0 ? -errno : -ENOSPC;
	if (fsync(fd))
		return -errno;
	const int advised = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	const ssize_t back = advised ? 0 : pread(fd, got, PROBE_BYTES, 0);

	if (advised || back < 0)
		return advised ? -advised : -errno;
	return back == PROBE_BYTES && memcmp(wanted, got, PROBE_BYTES) == 0 ? 0 : -EBADMSG;
}

/* Whether the file system works: 0, or the error of writing a new file of two pages and reading it
 * back; of a disk its first two pages. */
static int probe(const struct runner *runner, bool raw)
{
	const int fd = raw ? openat(runner->directory, "partition", O_RDWR | O_CLOEXEC)
			   : openat(runner->directory, probe_name,
				    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	const int err = write_and_read(fd);

	return close(fd) && !err ? -errno : err;
}

static int rewind_chip(uint64_t change, uint64_t seed)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rewind %" PRIu64 " %" PRIu64, change, seed);
	return nandlog_command(command);
}

static int look(struct fs *fs, struct runner *runner, struct contents *contents,
		struct channel *out)
{
	int err = run_open_directory(runner, fs->mount_point);

	if (!err)
		err = survey(out, contents, fs->mount_point);
	/* Recovery may change the files, so it comes after the survey. */
	if (!err && contents->database[0])
		err = sql_recover(runner->sql.directory, contents->database, out);
	if (err)
		return err;
	err = probe(runner, raw_kind(fs->mounted));
	return channel_printf(out, "u %" PRId64 "\n", result_number(err));
}

int cuts_make(struct fs *fs, struct runner *runner, struct contents *contents, struct channel *out,
	      const char *id, uint64_t change, uint64_t seed)
{
	int err = channel_printf(out, "cut %s %" PRIu64 "\n", id, change);

	if (!err)
		err = channel_flush(out);
	if (!err)
		err = run_open_directory(runner, NULL);
	if (err)
		return err;
	(void)fs_unmount(fs);
	if (fs->mounted != FS_NONE)
		return -EBUSY;
	err = rewind_chip(change, seed);
	if (err)
		return err;
	const uint64_t start = now_ns();
	const int mounted = fs_mount(fs);

	err = channel_printf(out, "m %" PRId64 " %" PRIu64 "\n", result_number(mounted),
			     now_ns() - start);
	if (!err && !mounted)
		err = look(fs, runner, contents, out);
	if (!err)
		err = channel_printf(out, "endcut %s %" PRIu64 "\n", id, change);
	return err ? err : channel_flush(out);
}
