/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of the kernel for programs: a fresh file system, what is put on it, the program, and
 * what it did to the flash.
 *
 * The answer, a line each: `ran exit N`, `ran signal N` or `cannot ERRNO`; `time NS` from its first
 * instruction to its end; `counts WHEN READS PROGRAMS ERASES BUSY_NS` with WHEN `run`, then `flush`
 * for what sync(2) still wrote; `call NAME CALLS NS BYTES` a kind; `wear ERASES…`, of the blocks in
 * both; `page BYTES`; `end`. `error WORDS` and nothing more if there was no program to run.
 * What the program leaves running is killed when it has ended.
 *
 * Kernel interfaces: /sys/kernel/debug/flashbed_calls, fork(2), execve(2), wait4(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host.h"

#define CALLS "/sys/kernel/debug/flashbed_calls"
#define FLASH "/mnt"

static const uint64_t SECOND_NS = 1000000000;
/* How long threads of a file system have after sync(2) to erase what it made free. */
static const uint64_t SETTLE_NS = 100000000;

enum { WEAR_IN_LINE = 64 };

/* Shared with the program's process until it is executed. */
struct launch {
	uint64_t began_ns;
	int err;
};

struct counted {
	struct flash_counts flash;
	uint32_t *erases;
};

bool host_is_kernel(void)
{
	return access(CALLS, F_OK) == 0;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec until = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static int count(const struct fs *fs, struct counted *counted)
{
	const uint32_t blocks = block_count(fs);
	uint32_t first = 0;
	int64_t pages;
	int64_t bad;
	int err = first_block(fs, &first);

	if (!err)
		err = nandlog_counts(&counted->flash);
	if (!err && !counted->erases)
		counted->erases = calloc(blocks, sizeof(*counted->erases));
	if (!err && !counted->erases)
		err = -ENOMEM;
	return err ? err : nandlog_blocks(first, blocks, counted->erases, &pages, &bad);
}

static void say_counts(struct channel *out, const char *when, const struct counted *from,
		       const struct counted *to)
{
	(void)channel_printf(out, "counts %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			     when, to->flash.of[FLASH_READ] - from->flash.of[FLASH_READ],
			     to->flash.of[FLASH_PROGRAM] - from->flash.of[FLASH_PROGRAM],
			     to->flash.of[FLASH_ERASE] - from->flash.of[FLASH_ERASE],
			     to->flash.busy_ns - from->flash.busy_ns);
}

static void say_calls(struct channel *out)
{
	FILE *calls = fopen(CALLS, "re");
	char line[128];

	while (calls && fgets(line, sizeof(line), calls))
		(void)channel_printf(out, "call %s", line);
	if (calls)
		(void)fclose(calls);
}

static void say_wear(struct channel *out, const struct fs *fs, const struct counted *from,
		     const struct counted *to)
{
	for (uint32_t block = 0; block < block_count(fs); block++) {
		if (block % WEAR_IN_LINE == 0)
			(void)channel_printf(out, "%swear", block ? "\n" : "");
		(void)channel_printf(out, " %" PRIu32, to->erases[block] - from->erases[block]);
	}
	(void)channel_printf(out, "\npage %" PRIu32 "\nend\n", fs->geometry.page_bytes);
}

/* In the program's process; comes back only when it cannot be executed. */
static int execute(const struct host_request *request, struct launch *launch)
{
	const int calls = open(CALLS, O_WRONLY | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++) {
		const int host = host_open(HOST_STDIN + fd);

		if (host < 0)
			return host;
		if (host == fd ? fcntl(fd, F_SETFD, 0) : dup2(host, fd) < 0)
			return -errno;
		if (host != fd)
			(void)close(host);
	}
	int err = calls < 0 ? -errno : host_enter_view(request);

	if (err)
		return err;
	(void)signal(SIGPIPE, SIG_DFL);
	launch->began_ns = now_ns();
	if (write(calls, "0", 1) < 0)
		return -errno;
	(void)execve(request->program, request->arguments, request->environment);
	return -errno;
}

/* Waits for the program and, as process 1, for everybody who has no parent. */
static int wait_for(pid_t program)
{
	int status = 0;
	pid_t ended;

	do
		ended = wait(&status);
	while (ended != program && (ended > 0 || errno == EINTR));
	return status;
}

static void kill_the_rest(void)
{
	(void)kill(-1, SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static int flush(const struct fs *fs, struct counted *after)
{
	sync();
	sleep_until(now_ns() + SETTLE_NS);
	return count(fs, after);
}

static void say_end(struct channel *out, const struct launch *launch, int status, uint64_t end_ns)
{
	if (launch->err)
		(void)channel_printf(out, "cannot %d\n", -launch->err);
	else if (WIFSIGNALED(status))
		(void)channel_printf(out, "ran signal %d\n", WTERMSIG(status));
	else
		(void)channel_printf(out, "ran exit %d\n", WEXITSTATUS(status));
	(void)channel_printf(out, "time %" PRIu64 "\n", end_ns - launch->began_ns);
}

static int run(const struct host_request *request, const struct fs *fs, struct channel *out)
{
	struct launch *launch = mmap(NULL, sizeof(*launch), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct counted before = {0};
	struct counted ran = {0};
	struct counted flushed = {0};

	if (launch == MAP_FAILED)
		return -errno;
	sync();
	sleep_until((now_ns() / SECOND_NS + 2) * SECOND_NS);
	int err = count(fs, &before);

	if (err)
		return err;
	const pid_t program = fork();

	if (program == 0) {
		launch->err = execute(request, launch);
		_exit(1);
	}
	if (program < 0)
		return -errno;
	const int status = wait_for(program);
	const uint64_t end_ns = now_ns();

	err = count(fs, &ran);
	kill_the_rest();
	if (err)
		return err;
	say_end(out, launch, status, end_ns);
	say_calls(out);
	say_counts(out, "run", &before, &ran);
	err = flush(fs, &flushed);
	if (err)
		return err;
	say_counts(out, "flush", &ran, &flushed);
	say_wear(out, fs, &before, &flushed);
	return 0;
}

/* A fresh file system with what was put on it, nothing of it in memory. */
static int prepare(const struct host_request *request, struct fs *fs, const char **what)
{
	int err = fs_init(fs, 0, FLASH);

	*what = fs->detail;
	if (!err)
		err = fs_format(fs, request->fs);
	if (!err)
		err = fs_mount_fresh(fs);
	if (err)
		return err;
	*what = "the folder on flash";
	if (chown(FLASH, request->uid, request->gid) || chmod(FLASH, 0755))
		return -errno;
	err = host_put_all(request, FLASH, what);
	if (err)
		return err;
	*what = fs->detail;
	return fs_remount(fs);
}

/* The kernel collects randomness for its first reader, which takes a second: not the program's. */
static void ready_random(void)
{
	const int fd = open("/dev/random", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && read(fd, &byte, 1) == 1)
		(void)close(fd);
}

int host_main(void)
{
	static struct channel out;
	static struct host_request request;
	static struct fs fs;
	const char *what = "the request";
	const int asked = host_open(HOST_REQUEST);
	int err = channel_from_fd(&out, host_open(HOST_ANSWER));

	if (!err)
		err = asked < 0 ? asked : host_read_request(asked, &request);
	ready_random();
	(void)sethostname("flashbed", strlen("flashbed"));
	(void)write_file("/proc/sys/kernel/threads-max", "1000");
	if (!err)
		err = prepare(&request, &fs, &what);
	if (!err)
		err = host_make_view(&request, FLASH, &what);
	if (!err) {
		what = "the run";
		err = run(&request, &fs, &out);
	}
	if (err)
		(void)channel_printf(&out, "error %s: %s\n", what, strerror(-err));
	(void)channel_flush(&out);
	return err;
}
