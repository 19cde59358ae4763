/* SPDX-License-Identifier: Apache-2.0 */
/* Writing rows: the fields that every row has, rows of events that are no calls, and counts of what
 * is not followed.
 */
#define _GNU_SOURCE
#include <string.h>

#include "record/record.h"

void count_one(struct recorder *recorder, const char *name)
{
	for (size_t i = 0; i < recorder->counts_used; i++)
		if (strcmp(recorder->counts[i].name, name) == 0) {
			recorder->counts[i].count++;
			return;
		}
	if (recorder->counts_used < RECORD_COUNTS)
		recorder->counts[recorder->counts_used++] = (struct record_count){name, 1};
}

uint64_t event_now(const struct recorder *recorder)
{
	return (recorder->in_virtual_time ? recorder->now_ns : now_ns()) - recorder->zero_ns;
}

uint64_t event_cpu_ns(const struct recorder *recorder, const struct tracee *tracee)
{
	if (!recorder->in_virtual_time)
		return proc_cpu_ns(tracee);
	return recorder->now_ns - proc_slept_ns(recorder->slept_of, tracee->tid);
}

/* Fills in the fields that every row has. */
void event_stamp(struct recorder *recorder, struct tracee *tracee, struct record_row *row)
{
	const uint64_t cpu_ns = event_cpu_ns(recorder, tracee);
	const uint64_t cost = tracee->stops * recorder->overhead.stop_cpu_ns +
			      (tracee->rows ? recorder->overhead.call_cpu_ns : 0);
	const uint64_t used = cpu_ns > tracee->cpu_ns ? cpu_ns - tracee->cpu_ns : 0;

	row->task = tracee->number;
	row->cpu_ns = used > cost ? used - cost : 0;
	row->order = ++recorder->order;
	row->start_ns = event_now(recorder);
	tracee->stops = 0;
	tracee->rows = false;
	tracee->cpu_ns = cpu_ns;
}

void event_row(struct recorder *recorder, struct tracee *tracee, const char *name,
	       struct record_row *row, const char *path)
{
	const char *texts[ROW_TEXTS] = {path};

	row->call = known_call_index(known_call_named(name));
	event_stamp(recorder, tracee, row);
	rows_add(&recorder->stream, row, texts);
	recorder->calls++;
}
