/* SPDX-License-Identifier: GPL-2.0-only */
/* Folders of the host in the order of their names' bytes: included behind the C library's headers,
 * this takes hostfs_user.c's calls that read a folder. The order of readdir(3) is the host's file
 * system's, so a program that copies a folder onto the flash would write it in another order
 * elsewhere.
 */
#ifndef FLASHBED_IN_ORDER_H
#define FLASHBED_IN_ORDER_H

#include <stdlib.h>

/* What scandir(3) allocates is the C library's. The kernel's link wraps free(), which takes the C
 * library's heap for memory of the guest.
 */
extern void __real_free(void *);

struct flashbed_folder {
	struct dirent **entries;
	int count;
	int at;
};

static inline int flashbed_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static inline struct flashbed_folder *flashbed_open_folder(const char *path)
{
	struct flashbed_folder *folder = malloc(sizeof(*folder));

	if (!folder) {
		errno = ENOMEM;
		return NULL;
	}
	folder->at = 0;
	folder->count = scandir(path, &folder->entries, NULL, flashbed_order);
	if (folder->count < 0) {
		const int err = errno;

		free(folder);
		errno = err;
		return NULL;
	}
	return folder;
}

static inline struct dirent *flashbed_next_entry(struct flashbed_folder *folder)
{
	struct dirent *entry;

	if (folder->at < 0 || folder->at >= folder->count)
		return NULL;
	entry = folder->entries[folder->at++];
	entry->d_off = folder->at;
	return entry;
}

static inline void flashbed_close_folder(struct flashbed_folder *folder)
{
	int i;

	for (i = 0; i < folder->count; i++)
		__real_free(folder->entries[i]);
	__real_free(folder->entries);
	free(folder);
}

#define DIR struct flashbed_folder
#define opendir(path) flashbed_open_folder(path)
#define readdir(folder) flashbed_next_entry(folder)
#define seekdir(folder, where) ((void)((folder)->at = (int)(where)))
#define closedir(folder) flashbed_close_folder(folder)

#endif
