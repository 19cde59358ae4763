/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's loop: starts the program under the filter, handles each stop of each of its tasks,
 * and lets it continue. Ends with the last task.
 *
 * Kernel interfaces: PTRACE_SEIZE, whose stops can be told from a signal's, and its events; waitpid
 * with __WALL. A program does not outlive its recorder (PTRACE_O_EXITKILL). A signal that a user
 * sends only to the recorder is passed on. One from the terminal has already reached the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/record.h"

enum { STAYS = -1 }; /* not a ptrace request */
enum { TICK_US = 100000, SYSCALL_STOP = SIGTRAP | 0x80, EVENT_STOP = 128, NOT_FOUND = 127 };
enum {
	OPTIONS = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
	PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |
	PTRACE_O_EXITKILL
};
static const uint64_t HELD_NS = 50000000;
static const uint64_t SAME_SIGNAL_NS = 1000000000;
static const uint64_t LEFT_NS = 2000000000;

static volatile sig_atomic_t ticked;
static volatile sig_atomic_t ended_by;
static volatile pid_t signalled;

static void tick(int number)
{
	(void)number;
	ticked = 1;
}

/* A signal from the terminal went to the whole process group. The command that started the recorder
 * also passes on its signals, and cannot tell where they came from, so its copy is dropped. */
static void forward_signal(int number, siginfo_t *info, void *context)
{
	static uint64_t from_terminal_ns;
	const int error = errno;

	(void)context;
	ended_by = number;
	if (info->si_code > 0)
		from_terminal_ns = now_ns();
	else if (signalled > 0 && now_ns() - from_terminal_ns > SAME_SIGNAL_NS)
		(void)kill(signalled, number);
	errno = error;
}

static void catch_signals(void)
{
	static const int handed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO};
	struct sigaction alarm = {.sa_handler = tick};
	const struct itimerval every = {{0, TICK_US}, {0, TICK_US}};
	struct sigaction old;

	for (size_t i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		if (sigaction(handed[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(handed[i], &action, NULL);
	(void)sigaction(SIGALRM, &alarm, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

/* What the recorder and the program's process have between them until its exec. */
struct child_pipes {
	int gate[2];    /* a byte lets the process begin */
	int failure[2]; /* -errno if there is no exec; an exec closes it */
	void (*pipe_action)(int);
};

/* In the program's process. The recorder ignores SIGPIPE, the program must not. */
static void execute_followed(char **command, bool output_aside, const struct child_pipes *pipes)
{
	char byte;
	int err;

	(void)signal(SIGPIPE, pipes->pipe_action);
	if (output_aside)
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (read(pipes->gate[0], &byte, 1) != 1)
		_exit(NOT_FOUND);
	err = filter_install(false);
	if (!err) {
		(void)execvp(command[0], command);
		err = -errno;
	}
	(void)!write(pipes->failure[1], &err, sizeof(err));
	_exit(NOT_FOUND);
}

static int seize(struct recorder *recorder, pid_t child)
{
	struct tracee *first = tracee_add(&recorder->tracees, child);

	if (!first)
		return -ENOMEM;
	first->known = true;
	first->table = table_new();
	first->folder = folder_new();
	first->space = space_new();
	if (!first->table || !first->folder || !first->space)
		return -ENOMEM;
	return ptrace(PTRACE_SEIZE, child, NULL, (void *)OPTIONS) ? -errno : 0;
}

static int let_go(int gate)
{
	const ssize_t put = write(gate, "g", 1);

	(void)close(gate);
	return put == 1 ? 0 : -EIO;
}

static int start(struct recorder *recorder, char **command, bool output_aside, int *failure)
{
	struct child_pipes pipes;
	struct sigaction pipe_before;

	if (pipe2(pipes.gate, O_CLOEXEC) || pipe2(pipes.failure, O_CLOEXEC) ||
	    sigaction(SIGPIPE, NULL, &pipe_before))
		return -errno;
	pipes.pipe_action = pipe_before.sa_handler;
	recorder->child = fork();
	if (recorder->child == 0)
		execute_followed(command, output_aside, &pipes);
	(void)close(pipes.gate[0]);
	(void)close(pipes.failure[1]);
	*failure = pipes.failure[0];
	if (recorder->child < 0)
		return -errno;
	const int err = seize(recorder, recorder->child);

	if (err) {
		(void)kill(recorder->child, SIGKILL);
		return err;
	}
	signalled = recorder->child;
	catch_signals();
	return let_go(pipes.gate[1]);
}

static unsigned long message_of(pid_t tid)
{
	unsigned long message = 0;

	(void)ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message);
	return message;
}

/* What a task shares with the child that its current call creates. */
static uint64_t clone_flags(const struct tracee *parent, int event)
{
	const struct call_registers *registers = &parent->registers;
	uint64_t flags = 0;

#ifdef __NR_clone3
	if (registers->number == __NR_clone3) {
		(void)memory_read(parent->tid, registers->argument[0], &flags, sizeof(flags));
		return flags;
	}
#endif
	if (registers->number == __NR_clone)
		return registers->argument[0];
	return event == PTRACE_EVENT_VFORK ? CLONE_VM | CLONE_VFORK : flags;
}

static void on_birth(struct recorder *recorder, struct tracee *parent, int event)
{
	const pid_t tid = (pid_t)message_of(parent->tid);
	const uint64_t flags = clone_flags(parent, event);
	struct tracee *child = tracee_find(&recorder->tracees, tid);
	const bool waits = child != NULL;

	if (!child)
		child = tracee_add(&recorder->tracees, tid);
	if (!child || tracee_born(recorder, parent, child, flags)) {
		count_one(recorder, "tasks that there was no memory for");
		return;
	}
	struct record_row row = {.result = child->number, .flags = flags, .has = HAS_FLAGS};

	event_row(recorder, parent, "clone", &row, NULL);
	if (waits)
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
}

static void on_exec(struct recorder *recorder, struct tracee *tracee)
{
	char path[RECORD_PATH] = "";
	struct record_row row = {.has = HAS_PATH};
	struct address_space *space = space_new();

	if (space) {
		space_release(tracee->space);
		tracee->space = space;
	}
	if (tracee->schedstat >= 0)
		(void)close(tracee->schedstat);
	tracee->schedstat = -1;
	tracee->tgid = tracee->tid;
	tracees_leave(&recorder->tracees, tracee);
	tracee->call = NULL;
	if (recorder->zero_ns == 0) {
		recorder->zero_ns = now_ns();
		tracee->cpu_ns = event_cpu_ns(recorder, tracee);
		descriptors_look(recorder, tracee);
	}
	table_after_exec(tracee);
	if (proc_link(tracee->tid, "exe", -1, path, sizeof(path)) > 0)
		event_row(recorder, tracee, "execve", &row, path);
	tracee->cpu_ns = event_cpu_ns(recorder, tracee);
}

static void on_exit_of(struct recorder *recorder, struct tracee *tracee)
{
	const unsigned long status = message_of(tracee->tid);
	struct record_row row = {.mode = (uint32_t)status, .has = HAS_MODE};

	tracees_leave(&recorder->tracees, tracee);
	if (tracee->parked)
		tracees_unpark(&recorder->tracees, tracee);
	tracee->call = NULL;
	if (recorder->zero_ns == 0)
		return;
	if (tracee->space->uses == 1)
		space_say(recorder, tracee, 0, UINT64_MAX / 2, SAY_GONE);
	event_row(recorder, tracee, "exit", &row, NULL);
}

static bool stops_group(int number)
{
	return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* How a stopped task continues: a ptrace request and a signal. */
struct resumption {
	int request;
	int signal;
};

static struct resumption on_call(struct recorder *recorder, struct tracee *tracee)
{
	const enum call_course course =
		recorder->zero_ns ? call_begin(recorder, tracee) : CALL_GOES_ON;

	if (course == CALL_GOES_ON)
		return (struct resumption){PTRACE_CONT, 0};
	tracee->entry_stop = recorder->overhead.entry_stop;
	return (struct resumption){course == CALL_WAITS ? STAYS : PTRACE_SYSCALL, 0};
}

static struct resumption on_event(struct recorder *recorder, struct tracee *tracee, int event,
				  int number)
{
	const struct resumption on = {PTRACE_CONT, 0};

	switch (event) {
	case PTRACE_EVENT_SECCOMP:
		return on_call(recorder, tracee);
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		on_birth(recorder, tracee, event);
		return on;
	case PTRACE_EVENT_EXEC:
		on_exec(recorder, tracee);
		return on;
	case PTRACE_EVENT_EXIT:
		on_exit_of(recorder, tracee);
		return on;
	case EVENT_STOP:
		if (stops_group(number))
			return (struct resumption){PTRACE_LISTEN, 0};
		return on;
	default:
		return on;
	}
}

static struct resumption on_stop(struct recorder *recorder, struct tracee *tracee, int status)
{
	const int event = status >> 16;
	const int number = WSTOPSIG(status);

	if (event)
		return on_event(recorder, tracee, event, number);
	if (number != SYSCALL_STOP)
		return (struct resumption){PTRACE_CONT, number};
	if (tracee->entry_stop) {
		tracee->entry_stop = false;
		return (struct resumption){PTRACE_SYSCALL, 0};
	}
	if (tracee->call)
		call_end(recorder, tracee);
	return (struct resumption){PTRACE_CONT, 0};
}

static void on_end(struct recorder *recorder, pid_t tid, int status)
{
	struct tracee *tracee = tracee_find(&recorder->tracees, tid);

	if (tid == recorder->child) {
		recorder->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		recorder->over = true;
		recorder->over_ns = now_ns();
		signalled = 0;
		ended_by = 0;
	}
	if (tracee)
		tracee_remove(&recorder->tracees, tracee);
}

/* If a thread other than its process's first one calls exec, it takes over the first one's number.
 */
static struct tracee *tracee_of_stop(struct recorder *recorder, pid_t tid, int status)
{
	if (status >> 16 == PTRACE_EVENT_EXEC) {
		struct tracee *old = tracee_find(&recorder->tracees, (pid_t)message_of(tid));

		if (old)
			tracee_renamed(&recorder->tracees, old, tid);
	}
	return tracee_find(&recorder->tracees, tid);
}

static void resume(struct recorder *recorder, struct tracee *tracee, struct resumption on)
{
	if (on.request == STAYS)
		return;
	if (tracee->in_call && on.request == PTRACE_SYSCALL)
		tracee->row.start_ns = event_now(recorder);
	(void)ptrace(on.request, tracee->tid, NULL, (void *)(intptr_t)on.signal);
}

static void take(struct recorder *recorder, pid_t tid, int status)
{
	if (!WIFSTOPPED(status)) {
		on_end(recorder, tid, status);
		return;
	}
	struct tracee *tracee = tracee_of_stop(recorder, tid, status);

	recorder->stops++;
	if (!tracee || !tracee->known) {
		/* A child that stops before its parent's event was seen waits for it. */
		if (!tracee)
			(void)tracee_add(&recorder->tracees, tid);
		return;
	}
	resume(recorder, tracee, on_stop(recorder, tracee, status));
}

static void begin_parked(struct recorder *recorder)
{
	while (recorder->tracees.parked) {
		struct tracee *tracee = call_begin_parked(recorder);

		if (!tracee)
			return;
		resume(recorder, tracee, (struct resumption){PTRACE_SYSCALL, 0});
	}
}

/* A daemon may run for ever. */
static void tell_of_those_left(struct recorder *recorder)
{
	if (!recorder->tells || !recorder->over || now_ns() - recorder->over_ns < LEFT_NS)
		return;
	recorder->tells = false;
	(void)fprintf(stderr,
		      "flashbed-agent: the program has ended, %zu of its tasks continue and are "
		      "recorded; Ctrl-C ends them\n",
		      recorder->tracees.count);
}

static void on_tick(struct recorder *recorder)
{
	struct pollfd reader = {.fd = recorder->stream.handle};

	ticked = 0;
	tell_of_those_left(recorder);
	if (recorder->stream.rows && now_ns() - recorder->stream.first_ns > HELD_NS)
		(void)rows_flush(&recorder->stream);
	/* The stream's reader is gone, so the rest would be lost. */
	if (poll(&reader, 1, 0) > 0 && reader.revents & POLLERR)
		recorder->stream.error = -EPIPE;
}

static int follow(struct recorder *recorder)
{
	int status = 0;

	while (!recorder->stream.error && !(recorder->over && ended_by)) {
		const pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno != EINTR)
			break;
		if (tid > 0) {
			recorder->now_ns = now_ns();
			take(recorder, tid, status);
			begin_parked(recorder);
			const struct tracee *first = recorder->tracees.first;

			recorder->stream.oldest = first ? first->row.order : recorder->order + 1;
			recorder->busy_ns += now_ns() - recorder->now_ns;
		}
		if (ticked)
			on_tick(recorder);
	}
	if (recorder->over && ended_by)
		count_one(recorder, "tasks that were still there when the recorder was ended");
	return recorder->stream.error;
}

int follow_program(struct recorder *recorder, char **command, bool output_aside)
{
	int failure = -1;
	int err = start(recorder, command, output_aside, &failure);

	recorder->tells = true;
	if (!err)
		err = follow(recorder);
	/* No exec, and so nothing but what the recorder's own child has written. */
	if (!err && recorder->zero_ns == 0 && read(failure, &err, sizeof(err)) != sizeof(err))
		err = 0;
	(void)close(failure);
	return err;
}

int follow_process(struct recorder *recorder, pid_t process, int gate)
{
	recorder->child = process;
	int err = seize(recorder, process);

	if (!err)
		err = let_go(gate);
	return err ? err : follow(recorder);
}
