/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves paths as the tracee does, makes them absolute, and checks whether they are below a
 * followed folder.
 *
 * The kernel resolves the folder of a path once, through a descriptor of it. The result is cached
 * until a name changes that the path may pass. Leaves out tracees with a root folder or mounts of
 * their own, and names that a program which is not followed changes meanwhile.
 *
 * Kernel interfaces: open(2) with O_PATH, /proc/self/fd, readlink(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record.h"

enum { REMEMBERED = 256 };

struct remembered {
	char *asked;
	char *real;
};

static struct remembered memory[REMEMBERED];

static struct remembered *place_of(const char *path)
{
	uint32_t hash = 2166136261U;

	for (const char *at = path; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619U;
	return &memory[(hash ^ hash >> 16) % REMEMBERED];
}

static void forget(struct remembered *one)
{
	free(one->asked);
	free(one->real);
	*one = (struct remembered){NULL, NULL};
}

void resolve_forget(const char *path)
{
	const size_t length = path ? strlen(path) : 0;

	for (size_t i = 0; i < REMEMBERED; i++) {
		const char *asked = memory[i].asked;

		if (asked && (!path || (strncmp(asked, path, length) == 0 &&
					(asked[length] == '/' || asked[length] == '\0'))))
			forget(&memory[i]);
	}
}

/* The kernel's path of a folder or a file. */
static int real_path(const char *path, char *real)
{
	char link[64];
	const int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	const ssize_t length = readlink(link, real, RECORD_PATH - 1);
	const int err = length < 0 ? -errno : 0;

	(void)close(fd);
	if (!err)
		real[length] = '\0';
	return err;
}

static int real_folder(const char *path, char *real)
{
	struct remembered *place = place_of(path);

	if (place->asked && strcmp(place->asked, path) == 0) {
		(void)strcpy(real, place->real);
		return 0;
	}
	const int err = real_path(*path ? path : "/", real);

	if (err)
		return err;
	if (strcmp(real, "/") == 0)
		real[0] = '\0';
	forget(place);
	place->asked = strdup(path);
	place->real = strdup(real);
	if (!place->asked || !place->real)
		forget(place);
	return 0;
}

/* Removes `.`, `..` and double slashes, as far as possible without the file system. */
static void normalise(char *path)
{
	char *out = path;

	for (const char *at = path; *at;) {
		const char *part = at + strspn(at, "/");
		const size_t length = strcspn(part, "/");

		at = part + length;
		if (length == 0 || (length == 1 && part[0] == '.'))
			continue;
		if (length == 2 && part[0] == '.' && part[1] == '.') {
			while (out > path && *--out != '/')
				;
			continue;
		}
		*out++ = '/';
		memmove(out, part, length);
		out += length;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
}

/* Replaces /proc/self and /dev/fd by the tracee's, because they would be the recorder's. */
static void for_tracee(const struct tracee *tracee, const char *path, char *joined)
{
	static const char *const own[] = {"/proc/self/", "/proc/thread-self/", "/dev/fd/"};
	static const char *const its[] = {"", "", "fd/"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0) {
			(void)snprintf(joined, RECORD_PATH, "/proc/%d/%s%s", (int)tracee->tgid,
				       its[i], path + strlen(own[i]));
			return;
		}
	(void)snprintf(joined, RECORD_PATH, "%s", path);
}

static int join(struct recorder *recorder, struct tracee *tracee, int folder, const char *path,
		char *joined)
{
	if (path[0] == '/') {
		for_tracee(tracee, path, joined);
		return 0;
	}
	errno = 0;
	const char *base = folder == AT_FDCWD ? folder_path(recorder, tracee)
					      : descriptor_path(recorder, tracee, folder);

	if (!base) /* the kernel has no link to a folder of such a path */
		return errno == ENAMETOOLONG ? -ENAMETOOLONG : -EBADF;
	const int length = snprintf(joined, RECORD_PATH, "%s/%s", base, path);

	return length < RECORD_PATH ? 0 : -ENAMETOOLONG;
}

/* Follows a last symlink, if there is one. */
static void follow_last(char *absolute)
{
	char text[RECORD_PATH];
	const ssize_t length = readlink(absolute, text, sizeof(text) - 1);

	if (length <= 0)
		return;
	text[length] = '\0';
	char real[RECORD_PATH];

	if (real_path(absolute, real) == 0) {
		(void)strcpy(absolute, real);
		return;
	}
	/* The link's target is missing: use its text, because the call may create it. */
	char *last = strrchr(absolute, '/');
	const size_t left = (size_t)(absolute + RECORD_PATH - last);

	if (text[0] == '/')
		(void)strcpy(absolute, text);
	else if ((size_t)length + 2 < left)
		(void)strcpy(last + 1, text);
	normalise(absolute);
}

int resolve(struct recorder *recorder, struct tracee *tracee, int folder, const char *path,
	    bool follow, char *absolute)
{
	char joined[RECORD_PATH];
	int err = join(recorder, tracee, folder, path, joined);

	if (err)
		return err;
	size_t length = strlen(joined);

	while (length > 1 && joined[length - 1] == '/')
		joined[--length] = '\0';
	char *last = strrchr(joined, '/');
	const char *name = last + 1;

	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		if (real_path(joined, absolute))
			(void)strcpy(absolute, joined);
		normalise(absolute);
		return 0;
	}
	*last = '\0';
	/* A missing folder is followed only if its name is below a followed one. */
	if (real_folder(joined, absolute))
		(void)strcpy(absolute, joined), normalise(absolute);
	if (strcmp(absolute, "/") == 0)
		absolute[0] = '\0';
	if (strlen(absolute) + strlen(name) + 2 > RECORD_PATH)
		return -ENAMETOOLONG;
	(void)strcat(strcat(absolute, "/"), name);
	if (follow)
		follow_last(absolute);
	return 0;
}
