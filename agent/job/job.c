/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of `flashbed-job 1`; the answer is `flashbed-stream 1`
 * (agent/PROTOCOL.md has both).
 *
 * A line that is not a job's ends the job. A case or group that fails is an `error` row, and the
 * next one runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "job/job.h"

/* KiB, or the default of a new mount. */
static bool parse_window(const char *word, int64_t *kib)
{
	char *end = NULL;

	*kib = strcmp(word, "default") == 0 ? WINDOW_SHIPPED : (int64_t)strtoul(word, &end, 10);
	return *kib == WINDOW_SHIPPED || (*word >= '0' && *word <= '9' && *end == '\0');
}

static int chip(struct job *job, const char *command)
{
	if (job->chip_count == CHIP_COMMANDS)
		return -EPROTO;
	(void)snprintf(job->chip[job->chip_count++], CHIP_COMMAND_BYTES, "%s", command);
	return 0;
}

/* Makes a power cut of a case. Skips it if the case failed, which was already answered. */
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
	return answer_error(job, "case", id, 0, error_name(err), message);
}

/* A line of the layout that all groups of the job have; -EPROTO for another word. */
static int layout(struct job *job)
{
	char *rest = job->line;
	const char *word = strsep(&rest, " ");
	const int err = job->fs.mounted == FS_NONE ? layout_line(&job->layout, word, rest) : 1;

	if (!err)
		job->fs.layout = &job->layout;
	return err > 0 ? -EPROTO : err;
}

/* Takes `dump OOB_BYTES PATH`, before the first group. */
static bool dump(struct job *job)
{
	char path[MAX_LINE];

	if (job->fs.mounted != FS_NONE ||
	    sscanf(job->line, "dump %" SCNu32 " %4095[^\n]", &job->fs.dump_oob_bytes, path) != 2)
		return false;
	(void)snprintf(job->dump, sizeof(job->dump), "%s", path);
	job->fs.dump = job->dump;
	return true;
}

/* Runs the next line outside of operations; returns 1 for `done`. */
static int step(struct job *job)
{
	char id[MAX_ID + 1];
	char word[80];
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
	if (sscanf(job->line, "group %255s %79s %31s %31s", id, word, asked[0], asked[1]) >= 2 &&
	    group_parse(job, asked[0], asked[1], &wear))
		return group_run(job, id, word, wear);
	if (sscanf(job->line, "case %255s %31s %47s", id, asked[0], word) == 3 &&
	    parse_window(asked[0], &window) && answer_parse(word, &trace))
		return case_run(job, id, window, &trace);
	if (sscanf(job->line, "setup %63[^\n]", command) == 1)
		return group_add_setup(job, command);
	if (sscanf(job->line, "chip %63[^\n]", command) == 1)
		return chip(job, command);
	if (sscanf(job->line, "trace %4095[^\n]", job->traced) == 1)
		return 0;
	if (dump(job))
		return 0;
	if (sscanf(job->line, "cut %255s %" SCNu64 " %" SCNu64, id, &number, &seed) == 3)
		return cut(job, id, number, seed);
	return layout(job);
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
	job->runner.before_mark = case_before_mark;
	job->runner.remount = group_remount;
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
		(void)answer_error(&job, "job", "", 0, "unmount", job.fs.detail);
	if (err < 0) {
		const char *why = job.fs.detail[0] ? job.fs.detail : strerror(-err);

		(void)answer_error(&job, "job", "", 0, error_name(err),
				   err == -EPROTO ? "a line that is no flashbed-job 1" : why);
		return err;
	}
	err = channel_printf(out, "done\n");
	return err ? err : channel_flush(out);
}
