// SPDX-License-Identifier: GPL-2.0-only
/* The host's side of flashbed_stdio.c and flashbed_terminal.c: descriptors that the kernel was
 * started with; and of flashbed_chip.c.
 *
 * Calls block the whole guest, so virtual time stands still in those of flashbed_stdio.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <flashbed_host.h>

/* A program's process begins as a copy of the kernel's, which is to have no copy of the chip. */
void *flashbed_host_memory(unsigned long bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	(void)madvise(at, bytes, MADV_DONTFORK);
	return at;
}

void flashbed_host_memory_free(void *at, unsigned long bytes)
{
	(void)munmap(at, bytes);
}

static struct flashbed_progress unseen;
struct flashbed_progress *flashbed_progress = &unseen;

void flashbed_host_shows_progress(void)
{
	const int fd = open("progress", O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, sizeof(unseen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		flashbed_progress = at;
	if (fd >= 0)
		(void)close(fd);
}

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
	const int terminal = flashbed_progress != &unseen && isatty(fd);
	unsigned long done = 0;

	if (terminal && flashbed_progress->shown) {
		flashbed_progress->shown = 0;
		(void)!write(fd, "\r\033[K", 4);
	}
	if (terminal && count)
		flashbed_progress->mid_line = from[count - 1] != '\n';
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

/* How often the size of a window is looked at. */
static const unsigned long long slice_ns = 100000000;
static struct winsize known;
static int watched = -1;
static int owner;

static unsigned long long real_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

int flashbed_host_resized(int fd)
{
	struct winsize now;

	return ioctl(fd, TIOCGWINSZ, &now) == 0 &&
	       (now.ws_row != known.ws_row || now.ws_col != known.ws_col);
}

void flashbed_host_window(int fd, unsigned short *rows, unsigned short *columns)
{
	(void)ioctl(fd, TIOCGWINSZ, &known);
	*rows = known.ws_row;
	*columns = known.ws_col;
}

unsigned long long flashbed_host_has_news(int fd, unsigned long long most_ns)
{
	const unsigned long long began = real_ns();
	unsigned long long waited = 0;

	do {
		const unsigned long long left = most_ns - waited;
		const unsigned long long ns = left < slice_ns ? left : slice_ns;
		const struct timespec wait = {0, (long)ns};
		struct pollfd keys = {.fd = fd, .events = POLLIN};
		const int ready = ppoll(&keys, 1, &wait, NULL);

		waited = real_ns() - began;
		if ((ready > 0 && keys.revents & POLLIN) || flashbed_host_resized(fd))
			return waited + 1;
	} while (waited < most_ns);
	return 0;
}

int flashbed_host_keys(int fd, unsigned char *keys, int room)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	if (poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLIN))
		return 0;
	const ssize_t got = read(fd, keys, (size_t)room);

	return got > 0 ? (int)got : 0;
}

void flashbed_host_watch(int fd)
{
	const int flags = fcntl(fd < 0 ? watched : fd, F_GETFL);

	if (flags < 0)
		return;
	if (fd >= 0)
		(void)fcntl(fd, F_SETSIG, SIGALRM);
	(void)fcntl(fd < 0 ? watched : fd, F_SETFL, fd < 0 ? flags & ~O_ASYNC : flags | O_ASYNC);
	watched = fd;
	owner = 0;
}

void flashbed_host_runs(int pid)
{
	if (watched < 0 || owner == pid)
		return;
	(void)fcntl(watched, F_SETOWN, pid);
	owner = pid;
	/* A key that came before told another one. */
	if (flashbed_host_has_news(watched, 0))
		(void)kill(pid, SIGALRM);
}
