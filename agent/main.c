/* SPDX-License-Identifier: Apache-2.0 */
/* flashbed-agent: the program on the board. Its commands:
 *
 *   check FILE
 *       prints a valid file without comments and empty lines, or FILE:LINE: CODE: detail
 *   run FILE --dir DIR [--contents]
 *       runs a file's operations in a directory and prints stream rows; no flash counts, no remount
 *   survey FILE --dir DIR
 *       prints the content of a directory's files that FILE writes, as stream rows
 *   window --dir DIR
 *       prints the read-ahead window of files in a directory, KiB, by reading one (trial.c)
 *   window --root FOLDER --fs FS [--device MAJOR:MINOR] [--volume UBI_VOLUME]
 *       prints the window's sysfs file and its value, for the /sys and /proc below FOLDER; for
 *       tests
 *   session --root TRACEFS
 *       begins and ends a tracing session in a folder laid out as tracefs; for tests
 *   board [--dir DIR]
 *       prints the board's features, and the file system of DIR (board.c)
 *   job --home FOLDER (--mtd N --name NAME | --dir DIR)
 *       reads a job from standard input and writes its stream to standard output. It erases mtd N
 *       if its name is NAME and it may be erased, or works in a folder of DIR. FOLDER is the
 *       agent's own and removed at the end (guard.c)
 *   program --home FOLDER --mtd N --name NAME
 *       runs the program of FOLDER/request on a new file system on that partition, guarded in the
 *       same way. Its standard input is the agent's; the answer goes to standard output (host/)
 *   flashmon | vfsmon | funcmon | trace ...
 *       the tracers (trace_main.c)
 *   record [--below DIR]... -- COMMAND...
 *       records a program's system calls (record_main.c)
 *
 * As process 1 it is the init of the emulated board (init.c).
 * Exit status: 0, 1 for a run that failed, 2 for bad input.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "board/board.h"
#include "fs/fs.h"
#include "job/job.h"
#include "record/record.h"
#include "tracing/tracing.h"

/* Reads a whole file into memory with one byte to spare; NULL and a message for an error. */
static char *load(const char *path, size_t *length)
{
	FILE *in = fopen(path, "rb");
	size_t size = 65536;
	char *text = in ? malloc(size) : NULL;

	*length = 0;
	while (text && !feof(in) && !ferror(in)) {
		*length += fread(text + *length, 1, size - 1 - *length, in);
		if (*length == size - 1) {
			char *more = realloc(text, size * 2);

			if (!more)
				break;
			text = more;
			size *= 2;
		}
	}
	if (!text || !feof(in)) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		free(text);
		text = NULL;
	}
	if (in)
		(void)fclose(in);
	return text;
}

static int load_ops(const char *path, struct ops *ops, char **text)
{
	struct ops_error error;
	size_t length = 0;

	*text = load(path, &length);
	if (!*text)
		return 2;
	const int err = ops_parse(*text, length, ops, &error);

	if (err == -EINVAL)
		(void)fprintf(stderr, "%s:%" PRIu32 ": %s: %s\n", path, error.line, error.code,
			      error.detail);
	else if (err)
		(void)fprintf(stderr, "%s: %s\n", path, strerror(-err));
	return err ? 2 : 0;
}

static int check(const char *path)
{
	struct ops ops;
	char *text = NULL;
	const int status = load_ops(path, &ops, &text);

	if (!status)
		ops_print_header(&ops, stdout);
	if (!status)
		for (size_t i = 0; i < ops.count; i++)
			ops_print(&ops.list[i], stdout);
	if (text)
		ops_free(&ops);
	free(text);
	return fflush(stdout) ? 1 : status;
}

static void print_rows(const struct runner *runner)
{
	for (size_t i = 0; i < runner->rows_count; i++) {
		char row[ROW_BYTES];

		run_print_row(runner, i, row, sizeof(row));
		(void)puts(row);
		if (runner->rows[i].message)
			(void)printf("q %zu %s\n", i, runner->rows[i].message);
	}
}

static int run(const char *path, const char *directory, bool contents)
{
	struct ops ops;
	struct runner runner;
	char *text = NULL;
	const int status = load_ops(path, &ops, &text);

	if (status)
		return status;
	int err = run_init(&runner);

	runner.contents = contents;
	if (!err)
		err = run_open_directory(&runner, directory);
	if (!err)
		err = run_ops(&runner, &ops, true);
	if (err && runner.sql.message[0])
		(void)fprintf(stderr, "%s:%" PRIu32 ": SQLite: %s: %s\n", path, runner.failed_line,
			      runner.failed_op, runner.sql.message);
	else if (err && runner.failed_op)
		(void)fprintf(stderr, "%s:%" PRIu32 ": %s: %s: %s\n", path, runner.failed_line,
			      error_name(err), runner.failed_op, strerror(-err));
	else if (err)
		(void)fprintf(stderr, "%s: %s: %s\n", directory, error_name(err), strerror(-err));
	print_rows(&runner);
	run_free(&runner);
	ops_free(&ops);
	free(text);
	return fflush(stdout) || err ? 1 : 0;
}

static int survey_dir(const char *path, const char *directory)
{
	static struct channel out;
	struct contents contents = {0};
	struct ops ops;
	char *text = NULL;
	const int status = load_ops(path, &ops, &text);

	if (status)
		return status;
	int err = channel_from_fd(&out, STDOUT_FILENO);

	if (!err)
		err = contents_add(&contents, &ops);
	if (!err)
		err = survey(&out, &contents, directory);
	if (err)
		(void)fprintf(stderr, "%s: %s\n", directory, strerror(-err));
	const int flushed = channel_flush(&out);

	contents_free(&contents);
	ops_free(&ops);
	free(text);
	return err || flushed ? 1 : 0;
}

/* Parses `--NAME VALUE` pairs after the command; false for an unknown one. */
static bool parse_guarded(int argc, char **argv, struct guarded *guarded)
{
	*guarded = (struct guarded){.mtd = -1};
	for (int i = 2; i < argc; i += 2) {
		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "--mtd") == 0)
			guarded->mtd = (int)strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--name") == 0)
			guarded->name = argv[i + 1];
		else if (strcmp(argv[i], "--dir") == 0)
			guarded->directory = argv[i + 1];
		else if (strcmp(argv[i], "--home") == 0)
			guarded->home = argv[i + 1];
		else
			return false;
	}
	/* A partition needs its name: after a boot the same number may be another partition. */
	return guarded->home && (guarded->mtd >= 0) != (guarded->directory != NULL) &&
	       (guarded->mtd >= 0) == (guarded->name != NULL);
}

static int board(int argc, char **argv)
{
	static struct channel out;
	const bool directory = argc == 4 && strcmp(argv[2], "--dir") == 0;

	if (argc != 2 && !directory)
		return 2;
	int err = channel_from_fd(&out, STDOUT_FILENO);

	if (!err)
		err = board_say(&out, directory ? argv[3] : NULL);
	return err ? 1 : 0;
}

/* Prints the window that another root has; with --dir the one of a directory's files. */
static int window(int argc, char **argv)
{
	struct window_of of = {.fs = "", .ubi = -1, .volume = -1};
	char path[WINDOW_PATH_BYTES];
	unsigned int numbers[2] = {0, 0};
	uint64_t kib = 0;

	for (int i = 2; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--root") == 0)
			window_below(argv[i + 1]);
		else if (strcmp(argv[i], "--fs") == 0)
			of.fs = argv[i + 1];
		else if (strcmp(argv[i], "--device") == 0 &&
			 sscanf(argv[i + 1], "%u:%u", &numbers[0], &numbers[1]) == 2)
			of.device = makedev(numbers[0], numbers[1]);
		else if (strcmp(argv[i], "--volume") != 0 ||
			 sscanf(argv[i + 1], "%d_%d", &of.ubi, &of.volume) != 2)
			return 2;
	}
	const int err = window_path(&of, path, sizeof(path));

	if (err) {
		(void)printf("none\n");
		return 1;
	}
	(void)printf("%s %" PRIu64 "\n", path, window_read(path, &kib) ? 0 : kib);
	return 0;
}

/* Begins and ends a session in a folder laid out as tracefs. */
static int session(const char *folder)
{
	const struct tracefs_options options = {64, false};
	struct tracefs *made = NULL;
	char detail[TRACE_DETAIL] = "yes";

	tracefs_below(folder);
	const int err = tracefs_open(&made, &options, detail);

	tracefs_close(made);
	(void)puts(detail);
	return err ? 1 : 0;
}

static int measure_window(const char *directory)
{
	int64_t kib = -1;
	const int err = window_measure(directory, &kib);

	if (err)
		(void)fprintf(stderr, "%s: %s\n", directory, strerror(-err));
	else
		(void)printf("%" PRId64 "\n", kib);
	return err ? 1 : 0;
}

#ifdef __GLIBC__
/* Across a page fault user-mode Linux preserves only the baseline's vector registers, but glibc
 * copies with the widest ones and would find zeros in them. glibc chooses before `main`, so the
 * agent executes itself again with wide registers disabled. */
static void without_wide_registers(char **argv)
{
	if (getpid() != 1 || getenv("GLIBC_TUNABLES"))
		return;
	if (!setenv("GLIBC_TUNABLES",
		    "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Usable,-AVX2_"
		    "Usable",
		    1))
		(void)execv(argv[0], argv);
}
#endif

int main(int argc, char **argv)
{
#ifdef __GLIBC__
	without_wide_registers(argv);
#endif
	if (getpid() == 1)
		return init_main();
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check(argv[2]);
	const bool contents = argc == 6 && strcmp(argv[5], "--contents") == 0;

	if ((argc == 5 || contents) && strcmp(argv[1], "run") == 0 && strcmp(argv[3], "--dir") == 0)
		return run(argv[2], argv[4], contents);
	if (argc == 5 && strcmp(argv[1], "survey") == 0 && strcmp(argv[3], "--dir") == 0)
		return survey_dir(argv[2], argv[4]);
	if (argc == 4 && strcmp(argv[1], "session") == 0 && strcmp(argv[2], "--root") == 0)
		return session(argv[3]);
	if (argc == 4 && strcmp(argv[1], "window") == 0 && strcmp(argv[2], "--dir") == 0)
		return measure_window(argv[3]);
	if (argc >= 4 && strcmp(argv[1], "window") == 0)
		return window(argc, argv);
	struct guarded guarded;

	if (argc >= 2 && strcmp(argv[1], "board") == 0)
		return board(argc, argv);
	if (argc >= 2 && strcmp(argv[1], "job") == 0 && parse_guarded(argc, argv, &guarded))
		return guard_run(&guarded);
	if (argc >= 2 && strcmp(argv[1], "program") == 0 && parse_guarded(argc, argv, &guarded) &&
	    guarded.mtd >= 0) {
		guarded.program = true;
		return guard_run(&guarded);
	}
	if (argc >= 2 && strcmp(argv[1], "record") == 0)
		return record_main(argc, argv);
	static const char *const tracers[] = {"flashmon", "vfsmon", "funcmon", "trace"};

	for (size_t i = 0; argc >= 2 && i < sizeof(tracers) / sizeof(tracers[0]); i++)
		if (strcmp(argv[1], tracers[i]) == 0)
			return trace_main(argc, argv);
	(void)fputs("usage: flashbed-agent flashmon | vfsmon | funcmon | trace ... | check FILE | "
		    "run FILE --dir DIR [--contents] | survey FILE --dir DIR | window --dir DIR | "
		    "board [--dir DIR] | job --home FOLDER (--mtd N --name NAME | --dir DIR) | "
		    "program --home FOLDER --mtd N --name NAME | "
		    "record [--below DIR]... -- COMMAND...\n",
		    stderr);
	return 2;
}
