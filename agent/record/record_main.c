/* SPDX-License-Identifier: Apache-2.0 */
/* Records a program: its system calls on files below the working folder, as a stream
 * `flashbed-record 1` (agent/PROTOCOL.md).
 *
 *   flashbed-agent record [--below DIR]... [--fd N] [--aside] -- COMMAND...
 *
 *   --below DIR   also follow files below DIR; repeatable
 *   --fd N        the stream goes to descriptor N, which the program does not get, instead of
 *                 standard output
 *   --aside       the program's standard output goes to standard error, as without --fd
 *
 * Exit status: the program's, 126 if it could not be recorded, 127 if there is no such program, 2
 * for a bad command line. Why it was not recorded is the last fact of the stream.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"

enum { NOT_RECORDED = 126, NOT_FOUND = 127, USAGE = 2 };

struct wish {
	const char *below[RECORD_FOLDERS];
	size_t below_count;
	int fd;
	bool aside;
	char **command;
};

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
		err = facts_begin(recorder, wish->command);
	if (!err)
		err = listing(recorder);
	if (err)
		return err;
	*what = wish->command[0];
	err = follow_program(recorder, wish->command, wish->aside);
	return err ? err : facts_end(recorder);
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

	/* Out of the program's way, if there may be so many. */
	wish.fd = fcntl(given, F_DUPFD_CLOEXEC, 100);
	if (wish.fd < 0 && errno == EINVAL)
		wish.fd = fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (given > STDERR_FILENO)
		(void)close(given);
	if (wish.fd < 0) {
		(void)fprintf(stderr, "flashbed-agent: not recorded: descriptor %d: %s\n", given,
			      strerror(errno));
		return NOT_RECORDED;
	}
	const int err = record(&recorder, &wish, &what);

	if (!err)
		return recorder.status;
	if (facts_failed(&recorder, wish.fd, what, -err))
		(void)fprintf(stderr, "flashbed-agent: not recorded: %s: %s\n", what,
			      strerror(-err));
	return err == -ENOENT && what == wish.command[0] ? NOT_FOUND : NOT_RECORDED;
}
