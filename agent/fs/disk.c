/* SPDX-License-Identifier: Apache-2.0 */
/* A disk with a flash translation layer on the partition, and file systems of disks on it.
 *
 * kernel/flashbed_ftl is the layer, `ctl` of debugfs attaches it to the partition. The program that
 * makes a file system, its libraries and its command are in the initramfs, below /mkfs, where the
 * host put them. Leaves out disks of an owner's board.
 *
 * Kernel interfaces: /sys/kernel/debug/flashbed_ftl/ctl, fork(2), execve(2), mount(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/fs.h"

#define CONTROL "/sys/kernel/debug/flashbed_ftl/ctl"
#define DEVICE "/dev/flashbed_ftl"

enum { USUAL_SPARE_PERMILLE = 69, WORDS_MAX = 32, COMMAND_BYTES = 1024 };

bool disk_kind(enum fs_kind kind)
{
	return kind == FS_FTL || kind == FS_EXT4 || kind == FS_F2FS;
}

static bool is_number_of(const char *word, const char *key, unsigned int *number)
{
	const size_t length = strlen(key);
	char *end = NULL;

	if (strncmp(word, key, length) != 0 || word[length] != '=')
		return false;
	*number = (unsigned int)strtoul(word + length + 1, &end, 10);
	return end != word + length + 1 && !*end;
}

/* Takes the layer's options; those of mount(2) are left in `options`. */
void disk_take_options(struct fs *fs)
{
	char words[sizeof(fs->options)];
	char *rest = words;
	char *word;

	fs->spare_permille = USUAL_SPARE_PERMILLE;
	fs->map_pages = 0;
	(void)snprintf(words, sizeof(words), "%s", fs->options);
	fs->options[0] = '\0';
	while ((word = strsep(&rest, ","))) {
		const size_t used = strlen(fs->options);

		if (is_number_of(word, "spare_permille", &fs->spare_permille) ||
		    is_number_of(word, "map_pages", &fs->map_pages))
			continue;
		(void)snprintf(fs->options + used, sizeof(fs->options) - used, "%s%s",
			       used ? "," : "", word);
	}
}

static int attach(const struct fs *fs)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "attach %d %u %u", fs->mtd, fs->spare_permille,
		       fs->map_pages);
	return write_file(CONTROL, command);
}

int disk_detach(void)
{
	return write_file(CONTROL, "detach");
}

/* Splits lines into words, and adds the device. */
static int split(char *text, char **words)
{
	size_t count = 0;
	char *line;

	while ((line = strsep(&text, "\n")) && count < WORDS_MAX - 2)
		if (*line)
			words[count++] = line;
	words[count] = DEVICE;
	return count ? 0 : -ENOENT;
}

static int run(char *const *words)
{
	/* The kernel keeps no vector registers but the baseline's (agent/main.c). */
	char *const environment[] = {
		"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,"
		"-AVX_Usable,-AVX2_Usable",
		NULL};
	const pid_t child = fork();
	int status = 0;

	if (child < 0)
		return -errno;
	if (child == 0) {
		const int null = open("/dev/null", O_RDWR);

		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)execve(words[0], words, environment);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int make(const char *type)
{
	char path[64];
	char text[COMMAND_BYTES];
	char *words[WORDS_MAX] = {NULL};

	(void)snprintf(path, sizeof(path), "/mkfs/%s", type);
	const int got = read_file(path, text, sizeof(text));
	const int err = got < 0 ? got : split(text, words);

	return err ? err : run(words);
}

static int mount_on_disk(struct fs *fs, const char *type, bool new)
{
	int err = new ? fs_fail(fs, make(type), "making the file system") : 0;

	if (!err)
		err = fs_fail(fs, mount(DEVICE, fs->mount_point, type, 0, fs->options) ? -errno : 0,
			      "mounting the disk");
	return err;
}

/* Attaches the disk; mounts its file system, which is made before if it is new. */
int disk_mount(struct fs *fs, enum fs_kind kind, const char *type, bool new)
{
	int err = fs_fail(fs, attach(fs), "attaching the translation layer");

	if (err)
		return err;
	err = kind == FS_FTL ? fs_fail(fs, raw_link(fs, kind), "naming the disk")
			     : mount_on_disk(fs, type, new);
	if (err)
		(void)disk_detach();
	return err;
}
