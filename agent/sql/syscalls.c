/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of SQLite's unix VFS: the kind of a sync, the user that SQLite believes to be,
 * and a record of the calls as flashbed-ops.
 *
 * Mirrors what python/flashbed/plan/sqlite/vfs.py records, to be compared with it: `open` with the
 * lowest free slot, a path that is only checked (xAccess) as an `open` of it and a `close`, pread,
 * pwrite, ftruncate, unlink, syncs. Locks, stat, lstat and fstat are not recorded. Calls are
 * intercepted where os_unix.c lets them be overridden (xSetSystemCall). A sync is no such call, so
 * SQLite is compiled with another name for fdatasync, which it uses for all syncs. A build of
 * SQLite without HAVE_FDATASYNC has fsync there: `sync_data_only` tells which. geteuid answers as
 * for an ordinary user, because as root SQLite would fchown every journal.
 *
 * Left out: memory maps; what a call returned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "sql/sql.h"
#include "sqlite3.h"

enum { FDS = 1024, ORDINARY_USER = 1000 };

bool sync_data_only;

static struct {
	const char *directory; /* paths are below it; NULL if nothing is recorded */
	size_t seq;
	char *text; /* rows `o SEQ OPERATION`, each with its line feed */
	size_t used;
	size_t size;
	bool lost;
	uint64_t taken; /* slots in use, one bit each */
	int slot_of[FDS];
	int (*access)(sqlite3_vfs *vfs, const char *path, int flags, int *there);
} calls;

void calls_begin(const char *directory)
{
	calls.directory = directory;
	calls.used = 0;
	calls.lost = false;
}

void calls_next_row(size_t seq)
{
	calls.seq = seq;
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	const int saved = errno;
	char line[MAX_LINE];
	va_list arguments;

	if (!calls.directory)
		return;
	va_start(arguments, format);
	const int head = snprintf(line, sizeof(line), "o %zu ", calls.seq);
	const int length =
		head + vsnprintf(line + head, sizeof(line) - (size_t)head, format, arguments);

	va_end(arguments);
	if (calls.used + (size_t)length + 2 > calls.size) {
		const size_t size = calls.size ? 2 * calls.size : 65536;
		char *more = realloc(calls.text, size);

		calls.lost = calls.lost || !more;
		if (!more)
			return;
		calls.text = more;
		calls.size = size;
	}
	memcpy(calls.text + calls.used, line, (size_t)length);
	calls.used += (size_t)length;
	calls.text[calls.used++] = '\n';
	errno = saved;
}

int calls_say(struct channel *out)
{
	size_t at = 0;
	int err = calls.lost ? -ENOMEM : 0;

	while (at < calls.used && !err) {
		const char *end = memchr(calls.text + at, '\n', calls.used - at);
		const size_t length = (size_t)(end - (calls.text + at));

		err = channel_printf(out, "%.*s\n", (int)length, calls.text + at);
		at += length + 1;
	}
	return err;
}

static const char *below(const char *path)
{
	const size_t length = calls.directory ? strlen(calls.directory) : 0;

	return length && strncmp(path, calls.directory, length) == 0 && path[length] == '/'
		       ? path + length + 1
		       : path;
}

static int lowest_free(void)
{
	int slot = 0;

	while (slot < SLOTS - 1 && calls.taken & (UINT64_C(1) << slot))
		slot++;
	return slot;
}

static int slot(int fd)
{
	return fd >= 0 && fd < FDS ? calls.slot_of[fd] : -1;
}

static int noted_open(const char *path, int flags, int mode)
{
	const int fd = open(path, flags, mode);
	const int taken = lowest_free();

	if (fd < 0 || fd >= FDS)
		return fd;
	calls.taken |= UINT64_C(1) << taken;
	calls.slot_of[fd] = taken;
	note("open %d %s %s%s%s", taken, below(path), (flags & O_ACCMODE) == O_RDONLY ? "ro" : "rw",
	     flags & O_CREAT ? ",create" : "", flags & O_EXCL ? ",excl" : "");
	return fd;
}

static int noted_close(int fd)
{
	note("close %d", slot(fd));
	calls.taken &= ~(UINT64_C(1) << slot(fd));
	return close(fd);
}

static ssize_t noted_pread(int fd, void *buffer, size_t count, off_t offset)
{
	note("read %d %" PRId64 " %zu", slot(fd), (int64_t)offset, count);
	return pread(fd, buffer, count, offset);
}

static ssize_t noted_pwrite(int fd, const void *buffer, size_t count, off_t offset)
{
	note("write %d %" PRId64 " %zu", slot(fd), (int64_t)offset, count);
	return pwrite(fd, buffer, count, offset);
}

static int noted_ftruncate(int fd, off_t size)
{
	note("truncate %d %" PRId64, slot(fd), (int64_t)size);
	return ftruncate(fd, size);
}

static int noted_unlink(const char *path)
{
	note("unlink %s", below(path));
	return unlink(path);
}

static int noted_fchown(int fd, uid_t user, gid_t group)
{
	note("fchown %d %u %u", slot(fd), (unsigned int)user, (unsigned int)group);
	return fchown(fd, user, group);
}

static uid_t ordinary_user(void)
{
	return ORDINARY_USER;
}

/* SQLite calls this instead of fdatasync (Makefile). */
int board_fdatasync(int fd);
int board_fdatasync(int fd)
{
	note("%s %d", sync_data_only ? "fdatasync" : "fsync", slot(fd));
	return sync_data_only ? fdatasync(fd) : fsync(fd);
}

static int noted_access(sqlite3_vfs *vfs, const char *path, int flags, int *there)
{
	note("open %d %s ro", lowest_free(), below(path));
	note("close %d", lowest_free());
	return calls.access(vfs, path, flags, there);
}

void calls_hook(sqlite3_vfs *vfs)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} hooks[] = {
		{"open", (sqlite3_syscall_ptr)noted_open},
		{"close", (sqlite3_syscall_ptr)noted_close},
		{"pread", (sqlite3_syscall_ptr)noted_pread},
		{"pwrite", (sqlite3_syscall_ptr)noted_pwrite},
		{"ftruncate", (sqlite3_syscall_ptr)noted_ftruncate},
		{"unlink", (sqlite3_syscall_ptr)noted_unlink},
		{"fchown", (sqlite3_syscall_ptr)noted_fchown},
		{"geteuid", (sqlite3_syscall_ptr)ordinary_user},
	};

	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		(void)vfs->xSetSystemCall(vfs, hooks[i].name, hooks[i].call);
	calls.access = vfs->xAccess;
	vfs->xAccess = noted_access;
}
