/* SPDX-License-Identifier: Apache-2.0 */
/* A folder and all in it, sent to the host: no guest can write there, so it is a stream that
 * python/flashbed/exec/unpacking.py unpacks.
 *
 *   flashbed-files 1
 *   folder MODE PATH | file MODE BYTES PATH | link TARGET PATH | other MODE PATH
 *   end
 *
 * Paths are below the folder; those of a folder come after it. As in requests, fields are apart by
 * one space and other bytes than visible ASCII, and `%`, are %XX. A file's bytes follow its line.
 * `other` is what has no bytes: a fifo, a socket. `error WORDS` ends a stream that fails.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"

enum { ENCODED_BYTES = 3 * (MAX_PATH_BYTES + 1), CHUNK_BYTES = 65536 };

static void encode(const char *text, char encoded[ENCODED_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char *to = encoded;

	for (; *text && to < encoded + ENCODED_BYTES - 4; text++) {
		const unsigned char byte = (unsigned char)*text;

		if (byte > 0x20 && byte < 0x7f && byte != '%') {
			*to++ = *text;
		} else {
			*to++ = '%';
			*to++ = digits[byte >> 4];
			*to++ = digits[byte & 15];
		}
	}
	*to = '\0';
}

int host_send_file(struct channel *out, const char *path, uint64_t size)
{
	static char bytes[CHUNK_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t sent = 0;
	int err = fd < 0 ? -errno : 0;

	while (!err && sent < size) {
		const uint64_t left = size - sent;
		const ssize_t got =
			read(fd, bytes, left < sizeof(bytes) ? (size_t)left : sizeof(bytes));

		err = got < 0 ? -errno : got == 0 ? -EIO : channel_put(out, bytes, (size_t)got);
		sent += got > 0 ? (uint64_t)got : 0;
	}
	if (fd >= 0)
		(void)close(fd);
	return err;
}

static int keep_link(struct channel *out, const char *path, const char *shown)
{
	char target[MAX_PATH_BYTES + 1];
	char encoded[ENCODED_BYTES];
	const ssize_t length = readlink(path, target, sizeof(target) - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	encode(target, encoded);
	return channel_printf(out, "link %s %s\n", encoded, shown);
}

static int keep_folder(struct channel *out, const char *root, const char *below);

static int keep_one(struct channel *out, const char *root, const char *below)
{
	char path[2 * MAX_PATH_BYTES];
	char shown[ENCODED_BYTES];
	struct stat about;

	(void)snprintf(path, sizeof(path), "%s/%s", root, below);
	encode(below, shown);
	if (lstat(path, &about))
		return -errno;
	const unsigned int mode = about.st_mode & 0777U;

	if (S_ISLNK(about.st_mode))
		return keep_link(out, path, shown);
	if (S_ISDIR(about.st_mode)) {
		const int err = channel_printf(out, "folder %o %s\n", mode, shown);

		return err ? err : keep_folder(out, root, below);
	}
	if (!S_ISREG(about.st_mode))
		return channel_printf(out, "other %o %s\n", mode, shown);
	const int err = channel_printf(out, "file %o %" PRIu64 " %s\n", mode,
				       (uint64_t)about.st_size, shown);

	return err ? err : host_send_file(out, path, (uint64_t)about.st_size);
}

static int is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int keep_folder(struct channel *out, const char *root, const char *below)
{
	char path[2 * MAX_PATH_BYTES];
	char inner[MAX_PATH_BYTES + 1];
	struct dirent **names = NULL;
	int err = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", root, below);
	const int count = scandir(path, &names, is_name, alphasort);

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		const int length = snprintf(inner, sizeof(inner), "%s%s%s", below,
					    *below ? "/" : "", names[i]->d_name);

		if (!err)
			err = length < (int)sizeof(inner) ? keep_one(out, root, inner)
							  : -ENAMETOOLONG;
		free(names[i]);
	}
	free(names);
	return err;
}

int host_keep(struct channel *out, const char *folder)
{
	int err = channel_printf(out, "flashbed-files 1\n");

	if (!err)
		err = keep_folder(out, folder, "");
	err = err ? channel_printf(out, "error %s\n", strerror(-err))
		  : channel_printf(out, "end\n");
	return err ? err : channel_flush(out);
}
