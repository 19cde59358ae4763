/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a case as rows of the stream (agent/PROTOCOL.md): operations, flash
 * operations, counts, wear, faults and SQLite's calls.
 *
 * Invariant: an unknown number is `-`.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "job/job.h"

/* Parses `counts` or `flash`, then any of `,contents`, `,changes`, `,wear`, `,calls`, `,flush` in
 * this order. */
bool answer_parse(char *words, struct trace *trace)
{
	char *at = NULL;
	const char *word = strtok_r(words, ",", &at);

	trace->flash = word && strcmp(word, "flash") == 0;
	if (!word || (!trace->flash && strcmp(word, "counts") != 0))
		return false;
	word = strtok_r(NULL, ",", &at);
	trace->contents = word && strcmp(word, "contents") == 0;
	if (trace->contents)
		word = strtok_r(NULL, ",", &at);
	trace->changes = word && strcmp(word, "changes") == 0;
	if (trace->changes)
		word = strtok_r(NULL, ",", &at);
	trace->wear = word && strcmp(word, "wear") == 0;
	if (trace->wear)
		word = strtok_r(NULL, ",", &at);
	trace->calls = word && strcmp(word, "calls") == 0;
	if (trace->calls)
		word = strtok_r(NULL, ",", &at);
	trace->flush = word && strcmp(word, "flush") == 0;
	if (trace->flush)
		word = strtok_r(NULL, ",", &at);
	return !word;
}

/* SQLite's message may contain anything, even line feeds. */
static void make_printable(char *message)
{
	for (; *message; message++)
		if (*message < 0x20 || *message > 0x7e)
			*message = '?';
}

static int say_rows(struct job *job)
{
	const struct runner *runner = &job->runner;
	int err = 0;

	for (size_t i = 0; i < runner->rows_count && !err; i++) {
		char row[ROW_BYTES];

		run_print_row(runner, i, row, sizeof(row));
		err = channel_printf(job->out, "%s\n", row);
		if (!err && runner->rows[i].message) {
			make_printable(runner->rows[i].message);
			err = channel_printf(job->out, "q %zu %s\n", i, runner->rows[i].message);
		}
	}
	return err;
}

struct told {
	struct job *job;
	const struct trace *trace;
	uint64_t counted; /* by the chip, of the measured part */
	uint64_t count;
	size_t row; /* the row that was running, or the first after it */
};

static uint32_t pages_per_block(const struct job *job)
{
	return job->fs.geometry.block_bytes / job->fs.geometry.page_bytes;
}

static int say_event(struct job *job, uint64_t seq, const struct flash_event *event)
{
	static const char *const kinds[FLASH_KINDS] = {"read", "program", "erase"};
	const struct flash_geometry *geometry = &job->fs.geometry;
	const uint32_t pages = pages_per_block(job);
	const bool erase = event->kind == FLASH_ERASE;
	char task[FLASH_TASK_BYTES];
	char duration[24] = "-";

	if (event->duration_ns >= 0)
		(void)snprintf(duration, sizeof(duration), "%" PRId64, event->duration_ns);
	for (size_t i = 0; i < sizeof(task); i++)
		task[i] = event->task[i] == ' ' ? '_' : event->task[i];
	return channel_printf(job->out,
			      "f %" PRIu64 " %" PRId64 " %s %" PRIu32 " %" PRIu32 " %" PRIu32
			      " %" PRIu32 " %s %s\n",
			      seq, (int64_t)(event->start_ns - job->runner.mark_ns),
			      kinds[event->kind], event->page / pages, event->page, event->column,
			      erase ? geometry->block_bytes : event->length, task, duration);
}

/* Whether it began after the measured part. Where code takes no time the flush begins when that
 * ends, and only the chip's count tells them apart. */
static bool is_later(const struct told *told, const struct flash_event *event)
{
	const uint64_t until = told->job->counted_until_ns;

	return event->start_ns > until ||
	       (event->start_ns == until && told->count >= told->counted);
}

/* Events and rows are both in order of time. */
static int take_event(void *context, const struct flash_event *event)
{
	struct told *told = context;
	struct runner *runner = &told->job->runner;

	const bool later = is_later(told, event);

	if (later && told->trace->wear && event->kind == FLASH_ERASE)
		return wear_erased_later(&told->job->wear, event->page / pages_per_block(told->job),
					 event->start_ns <= told->job->flushed.until_ns);
	if (later || event->start_ns < told->job->counted_since_ns)
		return 0;
	while (told->row < runner->rows_count &&
	       runner->rows[told->row].start_ns + runner->rows[told->row].latency_ns <=
		       event->start_ns)
		told->row++;
	if (told->row < runner->rows_count && runner->rows[told->row].start_ns <= event->start_ns)
		runner->rows[told->row].flash_ns += event->duration_ns;
	told->count++;
	if (told->trace->wear && event->kind == FLASH_ERASE) {
		const int err =
			wear_erased(&told->job->wear, event->page / pages_per_block(told->job));

		if (err)
			return err;
	}
	return told->trace->flash ? say_event(told->job, told->count - 1, event) : 0;
}

/* Writes the flash rows and the wear if requested, and computes the chip's time within each
 * operation. */
static int say_flash(struct job *job, const struct trace *trace, const struct flash_counts *after)
{
	const uint64_t reads = after->of[FLASH_READ] - job->before.of[FLASH_READ];
	const uint64_t programs = after->of[FLASH_PROGRAM] - job->before.of[FLASH_PROGRAM];
	const uint64_t erases = after->of[FLASH_ERASE] - job->before.of[FLASH_ERASE];
	uint64_t lost = after->missed - job->before.missed;
	struct told told = {.job = job, .trace = trace, .counted = reads + programs + erases};

	if (!flash_seen())
		return channel_printf(job->out, "c - - - 0\n");
	wear_mark(&job->wear);
	if (trace->flash || trace->wear || flash_knows_durations()) {
		int err = flash_events(take_event, &told);

		if (!err && trace->wear)
			err = wear_say(&job->wear, job->out);
		if (err)
			return err;
		/* Operations that were counted and have no row were overwritten. */
		if (told.count < told.counted)
			lost += told.counted - told.count;
	}
	return channel_printf(job->out, "c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			      reads, programs, erases, lost);
}

int answer_count_bad(struct job *job)
{
	struct fs_space room;
	const int err = flash_knows_durations() ? fs_space(&job->fs, &room) : 0;

	if (!err && flash_knows_durations())
		job->bad_blocks = room.bad_blocks;
	return err;
}

/* Writes the ECC's counts of the measured part and the bad blocks by now; nothing if they are
 * unknown. */
static int say_faults(struct job *job, const struct flash_counts *after)
{
	const int err = job->bad_blocks < 0 ? answer_count_bad(job) : 0;

	if (err || !flash_knows_durations())
		return err;
	return channel_printf(job->out, "e %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
			      after->corrected - job->before.corrected,
			      after->uncorrectable - job->before.uncorrectable, job->bad_blocks);
}

/* Writes the flash operations of the flush, and the blocks that it erased if wear is requested. */
static int say_flushed(struct job *job, const struct trace *trace, const struct flash_counts *after)
{
	const struct flash_counts *flushed = &job->flushed;
	const int err = trace->wear ? wear_say_flushed(&job->wear, job->out) : 0;

	if (err || !flash_seen())
		return err;
	return channel_printf(job->out, "l %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			      flushed->of[FLASH_READ] - after->of[FLASH_READ],
			      flushed->of[FLASH_PROGRAM] - after->of[FLASH_PROGRAM],
			      flushed->of[FLASH_ERASE] - after->of[FLASH_ERASE],
			      flushed->missed - after->missed);
}

/* Writes the window that the case's files were opened with. */
static int say_window(struct job *job)
{
	return job->window_kib < 0 ? channel_printf(job->out, "a -\n")
				   : channel_printf(job->out, "a %" PRId64 "\n", job->window_kib);
}

int answer(struct job *job, const struct trace *trace, const struct flash_counts *after)
{
	int err = say_window(job);

	if (!err)
		err = say_flash(job, trace, after);
	if (!err)
		err = say_faults(job, after);
	if (!err && trace->flush)
		err = say_flushed(job, trace, after);
	if (!err)
		err = say_rows(job);
	return err ? err : calls_say(job->out);
}

int answer_error(struct job *job, const char *scope, const char *id, uint32_t line,
		 const char *code, const char *message)
{
	const int err = channel_printf(job->out, "error %s%s%s %" PRIu32 " %s %s\n", scope,
				       *id ? ":" : "", id, line, code, message);

	return err ? err : channel_flush(job->out);
}

/* Writes the error row of an operation that failed before the mark, or of `err`. */
int answer_run_error(struct job *job, const char *scope, const char *id, int err)
{
	char message[MESSAGE_BYTES + 32];

	if (job->runner.sql.message[0]) {
		make_printable(job->runner.sql.message);
		(void)snprintf(message, sizeof(message), "%s: %s", job->runner.failed_op,
			       job->runner.sql.message);
		return answer_error(job, scope, id, job->runner.failed_line, "SQLite", message);
	}
	(void)snprintf(message, sizeof(message), "%s: %s",
		       job->runner.failed_op ? job->runner.failed_op : "running", strerror(-err));
	return answer_error(job, scope, id, job->runner.failed_line, error_name(err), message);
}
