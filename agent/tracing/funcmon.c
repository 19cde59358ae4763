/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of any kernel functions: start, duration, return value (agent/tracing/README.md).
 *
 * Kernel interface: a kprobe at the entry and a kretprobe. Names may contain `*` and `?`. The parts
 * that a compiler splits off a function (`.isra.0`, `.constprop.0`, `.part.0`) count as the
 * function. Leaves out functions that the compiler inlined or that the kernel does not allow to be
 * probed: `skipped` lists them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracing/tracing.h"

enum { FUNCTIONS = 256, NAME_BYTES = 128 };

struct function {
	char name[NAME_BYTES];
	unsigned int type;
	unsigned int return_type;
	unsigned int result_at;
	unsigned int result_size;
};

struct funcmon {
	struct tracefs *session;
	struct function functions[FUNCTIONS];
	size_t count;
	struct open_calls open;
	char *skipped;
	size_t room;
};

static void skip(struct funcmon *funcmon, const char *name)
{
	const size_t used = strlen(funcmon->skipped);

	(void)snprintf(funcmon->skipped + used, funcmon->room - used, "%s%s", used ? "," : "",
		       name);
}

static int arm(struct funcmon *funcmon, const char *name, const char *symbol)
{
	struct function *function = &funcmon->functions[funcmon->count];
	char probe[32];
	char result[32];

	memset(function, 0, sizeof(*function));
	(void)snprintf(function->name, sizeof(function->name), "%s", name);
	(void)snprintf(probe, sizeof(probe), "func%zu", funcmon->count);
	int err = tracefs_probe(funcmon->session, 'p', probe, symbol, "", &function->type);

	(void)snprintf(probe, sizeof(probe), "back%zu", funcmon->count);
	(void)snprintf(result, sizeof(result), "result=$retval:s%u", kernel_word() * 8);
	if (!err)
		err = tracefs_probe(funcmon->session, 'r', probe, symbol, result,
				    &function->return_type);
	if (!err)
		err = tracefs_field(funcmon->session, function->return_type, "result",
				    &function->result_at, &function->result_size);
	funcmon->count += !err;
	return err;
}

/* Probes the functions that match a pattern; returns how many. */
static size_t arm_pattern(struct funcmon *funcmon, const struct symbols *symbols,
			  const char *pattern)
{
	size_t found = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];
		char name[NAME_BYTES];
		char full[2 * NAME_BYTES];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(symbol->name, "."),
			       symbol->name);
		/* `.cold` and the like are no functions of their own; names with $ are the
		 * assembler's marks. */
		if (!glob_match(pattern, name) || strstr(symbol->name, ".cold") || name[0] == '$' ||
		    name[0] == '\0')
			continue;
		if (funcmon->count == FUNCTIONS) {
			skip(funcmon, "more-than-256");
			break;
		}
		(void)snprintf(full, sizeof(full), "%.100s%s%.120s", symbol->module,
			       *symbol->module ? ":" : "", symbol->name);
		found++;
		if (arm(funcmon, name, full))
			skip(funcmon, name);
	}
	return found;
}

int funcmon_open(struct funcmon **made, struct tracefs *session, const struct symbols *symbols,
		 const char *const *patterns, size_t count, char *skipped, size_t size)
{
	struct funcmon *funcmon = calloc(1, sizeof(*funcmon));

	*made = funcmon;
	if (!funcmon)
		return -ENOMEM;
	funcmon->session = session;
	funcmon->skipped = skipped;
	funcmon->room = size;
	skipped[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (!arm_pattern(funcmon, symbols, patterns[i]))
			skip(funcmon, patterns[i]);
	return 0;
}

static int give(const struct funcmon *funcmon, const struct open_call *call,
		const struct trace_event *event, call_sink sink, void *context)
{
	const struct function *function = &funcmon->functions[call->probe];
	struct call_row row = {.what = function->name,
			       .start_ns = call->start_ns,
			       .duration_ns = -1,
			       .pid = call->pid,
			       .file = ""};

	if (event) {
		const uint64_t result =
			trace_number(event->data + function->result_at, function->result_size);

		row.duration_ns = (int64_t)(event->time_ns - call->start_ns);
		row.has_result = true;
		/* On 64 bits a negative int arrives zero-extended. */
		row.result = result <= UINT32_MAX && result >= UINT32_MAX - 4094
				     ? (int64_t)(int32_t)result
				     : (int64_t)result;
		if (function->result_size == 4)
			row.result = (int64_t)(int32_t)result;
	}
	return sink(context, &row);
}

int funcmon_take(struct funcmon *funcmon, const struct trace_event *event, call_sink sink,
		 void *context)
{
	for (size_t i = 0; i < funcmon->count; i++) {
		const struct function *function = &funcmon->functions[i];
		struct open_call call = {
			.probe = (unsigned int)i, .pid = event->pid, .start_ns = event->time_ns};

		if (function->type == event->type)
			return calls_enter(&funcmon->open, &call);
		if (function->return_type == event->type)
			return calls_leave(&funcmon->open, (unsigned int)i, event->pid, &call)
				       ? give(funcmon, &call, event, sink, context)
				       : 0;
	}
	return 0;
}

int funcmon_finish(struct funcmon *funcmon, call_sink sink, void *context)
{
	int err = 0;

	for (size_t i = 0; i < funcmon->open.count && !err; i++)
		err = give(funcmon, &funcmon->open.list[i], NULL, sink, context);
	funcmon->open.count = 0;
	return err;
}

void funcmon_close(struct funcmon *funcmon)
{
	if (funcmon)
		free(funcmon->open.list);
	free(funcmon);
}
