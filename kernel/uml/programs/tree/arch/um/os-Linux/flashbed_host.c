// SPDX-License-Identifier: GPL-2.0-only
/* The host's side of arch/um/kernel/flashbed_stdio.c: descriptors that the kernel was started with.
 *
 * Calls block the whole guest, so virtual time stands still in them.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <flashbed_host.h>

int flashbed_host_is_terminal(int fd)
{
	return isatty(fd);
}

static void wait_for(int fd, short events)
{
	struct pollfd ready = {.fd = fd, .events = events};

	(void)poll(&ready, 1, -1);
}

/* All of `count` bytes but at the end of the file; of a terminal what is there. How much a pipe has
 * at some moment depends on the host. */
long flashbed_host_read(int fd, char *to, unsigned long count)
{
	unsigned long done = 0;

	while (done < count) {
		const ssize_t got = read(fd, to + done, count - done);

		if (got > 0)
			done += got;
		if (got == 0 || (got > 0 && isatty(fd)))
			break;
		if (got < 0 && errno == EAGAIN)
			wait_for(fd, POLLIN);
		else if (got < 0 && errno != EINTR)
			return done ? (long)done : -errno;
	}
	return done;
}

long flashbed_host_write(int fd, const char *from, unsigned long count)
{
	unsigned long done = 0;

	while (done < count) {
		const ssize_t put = write(fd, from + done, count - done);

		if (put > 0)
			done += put;
		else if (put < 0 && errno == EAGAIN)
			wait_for(fd, POLLOUT);
		else if (put < 0 && errno != EINTR)
			return done ? (long)done : -errno;
	}
	return done;
}
