/* SPDX-License-Identifier: Apache-2.0 */
/* A case of a job: its operations are run from the mark on, then answered (answer.c).
 *
 * Whatever takes time is done before the agent sleeps to the mark: setting probes, and sending
 * commands to the chip's driver. A case that fails is an `error` row.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/job.h"

/* Makes the chip record, and sends it the job's `chip` commands. */
static int tell_chip(struct job *job)
{
	int err = 0;

	if (job->runner.changes) {
		job->runner.failed_op = "record";
		err = nandlog_command("record");
	}
	for (size_t i = 0; i < job->chip_count && !err; i++) {
		job->runner.failed_op = job->chip[i];
		err = nandlog_command(job->chip[i]);
	}
	if (!err)
		job->runner.failed_op = NULL;
	return err;
}

/* Starts the requested tracers. Their probes are set before the agent sleeps to the mark. */
static int start_tracing(struct job *job)
{
	static char detail[TRACE_DETAIL];
	static char words[MAX_LINE];
	struct trace_request request = {.mtd = job->fs.mtd};

	if (!job->traced[0])
		return 0;
	(void)snprintf(words, sizeof(words), "%s", job->traced);
	(void)snprintf(detail, sizeof(detail), "trace %.150s", job->traced);
	int err = tracer_parse(&request, words);

	if (!err)
		err = tracer_open(&job->tracer, &request, job->out, "t ", detail);
	if (err)
		job->runner.failed_op = detail;
	return err;
}

/* Writes the tracers' rows of the measured part. */
static int stop_tracing(struct job *job, bool measured)
{
	int err = 0;

	if (job->tracer && measured) {
		tracer_begin(job->tracer, job->counted_since_ns, job->runner.mark_ns);
		err = tracer_end(job->tracer, job->counted_until_ns);
	}
	tracer_close(job->tracer);
	job->tracer = NULL;
	job->traced[0] = '\0';
	return err;
}

int case_before_mark(void *context)
{
	struct job *job = context;
	int err = start_tracing(job);

	if (!err)
		err = flash_discard();
	const uint64_t mark = phase_next(job->shared);

	if (!err)
		err = tell_chip(job);
	if (!err)
		err = phase_sleep_before(mark);
	job->counted_since_ns = now_ns();
	if (!err)
		err = flash_counts(&job->before);
	return err ? err : phase_sleep_until(mark);
}

/* `sync()` writes what the case left in memory while its files are still open. Nothing happens
 * between the case and the `sync()`, so the file system's threads have the same time on every
 * target. A chip with faults may lose blocks in it, so bad blocks are counted before.
 */
static int flush(struct job *job, const struct trace *trace)
{
	int err = 0;

	job->bad_blocks = -1;
	if (!trace->flush)
		return 0;
	if (job->chip_count)
		err = answer_count_bad(job);
	if (err)
		return err;
	sync();
	err = phase_settle();
	return err ? err : flash_counts(&job->flushed);
}

static int measure(struct job *job, const char *id, int64_t read_ahead_kib,
		   const struct trace *trace, const struct ops *ops)
{
	struct flash_counts after;
	int err = group_set_read_ahead(job, read_ahead_kib);

	if (err)
		return answer_error(job, "case", id, 0,
				    err == -ENOTSUP ? "not-measured" : error_name(err),
				    job->fs.detail);
	err = channel_printf(job->out, "case %s\n", id);
	if (!err)
		err = channel_flush(job->out);
	if (!err)
		err = phase_sleep_until(phase_next(job->shared));
	/* Clears what the driver recorded of the case before. */
	if (!err && nandlog_there())
		err = nandlog_command("forget-page");
	if (err)
		return err;
	err = run_ops(&job->runner, ops, true);
	const int counted = flash_counts(&after);

	job->counted_until_ns = after.until_ns;
	if (!err && !counted)
		err = flush(job, trace);
	if (err || counted) {
		(void)stop_tracing(job, false);
		run_close_all(&job->runner);
		return answer_run_error(job, "case", id, err ? err : counted);
	}
	err = stop_tracing(job, true);
	if (!err)
		err = answer(job, trace, &after);
	if (!err)
		err = channel_printf(job->out, "end %s\n", id);
	if (!err)
		err = channel_flush(job->out);
	run_close_all(&job->runner);
	(void)snprintf(job->recorded, sizeof(job->recorded), "%s", trace->changes ? id : "");
	return err;
}

int case_run(struct job *job, const char *id, int64_t read_ahead_kib, const struct trace *trace)
{
	struct ops ops = {0};
	size_t length = 0;
	char *text = NULL;
	int err = program_read(job, &text, &length);

	if (!err && job->group_ready)
		err = program_parse(job, text, length, &ops, "case", id);
	if (!err && job->group_ready)
		err = contents_add(&job->contents, &ops);
	job->runner.contents = trace->contents;
	job->runner.changes = trace->changes;
	job->runner.calls = trace->calls;
	if (!err && job->group_ready)
		err = measure(job, id, read_ahead_kib, trace, &ops);
	job->chip_count = 0;
	job->traced[0] = '\0';
	ops_free(&ops);
	free(text);
	return err > 0 ? 0 : err;
}
