/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a recording in its stream: at the beginning the machine, the folders and the names of
 * calls; at the end what was not followed and the recorder's own cost.
 *
 * Kernel interface: uname(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "record/record.h"

enum { TEXT_BYTES = 1 << 18 };

/* Text appended to a buffer. */
struct facts {
	char text[TEXT_BYTES];
	size_t used;
};

static void add(struct facts *facts, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct facts *facts, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	const int length = vsnprintf(facts->text + facts->used, sizeof(facts->text) - facts->used,
				     format, arguments);
	va_end(arguments);
	if (length > 0 && (size_t)length < sizeof(facts->text) - facts->used)
		facts->used += (size_t)length;
	else
		facts->text[facts->used] = '\0';
}

/* Encodes bytes that would end a line as %XX. */
static void add_escaped(struct facts *facts, const char *key, const char *value)
{
	const size_t before = facts->used;

	add(facts, "%s ", key);
	for (const char *at = value; *at && facts->used + 8 < sizeof(facts->text); at++)
		if ((uint8_t)*at < 0x20 || *at == '%' || *at == 0x7f)
			add(facts, "%%%02X", (uint8_t)*at);
		else
			facts->text[facts->used++] = *at;
	facts->text[facts->used] = '\0';
	if (facts->used + 8 >= sizeof(facts->text))
		facts->used = before;
	else
		add(facts, "\n");
}

int facts_begin(struct recorder *recorder, char **command)
{
	static struct facts facts;
	struct utsname machine;
	size_t count = 0;
	const struct known_call *calls = known_calls(&count);

	if (uname(&machine))
		return -errno;
	add(&facts, "machine %s %s %s\n", machine.sysname, machine.release, machine.machine);
	add(&facts, "row_bytes %zu\n", sizeof(struct record_row));
	add(&facts, "page_bytes %ld\n", sysconf(_SC_PAGESIZE));
	add(&facts, "stop_cpu_ns %" PRIu64 "\n", recorder->overhead.stop_cpu_ns);
	add(&facts, "call_cpu_ns %" PRIu64 "\n", recorder->overhead.call_cpu_ns);
	add(&facts, "call_ns %" PRIu64 "\n", recorder->overhead.call_ns);
	for (size_t i = 0; i < recorder->folders.count; i++)
		add_escaped(&facts, "folder", recorder->folders.path[i]);
	for (size_t i = 0; i < count; i++)
		add(&facts, "call %zu %s\n", i + 1, calls[i].name);
	for (char **word = command; *word; word++)
		add_escaped(&facts, "word", *word);
	return rows_facts(&recorder->stream, "fact", facts.text);
}

int facts_end(struct recorder *recorder)
{
	static struct facts facts;

	for (size_t i = 0; i < recorder->counts_used; i++)
		add(&facts, "not_followed %" PRIu64 " %s\n", recorder->counts[i].count,
		    recorder->counts[i].name);
	add(&facts, "calls %" PRIu64 "\n", recorder->calls);
	add(&facts, "stops %" PRIu64 "\n", recorder->stops);
	add(&facts, "busy_ns %" PRIu64 "\n", recorder->busy_ns);
	add(&facts, "blocked_ns %" PRIu64 "\n", recorder->stream.blocked_ns);
	if (recorder->zero_ns)
		add(&facts, "wall_ns %" PRIu64 "\n", now_ns() - recorder->zero_ns);
	add(&facts, "status %d\n", recorder->status);
	return rows_facts(&recorder->stream, "last", facts.text);
}

int facts_failed(struct recorder *recorder, int handle, const char *what, int error)
{
	static struct facts facts;
	static char why[RECORD_PATH + 128];

	if (!recorder->stream.row && rows_init(&recorder->stream, handle))
		return recorder->stream.error;
	(void)snprintf(why, sizeof(why), "%s: %s", what, strerror(error));
	add_escaped(&facts, "failed", why);
	return rows_facts(&recorder->stream, "last", facts.text);
}
