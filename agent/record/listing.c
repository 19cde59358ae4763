/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the followed folders before the program begins: a row for each file, folder and
 * link.
 *
 * Kernel interface: readdir(3), fstatat(2). Leaves out other kinds of files, other file systems
 * mounted below, and folders that may not be read; the last two are counted.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record.h"

enum { DEPTH_MAX = 200 };

struct walk {
	struct recorder *recorder;
	dev_t device;
	char path[RECORD_PATH];
	int depth;
};

static void say(struct walk *walk, int folder, const char *name, const struct stat *is)
{
	char target[RECORD_PATH] = "";
	const char *texts[ROW_TEXTS] = {walk->path, NULL, NULL, target};
	struct record_row row = {.length = (int64_t)is->st_size, .mode = (uint32_t)is->st_mode};

	row.has = HAS_PATH | HAS_LENGTH | HAS_MODE;
	row.file = (uint64_t)is->st_ino;
	row.device = (uint32_t)is->st_dev;
	row.call = known_call_index(known_call_named("existed"));
	row.order = ++walk->recorder->order;
	if (S_ISLNK(is->st_mode)) {
		const ssize_t length = readlinkat(folder, name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		row.has |= HAS_TARGET;
	}
	rows_add(&walk->recorder->stream, &row, texts);
	walk->recorder->stream.oldest = row.order + 1;
}

static int walk_folder(struct walk *walk, int fd);

static int walk_entry(struct walk *walk, int folder, const char *name)
{
	const size_t length = strlen(walk->path);
	struct stat is;
	int err = 0;

	if (fstatat(folder, name, &is, AT_SYMLINK_NOFOLLOW))
		return 0; /* removed meanwhile */
	if (length + strlen(name) + 2 > sizeof(walk->path)) {
		count_one(walk->recorder, "files of too long a path");
		return 0;
	}
	walk->path[length] = '/';
	(void)strcpy(walk->path + length + 1, name);
	if (S_ISREG(is.st_mode) || S_ISDIR(is.st_mode) || S_ISLNK(is.st_mode))
		say(walk, folder, name, &is);
	if (S_ISDIR(is.st_mode) && is.st_dev != walk->device) {
		count_one(walk->recorder, "folders that something is mounted on");
	} else if (S_ISDIR(is.st_mode)) {
		const int fd =
			openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || walk->depth == DEPTH_MAX)
			count_one(walk->recorder, "folders that could not be listed");
		if (fd >= 0)
			err = walk_folder(walk, fd);
	}
	walk->path[length] = '\0';
	return err;
}

/* Takes over the descriptor. */
static int walk_folder(struct walk *walk, int fd)
{
	DIR *folder = walk->depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	int err = 0;

	if (!folder) {
		(void)close(fd);
		return 0;
	}
	walk->depth++;
	for (const struct dirent *entry = readdir(folder); entry && !err; entry = readdir(folder))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = walk_entry(walk, fd, entry->d_name);
	walk->depth--;
	(void)closedir(folder);
	return err ? err : walk->recorder->stream.error;
}

/* Whether an earlier folder contains this one. */
static bool listed(const struct followed_folders *folders, size_t at)
{
	struct followed_folders before = *folders;

	before.count = at;
	return folders_have(&before, folders->path[at]);
}

int list_folder(struct recorder *recorder, const char *folder, const char *path, bool itself)
{
	static struct walk walk;
	struct stat is;
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &is))
		return -errno;
	walk = (struct walk){recorder, is.st_dev, .depth = 0};
	(void)snprintf(walk.path, sizeof(walk.path), "%s", strcmp(path, "/") == 0 ? "" : path);
	if (itself)
		say(&walk, fd, "", &is);
	return walk_folder(&walk, fd);
}

int listing(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->folders.count; i++) {
		const char *path = recorder->folders.path[i];
		const int err = listed(&recorder->folders, i)
					? 0
					: list_folder(recorder, path, path, false);

		if (err)
			return err;
	}
	return 0;
}
