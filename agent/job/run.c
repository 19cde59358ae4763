/* SPDX-License-Identifier: Apache-2.0 */
/* Executes operations and times each with CLOCK_MONOTONIC: one system call an operation, between
 * two readings of the clock.
 *
 * Before the mark an operation that fails ends the case; after it the result (bytes, or -errno) is
 * a row and the next one runs, as a program's would. Rows are kept in memory that was written to
 * beforehand, so nothing allocates or faults between the mark and the end. The bytes of a write are
 * generated before its first clock reading, those of a read summed up after its second if that is
 * asked for, and then the changes to the chip are counted if that is. `compute` steps are one
 * dependent multiply-add each. Statements are SQLite's (sql/), which allocates as it likes; their
 * result is a number of rows or SQLite's own code. Leaves out `remount` without a file system of
 * ours, which fails with ENOSYS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/job.h"

int run_init(struct runner *runner)
{
	memset(runner, 0, sizeof(*runner));
	runner->directory = -1;
	for (int slot = 0; slot < SLOTS; slot++)
		runner->fd[slot] = -1;
	const int err = sql_init();

	if (err)
		return err;
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

static void free_words(struct runner *runner)
{
	for (size_t i = 0; i < runner->rows_count; i++)
		free(runner->rows[i].words);
	runner->rows_count = 0;
}

void run_close_all(struct runner *runner)
{
	sql_close_all();
	calls_close_all();
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
	free_words(runner);
	free(runner->buffer);
	free(runner->rows);
}

static int sleep_ns(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	int err;

	do
		err = clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left);
	while (err == EINTR);
	return -err;
}

/* One multiply-add that waits for the last; nothing is folded, and nothing stored. */
static uint32_t step(uint32_t value)
{
	value = value * 1664525U + 1013904223U;
	__asm__ volatile("" : "+r"(value));
	return value;
}

static int64_t compute(uint64_t steps)
{
	uint32_t value = 1;

	for (; steps >= 8; steps -= 8)
		value = step(step(step(step(step(step(step(step(value))))))));
	for (; steps; steps--)
		value = step(value);
	return 0;
}

static int64_t open_slot(struct runner *runner, const struct op *op)
{
	int *fd = &runner->fd[op->slot];

	*fd = openat(runner->directory, op->field[1], op->flags | O_CLOEXEC, 0644);
	return *fd < 0 ? -errno : 0;
}

static int64_t close_slot(struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->slot];

	runner->fd[op->slot] = -1;
	return close(fd) ? -errno : 0;
}

static int64_t value_or_errno(int64_t value)
{
	return value < 0 ? -errno : value;
}

/* POSIX has it return the error; zig's C library for ARM returns -1 and sets errno. */
static int64_t advise(int fd, const struct op *op)
{
	const int err = posix_fadvise(fd, (off_t)op->number[1], (off_t)op->number[2], op->flags);

	return err < 0 ? -errno : -err;
}

static int64_t execute_file(struct runner *runner, const struct op *op)
{
	const int fd = runner->fd[op->slot];
	const off_t offset = (off_t)op->number[1];
	const size_t length = (size_t)op->number[2];

	switch (op->kind) {
	case OP_READ:
		return value_or_errno(pread(fd, runner->buffer, length, offset));
	case OP_WRITE:
		return value_or_errno(pwrite(fd, runner->buffer, length, offset));
	case OP_FSYNC:
		return value_or_errno(fsync(fd));
	case OP_FDATASYNC:
		return value_or_errno(fdatasync(fd));
	case OP_TRUNCATE:
		return value_or_errno(ftruncate(fd, offset));
	case OP_FADVISE:
		return advise(fd, op);
	case OP_ERASE:
		return raw_erase(fd, op->number[1], op->number[2]);
	default:
		return -ENOSYS;
	}
}

static int64_t execute(struct runner *runner, const struct op *op)
{
	switch (op->kind) {
	case OP_MKDIR:
		return value_or_errno(mkdirat(runner->directory, op->field[0], 0755));
	case OP_OPEN:
		return open_slot(runner, op);
	case OP_CLOSE:
		return close_slot(runner, op);
	case OP_UNLINK:
		return value_or_errno(unlinkat(runner->directory, op->field[0], 0));
	case OP_RMDIR:
		return value_or_errno(unlinkat(runner->directory, op->field[0], AT_REMOVEDIR));
	case OP_RENAME:
		return value_or_errno(
			renameat(runner->directory, op->field[0], runner->directory, op->field[1]));
	case OP_SYNC:
		sync();
		return 0;
	case OP_DROP_CACHES:
		return value_or_errno(write(runner->drop_caches, "3", 1)) < 0 ? -errno : 0;
	case OP_REMOUNT:
		return runner->remount ? runner->remount(runner->context) : -ENOSYS;
	case OP_PAUSE:
		return sleep_ns(op->number[0]);
	case OP_COMPUTE:
		return compute(op->number[0]);
	case OP_SQL_OPEN:
	case OP_SQL:
	case OP_SQL_CLOSE:
		return sql_execute(&runner->sql, op);
	case OP_PREPARED:
	case OP_MARK:
		return 0;
	default:
		return op->kind > OP_MARK ? calls_execute(runner, op) : execute_file(runner, op);
	}
}

/* An operation on a slot whose open failed, which only happens after the mark, gets the kernel's
 * own EBADF. */
static bool is_sql(const struct op *op)
{
	return op->kind == OP_SQL_OPEN || op->kind == OP_SQL || op->kind == OP_SQL_CLOSE;
}

static int64_t timed(struct runner *runner, const struct op *op, uint64_t *start_ns,
		     uint64_t *latency_ns)
{
	if (op->kind == OP_WRITE)
		data_fill(runner->buffer, op->number[1], op->number[2], op->number[3],
			  strtoull(op->field[4], NULL, 10));
	else if (op->kind == OP_STORE)
		data_fill(runner->buffer, op->number[1], op->number[2], op->number[3],
			  strtoull(op->field[4], NULL, 10));
	else if (is_sql(op))
		sql_ready(&runner->sql, op);
	const uint64_t start = read_clock_ns();
	const int64_t result = execute(runner, op);

	*latency_ns = read_clock_ns() - start;
	*start_ns = start;
	return result;
}

/* Memory for the whole case, written to so that it is there. */
static int reserve(struct runner *runner, const struct ops *ops)
{
	const size_t rows = ops->count - ops->measured_from;

	if (ops->longest > runner->buffer_bytes) {
		free(runner->buffer);
		runner->buffer_bytes = 0;
		runner->buffer = malloc((size_t)ops->longest);
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

/* What must not fail before the mark; a short write means a full file system. */
static int unmeasured(struct runner *runner, const struct op *op)
{
	uint64_t start_ns;
	uint64_t latency_ns;
	int64_t result = timed(runner, op, &start_ns, &latency_ns);

	if (op->kind == OP_WRITE && result >= 0 && (uint64_t)result < op->number[2])
		result = -ENOSPC;
	if (result >= 0)
		return 0;
	runner->failed_line = op->line;
	runner->failed_op = ops_name(op->kind);
	return (int)result;
}

int run_ops(struct runner *runner, const struct ops *ops, bool measure)
{
	const size_t marked = measure ? ops->measured_from : ops->count;
	free_words(runner);
	int err = reserve(runner, ops);

	runner->failed_line = 0;
	runner->failed_op = NULL;
	runner->sql.words[0] = '\0';
	runner->sql.sum_rows = runner->contents;
	calls_begin(NULL);
	for (size_t i = 0; i < marked && !err; i++)
		err = unmeasured(runner, &ops->list[i]);
	if (!err && measure && runner->before_mark)
		err = runner->before_mark(runner->context);
	if (err || !measure)
		return err;
	if (runner->calls)
		calls_begin(runner->sql.directory);
	runner->mark_ns = read_clock_ns();
	for (size_t i = marked; i < ops->count; i++) {
		struct row *row = &runner->rows[runner->rows_count];

		calls_next_row(runner->rows_count++);
		row->line = ops->list[i].line;
		row->flash_ns = 0;
		row->result = timed(runner, &ops->list[i], &row->start_ns, &row->latency_ns);
		if (!is_sql(&ops->list[i]) || !sql_version())
			row->result = result_number(row->result);
		row->changes = runner->changes ? nandlog_changes() : -1;
		row->summed = runner->contents && ops->list[i].kind == OP_READ && row->result >= 0;
		row->words =
			is_sql(&ops->list[i]) && row->result < 0 ? strdup(runner->sql.words) : NULL;
		if (row->summed)
			row->crc32 = data_crc32(runner->buffer, (size_t)row->result);
		if (runner->contents && ops->list[i].kind == OP_SQL && row->result >= 0) {
			row->summed = true;
			row->crc32 = runner->sql.sum;
		}
	}
	return 0;
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
