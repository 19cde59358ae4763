/* SPDX-License-Identifier: Apache-2.0 */
/* Checks across lines of operations: slots, mappings, tasks, `data`, `prepared` and `mark`. Uses no
 * kernel interface. */
#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

enum { PAGE = 4096 };

static int check_slot(const struct state *state, int slot, const char *what,
		      struct ops_error *error)
{
	return state->open[slot] ? 0
				 : reader_fail(error, "slot-closed", "slot %s is not open", what);
}

static int check_database(const struct op *op, struct state *state, struct ops_error *error)
{
	if (op->kind == OP_SQL_OPEN) {
		if (state->database)
			return reader_fail(error, "slot-open", "%s is open", state->database);
		state->database = op->field[0];
		return 0;
	}
	if (!state->database || strcmp(state->database, op->field[0]) != 0)
		return reader_fail(error, "slot-closed", "%s is not open", op->field[0]);
	if (op->kind == OP_SQL_CLOSE)
		state->database = NULL;
	return 0;
}

static int check_mapping(const struct op *op, struct state *state, struct ops_error *error)
{
	const char *what = op->field[0];
	uint64_t *mapped = &state->mapped[op->number[0]];

	if (op->kind == OP_MMAP) {
		if (*mapped)
			return reader_fail(error, "map-open", "mapping %s is open", what);
		*mapped = (op->number[3] + PAGE - 1) / PAGE * PAGE;
		state->stored[op->number[0]] = op->flags == MAP_TO_WRITE;
		return check_slot(state, (int)op->number[1], op->field[1], error);
	}
	if (!*mapped)
		return reader_fail(error, "map-closed", "mapping %s is not open", what);
	if (op->kind == OP_MUNMAP) {
		*mapped = 0;
		return 0;
	}
	if (op->kind == OP_STORE && !state->stored[op->number[0]])
		return reader_fail(error, "bad-map", "mapping %s is not written to", what);
	if (op->number[1] + op->number[2] > *mapped)
		return reader_fail(error, "bad-map", "outside of mapping %s", what);
	return 0;
}

static int check_task(const struct op *op, struct state *state, struct ops_error *error)
{
	const int task = (int)op->number[0];
	const bool runs = state->running[task];

	if (op->kind == OP_SPAWN) {
		if (runs)
			return reader_fail(error, "bad-task", "task %s runs already", op->field[0]);
		state->running[task] = true;
		return 0;
	}
	if (!runs || (op->kind == OP_WAIT && task == state->task))
		return reader_fail(error, "bad-task", "task %s does not run, or is the current one",
				   op->field[0]);
	if (op->kind == OP_WAIT)
		state->running[task] = false;
	else
		state->task = task;
	return 0;
}

/* Checks `prepared` and `remount`. */
static int check_between(const struct op *op, struct state *state, struct ops_error *error)
{
	const char *name = state->name;

	for (int slot = 0; slot < SLOTS; slot++)
		if (state->open[slot])
			return reader_fail(error, "slot-open", "%s with an open slot", name);
	if (state->database)
		return reader_fail(error, "slot-open", "%s with an open database", name);
	for (int mapping = 0; mapping < SLOTS; mapping++)
		if (state->mapped[mapping])
			return reader_fail(error, "map-open", "%s with an open mapping", name);
	if (op->kind == OP_REMOUNT)
		return 0;
	for (int task = 0; task < MAX_TASKS; task++)
		if (state->running[task] != (task == 0))
			return reader_fail(error, "bad-task", "%s while other tasks run", name);
	if (state->task)
		return reader_fail(error, "bad-task", "%s outside of task 0", name);
	if (state->prepared || state->marked)
		return reader_fail(error, "repeated", "%s again, or after mark", name);
	state->prepared = true;
	return 0;
}

/* Checks a `data` line, or the line after some. */
static int check_data(const struct op *op, struct state *state, struct ops_error *error)
{
	const uint64_t bytes = state->data_bytes;
	const bool fills = op->kind == OP_WRITE || op->kind == OP_STORE || op->kind == OP_SETXATTR;

	if (op->kind == OP_DATA) {
		if (bytes % 3)
			return reader_fail(error, "bad-data", "after a line that was the last%s",
					   "");
		state->data_bytes += op->number[0];
		state->data_line = op->line;
		return 0;
	}
	state->data_bytes = 0;
	state->data_line = 0;
	if (!fills || strcmp(op->field[4], "data") != 0)
		return bytes ? reader_fail(error, "bad-data", "%s with data above it", state->name)
			     : 0;
	return bytes == op->number[2] ? 0
				      : reader_fail(error, "bad-data",
						    "data of other than %s bytes", op->field[2]);
}

int order_check(const struct op *op, struct state *state, const char *fields,
		struct ops_error *error)
{
	int err = state->version == 1 ? 0 : check_data(op, state, error);

	if (err)
		return err;
	switch (op->kind) {
	case OP_OPEN:
		if (state->open[op->slot])
			return reader_fail(error, "slot-open", "slot %s is open", op->field[0]);
		state->open[op->slot] = true;
		return 0;
	case OP_SQL_OPEN:
	case OP_SQL:
	case OP_SQL_CLOSE:
		return check_database(op, state, error);
	case OP_PREPARED:
	case OP_REMOUNT:
		return check_between(op, state, error);
	case OP_MARK:
		if (state->marked)
			return reader_fail(error, "repeated", "%s again", state->name);
		state->marked = true;
		return 0;
	case OP_TASK:
	case OP_SPAWN:
	case OP_WAIT:
		return check_task(op, state, error);
	case OP_LINK:
		return op->slot < 0 ? 0 : check_slot(state, op->slot, op->field[0], error);
	case OP_COPY:
		err = check_slot(state, op->slot, op->field[0], error);
		return err ? err : check_slot(state, (int)op->number[2], op->field[2], error);
	default:
		break;
	}
	if (fields[0] == 'm')
		return check_mapping(op, state, error);
	if (fields[0] != 's')
		return 0;
	err = check_slot(state, op->slot, op->field[0], error);
	if (!err && op->kind == OP_CLOSE)
		state->open[op->slot] = false;
	return err;
}
