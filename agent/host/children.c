/* SPDX-License-Identifier: Apache-2.0 */
/* The program's processes, including those that left its group and lost their parents.
 *
 * They are those below this process: process 1 of a guest, or on a user's board one that adopts
 * them (PR_SET_CHILD_SUBREAPER, Linux 3.4). No other process is ever signalled: kill(-1, SIGKILL)
 * of process 1 would end JFFS2's collector too, a kernel thread that allows that signal
 * (jffs2_garbage_collect_thread). Kernel interfaces: prctl(2), /proc/PID/stat, kill(2).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host.h"

enum { DEPTH_MOST = 64, ROUNDS_MOST = 100 };

static pid_t spared;

void host_spare(pid_t process)
{
	spared = process;
}

int host_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) ? -errno : 0;
}

/* 0 if the process is gone. */
static pid_t parent_of(pid_t pid)
{
	char path[32];
	char text[512];
	int parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	/* The name may contain anything, including parentheses. */
	const char *behind = strrchr(text, ')');

	if (!behind || sscanf(behind, ") %*c %d", &parent) != 1)
		return 0;
	return (pid_t)parent;
}

static bool is_below(pid_t pid, pid_t self)
{
	for (int depth = 0; pid > 1 && depth < DEPTH_MOST; depth++) {
		pid = parent_of(pid);
		if (pid == self)
			return true;
	}
	return false;
}

static bool has_ended(pid_t pid)
{
	char path[32];
	char text[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *behind = read_file(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	return !behind || strncmp(behind, ") Z", 3) == 0;
}

size_t host_signal(int number)
{
	const pid_t self = getpid();
	DIR *all = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0;

	while (all && (entry = readdir(all)) != NULL) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 1 && pid != spared && is_below(pid, self) && !has_ended(pid) &&
		    kill(pid, number) == 0)
			count++;
	}
	if (all)
		(void)closedir(all);
	return count;
}

void host_kill_the_rest(void)
{
	/* The next round finds a process that was being forked during this one. */
	for (int round = 0; round < ROUNDS_MOST && host_signal(SIGKILL) > 0; round++)
		while (waitpid(-1, NULL, getpid() == 1 ? 0 : WNOHANG) > 0 || errno == EINTR)
			errno = 0;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}
