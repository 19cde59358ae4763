/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's global trace buffer: whether another tracer uses it, and its settings. Kernels
 * without instances have only this buffer.
 *
 * Kernel interface: tracefs (kernel/trace/trace.c of 2.6.33 to 6.12): trace_clock, buffer_size_kb,
 * options/overwrite (since 2.6.39), tracing_on, current_tracer, events/enable, per_cpu/cpuN/stats.
 * If a kernel lacks one of them, there is nothing to restore.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { PATH_BYTES = 320 };

/* A buffer that was never used is small; `expanded:` precedes the size that any use gives it.
 * trace_clock lists all clocks and has brackets around the current one.
 */
size_t buffer_settings(const char *root, struct setting *list)
{
	static const char *const names[TRACE_SETTINGS] = {"trace_clock", "buffer_size_kb",
							  "options/overwrite", "tracing_on"};
	size_t count = 0;

	for (size_t i = 0; i < TRACE_SETTINGS; i++) {
		char text[256];

		(void)snprintf(list[count].path, sizeof(list[count].path), "%.250s/%s", root,
			       names[i]);
		if (read_file(list[count].path, text, sizeof(text)) <= 0)
			continue;
		const char *const clock = strchr(text, '[');
		const char *const expanded = strstr(text, "expanded: ");
		const char *const from = clock ? clock + 1 : expanded ? expanded + 10 : text;

		(void)snprintf(list[count].text, sizeof(list[count].text), "%.*s",
			       (int)strcspn(from, "]) \n"), from);
		count++;
	}
	return count;
}

size_t tracefs_settings(struct setting *list)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/kprobe_events", roots[i]);
		const bool usable = access(path, W_OK) == 0;

		(void)snprintf(path, sizeof(path), "%s/instances", roots[i]);
		if (usable)
			return access(path, F_OK) == 0 ? 0 : buffer_settings(roots[i], list);
	}
	return 0;
}

int buffer_sum(const char *folder, size_t processors, const char *const *names, size_t count,
	       uint64_t *sum)
{
	char path[PATH_BYTES + 64];
	char text[512] = "\n";

	*sum = 0;
	for (size_t cpu = 0; cpu < processors; cpu++) {
		(void)snprintf(path, sizeof(path), "%.320s/per_cpu/cpu%zu/stats", folder, cpu);
		const int got = read_file(path, text + 1, sizeof(text) - 1);

		if (got < 0)
			return got;
		for (size_t i = 0; i < count; i++) {
			const char *found = strstr(text, names[i]);

			*sum += found ? strtoull(found + strlen(names[i]), NULL, 10) : 0;
		}
	}
	return 0;
}

static bool read_line(const char *root, const char *name, char *text, size_t size)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%.250s/%s", root, name);
	const int got = read_file(path, text, size);

	if (got > 0)
		text[strcspn(text, "\n")] = '\0';
	return got > 0;
}

/* Another tracer's trace cannot be restored: reading would consume its records, and new ones would
 * mix with ours. */
int buffer_check(const char *root, size_t processors, bool left, char *why, size_t size)
{
	static const char *const entries[] = {"\nentries: "};
	char text[64];
	uint64_t count = 0;

	if (read_line(root, "current_tracer", text, sizeof(text)) && strcmp(text, "nop") != 0)
		(void)snprintf(why, size, "and another tracer uses it: current_tracer is %.40s",
			       text);
	else if (read_line(root, "events/enable", text, sizeof(text)) && text[0] != '0')
		(void)snprintf(why, size,
			       "and another tracer records events: events/enable is %.8s", text);
	else if (read_line(root, "buffer_size_kb", text, sizeof(text)) && strcmp(text, "X") == 0)
		(void)snprintf(why, size,
			       "and its size differs between processors: buffer_size_kb is X");
	else if (buffer_sum(root, processors, entries, 1, &count) == 0 && count && !left)
		(void)snprintf(why, size,
			       "and it holds another tracer's events: writing nothing to the file "
			       "trace clears it");
	else
		return 0;
	return -EBUSY;
}
