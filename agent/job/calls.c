/* SPDX-License-Identifier: Apache-2.0 */
/* Executes operations of version 2 that are one system call, and those on mapped files.
 *
 * A mapping lies where its OFFSET is by 64 KiB, so that the pages that the kernel maps around a
 * fault follow from the file. An access behind the end of the file raises SIGBUS, which ends the
 * operation with EFAULT.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "job/job.h"

enum { PAGE = 4096, AROUND = 65536, NAMES = 65536 };

static struct {
	uint8_t *at;
	size_t length;
} mappings[SLOTS];
static sigjmp_buf behind_the_end;
static char reply[NAMES];

static int64_t value_or_errno(int64_t value)
{
	return value < 0 ? -errno : value;
}

static int64_t map(struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->number[1]];
	const off_t offset = (off_t)op->number[2];
	const size_t length = (size_t)op->number[3];
	const int protection = op->flags == MAP_TO_READ ? PROT_READ : PROT_READ | PROT_WRITE;
	const int sharing = op->flags == MAP_PRIVATELY ? MAP_PRIVATE : MAP_SHARED;
	const size_t room = length + 2 * AROUND;
	uint8_t *reserved =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	mappings[op->number[0]].at = NULL;
	if (reserved == MAP_FAILED)
		return -errno;
	const uintptr_t wanted = (uintptr_t)offset % AROUND;
	uint8_t *at = reserved + (AROUND + wanted - (uintptr_t)reserved % AROUND) % AROUND;

	if (mmap(at, length, protection, sharing | MAP_FIXED, fd, offset) == MAP_FAILED) {
		const int err = errno;

		(void)munmap(reserved, room);
		return -err;
	}
	mappings[op->number[0]].at = at;
	mappings[op->number[0]].length = length;
	return 0;
}

void calls_close_all(void)
{
	for (size_t i = 0; i < SLOTS; i++) {
		if (mappings[i].at)
			(void)munmap(mappings[i].at, mappings[i].length);
		mappings[i].at = NULL;
	}
}

static void ends(int number)
{
	(void)number;
	siglongjmp(behind_the_end, 1);
}

static int64_t use(struct runner *runner, const struct op *op)
{
	volatile uint8_t *const at = mappings[op->number[0]].at;
	const size_t offset = (size_t)op->number[1];
	const size_t length = (size_t)op->number[2];
	const struct sigaction bus = {.sa_handler = ends};
	struct sigaction before;
	int64_t result = 0;

	if (!at)
		return -EFAULT;
	(void)sigaction(SIGBUS, &bus, &before);
	if (sigsetjmp(behind_the_end, 1))
		result = -EFAULT;
	else if (op->kind == OP_STORE)
		for (size_t i = 0; i < length; i++)
			at[offset + i] = runner->buffer[i];
	else
		for (size_t i = offset - offset % PAGE; i < offset + length; i += PAGE)
			(void)at[i < offset ? offset : i];
	(void)sigaction(SIGBUS, &before, NULL);
	return result;
}

/* d_reclen of struct linux_dirent64. */
static long length_of(const char *entry)
{
	uint16_t length;

	memcpy(&length, entry + 16, sizeof(length));
	return length;
}

static int64_t count_entries(int fd)
{
	int64_t entries = 0;

	(void)lseek(fd, 0, SEEK_SET);
	for (;;) {
		const long bytes = syscall(SYS_getdents64, fd, reply, sizeof(reply));

		if (bytes <= 0)
			return bytes < 0 ? -errno : entries;
		for (long at = 0; at < bytes; entries++)
			at += length_of(reply + at);
	}
}

static int64_t on_attribute(struct runner *runner, const struct op *op)
{
	char path[MAX_LINE];

	(void)snprintf(path, sizeof(path), "%s/%s", runner->sql.directory, op->field[0]);
	switch (op->kind) {
	case OP_SETXATTR:
		return value_or_errno(
			setxattr(path, op->field[1], runner->buffer, (size_t)op->number[2], 0));
	case OP_GETXATTR:
		return value_or_errno(getxattr(path, op->field[1], reply, sizeof(reply)));
	case OP_LISTXATTR:
		return value_or_errno(listxattr(path, reply, sizeof(reply)));
	default:
		return value_or_errno(removexattr(path, op->field[1]));
	}
}

static int64_t make_link(struct runner *runner, const struct op *op)
{
	const int directory = runner->directory;
	char *const old = op->field[0];

	if (strncmp(old, "SLOT:", 5) == 0)
		return value_or_errno(linkat(runner->fd[atoi(old + 5)], "", directory, op->field[1],
					     AT_EMPTY_PATH));
	return value_or_errno(linkat(directory, old, directory, op->field[1], 0));
}

int64_t calls_execute(struct runner *runner, const struct op *op)
{
	const int directory = runner->directory;
	struct stat stat;

	switch (op->kind) {
	case OP_STAT:
		return value_or_errno(
			fstatat(directory, op->field[0], &stat, AT_SYMLINK_NOFOLLOW));
	case OP_READDIR:
		return count_entries(runner->fd[op->slot]);
	case OP_LINK:
		return make_link(runner, op);
	case OP_SYMLINK:
		return value_or_errno(symlinkat(op->field[0], directory, op->field[1]));
	case OP_READLINK:
		return value_or_errno(
			readlinkat(directory, op->field[0], reply, sizeof(reply)));
	case OP_CHMOD:
		return value_or_errno(
			fchmodat(directory, op->field[0], (mode_t)op->number[1], 0));
	case OP_CHOWN:
		return value_or_errno(fchownat(directory, op->field[0], (uid_t)op->number[1],
					       (gid_t)op->number[2], 0));
	case OP_UTIMENS:
		return value_or_errno(utimensat(directory, op->field[0], NULL, 0));
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_LISTXATTR:
	case OP_REMOVEXATTR:
		return on_attribute(runner, op);
	case OP_MMAP:
		return map(runner, op);
	case OP_TOUCH:
	case OP_STORE:
		return use(runner, op);
	case OP_MSYNC:
		if (!mappings[op->number[0]].at)
			return -EINVAL;
		return value_or_errno(msync(mappings[op->number[0]].at + op->number[1],
					    (size_t)op->number[2], op->flags));
	case OP_MUNMAP:
		if (!mappings[op->number[0]].at)
			return -EINVAL;
		uint8_t *const at = mappings[op->number[0]].at;

		mappings[op->number[0]].at = NULL;
		return value_or_errno(munmap(at, mappings[op->number[0]].length));
	default:
		return -ENOSYS;
	}
}
