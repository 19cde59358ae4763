/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of the kernel for programs: that of a program which has one, and a shell on it to look
 * at what a program has left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host.h"

#define TERMINAL "/view/dev/ttyF0" /* the one that view.c creates */

int host_use_terminal(void)
{
	if (setsid() < 0)
		return -errno;
	const int fd = open(TERMINAL, O_RDWR);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, TIOCSCTTY, 0))
		return -errno;
	for (int i = 0; i < 3; i++)
		if (fd != i && dup2(fd, i) < 0)
			return -errno;
	if (fd > 2)
		(void)close(fd);
	return 0;
}

int host_shell(const struct host_request *request, const struct host_place *place)
{
	const char *slash = strrchr(request->shell, '/');
	char *const arguments[] = {(char *)(slash ? slash + 1 : request->shell), NULL};
	const pid_t shell = fork();
	int status = 0;

	if (shell == 0) {
		if (host_use_terminal() == 0 && host_enter_view(request, place) == 0)
			(void)execve(request->shell, arguments, request->environment);
		_exit(127);
	}
	if (shell < 0)
		return -errno;
	while (waitpid(shell, &status, 0) < 0 && errno == EINTR)
		;
	host_kill_the_rest();
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOEXEC : 0;
}
