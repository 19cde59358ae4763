/* SPDX-License-Identifier: Apache-2.0 */
/* Flash operations from the best source: the driver's own log (nandlog.c) if the chip is
 * flashbed_nand, else kprobe events (flashmon.c). The log's counts do not depend on its records.
 * Events are counted as they are read from the kernel's buffer, and the kernel counts those that it
 * lost, so a caller has to check `missed`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

static bool by_log;
static bool by_probes;

/* The events since the last discard, from kprobes. */
static struct {
	struct tracefs *session;
	struct flashmon *flashmon;
	struct flash_event *list;
	size_t count;
	size_t capacity;
} probes;

int flash_arm(const struct fs *fs, char *points, size_t size)
{
	const struct tracefs_options options = {0, false};

	by_log = nandlog_there();
	(void)snprintf(points, size, "flashbed_nand");
	if (by_log)
		return 0;
	char detail[TRACE_DETAIL];

	if (fs->mtd < 0) {
		(void)snprintf(points, size, "the directory is on no flash");
		return -ENODEV;
	}
	int err = tracefs_open(&probes.session, &options, detail);

	if (err) {
		(void)snprintf(points, size, "%s", detail);
		return err;
	}
	err = flashmon_open(&probes.flashmon, probes.session, &fs->geometry, fs->mtd, LEVEL_CHOOSE,
			    points, size);
	if (err)
		(void)snprintf(points, size, "%s", tracefs_detail(probes.session));
	by_probes = !err;
	return err;
}

bool flash_seen(void)
{
	return by_log || by_probes;
}

static int add(void *context, const struct flash_event *event)
{
	(void)context;
	if (probes.count == probes.capacity) {
		const size_t capacity = probes.capacity ? 2 * probes.capacity : 1024;
		struct flash_event *more = realloc(probes.list, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		probes.list = more;
		probes.capacity = capacity;
	}
	probes.list[probes.count++] = *event;
	return 0;
}

static int take(void *context, const struct trace_event *event)
{
	return flashmon_take(probes.flashmon, event, add, context);
}

static int count_events(struct flash_counts *counts)
{
	counts->until_ns = now_ns();
	const int err = tracefs_drain(probes.session, counts->until_ns, take, NULL);

	for (size_t i = 0; i < probes.count; i++)
		counts->of[probes.list[i].kind]++;
	return err ? err : tracefs_lost(probes.session, &counts->missed);
}

int flash_counts(struct flash_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	counts->until_ns = now_ns();
	if (!flash_seen())
		return 0;
	return by_log ? nandlog_counts(counts) : count_events(counts);
}

int flash_discard(void)
{
	if (by_log)
		return nandlog_discard();
	probes.count = 0;
	return by_probes ? tracefs_drain(probes.session, UINT64_MAX, NULL, NULL) : 0;
}

int flash_events(flash_sink sink, void *context)
{
	int err = 0;

	if (by_log)
		return nandlog_events(sink, context);
	for (size_t i = 0; i < probes.count && !err; i++)
		err = sink(context, &probes.list[i]);
	return err;
}

bool flash_knows_durations(void)
{
	return by_log;
}

void flash_disarm(void)
{
	flashmon_close(probes.flashmon);
	tracefs_close(probes.session);
	free(probes.list);
	memset(&probes, 0, sizeof(probes));
	by_probes = false;
}
