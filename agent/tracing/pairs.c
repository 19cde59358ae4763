/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs entries and returns of functions: the open calls of all tasks. A task's calls return last
 * in, first out. Uses no kernel interface. Invariant: a return without an entry, which was before
 * tracing, is dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "tracing/tracing.h"

int calls_enter(struct open_calls *calls, const struct open_call *call)
{
	if (calls->count == calls->capacity) {
		const size_t capacity = calls->capacity ? 2 * calls->capacity : 64;
		struct open_call *more = realloc(calls->list, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		calls->list = more;
		calls->capacity = capacity;
	}
	calls->list[calls->count++] = *call;
	return 0;
}

bool calls_leave(struct open_calls *calls, unsigned int probe, int pid, struct open_call *call)
{
	for (size_t i = calls->count; i-- > 0;) {
		if (calls->list[i].probe != probe || calls->list[i].pid != pid)
			continue;
		*call = calls->list[i];
		calls->count--;
		for (; i < calls->count; i++)
			calls->list[i] = calls->list[i + 1];
		return true;
	}
	return false;
}
