/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tasks by PID, as one word each: /proc/PID/comm while they live, else the names that the
 * kernel remembers (saved_cmdlines of tracefs). A name is cached once found, so a task that
 * executes another program keeps its first name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracing/tracing.h"

enum { TASKS = 1024 };

static struct task {
	int pid;
	char name[FLASH_TASK_BYTES];
} tasks[TASKS];
static size_t count;

static bool saved(int pid, char *name, size_t size)
{
	static const char *const files[] = {"/sys/kernel/tracing/saved_cmdlines",
					    "/sys/kernel/debug/tracing/saved_cmdlines"};
	char line[80];
	bool found = false;

	for (size_t i = 0; i < 2 && !found; i++) {
		FILE *in = fopen(files[i], "re");

		while (in && !found && fgets(line, sizeof(line), in)) {
			char *end;

			found = (int)strtol(line, &end, 10) == pid && *end == ' ';
			if (found)
				(void)snprintf(name, size, "%.*s", (int)strcspn(end + 1, "\n"),
					       end + 1);
		}
		if (in)
			(void)fclose(in);
	}
	return found;
}

const char *trace_task(int pid)
{
	struct task *task = &tasks[count % TASKS];
	char path[40];

	for (size_t i = 0; i < count && i < TASKS; i++)
		if (tasks[i].pid == pid)
			return tasks[i].name;
	count++;
	task->pid = pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (pid == 0)
		(void)snprintf(task->name, sizeof(task->name), "idle");
	else if (read_file(path, task->name, sizeof(task->name)) <= 0 &&
		 !saved(pid, task->name, sizeof(task->name)))
		(void)snprintf(task->name, sizeof(task->name), "pid-%d", pid);
	task->name[strcspn(task->name, "\n")] = '\0';
	for (char *byte = task->name; *byte; byte++)
		if (*byte == ' ')
			*byte = '_';
	return task->name;
}
