/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and cases of `flashbed-job 1`; the answer is `flashbed-stream 1` (docs/formats.md has
 * both).
 *
 * Before the mark of each case the agent sleeps to the next whole PHASE_NS of CLOCK_MONOTONIC, so
 * that the timer ticks fall into the same places whatever ran before. The flash counters are read
 * LEAD_NS earlier and the rest is slept, so that reading them does not shift the mark. Where time
 * is real (a board that is somebody's) the phase is SHARED_PHASE_NS, and nothing waits for JFFS2's
 * dice. A line of the job that is no such line ends the job; a case or group that fails is an
 * `error` row and the next one runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

static const uint64_t PHASE_NS = 1000000000;
static const uint64_t SHARED_PHASE_NS = 100000000;
static const uint64_t LEAD_NS = 2000000;
/* How long a file system's threads have after a flush to erase what it made free, which sync() does
 * not wait for. */
static const uint64_t SETTLE_NS = 100000000;
/* Whole seconds and whole rounds of 128 ticks of 4 ms: JFFS2 throws its dice with `jiffies % 128`,
 * and the timer of YAFFS2's thread, which begins with the mount, is rounded to so many ticks
 * (sim/src/run/mod.rs has the same phases).
 */
static const uint64_t DICE_NS = 64000000000;
static const time_t PREPARED_AT_S = 1577923200; /* 2020-01-02 */

static int sleep_until(uint64_t ns)
{
	const struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	int err;

	do
		err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	while (err == EINTR);
	return -err;
}

static uint64_t phase_ns(const struct job *job)
{
	return job->shared ? SHARED_PHASE_NS : PHASE_NS;
}

static uint64_t next_phase(uint64_t phase)
{
	return (now_ns() + 2 * LEAD_NS + phase - 1) / phase * phase;
}

/* The chip starts remembering, and is told what it was to be told. */
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

/* The tracers that were asked for; their probes are set before the agent sleeps to the mark. */
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

/* The tracers' rows of what was measured. */
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

static int before_mark(void *context)
{
	struct job *job = context;
	int err = start_tracing(job);

	if (!err)
		err = flash_discard();
	const uint64_t mark = next_phase(phase_ns(job));

	if (!err)
		err = tell_chip(job);
	if (!err)
		err = sleep_until(mark - LEAD_NS);
	job->counted_since_ns = now_ns();
	if (!err)
		err = flash_counts(&job->before);
	return err ? err : sleep_until(mark);
}

/* To the next whole DICE_NS, a second at a time: a timer that does not wake an idle processor
 * (writeout_period) ends when it is due, and what the kernel has counted of pages written before is
 * down to one.
 */
static int sleep_to_dice(const struct job *job)
{
	if (job->shared)
		return 0;
	const uint64_t until = next_phase(DICE_NS);
	int err = 0;

	for (uint64_t next = now_ns() + PHASE_NS; next < until && !err; next += PHASE_NS)
		err = sleep_until(next);
	return err ? err : sleep_until(until);
}

/* Where power is going to fail, a preparation begins at the same time of day as every other, to the
 * second: the clock is put back by whole ones. File systems write it into their nodes: what is on
 * the chip, down to a checksum and what ECC makes of a torn page, does not depend on the cases
 * before. Nowhere else: setting the clock (timekeeping_inject_offset) moves its coarse second from
 * its tick to the next one, by which UBIFS writes an inode once more.
 */
static int set_time_of_day(const struct job *job)
{
	struct timex shift = {.modes = ADJ_SETOFFSET};
	struct timespec now;

	if (!job->cut || job->shared || !nandlog_there())
		return 0;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -errno;
	shift.time.tv_sec = PREPARED_AT_S + (time_t)(now_ns() % DICE_NS / 1000000000) - now.tv_sec;
	return adjtimex(&shift) < 0 ? -errno : 0;
}

static int set_read_ahead(struct job *job, int64_t kib)
{
	const int err = fs_set_read_ahead(&job->fs, kib, &job->window_kib);

	job->read_ahead_set = !err;
	job->read_ahead_kib = kib;
	return err;
}

/* A directory that is open would keep the file system busy; a mount forgets its read-ahead. */
static int remount(void *context)
{
	struct job *job = context;
	int err = run_open_directory(&job->runner, NULL);

	if (!err)
		err = fs_remount(&job->fs);
	if (job->fs.mounted != FS_NONE) {
		const int opened = run_open_directory(&job->runner, job->fs.mount_point);

		err = err ? err : opened;
	}
	if (!err && job->read_ahead_set)
		err = set_read_ahead(job, job->read_ahead_kib);
	return err;
}

static int say_error(struct job *job, const char *scope, const char *id, uint32_t line,
		     const char *code, const char *message)
{
	const int err = channel_printf(job->out, "error %s%s%s %" PRIu32 " %s %s\n", scope,
				       *id ? ":" : "", id, line, code, message);

	return err ? err : channel_flush(job->out);
}

/* An operation that failed before the mark, or whatever else `err` is. */
static int say_run_error(struct job *job, const char *scope, const char *id, int err)
{
	char message[WORDS_BYTES + 32];

	if (job->runner.words[0]) {
		answer_printable(job->runner.words);
		(void)snprintf(message, sizeof(message), "%s: %s", job->runner.failed_op,
			       job->runner.words);
		return say_error(job, scope, id, job->runner.failed_line, "SQLite", message);
	}
	(void)snprintf(message, sizeof(message), "%s: %s",
		       job->runner.failed_op ? job->runner.failed_op : "running", strerror(-err));
	return say_error(job, scope, id, job->runner.failed_line, error_name(err), message);
}

/* `ops LINES` and the lines, as one text that the operations point into. */
static int read_ops(struct job *job, char **text, size_t *length)
{
	size_t size = 4096;
	uint64_t lines = 0;
	int got = channel_get_line(job->in, job->line, sizeof(job->line));

	*length = 0;
	*text = got < 0 ? NULL : malloc(size);
	if (!*text)
		return got < 0 ? got : -ENOMEM;
	if (strncmp(job->line, "ops ", 4) != 0)
		return -EPROTO;
	for (lines = strtoull(job->line + 4, NULL, 10); lines; lines--) {
		got = channel_get_line(job->in, job->line, sizeof(job->line));
		if (got < 0)
			return got;
		while (*length + (size_t)got + 2 > size) {
			char *more = realloc(*text, size * 2);

			if (!more)
				return -ENOMEM;
			*text = more;
			size *= 2;
		}
		memcpy(*text + *length, job->line, (size_t)got);
		*length += (size_t)got;
		(*text)[(*length)++] = '\n';
	}
	return 0;
}

static bool has_sql(const struct ops *ops, uint32_t *line)
{
	for (size_t i = 0; i < ops->count; i++) {
		*line = ops->list[i].line;
		if (ops->list[i].kind == OP_SQL_OPEN)
			return true;
	}
	return false;
}

/* Parses and says what is wrong; 1 when it was said. */
static int parse(struct job *job, char *text, size_t length, struct ops *ops, const char *scope,
		 const char *id)
{
	struct ops_error error;
	uint32_t line = 0;
	int err = ops_parse(text, length, ops, &error);

	if (err == -EINVAL)
		err = say_error(job, scope, id, error.line, error.code, error.detail);
	else if (err)
		err = say_error(job, scope, id, 0, error_name(err), strerror(-err));
	else if (!sql_version() && has_sql(ops, &line))
		err = say_error(job, scope, id, line, "ENOSYS", "sql: not supported by this agent");
	else
		return 0;
	return err ? err : 1;
}

/* The chip's driver is told what the chip is to be; nothing is mounted. */
static int set_up_chip(struct job *job)
{
	int err = fs_unmount(&job->fs);

	for (size_t i = 0; i < job->setup_count && !err; i++) {
		err = nandlog_command(job->setup[i]);
		if (err)
			(void)snprintf(job->fs.detail, sizeof(job->fs.detail), "chip: %s: %s",
				       job->setup[i], strerror(-err));
	}
	job->setup_count = 0;
	return err;
}

static int add_setup(struct job *job, const char *command)
{
	if (job->setup_count == job->setup_room) {
		const size_t room = job->setup_room ? 2 * job->setup_room : 64;
		void *more = realloc(job->setup, room * sizeof(*job->setup));

		if (!more)
			return -ENOMEM;
		job->setup = more;
		job->setup_room = room;
	}
	(void)snprintf(job->setup[job->setup_count++], CHIP_COMMAND_BYTES, "%s", command);
	return 0;
}

/* What the preparation has made of the room and the pages that the fresh file system had; pages are
 * - where nobody knows. */
static int say_group(struct job *job, const char *id)
{
	const struct fs_room *fresh = &job->fs.fresh;
	struct fs_room now;
	char pages[48] = "- -";
	int err = fs_room(&job->fs, &now);

	if (err)
		return say_error(job, "group", id, 0, error_name(err), job->fs.detail);
	job->group_ready = true;
	if (now.pages >= 0)
		(void)snprintf(pages, sizeof(pages), "%" PRId64 " %" PRId64, fresh->pages,
			       now.pages);
	err = channel_printf(job->out, "group %s %" PRIu64 " %" PRIu64 " %s\n", id, fresh->bytes,
			     now.bytes, pages);
	return err ? err : channel_flush(job->out);
}

/* On somebody's board, whose kernel may be any: on a fresh file system, which is made again
 * afterwards. */
static int try_window(struct job *job, const char *fs_name)
{
	if (!job->shared || job->fs.trials[job->fs.kind].tried || raw_kind(job->fs.kind))
		return 0;
	int err = fs_mount_fresh(&job->fs);

	if (err)
		return err;
	fs_try_window(&job->fs);
	err = fs_unmount(&job->fs);
	return err ? err : fs_format(&job->fs, fs_name);
}

static int prepare(struct job *job, const char *id, const char *fs_name, const struct ops *ops)
{
	int err = run_open_directory(&job->runner, NULL);

	if (!err)
		err = set_up_chip(job);
	if (!err)
		err = fs_format(&job->fs, fs_name);
	if (!err)
		err = try_window(job, fs_name);
	if (!err)
		err = sleep_to_dice(job);
	if (!err)
		err = set_time_of_day(job);
	if (!err)
		err = fs_mount_fresh(&job->fs);
	if (err)
		return say_error(job, "group", id, 0, error_name(err), job->fs.detail);
	err = run_open_directory(&job->runner, job->fs.mount_point);
	if (!err)
		err = sleep_to_dice(job);
	if (!err)
		err = run_ops(&job->runner, ops, false);
	run_close_all(&job->runner);
	if (err)
		return say_run_error(job, "group", id, err);
	return say_group(job, id);
}

/* A chip that is set up is a new one: what was there before is not. */
static int begin_wear(struct job *job)
{
	wear_free(&job->wear);
	return job->setup_count ? 0 : wear_begin(&job->wear);
}

/* What is asked of a group: words, or nothing. */
static bool parse_group(struct job *job, const char *first, const char *second, bool *wear)
{
	*wear = strcmp(first, "wear") == 0 || strcmp(second, "wear") == 0;
	job->cut = strcmp(first, "cut") == 0 || strcmp(second, "cut") == 0;
	return (*first != '\0') + (*second != '\0') == *wear + job->cut;
}

static int group(struct job *job, const char *id, const char *fs_name, bool wear)
{
	struct ops ops = {0};
	size_t length = 0;
	char *text = NULL;
	int err = read_ops(job, &text, &length);

	job->group_ready = false;
	job->read_ahead_set = false;
	contents_free(&job->contents);
	if (job->recorded[0] && !err)
		err = nandlog_command("forget");
	job->recorded[0] = '\0';
	if (wear && !err)
		err = begin_wear(job);
	if (!err)
		err = parse(job, text, length, &ops, "group", id);
	if (!err)
		err = contents_add(&job->contents, &ops);
	if (!err)
		err = prepare(job, id, fs_name, &ops);
	ops_free(&ops);
	free(text);
	return err > 0 ? 0 : err;
}

/* `sync()` writes what the case has left in memory; its files are still open. Nothing else happens
 * between the two, so that whatever the file system's threads do meanwhile is done on every target.
 * A chip that was told to fail may lose blocks in it, so the bad ones are counted first.
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
	err = sleep_until(now_ns() + SETTLE_NS);
	return err ? err : flash_counts(&job->flushed);
}

static int measure(struct job *job, const char *id, int64_t read_ahead_kib,
		   const struct trace *trace, const struct ops *ops)
{
	struct flash_counts after;
	int err = set_read_ahead(job, read_ahead_kib);

	if (err)
		return say_error(job, "case", id, 0,
				 err == -ENOTSUP ? "not-measured" : error_name(err),
				 job->fs.detail);
	err = channel_printf(job->out, "case %s\n", id);
	if (!err)
		err = channel_flush(job->out);
	if (!err)
		err = sleep_until(next_phase(phase_ns(job)));
	/* What the driver remembers of the case before. */
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
		return say_run_error(job, "case", id, err ? err : counted);
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

static int one_case(struct job *job, const char *id, int64_t read_ahead_kib,
		    const struct trace *trace)
{
	struct ops ops = {0};
	size_t length = 0;
	char *text = NULL;
	int err = read_ops(job, &text, &length);

	if (!err && job->group_ready)
		err = parse(job, text, length, &ops, "case", id);
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

/* KiB, or the one that the kernel gives a fresh mount. */
static bool parse_window(const char *word, int64_t *kib)
{
	char *end = NULL;

	*kib = strcmp(word, "shipped") == 0 ? WINDOW_SHIPPED : (int64_t)strtoul(word, &end, 10);
	return *kib == WINDOW_SHIPPED || (*word >= '0' && *word <= '9' && *end == '\0');
}

static int chip(struct job *job, const char *command)
{
	if (job->chip_count == CHIP_COMMANDS)
		return -EPROTO;
	(void)snprintf(job->chip[job->chip_count++], CHIP_COMMAND_BYTES, "%s", command);
	return 0;
}

/* A case that failed has been told of; its cuts are passed over. */
static int cut(struct job *job, const char *id, uint64_t change, uint64_t seed)
{
	if (strcmp(job->recorded, id) != 0)
		return 0;
	job->group_ready = false;
	const int err =
		cuts_make(&job->fs, &job->runner, &job->contents, job->out, id, change, seed);

	if (!err)
		return 0;
	char message[64];

	job->recorded[0] = '\0';
	(void)snprintf(message, sizeof(message), "cut %" PRIu64 ": %s", change, strerror(-err));
	return say_error(job, "case", id, 0, error_name(err), message);
}

/* The next line that is not part of some operations; 1 for `done`. */
static int step(struct job *job)
{
	char id[MAX_ID + 1];
	char word[48];
	char command[CHIP_COMMAND_BYTES];
	char asked[2][32] = {"", ""};
	bool wear;
	struct trace trace = {false, false, false, false, false, false};
	int64_t window = 0;
	uint64_t number = 0;
	uint64_t seed = 0;
	const int got = channel_get_line(job->in, job->line, sizeof(job->line));

	if (got < 0)
		return got;
	if (strcmp(job->line, "done") == 0)
		return 1;
	if (sscanf(job->line, "group %255s %31s %31s %31s", id, word, asked[0], asked[1]) >= 2 &&
	    parse_group(job, asked[0], asked[1], &wear))
		return group(job, id, word, wear);
	if (sscanf(job->line, "case %255s %31s %47s", id, asked[0], word) == 3 &&
	    parse_window(asked[0], &window) && answer_parse(word, &trace))
		return one_case(job, id, window, &trace);
	if (sscanf(job->line, "setup %63[^\n]", command) == 1)
		return add_setup(job, command);
	if (sscanf(job->line, "chip %63[^\n]", command) == 1)
		return chip(job, command);
	if (sscanf(job->line, "trace %4095[^\n]", job->traced) == 1)
		return 0;
	if (sscanf(job->line, "cut %255s %" SCNu64 " %" SCNu64, id, &number, &seed) == 3)
		return cut(job, id, number, seed);
	return -EPROTO;
}

static int say_info(struct job *job)
{
	const struct flash_geometry *g = &job->fs.geometry;
	struct utsname names;
	char points[1024];

	if (uname(&names))
		return -errno;
	int err = flash_arm(&job->fs, points, sizeof(points));

	if (err && !job->shared)
		(void)snprintf(job->fs.detail, sizeof(job->fs.detail),
			       "finding the flash operations: %.120s", points);
	if (!err || job->shared)
		err = channel_printf(job->out, "info kernel %s\ninfo machine %s\n", names.release,
				     names.machine);
	if (!err && g->page_bytes)
		err = channel_printf(job->out,
				     "info page_bytes %" PRIu32 "\ninfo oob_bytes %" PRIu32
				     "\ninfo block_bytes %" PRIu32 "\ninfo partition_bytes %" PRIu64
				     "\n",
				     g->page_bytes, g->oob_bytes, g->block_bytes, g->size_bytes);
	if (!err)
		err = channel_printf(job->out, "info probes %s%s\n",
				     flash_seen() ? "" : "none: ", points);
	if (!err && sql_version())
		err = channel_printf(job->out, "info sqlite %s\n", sql_version());
	return err ? err : channel_flush(job->out);
}

static int start(struct job *job, const struct job_place *place)
{
	int err = channel_printf(job->out, "flashbed-stream 1\n");

	if (!err)
		err = channel_get_line(job->in, job->line, sizeof(job->line));
	if (err < 0)
		return err;
	if (strcmp(job->line, "flashbed-job 1") != 0)
		return -EPROTO;
	job->shared = place->shared;
	err = place->directory ? fs_use_directory(&job->fs, place->directory, place->mount_point)
			       : fs_init(&job->fs, place->mtd, place->mount_point);
	job->fs.name = place->name;
	if (!err)
		err = run_init(&job->runner);
	job->runner.before_mark = before_mark;
	job->runner.remount = remount;
	job->runner.context = job;
	return err ? err : say_info(job);
}

int job_run(struct channel *in, struct channel *out, const struct job_place *place)
{
	static struct job job;

	job.in = in;
	job.out = out;
	int err = start(&job, place);

	while (!err)
		err = step(&job);
	flash_disarm();
	run_free(&job.runner);
	wear_free(&job.wear);
	free(job.setup);
	contents_free(&job.contents);
	if (job.fs.mounted != FS_NONE && err > 0 && fs_unmount(&job.fs))
		(void)say_error(&job, "job", "", 0, "unmount", job.fs.detail);
	if (err < 0) {
		const char *why = job.fs.detail[0] ? job.fs.detail : strerror(-err);

		(void)say_error(&job, "job", "", 0, error_name(err),
				err == -EPROTO ? "a line that is no flashbed-job 1" : why);
		return err;
	}
	err = channel_printf(out, "done\n");
	return err ? err : channel_flush(out);
}
