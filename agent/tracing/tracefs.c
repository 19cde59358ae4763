/* SPDX-License-Identifier: Apache-2.0 */
/* A tracing session: our own probes, whose events go into our own buffer.
 *
 * Kernel interface: tracefs (Documentation/trace/ftrace.rst, kprobetrace.rst), in debugfs before
 * 4.1. `instances/flashbed-PID-N` is the buffer, `flashbed_PID_N/` the group of the probes. Kernels
 * with kprobe events (2.6.33) and without instances (3.10) have only the global buffer. It is used
 * if no other tracer uses it, and its settings are restored. ring.c reads it.
 *
 * Invariants:
 * 1. The end of a session, for whatever reason, removes its probes and its instance. A new session
 *    first removes those of processes that have ended.
 * 2. Events that the kernel drops or overwrites are counted (tracefs_lost).
 *
 * Leaves out: clocks other than `mono` (Linux 3.17) and `global`, which is converted to
 * CLOCK_MONOTONIC at the beginning; keeping the first events of a full buffer on kernels without an
 * option for it (`overwrite`, 2.6.39). These keep the last events, and the others are counted.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { PATH_BYTES = 320, TEXT_BYTES = 8192 };

struct probe {
	char event[TRACE_NAME];
	char path[PATH_BYTES]; /* below events/ */
	unsigned int type;
	char *format;
	bool ours; /* created by us, no trace point of the kernel */
};

struct tracefs {
	char root[PATH_BYTES];
	char dir[PATH_BYTES];
	char group[48];
	char suffix[32];
	const char *mounted; /* by us */
	bool instance;
	struct setting kept[TRACE_SETTINGS]; /* the settings of the global buffer before */
	size_t kept_count;
	struct ring ring;
	struct probe *probes;
	size_t probe_count;
	uint64_t lost_before;
	char detail[TRACE_DETAIL];
};

const char *tracefs_detail(const struct tracefs *session)
{
	return session->detail;
}

static int complain(struct tracefs *session, int err, const char *what)
{
	if (err)
		(void)snprintf(session->detail, sizeof(session->detail), "tracing: %.120s: %s",
			       what, strerror(-err));
	return err;
}

int tracefs_refuse(struct tracefs *session, int err, const char *why)
{
	(void)snprintf(session->detail, sizeof(session->detail), "tracing: %.180s", why);
	return err;
}

static int write_at(struct tracefs *session, const char *directory, const char *name,
		    const char *text)
{
	char path[PATH_BYTES + 128];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	return complain(session, write_file(path, text), path);
}

/* Appends a line of probes. Opening the file for writing without appending would clear it. */
static int change_probes(const char *root, const char *line)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/kprobe_events", root);
	const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = write(fd, line, strlen(line)) < 0 ? -errno : 0;

	(void)close(fd);
	return err;
}

static bool usable(const char *root)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/kprobe_events", root);
	return access(path, W_OK) == 0;
}

static char below[PATH_BYTES];

void tracefs_below(const char *folder)
{
	(void)snprintf(below, sizeof(below), "%s", folder);
}

static int find_root(struct tracefs *session)
{
	static const char *const mounts[][3] = {
		{"tracefs", "/sys/kernel/tracing", "/sys/kernel/tracing"},
		{"debugfs", "/sys/kernel/debug", "/sys/kernel/debug/tracing"}};

	if (below[0]) {
		(void)snprintf(session->root, sizeof(session->root), "%s", below);
		return 0;
	}
	for (int mounting = 0; mounting < 2; mounting++) {
		for (size_t i = 0; i < 2; i++) {
			const char *const *m = mounts[i];

			if (mounting && mount(m[0], m[1], m[0], 0, NULL))
				continue;
			if (usable(m[2])) {
				(void)snprintf(session->root, sizeof(session->root), "%s", m[2]);
				session->mounted = mounting ? m[1] : NULL;
				return 0;
			}
			if (mounting)
				(void)umount(m[1]);
		}
	}
	(void)snprintf(session->detail, sizeof(session->detail), "%s",
		       geteuid()
			       ? "tracing needs root"
			       : "the kernel has no kprobe events (CONFIG_KPROBE_EVENTS, tracefs)");
	return geteuid() ? -EPERM : -ENOTSUP;
}

/* Whether a process exists and is this program. */
static bool alive(int pid)
{
	char path[40];
	char mine[32];
	char its[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return read_file("/proc/self/comm", mine, sizeof(mine)) > 0 &&
	       read_file(path, its, sizeof(its)) > 0 && strcmp(mine, its) == 0;
}

/* Parses `TYPE:flashbed_PID_N/EVENT ...`, a line of kprobe_events. */
static bool parse_probe(const char *line, int *pid, char *name, size_t size)
{
	const char *colon = strchr(line, ':');

	if (!colon || (line[0] != 'p' && line[0] != 'r') ||
	    sscanf(colon, ":flashbed_%d_", pid) != 1)
		return false;
	(void)snprintf(name, size, "%.*s", (int)strcspn(colon + 1, " \n"), colon + 1);
	return true;
}

/* Removes all probes of a process, or of all that have ended (pid 0). They must be disabled first,
 * and are once no instance enables them. */
static bool remove_probes(const char *root, const char *group)
{
	char path[PATH_BYTES];
	char *line = NULL;
	size_t room = 0;
	bool any = false;

	(void)snprintf(path, sizeof(path), "%s/kprobe_events", root);
	for (bool found = true; found;) {
		char name[TRACE_NAME + 64];
		char command[TRACE_NAME + 80];
		int pid;
		FILE *in = fopen(path, "re");

		found = false;
		while (in && !found && getline(&line, &room, in) > 0)
			if (parse_probe(line, &pid, name, sizeof(name)))
				found = group ? strncmp(name, group, strlen(group)) == 0 &&
							name[strlen(group)] == '/'
					      : !alive(pid);
		if (in)
			(void)fclose(in);
		if (found) {
			(void)snprintf(command, sizeof(command), "%s/events/%s/enable", root, name);
			(void)write_file(command, "0");
			(void)snprintf(command, sizeof(command), "-:%s\n", name);
			/* Stops at a probe that cannot be removed: it would be found for ever. */
			found = change_probes(root, command) == 0;
			any = any || found;
		}
	}
	free(line);
	return any;
}

/* Removes what killed tracers left; returns whether one had left probes. */
static bool remove_stale(const struct tracefs *session)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/instances", session->root);
	DIR *instances = opendir(path);

	for (const struct dirent *entry = instances ? readdir(instances) : NULL; entry;
	     entry = readdir(instances)) {
		int pid;

		if (sscanf(entry->d_name, "flashbed-%d-", &pid) != 1 || alive(pid))
			continue;
		(void)snprintf(path, sizeof(path), "%s/instances/%.60s", session->root,
			       entry->d_name);
		(void)rmdir(path);
	}
	if (instances)
		(void)closedir(instances);
	return remove_probes(session->root, NULL);
}

static int make_buffer(struct tracefs *session, const struct tracefs_options *options)
{
	(void)snprintf(session->dir, sizeof(session->dir), "%s/instances/flashbed-%s",
		       session->root, session->suffix);
	for (char *byte = strstr(session->dir, "flashbed-"); byte && *byte; byte++)
		if (*byte == '_')
			*byte = '-';
	session->instance = !options->global && mkdir(session->dir, 0700) == 0;
	if (session->instance)
		return 0;
	(void)snprintf(session->dir, sizeof(session->dir), "%s", session->root);
	return 0;
}

/* Takes the global buffer after checking that no other tracer uses it. */
static int take_buffer(struct tracefs *session, bool left)
{
	struct setting before[TRACE_SETTINGS];
	char path[PATH_BYTES + 16];
	char why[TRACE_DETAIL - 80];
	const size_t count = buffer_settings(session->root, before);
	const int err =
		buffer_check(session->root, session->ring.processors, left, why, sizeof(why));

	if (err) {
		(void)snprintf(
			session->detail, sizeof(session->detail),
			"tracing: the kernel has one buffer (instances came with Linux 3.10), %s",
			why);
		return err;
	}
	memcpy(session->kept, before, sizeof(before));
	session->kept_count = count;
	(void)snprintf(path, sizeof(path), "%s/tracing_on", session->root);
	return access(path, F_OK) ? 0 : write_at(session, session->root, "tracing_on", "1");
}

/* Makes a full buffer keep the first events. Before 4.4 instances have the option in trace_options.
 */
static int keep_first(struct tracefs *session)
{
	char path[PATH_BYTES + 32];

	(void)snprintf(path, sizeof(path), "%s/options/overwrite", session->dir);
	if (access(path, F_OK) == 0)
		return write_at(session, session->dir, "options/overwrite", "0");
	(void)snprintf(path, sizeof(path), "%s/trace_options", session->dir);
	if (session->instance)
		(void)write_file(path, "nooverwrite");
	return 0;
}

/* Chooses the clock of events. `global` differs from CLOCK_MONOTONIC by a constant since boot,
 * which is measured with a mark written between two readings of CLOCK_MONOTONIC.
 */
static int stamp_mark(void *context, const struct trace_event *event)
{
	*(uint64_t *)context = event->time_ns;
	return 0;
}

static int set_clock(struct tracefs *session)
{
	if (!write_at(session, session->dir, "trace_clock", "mono"))
		return 0;
	return write_at(session, session->dir, "trace_clock", "global");
}

static int bring_clock(struct tracefs *session)
{
	char path[PATH_BYTES + 16];
	char text[256];
	uint64_t stamped = 0;

	(void)snprintf(path, sizeof(path), "%s/trace_clock", session->dir);
	if (read_file(path, text, sizeof(text)) > 0 && strstr(text, "[mono]"))
		return 0;
	const uint64_t before = now_ns();
	int err = write_at(session, session->dir, "trace_marker", "flashbed");
	const uint64_t after = now_ns();

	if (!err)
		err = complain(session,
			       ring_drain(&session->ring, UINT64_MAX, stamp_mark, &stamped),
			       "reading events");
	if (!err && stamped)
		session->ring.clock_offset_ns = (int64_t)(before + (after - before) / 2 - stamped);
	return err;
}

static int sum_lost(struct tracefs *session, uint64_t *lost)
{
	static const char *const names[] = {
		"\noverrun: ", "\ncommit overrun: ", "\ndropped events: "};
	const int err = buffer_sum(session->dir, session->ring.processors, names,
				   sizeof(names) / sizeof(names[0]), lost);

	return complain(session, err, "reading what the buffer has lost");
}

static int set_up(struct tracefs *session, const struct tracefs_options *options)
{
	char size[32];
	int err = find_root(session);

	if (err)
		return err;
	const bool left = remove_stale(session);

	err = make_buffer(session, options);
	if (!err)
		err = complain(session, ring_open(&session->ring, session->root, session->dir),
			       "opening the buffer");
	if (!err && !session->instance)
		err = take_buffer(session, left);
	if (!err)
		err = set_clock(session);
	(void)snprintf(size, sizeof(size), "%" PRIu64,
		       options->buffer_kib ? options->buffer_kib : 16384);
	if (!err)
		err = write_at(session, session->dir, "buffer_size_kb", size);
	if (!err)
		err = keep_first(session);
	if (!err && !session->instance)
		err = tracefs_drain(session, UINT64_MAX, NULL, NULL);
	if (!err)
		err = bring_clock(session);
	return err ? err : sum_lost(session, &session->lost_before);
}

int tracefs_open(struct tracefs **made, const struct tracefs_options *options, char *detail)
{
	static int sessions;
	struct tracefs *session = calloc(1, sizeof(*session));

	*made = NULL;
	if (!session)
		return -ENOMEM;
	(void)snprintf(session->suffix, sizeof(session->suffix), "%d_%d", getpid(), sessions++);
	(void)snprintf(session->group, sizeof(session->group), "flashbed_%s", session->suffix);
	const int err = set_up(session, options);

	if (err) {
		(void)snprintf(detail, TRACE_DETAIL, "%s",
			       session->detail[0] ? session->detail : strerror(-err));
		tracefs_close(session);
		return err;
	}
	*made = session;
	return 0;
}

/* Enables an event and reads its format. */
static int add_event(struct tracefs *session, const char *path, const char *event, bool ours,
		     unsigned int *type)
{
	char file[PATH_BYTES * 2];
	char text[TEXT_BYTES];
	struct probe *more = realloc(session->probes, (session->probe_count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	session->probes = more;
	(void)snprintf(file, sizeof(file), "%s/events/%s/format", session->root, path);
	const int got = read_file(file, text, sizeof(text));
	const char *id = got < 0 ? NULL : strstr(text, "ID: ");

	if (!id)
		return complain(session, got < 0 ? got : -EPROTO, file);
	struct probe *probe = &more[session->probe_count];

	*probe = (struct probe){.type = (unsigned int)strtoul(id + 4, NULL, 10),
				.ours = ours,
				.format = strdup(text)};
	(void)snprintf(probe->path, sizeof(probe->path), "%s", path);
	(void)snprintf(probe->event, sizeof(probe->event), "%s", event);
	session->probe_count++;
	*type = probe->type;
	(void)snprintf(file, sizeof(file), "events/%s/enable", path);
	return write_at(session, session->dir, file, "1");
}

int tracefs_probe(struct tracefs *session, char kind, const char *name, const char *function,
		  const char *arguments, unsigned int *type)
{
	char event[TRACE_NAME];
	char path[PATH_BYTES];
	char line[4096];

	/* kprobe_profile identifies events only by this name. */
	(void)snprintf(event, sizeof(event), "%.60s_%s", name, session->suffix);
	if ((size_t)snprintf(line, sizeof(line), "%c:%s/%s %s %s\n", kind, session->group, event,
			     function, arguments) >= sizeof(line))
		return -E2BIG;
	const int err = change_probes(session->root, line);

	if (err == -EINVAL && *arguments && !kernel_arguments_known()) {
		(void)snprintf(session->detail, sizeof(session->detail),
			       "tracing: on this machine (uname -m) neither flashbed nor the "
			       "kernel knows where a function's arguments are");
		return err;
	}
	if (err)
		return complain(session, err, function);
	(void)snprintf(path, sizeof(path), "%s/%s", session->group, event);
	return add_event(session, path, event, true, type);
}

int tracefs_point(struct tracefs *session, const char *path, unsigned int *type)
{
	return add_event(session, path, path, false, type);
}

int tracefs_field(struct tracefs *session, unsigned int type, const char *name,
		  unsigned int *offset, unsigned int *size)
{
	for (size_t i = 0; i < session->probe_count; i++)
		if (session->probes[i].type == type)
			return complain(session,
					trace_field(session->probes[i].format, name, offset, size),
					name);
	return -ENOENT;
}

int tracefs_forget_probes(struct tracefs *session)
{
	for (size_t i = 0; i < session->probe_count; i++) {
		char file[PATH_BYTES * 2];

		(void)snprintf(file, sizeof(file), "%s/events/%s/enable", session->dir,
			       session->probes[i].path);
		(void)write_file(file, "0");
		free(session->probes[i].format);
	}
	session->probe_count = 0;
	(void)remove_probes(session->root, session->group);
	return 0;
}

/* Reading the buffer is a read that a probe may see. Later events are left for the next call, or
 * there would be no end. */
int tracefs_drain(struct tracefs *session, uint64_t until_ns, trace_sink sink, void *context)
{
	const uint64_t now = now_ns();

	return complain(session,
			ring_drain(&session->ring, until_ns < now ? until_ns : now, sink, context),
			"reading events");
}

int tracefs_ignore(struct tracefs *session, int pid)
{
	char file[PATH_BYTES * 2];
	char text[48];

	(void)snprintf(text, sizeof(text), "common_pid != %d", pid);
	for (size_t i = 0; i < session->probe_count; i++) {
		(void)snprintf(file, sizeof(file), "events/%s/filter", session->probes[i].path);
		const int err = write_at(session, session->dir, file, text);

		if (err)
			return err;
	}
	return 0;
}

int tracefs_stop(struct tracefs *session)
{
	for (size_t i = 0; i < session->probe_count; i++) {
		char file[PATH_BYTES * 2];

		(void)snprintf(file, sizeof(file), "events/%s/enable", session->probes[i].path);
		const int err = write_at(session, session->dir, file, "0");

		if (err)
			return err;
	}
	return 0;
}

/* A probe's line of kprobe_profile: `  NAME   HITS   MISSED`. */
static uint64_t missed_by(const char *text, const char *event)
{
	const size_t length = strlen(event);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *name = line + strspn(line, " ");

		if (strncmp(name, event, length) == 0 && isspace((unsigned char)name[length])) {
			char *end;

			(void)strtoull(name + length, &end, 10);
			return strtoull(end, NULL, 10);
		}
	}
	return 0;
}

static char *read_profile(const struct tracefs *session)
{
	char path[PATH_BYTES];
	size_t size = TEXT_BYTES + 100 * session->probe_count;
	char *text = malloc(size);

	(void)snprintf(path, sizeof(path), "%s/kprobe_profile", session->root);
	while (text) {
		const int got = read_file(path, text, size);

		if (got >= 0 && (size_t)got < size - 1)
			return text;
		size *= 2;
		free(text);
		text = got < 0 ? NULL : malloc(size);
	}
	return NULL;
}

int tracefs_lost(struct tracefs *session, uint64_t *lost)
{
	char *text = read_profile(session);
	const int err = sum_lost(session, lost);

	*lost -= err ? 0 : session->lost_before;
	for (size_t i = 0; text && i < session->probe_count; i++)
		if (session->probes[i].ours)
			*lost += missed_by(text, session->probes[i].event);
	free(text);
	return err || text ? err : -EIO;
}

/* Opening `trace` for writing empties the buffer. What is left in it is ours, and the next tracer
 * would take it for another's. */
static void clear(const char *root)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/trace", root);
	const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
}

void tracefs_close(struct tracefs *session)
{
	if (!session)
		return;
	if (session->root[0])
		(void)tracefs_forget_probes(session);
	ring_close(&session->ring);
	if (session->instance)
		(void)rmdir(session->dir);
	if (session->kept_count)
		clear(session->root);
	for (size_t i = 0; i < session->kept_count; i++)
		(void)write_file(session->kept[i].path, session->kept[i].text);
	if (session->mounted)
		(void)umount(session->mounted);
	free(session->probes);
	free(session);
}
