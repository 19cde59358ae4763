/* SPDX-License-Identifier: Apache-2.0 */
/* The tracers on a board, without a job: writes a stream `flashbed-trace 1`
 * (agent/tracing/README.md) while a command runs, for some time, or until a signal.
 *
 *   flashbed-agent flashmon | vfsmon [OPTION]... [-- COMMAND...]
 *   flashbed-agent funcmon NAME... [OPTION]... [-- COMMAND...]
 *   flashbed-agent trace [--flash] [--vfs] [--func NAME]... [OPTION]... [-- COMMAND...]
 *
 *   --seconds N        the longest duration
 *   --out FILE         the stream goes there, and the command's output to standard output (else the
 *                      stream has standard output, and the command standard error)
 *   --mtd N            the partition whose chip is traced; by default the first NAND
 *   --points LEVEL     nand, page or mtd; by default the best available
 *   --buffer-kib N     the kernel's buffer of each processor (16384)
 *   --global           use the kernel's global buffer, as on kernels without instances
 *
 * Kernel interfaces: fork, execvp, waitpid, signals. Exit status: 0; 1 if events were lost or
 * tracing failed; 2 for a bad command line; the command's own is in the stream. The trace does
 * not contain the tracer's own activity.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { POLL_MS = 50, WORDS = 4096 };
/* An event gets its time before it is in the buffer. */
static const uint64_t SETTLED_NS = 5000000;

static volatile sig_atomic_t stopped;

struct trace_options {
	struct trace_request request;
	char words[WORDS];
	double seconds; /* 0 for no limit */
	const char *out;
	char **command; /* NULL for none */
};

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = stop};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Adds to the words that tracer_parse() reads. */
static bool add_word(struct trace_options *options, const char *key, const char *value)
{
	const size_t used = strlen(options->words);
	const int more = snprintf(options->words + used, sizeof(options->words) - used, "%s%s%s",
				  used ? " " : "", key, value);

	return more > 0 && used + (size_t)more < sizeof(options->words) && !strchr(value, ' ');
}

static bool parse_option(struct trace_options *options, const char *name, const char *value)
{
	static const struct {
		const char *option;
		const char *word;
	} words[] = {{"--func", "func="},
		     {"--mtd", "mtd="},
		     {"--points", "points="},
		     {"--buffer-kib", "buffer_kib="}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, words[i].option) == 0)
			return add_word(options, words[i].word, value);
	if (strcmp(name, "--seconds") == 0)
		return (options->seconds = strtod(value, NULL)) > 0;
	if (strcmp(name, "--out") != 0)
		return false;
	options->out = value;
	return true;
}

static bool parse(struct trace_options *options, int argc, char **argv)
{
	const bool functions = strcmp(argv[1], "funcmon") == 0;
	bool good = true;

	options->request.mtd = -1;
	if (strcmp(argv[1], "flashmon") == 0)
		good = add_word(options, "flash", "");
	else if (strcmp(argv[1], "vfsmon") == 0)
		good = add_word(options, "vfs", "");
	for (int i = 2; i < argc && good; i++) {
		if (strcmp(argv[i], "--") == 0) {
			options->command = argv[i + 1] ? argv + i + 1 : NULL;
			break;
		}
		if (strcmp(argv[i], "--flash") == 0 || strcmp(argv[i], "--vfs") == 0 ||
		    strcmp(argv[i], "--global") == 0)
			good = add_word(options, argv[i] + 2, "");
		else if (functions && argv[i][0] != '-')
			good = add_word(options, "func=", argv[i]);
		else if (argv[i + 1])
			good = parse_option(options, argv[i], argv[i + 1]), i++;
		else
			good = false;
	}
	return good && tracer_parse(&options->request, options->words) == 0;
}

/* Starts the command, which waits for a byte from `gate` so that all of it is traced. */
static int start(const struct trace_options *options, pid_t *child, int *gate)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*child = fork();
	if (*child < 0)
		return -errno;
	if (*child == 0) {
		char byte;

		(void)close(ends[1]);
		if (!options->out)
			(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		if (read(ends[0], &byte, 1) == 1)
			(void)execvp(options->command[0], options->command);
		(void)fprintf(stderr, "flashbed-agent: %s: %s\n", options->command[0],
			      strerror(errno));
		_exit(127);
	}
	(void)close(ends[0]);
	*gate = ends[1];
	return 0;
}

static int ended(pid_t child, int *status)
{
	int how;

	if (waitpid(child, &how, WNOHANG) != child)
		return 0;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
	return 1;
}

/* Writes rows until the command ends, the time is over, or a signal comes. */
static int follow(struct tracer *tracer, struct channel *out, const struct trace_options *options,
		  pid_t child, int *status)
{
	const uint64_t start_ns = now_ns();
	int err = 0;

	for (;;) {
		const bool over = child > 0 && ended(child, status);
		const uint64_t now = now_ns();

		err = tracer_rows(tracer, now - SETTLED_NS);
		if (!err)
			err = channel_flush(out);
		if (err || over || stopped ||
		    (options->seconds > 0 && (double)(now - start_ns) >= options->seconds * 1e9))
			return err;
		struct pollfd reader = {.fd = out->handle};

		/* The reader is gone: the connection has dropped. */
		if (poll(&reader, 1, POLL_MS) > 0 && reader.revents & (POLLERR | POLLHUP))
			return -EPIPE;
	}
}

static int trace(const struct trace_options *options, struct channel *out)
{
	char detail[TRACE_DETAIL] = "";
	struct tracer *tracer = NULL;
	pid_t child = 0;
	int gate = -1;
	int status = -1;
	int err = channel_printf(out, "flashbed-trace 1\n");

	if (!err && options->command)
		err = start(options, &child, &gate);
	if (!err)
		err = tracer_open(&tracer, &options->request, out, "", detail);
	if (!err)
		err = tracer_ignore(tracer, getpid());
	if (err) {
		tracer_close(tracer);
		if (child > 0)
			(void)kill(child, SIGKILL);
		(void)fprintf(stderr, "flashbed-agent: %s\n", *detail ? detail : strerror(-err));
		return err;
	}
	const uint64_t zero_ns = now_ns();

	tracer_begin(tracer, zero_ns, zero_ns);
	if (gate >= 0 && write(gate, "g", 1) != 1)
		err = -errno;
	err = err ? err : follow(tracer, out, options, child, &status);
	/* A signal or the end of the time leaves the command running. */
	const int last = tracer_end(tracer, now_ns());

	err = err ? err : last;
	if (!err)
		err = status < 0 ? channel_printf(out, "end -\n")
				 : channel_printf(out, "end %d\n", status);
	if (!err)
		err = channel_flush(out);
	const uint64_t lost = tracer_lost(tracer);

	tracer_close(tracer);
	if (err)
		(void)fprintf(stderr, "flashbed-agent: tracing ended: %s\n", strerror(-err));
	else if (lost)
		(void)fprintf(stderr,
			      "flashbed-agent: %" PRIu64
			      " events were lost; --buffer-kib makes room for more\n",
			      lost);
	return err ? err : lost ? -ENOBUFS : 0;
}

int trace_main(int argc, char **argv)
{
	static struct channel out;
	static struct trace_options options;

	if (!parse(&options, argc, argv)) {
		(void)fputs("usage: flashbed-agent flashmon | vfsmon | funcmon NAME... | trace "
			    "[--flash] [--vfs] [--func NAME]...\n"
			    "       [--seconds N] [--out FILE] [--mtd N] [--points nand|page|mtd] "
			    "[--buffer-kib N] [--global] [-- COMMAND...]\n",
			    stderr);
		return 2;
	}
	const int fd = options.out
			       ? open(options.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
			       : STDOUT_FILENO;

	if (fd < 0) {
		(void)fprintf(stderr, "flashbed-agent: %s: %s\n", options.out, strerror(errno));
		return 1;
	}
	catch_signals();
	const int err = channel_from_fd(&out, fd);

	return (err ? err : trace(&options, &out)) ? 1 : 0;
}
