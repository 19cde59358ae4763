/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what following a call costs, on a process of the agent's own before the program starts:
 * the tracee's processor time of a stop, and the apparent duration of a call without work. Both are
 * subtracted in rows. Also finds whether this kernel has a stop between the filter's and the call
 * (before 4.8).
 *
 * The calls are fsync of no descriptor, first with one stop each, then with two. Medians are used,
 * because other programs interrupt now and then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/record.h"

enum { ROUNDS = 200, SYSCALL_STOP = SIGTRAP | 0x80 };
enum { OPTIONS = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL };

struct sample {
	uint64_t between_ns[2 * ROUNDS]; /* the tracee's processor time from stop to stop */
	uint64_t took_ns[2 * ROUNDS];
	size_t calls;
	uint64_t cpu_ns;
	uint64_t begin_ns;
	unsigned int stops;
};

static int by_size(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t median(uint64_t *list, size_t count)
{
	qsort(list, count, sizeof(*list), by_size);
	return count ? list[count / 2] : 0;
}

static void be_measured(int gate)
{
	char byte;

	if (read(gate, &byte, 1) != 1)
		_exit(EPIPE);
	const int err = filter_install(false);

	for (int i = 0; i < 2 * ROUNDS && !err; i++)
		(void)fsync(-1);
	_exit(-err);
}

/* Handles a stop; returns the ptrace request that continues. */
static int take(struct sample *sample, const struct tracee *tracee, int status)
{
	const int event = status >> 16;
	const uint64_t now = now_ns();

	if (event == PTRACE_EVENT_SECCOMP && sample->calls < 2 * ROUNDS) {
		const uint64_t cpu_ns = proc_cpu_ns(tracee);

		sample->between_ns[sample->calls] = cpu_ns - sample->cpu_ns;
		sample->cpu_ns = cpu_ns;
		sample->stops = 0;
		sample->begin_ns = now_ns();
		if (sample->calls >= ROUNDS)
			return PTRACE_SYSCALL;
		sample->calls++;
		return PTRACE_CONT;
	}
	if (!event && WSTOPSIG(status) == SYSCALL_STOP) {
		int64_t result = 0;

		sample->stops++;
		/* Before the call its result register has ENOSYS, or its first argument. */
		if (registers_at_exit(tracee->tid, &result) || result != -EBADF)
			return PTRACE_SYSCALL;
		sample->took_ns[sample->calls++] = now - sample->begin_ns;
		sample->cpu_ns = proc_cpu_ns(tracee);
	}
	return PTRACE_CONT;
}

static int measure(struct sample *sample, pid_t tid)
{
	const struct tracee tracee = {.tid = tid, .tgid = tid, .schedstat = -1};
	int status = 0;

	for (;;) {
		if (waitpid(tid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status))
			return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
		const int request = take(sample, &tracee, status);
		const int number =
			status >> 16 || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);

		(void)ptrace(request, tid, NULL, (void *)(intptr_t)number);
	}
}

int overhead_measure(struct overhead *overhead)
{
	static struct sample sample;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	const pid_t tid = fork();

	if (tid == 0)
		be_measured(ends[0]);
	(void)close(ends[0]);
	if (tid < 0)
		return -errno;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)OPTIONS)) {
		const int err = -errno;

		(void)kill(tid, SIGKILL);
		(void)close(ends[1]);
		(void)waitpid(tid, NULL, 0);
		return err;
	}
	const ssize_t put = write(ends[1], "g", 1);

	(void)close(ends[1]);
	const int err = put == 1 ? measure(&sample, tid) : -EIO;

	if (err || sample.calls < 2 * ROUNDS)
		return err ? err : -ENOSYS;
	const uint64_t call = median(sample.between_ns + ROUNDS + 1, ROUNDS - 1);

	overhead->entry_stop = sample.stops > 1;
	overhead->stop_cpu_ns = median(sample.between_ns + 1, ROUNDS - 1);
	overhead->call_cpu_ns = call > overhead->stop_cpu_ns ? call - overhead->stop_cpu_ns : 0;
	overhead->call_ns = median(sample.took_ns + ROUNDS, ROUNDS);
	return 0;
}
