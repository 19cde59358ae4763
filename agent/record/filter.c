/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filter: which system calls stop for the recorder. All others run at full speed.
 *
 * It is a search tree over the numbers of known_calls.c, in which each leaf has its own answer,
 * because a conditional jump reaches at most 255 instructions. For three calls the arguments
 * decide: mmap of memory without a file, fcntl that only queries, and ioctl except for a few
 * commands do not stop. Calls of another architecture all stop, and the recorder counts them.
 *
 * Kernel interface: seccomp(2) filters with SECCOMP_RET_TRACE, which any process may set after
 * giving up privileges by exec permanently.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "record/record.h"

enum { INSTRUCTIONS = 2048, LEAVES = 256, NUMBER_X32 = 0x40000000 };

struct leaf {
	uint32_t number;
	const struct known_call *call;
};

struct filter {
	struct sock_filter code[INSTRUCTIONS];
	size_t length;
	struct leaf leaf[LEAVES];
	size_t leaves;
};

/* Commands of ioctl that change a file. */
static const uint32_t changing[] = {FICLONE, FICLONERANGE, FIDEDUPERANGE, FS_IOC_SETFLAGS};

static void put(struct filter *filter, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	filter->code[filter->length++] = (struct sock_filter){code, yes, no, k};
}

static void give_answer(struct filter *filter, uint32_t what)
{
	put(filter, BPF_RET | BPF_K, what, 0, 0);
}

static void load_argument(struct filter *filter, int at)
{
	const uint32_t place = (uint32_t)offsetof(struct seccomp_data, args) +
			       (uint32_t)at * (uint32_t)sizeof(uint64_t);

	put(filter, BPF_LD | BPF_W | BPF_ABS, place, 0, 0);
}

/* Emits the answer for the number of a call. */
static void decide(struct filter *filter, const struct known_call *call)
{
	static const uint32_t asking[] = {F_GETFD, F_GETFL};

	if (call->action == DO_MMAP) {
		load_argument(filter, 3);
		put(filter, BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1);
		give_answer(filter, SECCOMP_RET_ALLOW);
	} else if (call->action == DO_FCNTL) {
		load_argument(filter, 1);
		for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
			put(filter, BPF_JMP | BPF_JEQ | BPF_K, asking[i], 0, 1);
			give_answer(filter, SECCOMP_RET_ALLOW);
		}
	} else if (strcmp(call->name, "ioctl") == 0) {
		load_argument(filter, 1);
		for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
			put(filter, BPF_JMP | BPF_JEQ | BPF_K, changing[i], 0, 1);
			give_answer(filter, SECCOMP_RET_TRACE);
		}
		give_answer(filter, SECCOMP_RET_ALLOW);
		return;
	}
	give_answer(filter, SECCOMP_RET_TRACE);
}

static int grow(struct filter *filter, size_t first, size_t end)
{
	if (filter->length + 16 > INSTRUCTIONS)
		return -E2BIG;
	if (end - first == 1) {
		const size_t jump = filter->length;

		put(filter, BPF_JMP | BPF_JEQ | BPF_K, filter->leaf[first].number, 0, 0);
		decide(filter, filter->leaf[first].call);
		filter->code[jump].jf = (uint8_t)(filter->length - jump - 1);
		give_answer(filter, SECCOMP_RET_ALLOW);
		return 0;
	}
	const size_t middle = first + (end - first) / 2;

	put(filter, BPF_JMP | BPF_JGE | BPF_K, filter->leaf[middle].number, 0, 1);
	const size_t jump = filter->length;

	put(filter, BPF_JMP | BPF_JA, 0, 0, 0);
	const int err = grow(filter, first, middle);

	filter->code[jump].k = (uint32_t)(filter->length - jump - 1);
	return err ? err : grow(filter, middle, end);
}

static int by_number(const void *a, const void *b)
{
	const struct leaf *left = a;
	const struct leaf *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static int build(struct filter *filter, bool in_virtual_time)
{
	size_t count = 0;
	const struct known_call *calls = known_calls(&count);

	for (size_t i = 0; i < count; i++) {
		if (calls[i].number < 0 || (calls[i].action == DO_SLEEP && !in_virtual_time))
			continue;
		if (filter->leaves == LEAVES)
			return -E2BIG;
		filter->leaf[filter->leaves++] =
			(struct leaf){(uint32_t)calls[i].number, &calls[i]};
	}
	qsort(filter->leaf, filter->leaves, sizeof(filter->leaf[0]), by_number);
	put(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, record_audit_arch, 1, 0);
	give_answer(filter, SECCOMP_RET_TRACE);
	put(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
#ifdef __x86_64__
	put(filter, BPF_JMP | BPF_JSET | BPF_K, NUMBER_X32, 0, 1);
	give_answer(filter, SECCOMP_RET_TRACE);
#endif
	return grow(filter, 0, filter->leaves);
}

int filter_install(bool in_virtual_time)
{
	static struct filter filter;
	const int err = build(&filter, in_virtual_time);

	if (err)
		return err;
	const struct sock_fprog program = {(unsigned short)filter.length, filter.code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return -errno;
	return 0;
}
