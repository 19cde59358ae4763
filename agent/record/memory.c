/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a stopped task: its memory, its links in /proc, its processor time.
 *
 * Kernel interfaces: process_vm_readv(2), /proc/TID/fd, /proc/TID/fdinfo, /proc/TID/schedstat, the
 * processor clock of a process, and flashbed_slept of the kernel for programs. The processor clock
 * costs one call, but it covers the whole process. For a task of several the schedstat is read
 * instead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/record.h"

enum { TEXT_FIRST = 256, PAGE_BYTES = 4096 };

int64_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t count)
{
	const struct iovec here = {buffer, count};
	const struct iovec there = {(void *)(uintptr_t)address, count};
	const ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);

	return got < 0 ? -errno : (int64_t)got;
}

int memory_text(pid_t tid, uint64_t address, char *text, size_t size)
{
	size_t done = 0;
	size_t step = TEXT_FIRST;

	while (done < size) {
		/* Reads to the end of a page, because the next may be unmapped. */
		const size_t left = PAGE_BYTES - (size_t)((address + done) % PAGE_BYTES);
		size_t count = step < left ? step : left;

		count = count < size - done ? count : size - done;
		const int64_t got = memory_read(tid, address + done, text + done, count);

		if (got <= 0)
			return got < 0 ? (int)got : -EFAULT;
		if (memchr(text + done, '\0', (size_t)got))
			return 0;
		done += (size_t)got;
		step = PAGE_BYTES;
	}
	return -ENAMETOOLONG;
}

int proc_link(pid_t tid, const char *name, int fd, char *text, size_t size)
{
	static const char gone[] = " (deleted)";
	char path[64];

	if (fd >= 0)
		(void)snprintf(path, sizeof(path), "/proc/%d/%s/%d", (int)tid, name, fd);
	else
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	ssize_t length = readlink(path, text, size - 1);

	if (length < 0)
		return -errno;
	const ssize_t word = (ssize_t)sizeof(gone) - 1;

	if (length > word && memcmp(text + length - word, gone, (size_t)word) == 0)
		length -= word;
	text[length] = '\0';
	return (int)length;
}

/* Finds a field of a small /proc file; fails if the task is gone. */
static const char *field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

int64_t proc_position(pid_t tid, int fd, uint64_t *flags)
{
	char path[64];
	char text[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)tid, fd);
	const int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -errno;
	const ssize_t got = read(file, text, sizeof(text) - 1);

	(void)close(file);
	if (got <= 0)
		return -EIO;
	text[got] = '\0';
	const char *position = field(text, "pos:");
	const char *opened = field(text, "flags:");

	*flags = opened ? strtoull(opened, NULL, 8) : 0;
	return position ? strtoll(position, NULL, 10) : -EIO;
}

/* The kernel's clock number for the processor time of a process, not of a task (posix-timers.h). */
static clockid_t clock_of(pid_t tgid)
{
	return (clockid_t)(~(unsigned int)tgid << 3 | 2U);
}

uint64_t proc_slept_ns(int slept_of, pid_t tid)
{
	uint64_t ns = 0;

	return pread(slept_of, &ns, sizeof(ns), (off_t)tid * (off_t)sizeof(ns)) == sizeof(ns) ? ns
											      : 0;
}

uint64_t proc_cpu_ns(const struct tracee *tracee)
{
	if (tracee->schedstat < 0) {
		struct timespec used = {0, 0};

		if (clock_gettime(clock_of(tracee->tgid), &used))
			return 0;
		return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
	}
	char text[128];
	const ssize_t got = pread(tracee->schedstat, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	return strtoull(text, NULL, 10);
}
