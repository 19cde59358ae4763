/* SPDX-License-Identifier: Apache-2.0 */
/* Small kernel files, read and written whole; removal of folders; names and numbers of errors in
 * the stream. Kernel interfaces: /sys/class/mtd, nftw(3). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { OPEN_FOLDERS = 16 };

/* Errors of files, file systems and flash, with their numbers on all machines but MIPS and a few
 * others. */
static const struct error {
	int value;
	int number;
	const char *name;
} errors[] = {
	{EPERM, 1, "EPERM"},
	{ENOENT, 2, "ENOENT"},
	{EINTR, 4, "EINTR"},
	{EIO, 5, "EIO"},
	{ENXIO, 6, "ENXIO"},
	{EBADF, 9, "EBADF"},
	{EAGAIN, 11, "EAGAIN"},
	{ENOMEM, 12, "ENOMEM"},
	{EACCES, 13, "EACCES"},
	{EFAULT, 14, "EFAULT"},
	{EBUSY, 16, "EBUSY"},
	{EEXIST, 17, "EEXIST"},
	{EXDEV, 18, "EXDEV"},
	{ENODEV, 19, "ENODEV"},
	{ENOTDIR, 20, "ENOTDIR"},
	{EISDIR, 21, "EISDIR"},
	{EINVAL, 22, "EINVAL"},
	{ENFILE, 23, "ENFILE"},
	{EMFILE, 24, "EMFILE"},
	{ENOTTY, 25, "ENOTTY"},
	{ETXTBSY, 26, "ETXTBSY"},
	{EFBIG, 27, "EFBIG"},
	{ENOSPC, 28, "ENOSPC"},
	{ESPIPE, 29, "ESPIPE"},
	{EROFS, 30, "EROFS"},
	{EMLINK, 31, "EMLINK"},
	{EPIPE, 32, "EPIPE"},
	{ERANGE, 34, "ERANGE"},
	{EDEADLK, 35, "EDEADLK"},
	{ENAMETOOLONG, 36, "ENAMETOOLONG"},
	{ENOLCK, 37, "ENOLCK"},
	{ENOSYS, 38, "ENOSYS"},
	{ENOTEMPTY, 39, "ENOTEMPTY"},
	{ELOOP, 40, "ELOOP"},
	{ENODATA, 61, "ENODATA"},
	{EPROTO, 71, "EPROTO"},
	{EBADMSG, 74, "EBADMSG"},
	{EOVERFLOW, 75, "EOVERFLOW"},
	{EILSEQ, 84, "EILSEQ"},
	{EMSGSIZE, 90, "EMSGSIZE"},
	{EOPNOTSUPP, 95, "EOPNOTSUPP"},
	{ETIMEDOUT, 110, "ETIMEDOUT"},
	{ESTALE, 116, "ESTALE"},
	{EUCLEAN, 117, "EUCLEAN"},
	{EDQUOT, 122, "EDQUOT"},
	{ECANCELED, 125, "ECANCELED"},
};

static const struct error *find_error(int64_t value)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == value)
			return &errors[i];
	return NULL;
}

const char *error_name(int error)
{
	static char other[24];
	const int positive = error < 0 ? -error : error;
	const struct error *found = find_error(positive);

	(void)snprintf(other, sizeof(other), "errno-%d", positive);
	return found ? found->name : other;
}

int64_t result_number(int64_t result)
{
	const struct error *found = result < 0 ? find_error(-result) : NULL;

	return found ? -found->number : result;
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

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at)
{
	(void)about;
	(void)kind;
	(void)at;
	return remove(path) && errno != ENOENT ? -errno : 0;
}

int remove_folder(const char *path)
{
	const int err = nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	return err == -1 ? (errno == ENOENT ? 0 : -errno) : err;
}

int mtd_text(int mtd, const char *name, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/class/mtd/mtd%d/%s", mtd, name);
	const int got = read_file(path, text, size);

	if (got > 0 && text[got - 1] == '\n')
		text[got - 1] = '\0';
	return got < 0 ? got : 0;
}

int mtd_name(int mtd, char *name, size_t size)
{
	const int err = mtd_text(mtd, "name", name, size);

	for (char *byte = name; !err && *byte; byte++)
		if (*byte == ' ')
			*byte = '_';
	return err;
}

int mtd_value(int mtd, const char *name, uint64_t *value)
{
	char text[32];
	const int err = mtd_text(mtd, name, text, sizeof(text));

	*value = err ? 0 : strtoull(text, NULL, 0);
	return err;
}

int mtd_geometry(int mtd, struct flash_geometry *geometry)
{
	static const char *const names[] = {"writesize", "oobsize", "erasesize", "size"};
	uint64_t values[4] = {0};
	int err = 0;

	for (size_t i = 0; i < 4 && !err; i++)
		err = mtd_value(mtd, names[i], &values[i]);
	*geometry = (struct flash_geometry){(uint32_t)values[0], (uint32_t)values[1],
					    (uint32_t)values[2], values[3]};
	return err;
}

static int write_whole(int fd, const char *bytes, size_t count)
{
	while (count > 0) {
		const ssize_t put = write(fd, bytes, count);

		if (put < 0)
			return -errno;
		bytes += put;
		count -= (size_t)put;
	}
	return 0;
}

int copy_file(int from, int to)
{
	static char bytes[65536];
	ssize_t got;
	int err = 0;

	while (!err && (got = read(from, bytes, sizeof(bytes))) != 0)
		err = got < 0 ? -errno : write_whole(to, bytes, (size_t)got);
	return err;
}
