/* SPDX-License-Identifier: Apache-2.0 */
/* The folders below which files are followed, by the names that the kernel has for them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

int folders_add(struct followed_folders *folders, const char *path)
{
	char *real = realpath(path, NULL);

	if (!real)
		return -errno;
	if (folders->count == RECORD_FOLDERS) {
		free(real);
		return -E2BIG;
	}
	/* Of the root folder everything is below. */
	folders->length[folders->count] = strcmp(real, "/") == 0 ? 0 : strlen(real);
	folders->path[folders->count++] = real;
	return 0;
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
