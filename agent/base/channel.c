/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a job and the destination of the stream, behind one small buffer.
 *
 * There are three kinds. A file descriptor serves a board over ssh and tests on the host. A host
 * file that user-mode Linux has mounted (hostfs) is written through the page cache at each flush. A
 * host file reached by ARM semihosting serves the emulated board: one trap to the emulator, which
 * does the transfer between two instructions. It costs the guest no time, so the host's speed has
 * no effect.
 *
 * Semihosting calls: SYS_OPEN 1, SYS_WRITE 5, SYS_READ 6 of ARM's "Semihosting for AArch32 and
 * AArch64", by the HLT instruction, which QEMU accepts from user mode with `-semihosting-config
 * userspace=on`. Leaves out semihosting on other architectures.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum {
	WRITE_OUT = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
};
enum { SYS_OPEN = 1, SYS_WRITE = 5, SYS_READ = 6, OPEN_READ_BINARY = 1, OPEN_WRITE_BINARY = 5 };

#ifdef __arm__
static long host_call(long number, const unsigned long *arguments)
{
	register long r0 __asm__("r0") = number;
	register const unsigned long *r1 __asm__("r1") = arguments;

#ifdef __thumb__
	__asm__ volatile(".inst.n 0xbabc" : "+r"(r0) : "r"(r1) : "memory");
#else
	__asm__ volatile(".inst 0xe10f0070" : "+r"(r0) : "r"(r1) : "memory");
#endif
	return r0;
}
#else
static long host_call(long number, const unsigned long *arguments)
{
	(void)number;
	(void)arguments;
	return -1;
}
#endif

int channel_open_mounted(struct channel *channel, const char *path, bool write)
{
	const int fd =
		open(path, write ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0644);

	memset(channel, 0, sizeof(*channel));
	channel->handle = fd;
	channel->write_through = write;
	return fd < 0 ? -errno : 0;
}

int channel_from_fd(struct channel *channel, int fd)
{
	memset(channel, 0, sizeof(*channel));
	channel->handle = fd;
	return 0;
}

int channel_open_host(struct channel *channel, const char *path, bool write)
{
	const unsigned long arguments[3] = {(unsigned long)(uintptr_t)path,
					    write ? OPEN_WRITE_BINARY : OPEN_READ_BINARY,
					    (unsigned long)strlen(path)};

	/* Touches every page of the buffer: the emulator copies by address and cannot fault a page
	 * in. */
	memset(channel, 0, sizeof(*channel));
	channel->semihosting = true;
	channel->handle = (int)host_call(SYS_OPEN, arguments);
	return channel->handle < 0 ? -ENOENT : 0;
}

static long host_transfer(const struct channel *channel, long number, char *buffer, size_t size)
{
	const unsigned long arguments[3] = {(unsigned long)channel->handle,
					    (unsigned long)(uintptr_t)buffer, (unsigned long)size};
	const long left = host_call(number, arguments);

	return left < 0 ? -EIO : (long)size - left;
}

static long take(struct channel *channel)
{
	if (channel->semihosting)
		return host_transfer(channel, SYS_READ, channel->buffer, sizeof(channel->buffer));
	const ssize_t got = read(channel->handle, channel->buffer, sizeof(channel->buffer));

	return got < 0 ? -errno : (long)got;
}

static long give(struct channel *channel, char *from, size_t size)
{
	if (channel->semihosting)
		return host_transfer(channel, SYS_WRITE, from, size);
	const ssize_t put = write(channel->handle, from, size);

	return put < 0 ? -errno : (long)put;
}

int channel_get_line(struct channel *channel, char *line, size_t size)
{
	size_t length = 0;

	for (;;) {
		if (channel->used == channel->filled) {
			const long got = take(channel);

			if (got < 0)
				return (int)got;
			channel->used = 0;
			channel->filled = (size_t)got;
			if (got == 0 && length == 0)
				return -ENODATA;
			if (got == 0)
				break;
		}
		const char byte = channel->buffer[channel->used++];

		if (byte == '\n')
			break;
		if (length + 1 >= size)
			return -EMSGSIZE;
		line[length++] = byte;
	}
	line[length] = '\0';
	return (int)length;
}

int channel_flush(struct channel *channel)
{
	size_t done = 0;

	while (done < channel->used) {
		const long put = give(channel, channel->buffer + done, channel->used - done);

		if (put <= 0 && put != -EINTR)
			return put == 0 ? -EIO : (int)put;
		done += put > 0 ? (size_t)put : 0;
	}
	channel->used = 0;
	/* To the host's page cache; fsync would wait for its disk. */
	return channel->write_through && sync_file_range(channel->handle, 0, 0, WRITE_OUT) ? -errno
											   : 0;
}

int channel_put(struct channel *channel, const char *bytes, size_t count)
{
	int err = 0;

	while (!err && count > 0) {
		const size_t room = sizeof(channel->buffer) - channel->used;
		const size_t part = count < room ? count : room;

		memcpy(channel->buffer + channel->used, bytes, part);
		channel->used += part;
		bytes += part;
		count -= part;
		if (channel->used == sizeof(channel->buffer))
			err = channel_flush(channel);
	}
	return err;
}

int channel_printf(struct channel *channel, const char *format, ...)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		const size_t room = sizeof(channel->buffer) - channel->used;
		va_list arguments;

		va_start(arguments, format);
		const int length =
			vsnprintf(channel->buffer + channel->used, room, format, arguments);
		va_end(arguments);
		if (length < 0)
			return -EINVAL;
		if ((size_t)length < room) {
			channel->used += (size_t)length;
			return 0;
		}
		const int err = channel_flush(channel);

		if (err)
			return err;
	}
	return -EMSGSIZE;
}
