/* SPDX-License-Identifier: Apache-2.0 */
/* The folders below which files are followed, by their canonical paths. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

/* Takes over the path. */
static int add(struct followed_folders *folders, char *path)
{
	if (!path)
		return -errno;
	if (folders->count == RECORD_FOLDERS) {
		free(path);
		return -E2BIG;
	}
	/* Everything is below the root folder. */
	folders->length[folders->count] = strcmp(path, "/") == 0 ? 0 : strlen(path);
	folders->path[folders->count++] = path;
	return 0;
}

int folders_add(struct followed_folders *folders, const char *path)
{
	return add(folders, realpath(path, NULL));
}

int folders_add_named(struct followed_folders *folders, const char *path)
{
	return add(folders, strdup(path));
}

bool folders_have(const struct followed_folders *folders, const char *path)
{
	for (size_t i = 0; i < folders->count; i++) {
		const size_t length = folders->length[i];

		if (strncmp(path, folders->path[i], length) == 0 &&
		    (path[length] == '/' || path[length] == '\0'))
			return true;
	}
	return false;
}
