/* SPDX-License-Identifier: Apache-2.0 */
/* Records a program: its system calls on files below the working folder, as a stream
 * `flashbed-record 1` (docs/formats.md).
 *
 *   flashbed-agent record [--below DIR]... [--fd N] [--aside] -- COMMAND...
 *
 *   --below DIR   follow files below DIR as well; again for more
 *   --fd N        the stream goes to descriptor N, which the program does not get, instead of
 *                 standard output
 *   --aside       the program's standard output goes to standard error; so it does without --fd
 *
 * Exit status: the program's; 126 if it could not be recorded, 2 for a bad command line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "record/record.h"

enum { TEXT_BYTES = 1 << 18, NOT_RECORDED = 126, USAGE = 2 };

struct wish {
	const char *below[RECORD_FOLDERS];
	size_t below_count;
	int fd;
	bool aside;
	char **command;
};

/* Text that grows to its buffer's end. */
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

/* Bytes that would end a line are %XX. */
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

static int say_begin(struct recorder *recorder, char **command)
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

static int say_end(struct recorder *recorder)
{
	static struct facts facts;

	for (size_t i = 0; i < recorder->counts_used; i++)
		add(&facts, "not_followed %" PRIu64 " %s\n", recorder->counts[i].count,
		    recorder->counts[i].name);
	add(&facts, "calls %" PRIu64 "\n", recorder->calls);
	add(&facts, "stops %" PRIu64 "\n", recorder->stops);
	add(&facts, "busy_ns %" PRIu64 "\n", recorder->busy_ns);
	add(&facts, "blocked_ns %" PRIu64 "\n", recorder->stream.blocked_ns);
	add(&facts, "wall_ns %" PRIu64 "\n", now_ns() - recorder->zero_ns);
	add(&facts, "status %d\n", recorder->status);
	return rows_facts(&recorder->stream, "last", facts.text);
}

static bool parse(struct wish *wish, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			wish->command = argv[i + 1] ? argv + i + 1 : NULL;
			return wish->command != NULL;
		}
		if (strcmp(argv[i], "--aside") == 0) {
			wish->aside = true;
		} else if (strcmp(argv[i], "--below") == 0 && argv[i + 1] &&
			   wish->below_count < RECORD_FOLDERS - 1) {
			wish->below[wish->below_count++] = argv[++i];
		} else if (strcmp(argv[i], "--fd") == 0 && argv[i + 1]) {
			char *end = NULL;

			wish->fd = (int)strtol(argv[++i], &end, 10);
			if (*end || wish->fd < 0)
				return false;
		} else {
			return false;
		}
	}
	return false;
}

static int record(struct recorder *recorder, const struct wish *wish, const char **what)
{
	int err = folders_add(&recorder->folders, ".");

	*what = "the working folder";
	for (size_t i = 0; i < wish->below_count && !err; i++) {
		*what = wish->below[i];
		err = folders_add(&recorder->folders, wish->below[i]);
	}
	if (err)
		return err;
	*what = "ptrace with seccomp";
	err = overhead_measure(&recorder->overhead);
	if (err)
		return err;
	*what = "the stream";
	err = rows_init(&recorder->stream, wish->fd);
	if (!err)
		err = say_begin(recorder, wish->command);
	if (!err)
		err = listing(recorder);
	if (!err)
		err = follow_program(recorder, wish->command, wish->aside);
	return err ? err : say_end(recorder);
}

int record_main(int argc, char **argv)
{
	static struct recorder recorder;
	struct wish wish = {.fd = -1};
	const char *what = "";

	if (!parse(&wish, argc, argv)) {
		(void)fputs("usage: flashbed-agent record [--below DIR]... [--fd N] [--aside] "
			    "-- COMMAND...\n",
			    stderr);
		return USAGE;
	}
	if (wish.fd < 0) {
		wish.fd = STDOUT_FILENO;
		wish.aside = true;
	}
	const int given = wish.fd;

	wish.fd = fcntl(given, F_DUPFD_CLOEXEC, 100);
	if (given > STDERR_FILENO)
		(void)close(given);
	const int err = wish.fd < 0 ? -errno : record(&recorder, &wish, &what);

	if (!err)
		return recorder.status;
	(void)fprintf(stderr, "flashbed-agent: not recorded: %s: %s\n", what, strerror(-err));
	return NOT_RECORDED;
}
