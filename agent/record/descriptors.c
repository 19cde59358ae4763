/* SPDX-License-Identifier: Apache-2.0 */
/* Open file descriptions, tables of descriptors and working folders, as tasks share them.
 *
 * For each descriptor a table has its description, or that it is not followed, or nothing yet. It
 * learns about a descriptor when a call first uses it. In this way descriptors that were inherited
 * or received over a socket are found, too. Such a descriptor gets rows as if it had just been
 * opened, at its position.
 *
 * Kernel interfaces: /proc/TID/fd and fdinfo, kcmp(2) if the kernel has it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/record.h"

enum { KCMP_OF_FILE = 0, CREATING = 0100 | 0200 | 01000, SET = 0, DESCRIPTORS_MAX = 1 << 20 };

struct description not_followed = {.uses = 1};

static struct description *use(struct description *description)
{
	if (description)
		description->uses++;
	return description;
}

static void release(struct description *description)
{
	if (!description || description == &not_followed || --description->uses > 0)
		return;
	free(description->path);
	free(description);
}

struct descriptor_table *table_new(void)
{
	struct descriptor_table *table = calloc(1, sizeof(*table));

	if (table)
		table->uses = 1;
	return table;
}

struct descriptor_table *table_copy(const struct descriptor_table *from)
{
	struct descriptor_table *table = table_new();

	for (size_t fd = 0; table && fd < from->count; fd++)
		if (from->list[fd])
			table_set(table, (int)fd, use(from->list[fd]));
	return table;
}

void table_release(struct descriptor_table *table)
{
	if (!table || --table->uses > 0)
		return;
	for (size_t fd = 0; fd < table->count; fd++)
		release(table->list[fd]);
	free(table->list);
	free(table);
}

struct description *table_get(const struct descriptor_table *table, int fd)
{
	return fd >= 0 && (size_t)fd < table->count ? table->list[fd] : NULL;
}

/* Takes over one reference of the description. */
void table_set(struct descriptor_table *table, int fd, struct description *description)
{
	if (fd < 0 || fd >= DESCRIPTORS_MAX || (!description && (size_t)fd >= table->count)) {
		release(description);
		return;
	}
	if ((size_t)fd >= table->count) {
		const size_t count = (size_t)fd + 64;
		struct description **list = realloc(table->list, count * sizeof(*list));

		if (!list) {
			release(description);
			return;
		}
		memset(list + table->count, SET, (count - table->count) * sizeof(*list));
		table->list = list;
		table->count = count;
	}
	release(table->list[fd]);
	table->list[fd] = description;
}

void table_share(struct descriptor_table *table, int fd, struct description *description)
{
	table_set(table, fd, use(description));
}

void table_close_range(struct descriptor_table *table, uint64_t first, uint64_t last)
{
	for (uint64_t fd = first; fd <= last && fd < table->count; fd++)
		table_set(table, (int)fd, NULL);
}

/* An exec closes descriptors with FD_CLOEXEC, and leaves the task a table of its own. */
void table_after_exec(struct tracee *tracee)
{
	char link[RECORD_PATH];

	if (tracee->table->uses > 1) {
		struct descriptor_table *own = table_copy(tracee->table);

		if (!own)
			return;
		table_release(tracee->table);
		tracee->table = own;
	}
	for (size_t fd = 0; fd < tracee->table->count; fd++) {
		const struct description *there = tracee->table->list[fd];

		if (there && (there == &not_followed ||
			      proc_link(tracee->tid, "fd", (int)fd, link, sizeof(link)) < 0))
			table_set(tracee->table, (int)fd, NULL);
	}
}

static bool stat_of(pid_t tid, int fd, struct stat *is)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	return stat(path, is) == 0;
}

int64_t descriptor_size(const struct tracee *tracee, int fd)
{
	struct stat is;

	return stat_of(tracee->tid, fd, &is) ? (int64_t)is.st_size : -1;
}

struct description *description_new(const struct tracee *tracee, int fd, uint64_t flags)
{
	struct description *made = calloc(1, sizeof(*made));
	struct stat is;

	if (!made || !stat_of(tracee->tid, fd, &is) ||
	    (!S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode))) {
		free(made);
		return NULL;
	}
	made->uses = 1;
	made->is_folder = S_ISDIR(is.st_mode);
	made->file = (uint64_t)is.st_ino;
	made->device = (uint32_t)is.st_dev;
	made->flags = flags;
	return made;
}

/* Another descriptor of the same description in the table; -1 for none. */
static int twin(const struct tracee *tracee, int fd, const struct description *of)
{
	for (size_t other = 0; other < tracee->table->count; other++) {
		const struct description *there = tracee->table->list[other];

		if (!there || there == &not_followed || there->file != of->file)
			continue;
#ifdef SYS_kcmp
		if (syscall(SYS_kcmp, tracee->tid, tracee->tid, KCMP_OF_FILE, fd, (int)other) == 0)
			return (int)other;
#endif
	}
	return -1;
}

static void say_opened(struct recorder *recorder, struct tracee *tracee, int fd,
		       const struct description *made, const char *path)
{
	struct record_row row = {.result = fd, .flags = made->flags & ~(uint64_t)CREATING};

	row.has = HAS_PATH | HAS_FLAGS;
	event_row(recorder, tracee, "openat", &row, path);
	if (made->position <= 0)
		return;
	row = (struct record_row){.result = made->position, .offset = made->position};
	row.descriptor = fd;
	row.has = HAS_DESCRIPTOR | HAS_OFFSET | HAS_COMMAND;
	event_row(recorder, tracee, "lseek", &row, NULL);
}

/* The description of a descriptor whose opening was not seen. */
static struct description *found(struct recorder *recorder, struct tracee *tracee, int fd)
{
	char path[RECORD_PATH];
	uint64_t flags = 0;

	if (proc_link(tracee->tid, "fd", fd, path, sizeof(path)) < 0)
		return NULL;
	if (path[0] != '/' || !folders_have(&recorder->folders, path))
		return use(&not_followed);
	struct description *made = description_new(tracee, fd, 0);

	if (!made)
		return use(&not_followed);
	const int other = twin(tracee, fd, made);

	if (other >= 0) {
		struct record_row row = {.result = fd, .descriptor = other, .has = HAS_DESCRIPTOR};

		release(made);
		event_row(recorder, tracee, "dup", &row, NULL);
		return use(tracee->table->list[other]);
	}
	made->position = proc_position(tracee->tid, fd, &flags);
	made->flags = portable_open_flags(flags);
	say_opened(recorder, tracee, fd, made, path);
	return made;
}

struct description *descriptor(struct recorder *recorder, struct tracee *tracee, int fd)
{
	if (fd < 0)
		return NULL;
	struct description *there = table_get(tracee->table, fd);

	if (!there) {
		there = found(recorder, tracee, fd);
		table_set(tracee->table, fd, there);
		there = table_get(tracee->table, fd);
	}
	return there == &not_followed ? NULL : there;
}

void descriptors_look(struct recorder *recorder, struct tracee *tracee)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)tracee->tid);
	DIR *folder = opendir(path);

	if (!folder)
		return;
	for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
		if (entry->d_name[0] != '.')
			(void)descriptor(recorder, tracee, (int)strtol(entry->d_name, NULL, 10));
	(void)closedir(folder);
}

/* The folder of a descriptor; read again after a folder was renamed. */
static const char *remembered(struct recorder *recorder, pid_t tid, const char *name, int fd,
			      char **path, unsigned int *path_of)
{
	char link[RECORD_PATH];

	const bool known = *path && *path_of == recorder->names;

	if (known)
		return *path;
	if (proc_link(tid, name, fd, link, sizeof(link)) < 0)
		return NULL;
	free(*path);
	*path = strdup(strcmp(link, "/") == 0 ? "" : link);
	*path_of = recorder->names;
	return *path;
}

const char *descriptor_path(struct recorder *recorder, struct tracee *tracee, int fd)
{
	static char *other;
	static unsigned int never;
	struct description *there = table_get(tracee->table, fd);

	if (there && there != &not_followed)
		return remembered(recorder, tracee->tid, "fd", fd, &there->path, &there->path_of);
	never = recorder->names - 1;
	return remembered(recorder, tracee->tid, "fd", fd, &other, &never);
}

const char *folder_path(struct recorder *recorder, struct tracee *tracee)
{
	struct working_folder *folder = tracee->folder;

	return remembered(recorder, tracee->tid, "cwd", -1, &folder->path, &folder->path_of);
}

struct working_folder *folder_new(void)
{
	struct working_folder *folder = calloc(1, sizeof(*folder));

	if (folder)
		folder->uses = 1;
	return folder;
}

void folder_changed(struct working_folder *folder)
{
	free(folder->path);
	folder->path = NULL;
}

void folder_release(struct working_folder *folder)
{
	if (!folder || --folder->uses > 0)
		return;
	free(folder->path);
	free(folder);
}
