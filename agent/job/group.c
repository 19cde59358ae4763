/* SPDX-License-Identifier: Apache-2.0 */
/* A group of a job: sets up the chip, formats and mounts the partition, and runs the preparation;
 * also mounts the same file system again.
 *
 * Kernel interfaces: those of fs/.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

int group_set_read_ahead(struct job *job, int64_t kib)
{
	const int err = fs_set_read_ahead(&job->fs, kib, &job->window_kib);

	job->read_ahead_set = !err;
	job->read_ahead_kib = kib;
	return err;
}

/* An open directory would keep the file system busy. A new mount has the default read-ahead. */
int group_remount(void *context)
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
		err = group_set_read_ahead(job, job->read_ahead_kib);
	return err;
}

/* Sends the chip's driver the state of the chip; nothing is mounted. */
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

int group_add_setup(struct job *job, const char *command)
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

/* Writes the space and the programmed pages of the new file system and after the preparation;
 * unknown pages are `-`. */
static int say_group(struct job *job, const char *id)
{
	const struct fs_space *fresh = &job->fs.fresh;
	struct fs_space now;
	char pages[48] = "- -";
	int err = fs_space(&job->fs, &now);

	if (err)
		return answer_error(job, "group", id, 0, error_name(err), job->fs.detail);
	job->group_ready = true;
	if (now.pages >= 0)
		(void)snprintf(pages, sizeof(pages), "%" PRId64 " %" PRId64, fresh->pages,
			       now.pages);
	err = channel_printf(job->out, "group %s %" PRIu64 " %" PRIu64 " %s\n", id, fresh->bytes,
			     now.bytes, pages);
	return err ? err : channel_flush(job->out);
}

/* On an owner's board, whose kernel may be any: tries the window on a new file system, which is
 * created again afterwards. */
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
		err = phase_sleep_to_round(job->shared);
	if (!err)
		err = phase_set_time_of_day(job);
	if (!err)
		err = fs_mount_fresh(&job->fs);
	if (err)
		return answer_error(job, "group", id, 0, error_name(err), job->fs.detail);
	err = run_open_directory(&job->runner, job->fs.mount_point);
	if (!err)
		err = phase_sleep_to_round(job->shared);
	if (!err)
		err = run_ops(&job->runner, ops, false);
	run_close_all(&job->runner);
	if (err)
		return answer_run_error(job, "group", id, err);
	return say_group(job, id);
}

/* A chip that is set up counts as new, without earlier erases. */
static int begin_wear(struct job *job)
{
	wear_free(&job->wear);
	return job->setup_count ? 0 : wear_begin(&job->wear);
}

/* Parses the optional words of a group. */
bool group_parse(struct job *job, const char *first, const char *second, bool *wear)
{
	*wear = strcmp(first, "wear") == 0 || strcmp(second, "wear") == 0;
	job->cut = strcmp(first, "cut") == 0 || strcmp(second, "cut") == 0;
	return (*first != '\0') + (*second != '\0') == *wear + job->cut;
}

int group_run(struct job *job, const char *id, const char *fs_name, bool wear)
{
	struct ops ops = {0};
	size_t length = 0;
	char *text = NULL;
	int err = program_read(job, &text, &length);

	job->group_ready = false;
	job->read_ahead_set = false;
	contents_free(&job->contents);
	if (job->recorded[0] && !err)
		err = nandlog_command("forget");
	job->recorded[0] = '\0';
	if (wear && !err)
		err = begin_wear(job);
	if (!err)
		err = program_parse(job, text, length, &ops, "group", id);
	if (!err)
		err = contents_add(&job->contents, &ops);
	if (!err)
		err = prepare(job, id, fs_name, &ops);
	ops_free(&ops);
	free(text);
	return err > 0 ? 0 : err;
}
