/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a folder with its content to the host. A guest cannot write there, so the folder becomes a
 * stream that python/flashbed/targets/exec/unpacking.py unpacks.
 *
 *   flashbed-files 1
 *   folder MODE PATH | file MODE BYTES PATH | link TARGET PATH | other MODE PATH
 *   sparse MODE SIZE PATH, then lines `at OFFSET BYTES` and the bytes, then `whole`
 *   same FIRST PATH                            another name of a file
 *   large SIZE PATH                            a file that is left out
 *   end
 *
 * Paths are below the folder; those in a folder come after it. As in requests, fields are separated
 * by one space, and `%` and bytes other than visible ASCII are encoded as %XX. A file's bytes
 * follow its line. Of a longer file chunks of zeros are left out: no file system here tells where
 * its holes are. Reading one takes time in any case, so files are left out once the sizes add up to
 * LIMIT_TIMES the flash. `other` is a file without bytes: a fifo, a socket. `error WORDS` ends a
 * stream that fails.
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

enum { ENCODED_BYTES = 3 * (MAX_PATH_BYTES + 1), CHUNK_BYTES = 65536, LIMIT_TIMES = 16 };

/* A file with several names, and the first of them, encoded. */
struct kept_name {
	ino_t inode;
	char *first;
};

struct keeping {
	struct channel *out;
	const char *root;
	uint64_t left; /* bytes that may still be read */
	struct kept_name *named;
	size_t named_count;
};

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

static bool zeros(const char *bytes, size_t count)
{
	return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* Sends a file without its chunks of zeros. */
static int send_sparse(struct channel *out, const char *path, uint64_t size)
{
	static char bytes[CHUNK_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t at = 0;
	int err = fd < 0 ? -errno : 0;

	while (!err && at < size) {
		const uint64_t left = size - at;
		const ssize_t got =
			read(fd, bytes, left < sizeof(bytes) ? (size_t)left : sizeof(bytes));

		err = got < 0 ? -errno : got == 0 ? -EIO : 0;
		if (!err && !zeros(bytes, (size_t)got)) {
			err = channel_printf(out, "at %" PRIu64 " %zd\n", at, got);
			if (!err)
				err = channel_put(out, bytes, (size_t)got);
		}
		at += got > 0 ? (uint64_t)got : 0;
	}
	if (fd >= 0)
		(void)close(fd);
	return err ? err : channel_printf(out, "whole\n");
}

static int keep_file(struct keeping *keeping, const char *path, const char *shown,
		     const struct stat *about)
{
	const uint64_t size = (uint64_t)about->st_size;
	const unsigned int mode = about->st_mode & 0777U;
	int err;

	if (size > keeping->left)
		return channel_printf(keeping->out, "large %" PRIu64 " %s\n", size, shown);
	keeping->left -= size;
	if (size > CHUNK_BYTES) {
		err = channel_printf(keeping->out, "sparse %o %" PRIu64 " %s\n", mode, size, shown);
		return err ? err : send_sparse(keeping->out, path, size);
	}
	err = channel_printf(keeping->out, "file %o %" PRIu64 " %s\n", mode, size, shown);
	return err ? err : host_send_file(keeping->out, path, size);
}

/* The first name of a file that has several; NULL if this one is it, which is noted. */
static int first_name(struct keeping *keeping, ino_t inode, const char *shown, const char **first)
{
	*first = NULL;
	for (size_t i = 0; i < keeping->named_count; i++)
		if (keeping->named[i].inode == inode)
			*first = keeping->named[i].first;
	if (*first)
		return 0;
	struct kept_name *more =
		realloc(keeping->named, (keeping->named_count + 1) * sizeof(*keeping->named));
	char *copy = strdup(shown);

	if (more)
		keeping->named = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	more[keeping->named_count++] = (struct kept_name){inode, copy};
	return 0;
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

static int keep_folder(struct keeping *keeping, const char *below);

static int keep_one(struct keeping *keeping, const char *below)
{
	char path[2 * MAX_PATH_BYTES];
	char shown[ENCODED_BYTES];
	const char *first = NULL;
	struct stat about;
	int err = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", keeping->root, below);
	encode(below, shown);
	if (lstat(path, &about))
		return -errno;
	const unsigned int mode = about.st_mode & 0777U;

	if (S_ISLNK(about.st_mode))
		return keep_link(keeping->out, path, shown);
	if (S_ISDIR(about.st_mode)) {
		err = channel_printf(keeping->out, "folder %o %s\n", mode, shown);
		return err ? err : keep_folder(keeping, below);
	}
	if (!S_ISREG(about.st_mode))
		return channel_printf(keeping->out, "other %o %s\n", mode, shown);
	if (about.st_nlink > 1)
		err = first_name(keeping, about.st_ino, shown, &first);
	if (err)
		return err;
	return first ? channel_printf(keeping->out, "same %s %s\n", first, shown)
		     : keep_file(keeping, path, shown, &about);
}

static int is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int keep_folder(struct keeping *keeping, const char *below)
{
	char path[2 * MAX_PATH_BYTES];
	char inner[MAX_PATH_BYTES + 1];
	struct dirent **names = NULL;
	int err = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", keeping->root, below);
	const int count = scandir(path, &names, is_name, alphasort);

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		const int length = snprintf(inner, sizeof(inner), "%s%s%s", below,
					    *below ? "/" : "", names[i]->d_name);

		if (!err)
			err = length < (int)sizeof(inner) ? keep_one(keeping, inner)
							  : -ENAMETOOLONG;
		free(names[i]);
	}
	free(names);
	return err;
}

int host_keep(struct channel *out, const char *folder, uint64_t flash_bytes)
{
	struct keeping keeping = {out, folder, LIMIT_TIMES * flash_bytes, NULL, 0};
	int err = channel_printf(out, "flashbed-files 1\n");

	if (!err)
		err = keep_folder(&keeping, "");
	for (size_t i = 0; i < keeping.named_count; i++)
		free(keeping.named[i].first);
	free(keeping.named);
	err = err ? channel_printf(out, "error %s\n", strerror(-err))
		  : channel_printf(out, "end\n");
	return err ? err : channel_flush(out);
}
