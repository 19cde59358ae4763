/* SPDX-License-Identifier: Apache-2.0 */
/* Copies files of the host onto the flash before anything is counted. They belong to the program's
 * user and keep their permissions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"

static int put_file(const char *source, const char *path, mode_t mode)
{
	const int from = open(source, O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return -errno;
	const int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int err = to < 0 ? -errno : copy_file(from, to);

	if (to >= 0 && close(to) && !err)
		err = -errno;
	(void)close(from);
	return err;
}

static int put_one(const struct host_put *put, const char *root, const char *path)
{
	char source[MAX_PATH_BYTES + 16];

	switch (put->kind) {
	case HOST_FOLDER:
		return mkdir(path, put->mode) && errno != EEXIST ? -errno : 0;
	case HOST_LINK:
		return symlink(put->source, path) ? -errno : 0;
	case HOST_FILE:
		break;
	}
	if (snprintf(source, sizeof(source), "%s%s", root, put->source) >= (int)sizeof(source))
		return -ENAMETOOLONG;
	return put_file(source, path, put->mode);
}

/* Changes only what differs: YAFFS2 programs a page for each change of attributes, and a replay of
 * the recording makes none. */
static int give(const struct host_request *request, const struct host_put *put, const char *path)
{
	struct stat about;

	if (lstat(path, &about))
		return -errno;
	const bool own = about.st_uid == request->uid && about.st_gid == request->gid;
	/* A change of the owner takes these away. */
	const bool lost = !own && (put->mode & (S_ISUID | S_ISGID));

	if (!own && lchown(path, request->uid, request->gid))
		return -errno;
	if (put->kind == HOST_LINK || (!lost && (about.st_mode & 07777) == (put->mode & 07777)))
		return 0;
	return chmod(path, put->mode) ? -errno : 0;
}

const char *host_files(const struct host_place *place)
{
	return place->where == HOST_USER_MODE ? "/host" : "";
}

int host_put_all(const struct host_request *request, const struct host_place *place,
		 const char **what)
{
	const char *root = host_files(place);
	const char *folder = place->mount_point;
	char path[MAX_PATH_BYTES + 16];
	int err = 0;

	for (size_t i = 0; i < request->puts_count && !err; i++) {
		const struct host_put *put = &request->puts[i];

		*what = put->path;
		if (snprintf(path, sizeof(path), "%s/%s", folder, put->path) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		err = put_one(put, root, path);
		if (!err)
			err = give(request, put, path);
	}
	return err;
}
