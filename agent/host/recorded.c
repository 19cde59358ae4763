/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder next to a program, in the kernel for programs (docs/models/programs.md).
 *
 * It is a process of its own that sees the same files as the program and keeps root's rights. Its
 * work takes no virtual time and is not counted (/sys/kernel/debug/flashbed_free). The same holds
 * for what this process and the program's do for it. It is a real-time task, so that it runs when
 * the program stops for it, and nothing else does. The program and its children get the process
 * numbers that they would have without it, because it uses clone3 with a number of its own. First
 * it lists the files on the flash. Then the flash is mounted again, so that no file is in memory
 * when the program begins.
 *
 * Kernel interfaces: flashbed_free, flashbed_slept, sched_setscheduler(2), clone3(2) with set_tid
 * (Linux 5.5), chroot(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host.h"
#include "record/record.h"

#define FREE "/sys/kernel/debug/flashbed_free"
#define SLEPT "/sys/kernel/debug/flashbed_slept"
#define VIEW "/view"

/* The highest process number of a small kernel (PID_MAX_DEFAULT of CONFIG_BASE_SMALL). */
enum { NUMBER = 4095, FAILED = 1 };

struct host_recorder {
	struct recorder recorder;
	int free_of;    /* the kernel's flashbed_free */
	int process[2]; /* sends the number of the program's process to the recorder */
	int gate[2];    /* sends a byte to the program */
	pid_t pid;
};

/* Begins or ends making this process's work free of time and uncounted. */
static int cost_nothing(const struct host_recorder *recorder, bool yes)
{
	return write(recorder->free_of, yes ? "1" : "0", 1) == 1 ? 0 : -errno;
}

int host_record_begin(const struct host_request *request, const struct host_place *place,
		      struct host_recorder **made)
{
	if (!request->record)
		return 0;
	struct host_recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return -ENOMEM;
	*made = recorder;
	recorder->recorder.in_virtual_time = true;
	recorder->free_of = open(FREE, O_WRONLY | O_CLOEXEC);
	recorder->recorder.slept_of = open(SLEPT, O_RDONLY | O_CLOEXEC);
	if (recorder->free_of < 0 || recorder->recorder.slept_of < 0 ||
	    pipe2(recorder->process, O_CLOEXEC) || pipe2(recorder->gate, O_CLOEXEC))
		return -errno;
	int err = folders_add_named(&recorder->recorder.folders, request->at);

	if (!err)
		err = rows_init(&recorder->recorder.stream, host_open(HOST_RECORD));
	if (!err)
		err = facts_begin(&recorder->recorder, request->arguments);
	/* Includes the folder itself, to which prepare() has given an owner and a mode. A replay
	 * has to set them as well, because UBIFS then has a journal when it is mounted. */
	return err ? err : list_folder(&recorder->recorder, place->mount_point, request->at, true);
}

/* musl's own call of this name does nothing. */
static int become_real_time(void)
{
	const struct sched_param first = {.sched_priority = 1};

	return syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &first) ? -errno : 0;
}

/* In the recorder's process. */
static int follow(struct host_recorder *recorder)
{
	pid_t process = 0;
	int err = cost_nothing(recorder, true);

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
	if (!err)
		err = become_real_time();
	if (!err && (chroot(VIEW) || chdir("/")))
		err = -errno;
	(void)close(recorder->process[1]);
	(void)close(recorder->gate[0]);
	if (!err && read(recorder->process[0], &process, sizeof(process)) != sizeof(process))
		err = -EPIPE;
	if (!err)
		err = follow_process(&recorder->recorder, process, recorder->gate[1]);
	return err ? err : facts_end(&recorder->recorder);
}

/* Like fork(2), with a chosen process number. The child ends without a signal, so wait(2) does not
 * see it. */
static pid_t fork_as(pid_t number)
{
	/* struct clone_args: set_tid is a pointer to numbers, and their count. */
	const uint64_t arguments[11] = {[8] = (uint64_t)(uintptr_t)&number, [9] = 1};

	return (pid_t)syscall(SYS_clone3, arguments, sizeof(arguments));
}

int host_record_start(struct host_recorder *recorder)
{
	if (!recorder)
		return 0;
	int err = cost_nothing(recorder, true);

	if (err)
		return err;
	recorder->pid = fork_as(NUMBER);
	if (recorder->pid == 0)
		_exit(follow(recorder) ? FAILED : 0);
	if (recorder->pid < 0)
		err = -errno;
	host_spare(recorder->pid);
	(void)close(recorder->process[0]);
	(void)close(recorder->gate[1]);
	return err ? err : cost_nothing(recorder, false);
}

int host_record_process(struct host_recorder *recorder, pid_t process)
{
	if (!recorder)
		return 0;
	int err = cost_nothing(recorder, true);

	if (!err && write(recorder->process[1], &process, sizeof(process)) != sizeof(process))
		err = -EPIPE;
	(void)close(recorder->process[1]);
	(void)close(recorder->gate[0]);
	return err ? err : cost_nothing(recorder, false);
}

int host_record_wait(struct host_recorder *recorder)
{
	char byte;

	if (!recorder)
		return 0;
	int err = cost_nothing(recorder, true);

	if (!err && read(recorder->gate[0], &byte, 1) != 1)
		err = -EPIPE;
	if (!err)
		err = filter_install(true);
	return err ? err : cost_nothing(recorder, false);
}

int host_record_end(struct host_recorder *recorder)
{
	if (!recorder)
		return 0;
	const int err = cost_nothing(recorder, true);

	host_kill_the_rest();
	/* The stream says whether it ended well. */
	while (waitpid(recorder->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	host_spare(0);
	return err ? err : cost_nothing(recorder, false);
}
