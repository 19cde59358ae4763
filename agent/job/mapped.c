/* SPDX-License-Identifier: Apache-2.0 */
/* Files mapped into memory: mmap(2), reading and writing through a mapping, msync(2).
 *
 * An access to a page after the end of its file, to one that cannot be read, or to one for which
 * there is no space raises SIGBUS. The access then ends with EFAULT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "job/job.h"

enum { PAGE = 4096, AROUND = 65536 };

static sigjmp_buf access_failed;

static void jump(int signal)
{
	siglongjmp(access_failed, signal);
}

int64_t count_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_minflt + usage.ru_majflt;
}

bool mapped_by_faults(const struct op *op)
{
	return op->number[1] / PAGE == (op->number[1] + op->number[2] - 1) / PAGE;
}

/* Writes bytes: those of pages that may have become dirty. A page that was stored to before is
 * dirty, unless the store faults because it was written back. Faults are counted here between pages
 * only; of a store within one page, run.c counts them outside of the measured time. */
static int64_t store_pages(struct mapping *mapping, const struct op *op, const uint8_t *bytes)
{
	const bool by_faults = mapped_by_faults(op);
	const uint64_t begin = op->number[1];
	const uint64_t end = begin + op->number[2];
	const uint64_t stored_from = mapping->stored_from;
	const uint64_t stored_to = mapping->stored_to;
	int64_t dirtied = 0;

	/* before a page that cannot be written ends the store */
	if (begin < stored_from)
		mapping->stored_from = begin / PAGE * PAGE;
	if (end > stored_to)
		mapping->stored_to = end;
	for (uint64_t at = begin, stop; at < end; at = stop) {
		const uint64_t page = at / PAGE * PAGE;
		const bool again = !by_faults && page >= stored_from && page < stored_to;
		const int64_t faults = again ? count_faults() : 0;

		stop = page + PAGE < end ? page + PAGE : end;
		memcpy(mapping->at + at, bytes + (at - begin), (size_t)(stop - at));
		if (!again || count_faults() > faults)
			dirtied += PAGE;
	}
	return dirtied;
}

/* Reads a byte of each page, or writes all bytes: as `store_pages`, 0, or EFAULT. */
static int64_t access_pages(struct mapping *mapping, const struct op *op, const uint8_t *bytes)
{
	struct sigaction action;
	struct sigaction before;
	volatile int64_t result = 0;

	memset(&action, 0, sizeof(action));
	action.sa_handler = jump;
	if (sigaction(SIGBUS, &action, &before))
		return -errno;
	if (sigsetjmp(access_failed, 1)) {
		result = -EFAULT;
	} else if (bytes) {
		result = store_pages(mapping, op, bytes);
	} else {
		const volatile uint8_t *at = mapping->at;
		const uint64_t end = op->number[1] + op->number[2];

		for (uint64_t i = op->number[1]; i < end; i = (i / PAGE + 1) * PAGE)
			(void)at[i];
	}
	return sigaction(SIGBUS, &before, NULL) ? -errno : result;
}

/* An address for a mapping. The kernel maps pages around a fault by address, which is by file
 * offset if both are equal modulo AROUND. NULL leaves the choice to the kernel. */
static void *find_place(size_t length, uint64_t offset)
{
	const size_t room = length + 2 * AROUND;
	uint8_t *const at =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || munmap(at, room))
		return NULL;
	return at + (AROUND + offset % AROUND - (uintptr_t)at % AROUND) % AROUND;
}

static int64_t map(struct mapping *mapping, const struct op *op, int fd)
{
	const int protection = op->flags == MAP_TO_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;

	mapping->length = (size_t)op->number[3];
	mapping->offset = op->number[2];
	mapping->stored_from = UINT64_MAX;
	mapping->stored_to = 0;
	mapping->at = mmap(find_place(mapping->length, mapping->offset), mapping->length,
			   protection, op->flags == MAP_PRIVATELY ? MAP_PRIVATE : MAP_SHARED, fd,
			   (off_t)op->number[2]);
	return mapping->at == MAP_FAILED ? -errno : 0;
}

int64_t mapped_execute(struct runner *runner, const struct op *op)
{
	struct mapping *mapping = &runner->mapping[op->number[0]];
	const bool failed = mapping->at == MAP_FAILED;

	switch (op->kind) {
	case OP_MMAP:
		return map(mapping, op, runner->fd[op->number[1]]);
	case OP_TOUCH:
	case OP_STORE:
		if (failed)
			return -EFAULT;
		return access_pages(mapping, op, op->kind == OP_STORE ? runner->buffer : NULL);
	case OP_MSYNC:
		if (failed)
			return -EINVAL;
		return msync(mapping->at + op->number[1], (size_t)op->number[2], op->flags) ? -errno
											    : 0;
	default: {
		const int err = failed                                 ? -EINVAL
				: munmap(mapping->at, mapping->length) ? -errno
								       : 0;

		mapping->at = NULL;
		return err;
	}
	}
}

uint64_t mapped_offset(const struct runner *runner, const struct op *op)
{
	return runner->mapping[op->number[0]].offset;
}

void mapped_close_all(struct runner *runner)
{
	for (int i = 0; i < SLOTS; i++) {
		struct mapping *mapping = &runner->mapping[i];

		if (mapping->at && mapping->at != MAP_FAILED)
			(void)munmap(mapping->at, mapping->length);
		mapping->at = NULL;
	}
}
