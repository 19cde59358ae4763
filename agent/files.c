/* SPDX-License-Identifier: Apache-2.0 */
/* What every part needs: small files of the kernel's, written and read whole, and names of errors as the stream has them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

const char *error_name(int error)
{
	static const struct {
		int value;
		const char *name;
	} names[] = {
		{EPERM, "EPERM"},   {ENOENT, "ENOENT"},   {EIO, "EIO"},         {ENXIO, "ENXIO"},         {EBADF, "EBADF"},
		{ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},   {EBUSY, "EBUSY"},     {EEXIST, "EEXIST"},       {ENODEV, "ENODEV"},
		{ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"},   {EFBIG, "EFBIG"},         {ENOSPC, "ENOSPC"},
		{EROFS, "EROFS"},   {ENOSYS, "ENOSYS"},   {ENOTEMPTY, "ENOTEMPTY"}, {EBADMSG, "EBADMSG"}, {EUCLEAN, "EUCLEAN"},
		{ENODATA, "ENODATA"}, {EMSGSIZE, "EMSGSIZE"},
	};
	static char other[24];
	const int positive = error < 0 ? -error : error;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value == positive)
			return names[i].name;
	(void)snprintf(other, sizeof(other), "errno-%d", positive);
	return other;
}

int write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const size_t length = strlen(text);

	if (fd < 0)
		return -errno;
	const ssize_t put = write(fd, text, length);
	const int err = put < 0 ? -errno : 0;

	if (close(fd))
		return err ? err : -errno;
	return err ? err : (size_t)put == length ? 0 : -EIO;
}

int read_file(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, text + length, size - 1 - length);
		length += got > 0 ? (size_t)got : 0;
	} while (got > 0 && length < size - 1);
	const int err = got < 0 ? -errno : 0;

	(void)close(fd);
	text[length] = '\0';
	return err ? err : (int)length;
}
