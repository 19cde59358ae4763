/* SPDX-License-Identifier: Apache-2.0 */
/* A job on a board that its owner uses: it runs in a child process, and after the child has ended,
 * for whatever reason, the agent restores the board.
 *
 * The agent ends the child when the stream's reader is gone (the connection dropped) and on SIGHUP,
 * SIGINT and SIGTERM. The child dies with its parent (PR_SET_PDEATHSIG). Each change is noted in
 * the home's file `state` before it is made, so that another agent can undo it (tidy.c).
 *
 * Kernel interfaces: fork, waitpid, poll (POLLERR of a pipe without a reader), prctl. Exit status:
 * the child's; 1 if it was ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board/board.h"

enum { POLL_MS = 200 };

static volatile sig_atomic_t told;

static void tell(int signal_number)
{
	told = signal_number;
}

static int complain(const char *why)
{
	(void)fprintf(stderr, "flashbed-agent: %s\n", why);
	return 1;
}

static void plan_window(const char *path, struct tidy *state)
{
	struct setting *setting =
		state->settings[0].path[0] ? &state->settings[1] : &state->settings[0];
	uint64_t kib = 0;

	if (window_read(path, &kib))
		return;
	(void)snprintf(setting->path, sizeof(setting->path), "%s", path);
	(void)snprintf(setting->text, sizeof(setting->text), "%" PRIu64, kib);
}

/* The windows that cases on a partition set: the one that all JFFS2 of the board share, and that of
 * the disk on which YAFFS2 may be mounted. The window of our UBIFS disappears with it.
 */
static void plan_windows_of(int mtd, struct tidy *state)
{
	const struct window_of jffs2 = {"jffs2", 0, -1, -1};
	char path[WINDOW_PATH_BYTES];

	if (window_path(&jffs2, path, sizeof(path)) == 0)
		plan_window(path, state);
	if (window_disk_path((unsigned int)mtd, path, sizeof(path)) == 0)
		plan_window(path, state);
}

static void plan_window_of(const struct mounted *mounted, struct tidy *state)
{
	const struct window_of of = {mounted->type, mounted->device, mounted->ubi, mounted->volume};
	char path[WINDOW_PATH_BYTES];

	if (window_path(&of, path, sizeof(path)) == 0)
		plan_window(path, state);
}

/* Notes what the job will change. */
static int plan(const struct guarded *guarded, struct tidy *state, char *folder, size_t size)
{
	struct mounted mounted;

	*state = (struct tidy){.mtd = guarded->mtd};
	(void)snprintf(state->home, sizeof(state->home), "%s", guarded->home);
	(void)snprintf(folder, size, "%s/mnt", guarded->home);
	(void)tracefs_settings(&state->settings[2]);
	if (!guarded->directory) {
		plan_windows_of(guarded->mtd, state);
		return 0;
	}
	const int err = folder_mounted(guarded->directory, &mounted);
	const char *name = strrchr(guarded->home, '/');

	if (err)
		return err;
	(void)snprintf(folder, size, "%s%s", guarded->directory, name ? name : "/flashbed");
	if (access(folder, F_OK) == 0)
		return -EEXIST;
	(void)snprintf(state->folder, sizeof(state->folder), "%s", folder);
	plan_window_of(&mounted, state);
	return 0;
}

/* Runs a program instead. All its processes belong to this one, even those that left it. */
static int run_program(const struct guarded *guarded, const char *folder)
{
	static struct channel out;
	const struct host_place place = {HOST_BOARD, guarded->mtd, guarded->name, folder,
					 guarded->home};
	char request[MAX_PATH_BYTES + 16];
	int err = channel_from_fd(&out, STDOUT_FILENO);

	(void)snprintf(request, sizeof(request), "%s/request", guarded->home);
	(void)host_adopt();
	if (!err)
		err = host_run(open(request, O_RDONLY | O_CLOEXEC), &out, &place);
	return err ? 1 : 0;
}

static int run_job(const struct guarded *guarded, const char *folder, pid_t parent)
{
	static struct channel in;
	static struct channel out;
	const struct job_place place = {guarded->mtd, guarded->name, guarded->directory, folder,
					true};

	(void)signal(SIGPIPE, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		return 1;
	if (guarded->program)
		return run_program(guarded, folder);
	int err = channel_from_fd(&in, STDIN_FILENO);

	if (!err)
		err = channel_from_fd(&out, STDOUT_FILENO);
	if (!err)
		err = job_run(&in, &out, &place);
	return err ? 1 : 0;
}

/* Waits for the child, or for a reason to end it. */
static int wait_for(pid_t child)
{
	struct pollfd reader = {.fd = STDOUT_FILENO};
	int status = 0;

	for (;;) {
		const pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended < 0 && errno != EINTR)
			return 1;
		if (ended == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		if (told || (poll(&reader, 1, POLL_MS) > 0 &&
			     reader.revents & (POLLERR | POLLHUP | POLLNVAL)))
			break;
	}
	(void)kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return 1;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT};
	struct sigaction action = {.sa_handler = tell};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Removes the probes of a child that was ended, as each new session does. */
static void remove_probes(void)
{
	const struct tracefs_options options = {64, false};
	struct tracefs *session = NULL;
	char detail[TRACE_DETAIL];

	if (tracefs_open(&session, &options, detail) == 0)
		tracefs_close(session);
}

int guard_run(const struct guarded *guarded)
{
	static struct tidy state;
	static char folder[MAX_PATH_BYTES + 32];
	char why[REASON_BYTES + PARTITION_NAME_BYTES];
	const pid_t parent = getpid();

	catch_signals();
	tidy_abandoned(guarded->home);
	int err = plan(guarded, &state, folder, sizeof(folder));

	if (err)
		return complain(strerror(-err));
	if (guarded->mtd >= 0 && partition_check(guarded->mtd, guarded->name, why, sizeof(why)))
		return complain(why);
	err = tidy_write(&state);
	if (err)
		return complain("its own folder cannot be written to");
	if (guarded->program)
		(void)host_adopt();
	const pid_t child = fork();

	if (child == 0)
		_exit(run_job(guarded, folder, parent));
	const int status = child < 0 ? complain(strerror(errno)) : wait_for(child);

	/* Processes that a program left running would keep the partition busy. */
	if (guarded->program)
		host_kill_the_rest();
	if (status)
		remove_probes();
	tidy_state(&state);
	return status;
}
