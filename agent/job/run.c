/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operations and times each with CLOCK_MONOTONIC: one system call an operation (execute.c),
 * between two readings of the clock.
 *
 * Before the mark a failed operation ends the case. After it the result (bytes, or -errno) is a row
 * and the next operation runs, as in a program. The memory of rows is touched beforehand, so
 * nothing allocates or faults between the mark and the end. The bytes of a write are generated
 * before its first clock reading. After the second reading the bytes of a read are checksummed and
 * the changes of the chip are counted, if requested. A `compute` step is one dependent
 * multiply-add. Statements are SQLite's (sql/), which allocates as it likes; their result is a
 * number of rows or SQLite's own code. Leaves out `remount` where the agent made no file system: it
 * fails with ENOSYS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "job/job.h"

/* Raises the limit to as many descriptors as a program may have, if allowed; otherwise open(2)
 * returns EMFILE. */
static void allow_slots(void)
{
	const rlim_t wanted = SLOTS + 64;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int run_init(struct runner *runner)
{
	memset(runner, 0, sizeof(*runner));
	runner->directory = -1;
	runner->null = -1;
	for (int slot = 0; slot < SLOTS; slot++)
		runner->fd[slot] = -1;
	const int err = sql_init();

	if (err)
		return err;
	allow_slots();
	runner->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	runner->drop_caches = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	return 0;
}

int run_open_directory(struct runner *runner, const char *path)
{
	if (runner->directory >= 0 && close(runner->directory))
		return -errno;
	runner->sql.directory = path;
	runner->directory = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return path && runner->directory < 0 ? -errno : 0;
}

static void free_messages(struct runner *runner)
{
	for (size_t i = 0; i < runner->rows_count; i++)
		free(runner->rows[i].message);
	runner->rows_count = 0;
}

void run_close_all(struct runner *runner)
{
	sql_close_all();
	mapped_close_all(runner);
	for (int slot = 0; slot < SLOTS; slot++) {
		if (runner->fd[slot] >= 0)
			(void)close(runner->fd[slot]);
		runner->fd[slot] = -1;
	}
}

void run_free(struct runner *runner)
{
	run_close_all(runner);
	(void)run_open_directory(runner, NULL);
	if (runner->drop_caches >= 0)
		(void)close(runner->drop_caches);
	if (runner->null >= 0)
		(void)close(runner->null);
	free_messages(runner);
	free(runner->buffer);
	free(runner->rows);
}

static bool is_sql(const struct op *op)
{
	return op->kind == OP_SQL_OPEN || op->kind == OP_SQL || op->kind == OP_SQL_CLOSE;
}

static uint64_t read_clock(struct runner *runner)
{
	runner->read_ns = read_clock_ns();
	return runner->read_ns;
}

/* No own time is before this: the beginning of the file, or the mark. */
static void begin_own_times(struct runner *runner, uint64_t began_ns)
{
	runner->read_ns = began_ns;
	for (int task = 0; task < MAX_TASKS; task++)
		if (runner->own_ns[task] < began_ns)
			runner->own_ns[task] = began_ns;
}

/* Handles a line that only changes the tasks' own times, as in docs/reference/operations.md. It is
 * no call: the clock is not read for it, so that the line takes no time. Returns whether it did. */
static bool handle_own_time(struct runner *runner, const struct op *op, uint64_t *start_ns,
			    uint64_t *latency_ns)
{
	uint64_t *own = &runner->own_ns[runner->task];

	if (op->kind != OP_PAUSE && op->kind != OP_SPAWN && op->kind != OP_WAIT)
		return false;
	/* Nothing has been run yet: own times count from the beginning of the file. */
	if (!runner->read_ns)
		begin_own_times(runner, read_clock_ns());
	*start_ns = *own;
	*latency_ns = op->kind == OP_PAUSE ? op->number[0] : 0;
	if (op->kind == OP_PAUSE)
		*own += op->number[0];
	else if (op->kind == OP_SPAWN)
		runner->own_ns[op->number[0]] = *own;
	else if (runner->own_ns[op->number[0]] > *own)
		*own = runner->own_ns[op->number[0]];
	return true;
}

/* The clock is read afterwards, as it is after every call. */
static int wait_until(struct runner *runner, uint64_t ns)
{
	if (ns <= runner->read_ns)
		return 0;
	const int err = sleep_ns(ns, true);

	(void)read_clock(runner);
	return err;
}

/* Sleeps until every task is ready. */
static int wait_for_tasks(struct runner *runner)
{
	uint64_t last = 0;

	for (int task = 0; task < MAX_TASKS; task++)
		if (runner->own_ns[task] > last)
			last = runner->own_ns[task];
	return wait_until(runner, last);
}

static int64_t timed(struct runner *runner, const struct ops *ops, size_t index, uint64_t *start_ns,
		     uint64_t *latency_ns)
{
	const struct op *op = &ops->list[index];

	/* A program of version 1 sleeps in the pause itself. */
	if (ops->version > 1 && handle_own_time(runner, op, start_ns, latency_ns))
		return 0;
	*start_ns = runner->read_ns;
	*latency_ns = 0;
	const int err = wait_until(runner, runner->own_ns[runner->task]);

	if (err)
		return err;
	execute_ready(runner, ops, index);
	const bool by_faults = op->kind == OP_STORE && mapped_by_faults(op);
	const int64_t faults = by_faults ? count_faults() : 0;

	*start_ns = read_clock_ns();
	int64_t result = execute(runner, op);

	*latency_ns = read_clock(runner) - *start_ns;
	runner->own_ns[runner->task] = runner->read_ns;
	if (by_faults && result > 0 && count_faults() == faults)
		result = 0;
	return result;
}

/* Handles a line that is no call, because it belongs to the operations after it. Returns whether it
 * did. */
static bool handle_directive(struct runner *runner, const struct op *op)
{
	if (op->kind == OP_TASK)
		runner->task = (int)op->number[0];
	return op->kind == OP_TASK || op->kind == OP_DATA;
}

/* O_DIRECT takes aligned memory. Other programs keep malloc's, whose alignment their copies have
 * always had. */
static bool wants_pages(const struct ops *ops)
{
	for (size_t i = 0; i < ops->count; i++)
		if (ops->list[i].kind == OP_OPEN && (ops->list[i].flags & O_DIRECT))
			return true;
	return false;
}

/* Allocates memory for the whole case, and touches it. */
static int reserve(struct runner *runner, const struct ops *ops)
{
	enum { PAGE = 4096 };
	const size_t rows = ops->count - ops->measured_from;
	const bool pages = wants_pages(ops);

	if (ops->longest > runner->buffer_bytes ||
	    (pages && (uintptr_t)runner->buffer % PAGE != 0)) {
		free(runner->buffer);
		runner->buffer_bytes = 0;
		runner->buffer =
			pages ? memalign(PAGE, (size_t)ops->longest) : malloc((size_t)ops->longest);
		if (!runner->buffer)
			return -ENOMEM;
		runner->buffer_bytes = (size_t)ops->longest;
		memset(runner->buffer, 0xa5, runner->buffer_bytes);
	}
	if (rows > runner->rows_capacity) {
		free(runner->rows);
		runner->rows_capacity = 0;
		runner->rows = malloc(rows * sizeof(*runner->rows));
		if (!runner->rows)
			return -ENOMEM;
		runner->rows_capacity = rows;
		memset(runner->rows, 0xa5, rows * sizeof(*runner->rows));
	}
	return 0;
}

/* Runs an operation that must not fail before the mark. A short write means a full file system. */
static int unmeasured(struct runner *runner, const struct ops *ops, size_t index)
{
	const struct op *op = &ops->list[index];
	uint64_t start_ns;
	uint64_t latency_ns;

	if (handle_directive(runner, op))
		return 0;
	int64_t result = timed(runner, ops, index, &start_ns, &latency_ns);

	if (op->kind == OP_WRITE && result >= 0 && (uint64_t)result < op->number[2])
		result = -ENOSPC;
	if (result >= 0)
		return 0;
	runner->failed_line = op->line;
	runner->failed_op = ops_name(op->kind);
	return (int)result;
}

static void measured(struct runner *runner, const struct ops *ops, size_t index)
{
	const struct op *op = &ops->list[index];
	struct row *row = &runner->rows[runner->rows_count];

	if (handle_directive(runner, op))
		return;
	calls_next_row(runner->rows_count++);
	row->line = op->line;
	row->flash_ns = 0;
	row->result = timed(runner, ops, index, &row->start_ns, &row->latency_ns);
	if (!is_sql(op) || !sql_version())
		row->result = result_number(row->result);
	row->changes = runner->changes ? nandlog_changes() : -1;
	row->summed = runner->contents && op->kind == OP_READ && row->result >= 0;
	row->message = is_sql(op) && row->result < 0 ? strdup(runner->sql.message) : NULL;
	if (row->summed)
		row->crc32 = data_crc32(runner->buffer, (size_t)row->result);
	if (runner->contents && op->kind == OP_SQL && row->result >= 0) {
		row->summed = true;
		row->crc32 = runner->sql.sum;
	}
}

int run_ops(struct runner *runner, const struct ops *ops, bool measure)
{
	const size_t marked = measure ? ops->measured_from : ops->count;
	free_messages(runner);
	int err = reserve(runner, ops);

	runner->failed_line = 0;
	runner->failed_op = NULL;
	runner->task = 0;
	runner->read_ns = 0;
	memset(runner->own_ns, 0, sizeof(runner->own_ns));
	runner->sql.message[0] = '\0';
	runner->sql.sum_rows = runner->contents;
	calls_begin(NULL);
	for (size_t i = 0; i < marked && !err; i++)
		err = unmeasured(runner, ops, i);
	if (!err && measure && runner->before_mark)
		err = runner->before_mark(runner->context);
	if (err || !measure)
		return err ? err : wait_for_tasks(runner);
	if (runner->calls)
		calls_begin(runner->sql.directory);
	runner->mark_ns = read_clock(runner);
	begin_own_times(runner, runner->mark_ns);
	for (size_t i = marked; i < ops->count; i++)
		measured(runner, ops, i);
	return wait_for_tasks(runner);
}

void run_print_row(const struct runner *runner, size_t index, char *text, size_t size)
{
	const struct row *row = &runner->rows[index];
	char flash[24] = "-";
	char crc[16] = "-";
	char changes[24] = "-";

	if (flash_knows_durations())
		(void)snprintf(flash, sizeof(flash), "%" PRId64, row->flash_ns);
	if (row->summed)
		(void)snprintf(crc, sizeof(crc), "%" PRIu32, row->crc32);
	if (row->changes >= 0)
		(void)snprintf(changes, sizeof(changes), "%" PRId64, row->changes);
	(void)snprintf(text, size, "r %zu %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s %s %s",
		       index, row->line, row->start_ns - runner->mark_ns, row->latency_ns,
		       row->result, flash, crc, changes);
}
