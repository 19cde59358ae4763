/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring a board: undoes what an agent has mounted, attached and written. It undoes this agent's
 * changes and those of killed ones.
 *
 * An agent's home is a folder `flashbed-XXXXXXXX`, which the host names. Its file `state` has the
 * agent's process and the changes to the board, each written before it is made. Its file system
 * is mounted at `mnt` below it. Kernel interfaces: umount2(2), UBI_IOCDET, /proc/self/mounts.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <mtd/ubi-user.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board/board.h"

static void detach(int mtd)
{
	const int32_t ubi = partition_ubi(mtd);
	const int fd = ubi < 0 ? -1 : open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)ioctl(fd, UBI_IOCDET, &ubi);
	(void)close(fd);
}

static bool is_mounted(const char *path)
{
	struct mntent entry;
	char text[4096];
	bool found = false;
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	while (mounts && !found && getmntent_r(mounts, &entry, text, sizeof(text)))
		found = strcmp(entry.mnt_dir, path) == 0;
	if (mounts)
		(void)endmntent(mounts);
	return found;
}

static void unmount(const char *mount_point, int mtd)
{
	/* A shell in the directory must not keep it mounted: the second try detaches it. */
	if (is_mounted(mount_point) && umount2(mount_point, 0))
		(void)umount2(mount_point, MNT_DETACH);
	if (mtd >= 0)
		detach(mtd);
}

/* Undoes everything that a home's `state` lists, except perhaps the home itself. */
static void take_back(const struct tidy *state, bool keep_home)
{
	if (state->home[0]) {
		char mount_point[MAX_PATH_BYTES + 8];

		(void)snprintf(mount_point, sizeof(mount_point), "%s/mnt", state->home);
		unmount(mount_point, state->mtd);
	}
	if (state->folder[0])
		(void)remove_folder(state->folder);
	for (size_t i = 0; i < TIDY_SETTINGS; i++)
		if (state->settings[i].path[0])
			(void)write_file(state->settings[i].path, state->settings[i].text);
	if (state->home[0] && !keep_home)
		(void)remove_folder(state->home);
}

void tidy_state(const struct tidy *state)
{
	take_back(state, false);
}

int tidy_write(const struct tidy *state)
{
	char path[MAX_PATH_BYTES + 8];

	(void)snprintf(path, sizeof(path), "%s/state", state->home);
	FILE *out = fopen(path, "we");

	if (!out)
		return -errno;
	bool written = fprintf(out, "pid %d\nmtd %d\nfolder %s\n", getpid(), state->mtd,
			       state->folder) > 0;

	for (size_t i = 0; i < TIDY_SETTINGS; i++)
		written =
			written && fprintf(out, "setting%zu %s\ntext%zu %s\n", i,
					   state->settings[i].path, i, state->settings[i].text) > 0;
	return fclose(out) || !written ? -EIO : 0;
}

/* Finds a value in `KEY VALUE` lines; an empty value means none. */
static void value_of(const char *text, const char *key, char *value, size_t size)
{
	const char *at = strstr(text, key);

	value[0] = '\0';
	if (at)
		(void)snprintf(value, size, "%.*s", (int)strcspn(at + strlen(key), "\n"),
			       at + strlen(key));
}

/* Any user may create a folder in /tmp, so a home is trusted only if it is ours and only we can
 * write to it. */
static bool is_ours(const char *home)
{
	struct stat about;

	return lstat(home, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
	       !(about.st_mode & (S_IWGRP | S_IWOTH));
}

/* Reads a home's state; returns whether its agent has ended. */
static bool abandoned(const char *home, struct tidy *state)
{
	char path[MAX_PATH_BYTES + 8];
	char text[4 * MAX_PATH_BYTES];
	char number[16];

	(void)snprintf(path, sizeof(path), "%s/state", home);
	memset(state, 0, sizeof(*state));
	if (!is_ours(home) || read_file(path, text, sizeof(text)) <= 0 ||
	    strncmp(text, "pid ", 4) != 0)
		return false;
	const pid_t pid = (pid_t)strtol(text + 4, NULL, 10);

	value_of(text, "\nmtd ", number, sizeof(number));
	state->mtd = number[0] ? (int)strtol(number, NULL, 10) : -1;
	value_of(text, "\nfolder ", state->folder, sizeof(state->folder));
	for (size_t i = 0; i < TIDY_SETTINGS; i++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "\nsetting%zu ", i);
		value_of(text, key, state->settings[i].path, sizeof(state->settings[i].path));
		(void)snprintf(key, sizeof(key), "\ntext%zu ", i);
		value_of(text, key, state->settings[i].text, sizeof(state->settings[i].text));
	}
	(void)snprintf(state->home, sizeof(state->home), "%s", home);
	return pid > 0 && kill(pid, 0) && errno == ESRCH;
}

void tidy_abandoned(const char *home)
{
	char parent[MAX_PATH_BYTES + 1];
	char path[MAX_PATH_BYTES + 1];
	const char *slash = strrchr(home, '/');
	struct tidy state;

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash ? slash - home : 0), home);
	DIR *homes = parent[0] ? opendir(parent) : NULL;

	for (const struct dirent *entry = homes ? readdir(homes) : NULL; entry;
	     entry = readdir(homes)) {
		if (strncmp(entry->d_name, "flashbed-", 9) != 0)
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) <
			    sizeof(path) &&
		    abandoned(path, &state))
			take_back(&state, strcmp(path, home) == 0);
	}
	if (homes)
		(void)closedir(homes);
}
