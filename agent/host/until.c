/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the program as long as the request says: `until` nanoseconds after its start all of its
 * processes get SIGTERM, and a second later SIGKILL. With `until` the agent also waits for
 * processes that the program left in the background, for example daemons.
 *
 * Kernel interfaces: wait(2), also for processes that lost their parents; setitimer(2), whose
 * signal interrupts it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "host/host.h"

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t US_NS = 1000;

static volatile sig_atomic_t time_is_up;

static void tell(int signal_number)
{
	(void)signal_number;
	time_is_up = 1;
}

static void alarm_in(uint64_t ns)
{
	const uint64_t us = (ns + US_NS - 1) / US_NS;
	const struct itimerval once = {
		.it_value = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)}};

	time_is_up = 0;
	(void)setitimer(ITIMER_REAL, &once, NULL);
}

void host_wait(const struct host_request *request, pid_t program, struct host_end *end)
{
	const struct sigaction action = {.sa_handler = tell};
	const bool all = request->until_ns > 0;
	int status = 0;
	pid_t ended;

	*end = (struct host_end){0, 0, 0};
	if (all && sigaction(SIGALRM, &action, NULL) == 0)
		alarm_in(request->until_ns);
	for (;;) {
		if (time_is_up) {
			end->signal = end->signal ? SIGKILL : SIGTERM;
			(void)host_signal(end->signal);
			alarm_in(SECOND_NS);
		}
		ended = wait(&status);
		if (ended == program)
			end->status = status;
		if ((ended == program && !all) || (ended < 0 && errno != EINTR))
			break;
	}
	alarm_in(0);
	end->ns = now_ns();
}
