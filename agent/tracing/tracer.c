/* SPDX-License-Identifier: Apache-2.0 */
/* The tracers together, in one session, and their rows (agent/tracing/README.md has the formats).
 *
 * Kernel interfaces besides the tracers': ECCGETSTATS of the partition's device, /sys/class/mtd.
 * Invariant: the `lost` row, the last but one, has what the kernel lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/mtd-user.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { POINTS_BYTES = 2048, MTDS = 32 };

struct tracer {
	struct tracefs *session;
	struct flashmon *flashmon;
	struct vfsmon *vfsmon;
	struct funcmon *funcmon;
	struct valuemon *valuemon;
	struct flash_geometry geometry;
	int mtd;
	struct mtd_ecc_stats before;
	bool has_stats;
	struct channel *out;
	const char *prefix;
	uint64_t since_ns; /* earlier events are no rows */
	uint64_t until_ns;
	uint64_t zero_ns;
	uint64_t lost;
	char points[POINTS_BYTES];
};

static bool parse_level(const char *word, enum flash_level *level)
{
	static const char *const names[] = {"", "nand", "page", "mtd"};

	for (int i = LEVEL_NAND; i <= LEVEL_MTD; i++) {
		if (strcmp(word, names[i]) == 0) {
			*level = (enum flash_level)i;
			return true;
		}
	}
	return false;
}

int tracer_parse(struct trace_request *request, char *text)
{
	char *at = NULL;

	for (char *word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
		if (strcmp(word, "flash") == 0)
			request->flash = true;
		else if (strcmp(word, "vfs") == 0)
			request->vfs = true;
		else if (strcmp(word, "global") == 0)
			request->session.global = true;
		else if (strncmp(word, "func=", 5) == 0 && request->function_count < TRACE_PATTERNS)
			request->functions[request->function_count++] = word + 5;
		else if (strncmp(word, "value=", 6) == 0 && request->value_count < TRACE_VALUES)
			request->values[request->value_count++] = word + 6;
		else if (strncmp(word, "buffer_kib=", 11) == 0)
			request->session.buffer_kib = strtoull(word + 11, NULL, 10);
		else if (strncmp(word, "mtd=", 4) == 0)
			request->mtd = (int)strtol(word + 4, NULL, 10);
		else if (strncmp(word, "points=", 7) != 0 ||
			 !parse_level(word + 7, &request->level))
			return -EPROTO;
	}
	return request->flash || request->vfs || request->function_count || request->value_count
		       ? 0
		       : -EPROTO;
}

/* The MTD device whose pages are counted: the named one, else the first NAND. */
static int find_geometry(struct tracer *tracer, int mtd)
{
	char type[32] = "";

	for (tracer->mtd = mtd < 0 ? 0 : mtd; tracer->mtd < MTDS; tracer->mtd++) {
		if (!mtd_text(tracer->mtd, "type", type, sizeof(type)) && strstr(type, "nand"))
			break;
		if (mtd >= 0)
			return -ENODEV;
	}
	return mtd_geometry(tracer->mtd, &tracer->geometry) || !tracer->geometry.page_bytes
		       ? -ENODEV
		       : 0;
}

static bool read_stats(int mtd, struct mtd_ecc_stats *stats)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/mtd%dro", mtd);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool read = fd >= 0 && ioctl(fd, ECCGETSTATS, stats) == 0;

	if (fd >= 0)
		(void)close(fd);
	return read;
}

static int say(const struct tracer *tracer, const char *key, const char *value)
{
	return *value ? channel_printf(tracer->out, "%sinfo %s %s\n", tracer->prefix, key, value)
		      : 0;
}

static int open_flash(struct tracer *tracer, const struct trace_request *request)
{
	char text[64];
	int err = find_geometry(tracer, request->mtd);

	if (!err)
		err = flashmon_open(&tracer->flashmon, tracer->session, &tracer->geometry,
				    tracer->mtd, request->level, tracer->points,
				    sizeof(tracer->points));
	if (err)
		return err;
	tracer->has_stats = read_stats(tracer->mtd, &tracer->before);
	(void)snprintf(text, sizeof(text), "%" PRIu32, tracer->geometry.page_bytes);
	err = say(tracer, "flash_points", tracer->points);
	err = err ? err : say(tracer, "page_bytes", text);
	(void)snprintf(text, sizeof(text), "%" PRIu32,
		       tracer->geometry.block_bytes / tracer->geometry.page_bytes);
	return err ? err : say(tracer, "pages_per_block", text);
}

/* vfsmon comes first, because its trials end by removing all probes of the session. */
static int open_tracers(struct tracer *tracer, const struct trace_request *request)
{
	struct symbols symbols;
	struct utsname names;
	int err = symbols_read(&symbols);

	if (!err && uname(&names) == 0)
		err = say(tracer, "kernel", names.release);
	if (!err && request->vfs)
		err = vfsmon_open(&tracer->vfsmon, tracer->session, &symbols, tracer->points,
				  sizeof(tracer->points));
	if (!err && request->vfs)
		err = say(tracer, "vfs_points", tracer->points);
	if (!err && request->function_count)
		err = funcmon_open(&tracer->funcmon, tracer->session, &symbols, request->functions,
				   request->function_count, tracer->points, sizeof(tracer->points));
	if (!err && request->function_count)
		err = say(tracer, "not_probed", tracer->points);
	if (!err && request->flash)
		err = open_flash(tracer, request);
	if (!err && request->value_count)
		err = valuemon_open(&tracer->valuemon, tracer->session, request->values,
				    request->value_count);
	symbols_free(&symbols);
	return err;
}

int tracer_open(struct tracer **made, const struct trace_request *request, struct channel *out,
		const char *prefix, char *detail)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));

	*made = NULL;
	if (!tracer)
		return -ENOMEM;
	tracer->out = out;
	tracer->prefix = prefix;
	tracer->until_ns = UINT64_MAX;
	int err = tracefs_open(&tracer->session, &request->session, detail);

	if (err) {
		free(tracer);
		return err;
	}
	err = open_tracers(tracer, request);
	if (!err)
		err = tracefs_drain(tracer->session, now_ns(), NULL, NULL);
	if (err) {
		(void)snprintf(detail, TRACE_DETAIL, "%s",
			       err == -ENODEV ? "no NAND chip (/sys/class/mtd)"
					      : tracefs_detail(tracer->session));
		tracer_close(tracer);
		return err;
	}
	*made = tracer;
	return 0;
}

void tracer_begin(struct tracer *tracer, uint64_t since_ns, uint64_t zero_ns)
{
	tracer->since_ns = since_ns;
	tracer->zero_ns = zero_ns;
}

int tracer_ignore(struct tracer *tracer, int pid)
{
	return tracefs_ignore(tracer->session, pid);
}

static int64_t since_zero(const struct tracer *tracer, uint64_t time_ns)
{
	return (int64_t)(time_ns - tracer->zero_ns);
}

static int say_flash(void *context, const struct flash_event *event)
{
	static const char *const kinds[FLASH_KINDS] = {"read", "program", "erase"};
	const struct tracer *tracer = context;
	const uint32_t pages = tracer->geometry.block_bytes / tracer->geometry.page_bytes;

	if (event->start_ns < tracer->since_ns || event->start_ns > tracer->until_ns)
		return 0;
	return channel_printf(tracer->out,
			      "%sflash %" PRId64 " %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
			      " %d %s\n",
			      tracer->prefix, since_zero(tracer, event->start_ns),
			      kinds[event->kind], event->page / pages, event->page, event->column,
			      event->length, event->pid, event->task);
}

static const char *number_or_dash(bool known, int64_t value, char *text, size_t size)
{
	if (known)
		(void)snprintf(text, size, "%" PRId64, value);
	else
		(void)snprintf(text, size, "-");
	return text;
}

/* A file's name as one word. */
static const char *as_word(const char *name, char *text, size_t size)
{
	(void)snprintf(text, size, "%s", *name ? name : "-");
	for (char *byte = text; *byte; byte++)
		if (*byte <= ' ' || *byte > '~')
			*byte = '_';
	return text;
}

static bool wanted(const struct tracer *tracer, const struct call_row *row)
{
	return row->start_ns >= tracer->zero_ns && row->start_ns <= tracer->until_ns;
}

static int say_vfs(void *context, const struct call_row *row)
{
	const struct tracer *tracer = context;
	char text[5][24];
	char file[64];

	if (!wanted(tracer, row))
		return 0;
	return channel_printf(
		tracer->out, "%svfs %" PRId64 " %s %s %s %s %s %s %d %s %s\n", tracer->prefix,
		since_zero(tracer, row->start_ns),
		number_or_dash(row->duration_ns >= 0, row->duration_ns, text[0], sizeof(text[0])),
		row->what,
		number_or_dash(row->inode, (int64_t)row->inode, text[1], sizeof(text[1])),
		number_or_dash(row->offset >= 0, row->offset, text[2], sizeof(text[2])),
		number_or_dash(row->length >= 0, row->length, text[3], sizeof(text[3])),
		number_or_dash(row->has_result, result_number(row->result), text[4],
			       sizeof(text[4])),
		row->pid, trace_task(row->pid), as_word(row->file, file, sizeof(file)));
}

static int say_func(void *context, const struct call_row *row)
{
	const struct tracer *tracer = context;
	char text[2][24];

	if (!wanted(tracer, row))
		return 0;
	return channel_printf(
		tracer->out, "%sfunc %" PRId64 " %s %s %s %d %s\n", tracer->prefix,
		since_zero(tracer, row->start_ns),
		number_or_dash(row->duration_ns >= 0, row->duration_ns, text[0], sizeof(text[0])),
		row->what, number_or_dash(row->has_result, row->result, text[1], sizeof(text[1])),
		row->pid, trace_task(row->pid));
}

static int say_value(void *context, const struct trace_event *event, const char *name,
		     uint64_t value)
{
	const struct tracer *tracer = context;

	if (event->time_ns < tracer->zero_ns || event->time_ns > tracer->until_ns)
		return 0;
	return channel_printf(tracer->out, "%svalue %" PRId64 " %s %" PRIu64 " %d %s\n",
			      tracer->prefix, since_zero(tracer, event->time_ns), name, value,
			      event->pid, trace_task(event->pid));
}

static int take(void *context, const struct trace_event *event)
{
	struct tracer *tracer = context;
	int err = 0;

	if (tracer->flashmon)
		err = flashmon_take(tracer->flashmon, event, say_flash, tracer);
	if (!err && tracer->vfsmon)
		err = vfsmon_take(tracer->vfsmon, event, say_vfs, tracer);
	if (!err && tracer->funcmon)
		err = funcmon_take(tracer->funcmon, event, say_func, tracer);
	if (!err && tracer->valuemon)
		err = valuemon_take(tracer->valuemon, event, say_value, tracer);
	return err;
}

int tracer_rows(struct tracer *tracer, uint64_t until_ns)
{
	return tracefs_drain(tracer->session, until_ns, take, tracer);
}

static int say_ecc(const struct tracer *tracer)
{
	struct mtd_ecc_stats now;

	if (!tracer->has_stats || !read_stats(tracer->mtd, &now))
		return 0;
	return channel_printf(tracer->out, "%secc %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
			      tracer->prefix, now.corrected - tracer->before.corrected,
			      now.failed - tracer->before.failed,
			      now.badblocks - tracer->before.badblocks);
}

int tracer_end(struct tracer *tracer, uint64_t until_ns)
{
	int err = tracefs_stop(tracer->session);

	tracer->until_ns = until_ns;
	if (!err)
		err = tracer_rows(tracer, UINT64_MAX);
	if (!err && tracer->flashmon)
		err = flashmon_finish(tracer->flashmon, say_flash, tracer);
	if (!err && tracer->vfsmon)
		err = vfsmon_finish(tracer->vfsmon, say_vfs, tracer);
	if (!err && tracer->funcmon)
		err = funcmon_finish(tracer->funcmon, say_func, tracer);
	if (!err)
		err = say_ecc(tracer);
	if (!err)
		err = tracefs_lost(tracer->session, &tracer->lost);
	return err ? err
		   : channel_printf(tracer->out, "%slost %" PRIu64 "\n", tracer->prefix,
				    tracer->lost);
}

void tracer_close(struct tracer *tracer)
{
	if (!tracer)
		return;
	flashmon_close(tracer->flashmon);
	vfsmon_close(tracer->vfsmon);
	funcmon_close(tracer->funcmon);
	valuemon_close(tracer->valuemon);
	tracefs_close(tracer->session);
	free(tracer);
}

uint64_t tracer_lost(const struct tracer *tracer)
{
	return tracer->lost;
}
