/* SPDX-License-Identifier: Apache-2.0 */
/* The system call of each operation, and the program's own work. mapped.c has the mappings.
 *
 * Kernel interfaces: one call an operation, with two exceptions. `readdir` rewinds the directory
 * and reads all of it. `send` writes to /dev/null, to which sendfile(2) splices pages as it does to
 * a socket. `flock` never waits, because only the agent itself can hold the lock. Extended
 * attributes have no call relative to a directory and use the whole path.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "job/job.h"

int sleep_ns(uint64_t ns, bool until)
{
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	int err;

	do
		err = clock_nanosleep(CLOCK_MONOTONIC, until ? TIMER_ABSTIME : 0, &left,
				      until ? NULL : &left);
	while (err == EINTR);
	return -err;
}

/* One multiply-add that depends on the last; the compiler cannot fold it, and nothing is stored. */
static uint32_t step(uint32_t value)
{
	value = value * 1664525U + 1013904223U;
	__asm__ volatile("" : "+r"(value));
	return value;
}

static int64_t compute(uint64_t steps)
{
	uint32_t value = 1;

	for (; steps >= 8; steps -= 8)
		value = step(step(step(step(step(step(step(step(value))))))));
	for (; steps; steps--)
		value = step(value);
	return 0;
}

static int64_t open_slot(struct runner *runner, const struct op *op)
{
	int *fd = &runner->fd[op->slot];

	*fd = openat(runner->directory, op->field[1], op->flags | O_CLOEXEC, 0644);
	return *fd < 0 ? -errno : 0;
}

static int64_t close_slot(struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->slot];

	runner->fd[op->slot] = -1;
	return close(fd) ? -errno : 0;
}

static int64_t value_or_errno(int64_t value)
{
	return value < 0 ? -errno : value;
}

/* POSIX says that it returns the error; zig's C library for ARM returns -1 and sets errno. */
static int64_t advise(int fd, const struct op *op)
{
	const int err = posix_fadvise(fd, (off_t)op->number[1], (off_t)op->number[2], op->flags);

	return err < 0 ? -errno : -err;
}

/* The number of entries of a directory. */
static int64_t read_directory(struct runner *runner, int fd)
{
	/* ino, off, reclen, type, name: the offset of the third of `struct linux_dirent64` */
	enum { LENGTH_AT = 16 };
	int64_t entries = 0;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		const long got =
			syscall(SYS_getdents64, fd, runner->extra, sizeof(runner->extra) / 2);

		if (got <= 0)
			return got < 0 ? -errno : entries;
		for (long at = 0; at < got; entries++) {
			uint16_t length;

			memcpy(&length, runner->extra + at + LENGTH_AT, sizeof(length));
			at += length;
		}
	}
}

static int64_t copy_range(const struct runner *runner, const struct op *op)
{
	off_t from = (off_t)op->number[1];
	off_t to = (off_t)op->number[3];

	return value_or_errno(copy_file_range(runner->fd[op->slot], &from,
					      runner->fd[op->number[2]], &to, (size_t)op->number[4],
					      0));
}

static int64_t send_range(const struct runner *runner, const struct op *op)
{
	off_t from = (off_t)op->number[1];

	return value_or_errno(
		sendfile(runner->null, runner->fd[op->slot], &from, (size_t)op->number[2]));
}

/* Operations on a slot. A slot whose open failed, which only happens after the mark, gets the
 * kernel's own EBADF. */
static int64_t execute_file(struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->slot];
	const off_t offset = (off_t)op->number[1];
	const size_t length = (size_t)op->number[2];

	switch (op->kind) {
	case OP_READ:
		return value_or_errno(pread(fd, runner->buffer, length, offset));
	case OP_WRITE:
		return value_or_errno(pwrite(fd, runner->buffer, length, offset));
	case OP_FSYNC:
		return value_or_errno(fsync(fd));
	case OP_FDATASYNC:
		return value_or_errno(fdatasync(fd));
	case OP_TRUNCATE:
		return value_or_errno(ftruncate(fd, offset));
	case OP_FADVISE:
		return advise(fd, op);
	case OP_ERASE:
		return raw_erase(fd, op->number[1], op->number[2]);
	case OP_READDIR:
		return read_directory(runner, fd);
	case OP_FALLOCATE:
		return value_or_errno(fallocate(fd, op->flags, offset, (off_t)length));
	case OP_COPY:
		return copy_range(runner, op);
	case OP_SEND:
		return send_range(runner, op);
	case OP_SYNC_RANGE:
		return value_or_errno(
			sync_file_range(fd, offset, (off_t)length, (unsigned int)op->flags));
	case OP_SYNCFS:
		return value_or_errno(syncfs(fd));
	case OP_FLOCK:
		return value_or_errno(flock(fd, op->flags | LOCK_NB));
	default:
		return -ENOSYS;
	}
}

/* Gives a file without a name its first name. A process that may not link a descriptor links its
 * entry in /proc. */
static int64_t link_slot(const struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->slot];
	char entry[32];

	if (linkat(fd, "", runner->directory, op->field[1], AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	(void)snprintf(entry, sizeof(entry), "/proc/self/fd/%d", fd);
	return value_or_errno(
		linkat(AT_FDCWD, entry, runner->directory, op->field[1], AT_SYMLINK_FOLLOW));
}

static int64_t execute_attribute(struct runner *runner, const struct op *op)
{
	const char *name = op->field[1];

	switch (op->kind) {
	case OP_SETXATTR:
		return value_or_errno(
			setxattr(runner->path, name, runner->buffer, (size_t)op->number[2], 0));
	case OP_GETXATTR:
		return value_or_errno(
			getxattr(runner->path, name, runner->extra, sizeof(runner->extra)));
	case OP_LISTXATTR:
		return value_or_errno(
			listxattr(runner->path, (char *)runner->extra, sizeof(runner->extra)));
	default:
		return value_or_errno(removexattr(runner->path, name));
	}
}

/* Operations on a path. */
static int64_t execute_name(struct runner *runner, const struct op *op)
{
	const int directory = runner->directory;
	const char *path = op->field[0];
	struct stat status;

	switch (op->kind) {
	case OP_MKDIR:
		return value_or_errno(mkdirat(directory, path, 0755));
	case OP_UNLINK:
		return value_or_errno(unlinkat(directory, path, 0));
	case OP_RMDIR:
		return value_or_errno(unlinkat(directory, path, AT_REMOVEDIR));
	case OP_RENAME:
		return value_or_errno(renameat(directory, path, directory, op->field[1]));
	case OP_STAT:
		return value_or_errno(fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW));
	case OP_LINK:
		if (op->slot >= 0)
			return link_slot(runner, op);
		return value_or_errno(linkat(directory, path, directory, op->field[1], 0));
	case OP_SYMLINK:
		return value_or_errno(symlinkat(path, directory, op->field[1]));
	case OP_READLINK:
		return value_or_errno(
			readlinkat(directory, path, (char *)runner->extra, sizeof(runner->extra)));
	case OP_CHMOD:
		return value_or_errno(fchmodat(directory, path, (mode_t)op->number[1], 0));
	case OP_CHOWN:
		return value_or_errno(
			fchownat(directory, path, (uid_t)op->number[1], (gid_t)op->number[2], 0));
	case OP_UTIMENS:
		return value_or_errno(utimensat(directory, path, NULL, 0));
	default:
		return -ENOSYS;
	}
}

int64_t execute(struct runner *runner, const struct op *op)
{
	switch (op->kind) {
	case OP_OPEN:
		return open_slot(runner, op);
	case OP_CLOSE:
		return close_slot(runner, op);
	case OP_SYNC:
		sync();
		return 0;
	case OP_DROP_CACHES:
		return value_or_errno(write(runner->drop_caches, "3", 1)) < 0 ? -errno : 0;
	case OP_REMOUNT:
		return runner->remount ? runner->remount(runner->context) : -ENOSYS;
	case OP_PAUSE:
		return sleep_ns(op->number[0], false);
	case OP_COMPUTE:
		return compute(op->number[0]);
	case OP_SQL_OPEN:
	case OP_SQL:
	case OP_SQL_CLOSE:
		return sql_execute(&runner->sql, op);
	case OP_PREPARED:
	case OP_MARK:
		return 0;
	case OP_MKDIR:
	case OP_UNLINK:
	case OP_RMDIR:
	case OP_RENAME:
	case OP_STAT:
	case OP_LINK:
	case OP_SYMLINK:
	case OP_READLINK:
	case OP_CHMOD:
	case OP_CHOWN:
	case OP_UTIMENS:
		return execute_name(runner, op);
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_LISTXATTR:
	case OP_REMOVEXATTR:
		return execute_attribute(runner, op);
	case OP_MMAP:
	case OP_TOUCH:
	case OP_STORE:
	case OP_MSYNC:
	case OP_MUNMAP:
		return mapped_execute(runner, op);
	default:
		return execute_file(runner, op);
	}
}

void execute_ready(struct runner *runner, const struct ops *ops, size_t index)
{
	const struct op *op = &ops->list[index];

	switch (op->kind) {
	case OP_WRITE:
	case OP_STORE:
	case OP_SETXATTR:
		if (ops->version == 1)
			data_fill(runner->buffer, op->number[1], op->number[2], op->number[3],
				  op->number[4]);
		else
			data_fill_op(runner->buffer, ops->list, index,
				     op->kind == OP_STORE ? mapped_offset(runner, op) : 0);
		break;
	case OP_SQL_OPEN:
	case OP_SQL:
	case OP_SQL_CLOSE:
		sql_ready(&runner->sql, op);
		break;
	default:
		break;
	}
	if (op->kind == OP_SETXATTR || op->kind == OP_GETXATTR || op->kind == OP_LISTXATTR ||
	    op->kind == OP_REMOVEXATTR)
		(void)snprintf(runner->path, sizeof(runner->path), "%s/%s", runner->sql.directory,
			       op->field[0]);
}
