/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a number at a place in the kernel each time it is executed: a register, a variable
 * (agent/tracing/README.md).
 *
 * Kernel interface: a kprobe event with one argument (Documentation/trace/kprobetrace.rst,
 * FETCHARGS). The caller knows the place, a function and an offset in bytes. The kernel refuses an
 * offset that is not an instruction's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracing/tracing.h"

enum { PLACE_BYTES = 160, NAME_BYTES = 32, FETCH_BYTES = 40 };

struct value {
	char name[NAME_BYTES];
	unsigned int type;
	unsigned int at;
	unsigned int size;
};

struct valuemon {
	struct value values[TRACE_VALUES];
	size_t count;
};

/* Arms `NAME,PLACE,FETCH`. */
static int arm(struct value *value, struct tracefs *session, const char *asked)
{
	char place[PLACE_BYTES];
	char fetch[FETCH_BYTES];
	char argument[FETCH_BYTES + 16];
	char probe[NAME_BYTES + 8];

	if (sscanf(asked, "%31[^,],%159[^,],%39[^,]", value->name, place, fetch) != 3)
		return -EPROTO;
	(void)snprintf(argument, sizeof(argument), "value=%s:u%u", fetch, kernel_word() * 8);
	(void)snprintf(probe, sizeof(probe), "value_%s", value->name);
	const int err = tracefs_probe(session, 'p', probe, place, argument, &value->type);

	return err ? err : tracefs_field(session, value->type, "value", &value->at, &value->size);
}

int valuemon_open(struct valuemon **made, struct tracefs *session, const char *const *asked,
		  size_t count)
{
	struct valuemon *valuemon = calloc(1, sizeof(*valuemon));
	int err = 0;

	*made = valuemon;
	if (!valuemon)
		return -ENOMEM;
	for (; valuemon->count < count && !err; valuemon->count += !err)
		err = arm(&valuemon->values[valuemon->count], session, asked[valuemon->count]);
	return err;
}

int valuemon_take(struct valuemon *valuemon, const struct trace_event *event, value_sink sink,
		  void *context)
{
	for (size_t i = 0; i < valuemon->count; i++) {
		const struct value *value = &valuemon->values[i];

		if (value->type == event->type)
			return sink(context, event, value->name,
				    trace_number(event->data + value->at, value->size));
	}
	return 0;
}

void valuemon_close(struct valuemon *valuemon)
{
	free(valuemon);
}
