/* SPDX-License-Identifier: Apache-2.0 */
/* The followed tasks: found by number, created by clone, ended, waited for.
 *
 * Those within a call are in a list ordered by the beginnings of their calls. The first one tells
 * which rows may still come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"

static struct tracee **place_of(struct tracees *tracees, pid_t tid)
{
	struct tracee **place = &tracees->bucket[(unsigned int)tid % TRACEE_BUCKETS];

	while (*place && (*place)->tid != tid)
		place = &(*place)->next;
	return place;
}

struct tracee *tracee_find(struct tracees *tracees, pid_t tid)
{
	return *place_of(tracees, tid);
}

struct tracee *tracee_add(struct tracees *tracees, pid_t tid)
{
	struct tracee *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->tid = tid;
	made->tgid = tid;
	made->schedstat = -1;
	*place_of(tracees, tid) = made;
	tracees->count++;
	return made;
}

void tracees_enter(struct tracees *tracees, struct tracee *tracee)
{
	tracee->before = tracees->last;
	tracee->behind = NULL;
	if (tracees->last)
		tracees->last->behind = tracee;
	else
		tracees->first = tracee;
	tracees->last = tracee;
	tracee->in_call = true;
}

void tracees_leave(struct tracees *tracees, struct tracee *tracee)
{
	if (!tracee->in_call)
		return;
	if (tracee->before)
		tracee->before->behind = tracee->behind;
	else
		tracees->first = tracee->behind;
	if (tracee->behind)
		tracee->behind->before = tracee->before;
	else
		tracees->last = tracee->before;
	tracee->in_call = false;
}

void tracees_park(struct tracees *tracees, struct tracee *tracee)
{
	struct tracee **place = &tracees->parked;

	while (*place)
		place = &(*place)->parked_behind;
	*place = tracee;
	tracee->parked_behind = NULL;
	tracee->parked = true;
}

void tracees_unpark(struct tracees *tracees, struct tracee *tracee)
{
	struct tracee **place = &tracees->parked;

	while (*place && *place != tracee)
		place = &(*place)->parked_behind;
	if (*place)
		*place = tracee->parked_behind;
	tracee->parked = false;
}

void tracee_remove(struct tracees *tracees, struct tracee *tracee)
{
	struct tracee **place = place_of(tracees, tracee->tid);

	if (*place == tracee)
		*place = tracee->next;
	tracees_leave(tracees, tracee);
	if (tracee->parked)
		tracees_unpark(tracees, tracee);
	if (tracee->known) {
		const size_t slot = (unsigned int)tracee->tid % TRACEE_ENDED;

		tracees->ended[slot].tid = tracee->tid;
		tracees->ended[slot].number = tracee->number;
	}
	if (tracee->schedstat >= 0)
		(void)close(tracee->schedstat);
	table_release(tracee->table);
	folder_release(tracee->folder);
	space_release(tracee->space);
	free(tracee->texts);
	free(tracee);
	tracees->count--;
}

int64_t tracees_ended(const struct tracees *tracees, pid_t tid)
{
	const size_t slot = (unsigned int)tid % TRACEE_ENDED;

	return tid > 0 && tracees->ended[slot].tid == tid ? (int64_t)tracees->ended[slot].number
							  : -1;
}

void tracee_renamed(struct tracees *tracees, struct tracee *tracee, pid_t tid)
{
	struct tracee *other = tracee_find(tracees, tid);

	if (tracee->tid == tid)
		return;
	if (other)
		tracee_remove(tracees, other);
	struct tracee **place = place_of(tracees, tracee->tid);

	*place = tracee->next;
	tracee->next = NULL;
	tracee->tid = tid;
	*place_of(tracees, tid) = tracee;
}

/* The clock of a process stops being its only task's when another task appears. From then on the
 * task's schedstat is read. */
static void own_clock(struct tracee *tracee)
{
	char path[80];
	const uint64_t since = proc_cpu_ns(tracee) - tracee->cpu_ns;

	if (tracee->schedstat >= 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)tracee->tgid,
		       (int)tracee->tid);
	tracee->schedstat = open(path, O_RDONLY | O_CLOEXEC);
	if (tracee->schedstat < 0)
		return;
	const uint64_t now = proc_cpu_ns(tracee);

	tracee->cpu_ns = now > since ? now - since : 0;
}

static int share(struct tracee *parent, struct tracee *child, uint64_t flags)
{
	if (flags & CLONE_FILES)
		child->table = parent->table, child->table->uses++;
	else
		child->table = table_copy(parent->table);
	if (flags & CLONE_FS)
		child->folder = parent->folder, child->folder->uses++;
	else
		child->folder = folder_new();
	if (flags & CLONE_VM)
		child->space = parent->space, child->space->uses++;
	else
		child->space = space_copy(parent->space);
	return child->table && child->folder && child->space ? 0 : -ENOMEM;
}

int tracee_born(struct recorder *recorder, struct tracee *parent, struct tracee *child,
		uint64_t flags)
{
	const int err = share(parent, child, flags);

	if (err)
		return err;
	child->known = true;
	child->number = ++recorder->tracees.numbers;
	if (flags & CLONE_THREAD) {
		child->tgid = parent->tgid;
		if (!recorder->in_virtual_time) {
			own_clock(parent);
			own_clock(child);
		}
	}
	child->cpu_ns = event_cpu_ns(recorder, child);
	return 0;
}
