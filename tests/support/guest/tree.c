/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files: copied, compared byte for byte, listed; links, renames, lengths, pages written
 * through a mapping.
 *
 * Kernel interfaces: the system calls of the same names, mmap(2), readdir(3). Of owners and times
 * nothing is said.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tree.h"

enum { PATH_BYTES = 1200, PIECE_BYTES = 65536 };

struct counted {
	uint64_t files;
	uint64_t bytes;
};

static const char *at_mount(const char *name)
{
	static char paths[2][PATH_BYTES];
	static int turn;

	if (name[0] == '/')
		return name;
	turn = !turn;
	(void)snprintf(paths[turn], PATH_BYTES, "/mnt/%s", name);
	return paths[turn];
}

static int copy_bytes(int from, int to, struct counted *counted)
{
	static char piece[PIECE_BYTES];
	ssize_t got;

	while ((got = read(from, piece, sizeof(piece))) > 0) {
		const ssize_t put = write(to, piece, (size_t)got);

		if (put != got)
			return put < 0 ? -errno : -ENOSPC;
		counted->bytes += (uint64_t)put;
	}
	counted->files++;
	return got < 0 ? -errno : 0;
}

static int same_bytes(int one, int other, struct counted *counted)
{
	static char pieces[2][PIECE_BYTES];

	for (;;) {
		const ssize_t got = read(one, pieces[0], PIECE_BYTES);
		const ssize_t back = read(other, pieces[1], PIECE_BYTES);

		if (got < 0 || back < 0)
			return -errno;
		if (got != back || memcmp(pieces[0], pieces[1], (size_t)got) != 0)
			return -EILSEQ;
		if (!got)
			break;
		counted->bytes += (uint64_t)got;
	}
	counted->files++;
	return 0;
}

static int with_both(const char *one, const char *other, int flags, mode_t mode,
		     int (*work)(int, int, struct counted *), struct counted *counted)
{
	const int a = open(one, O_RDONLY | O_CLOEXEC);
	const int b = a < 0 ? -1 : open(other, flags | O_CLOEXEC, mode);
	int err = a < 0 || b < 0 ? -errno : work(a, b, counted);

	if (b >= 0 && close(b) && !err)
		err = -errno;
	if (a >= 0)
		(void)close(a);
	return err;
}

static int link_target(const char *path, char *text)
{
	const ssize_t got = readlink(path, text, PATH_BYTES - 1);

	if (got < 0)
		return -errno;
	text[got] = '\0';
	return 0;
}

static int one_link(const char *from, const char *to, int compare)
{
	char wanted[PATH_BYTES], found[PATH_BYTES];
	int err = link_target(from, wanted);

	if (!err && !compare)
		return symlink(wanted, to) ? -errno : 0;
	if (!err)
		err = link_target(to, found);
	return err ? err : strcmp(wanted, found) ? -EILSEQ : 0;
}

static int walk(const char *from, const char *to, int compare, struct counted *counted,
		char *detail, size_t size);

static int one(const char *from, const char *to, int compare, struct counted *counted, char *detail,
	       size_t size)
{
	struct stat kind, other;

	if (lstat(from, &kind))
		return -errno;
	if (S_ISDIR(kind.st_mode)) {
		if (!compare && mkdir(to, kind.st_mode & 0777))
			return -errno;
		return walk(from, to, compare, counted, detail, size);
	}
	int err = S_ISLNK(kind.st_mode) ? one_link(from, to, compare)
		  : compare ? with_both(from, to, O_RDONLY, 0, same_bytes, counted)
			    : with_both(from, to, O_WRONLY | O_CREAT | O_EXCL, kind.st_mode & 0777,
					copy_bytes, counted);

	if (!err && compare && S_ISREG(kind.st_mode))
		err = stat(to, &other) ? -errno : other.st_mode == kind.st_mode ? 0 : -EILSEQ;
	if (err)
		(void)snprintf(detail, size, "%s", to);
	return err;
}

static int walk(const char *from, const char *to, int compare, struct counted *counted,
		char *detail, size_t size)
{
	DIR *directory = opendir(from);
	struct dirent *entry;
	int err = 0;

	if (!directory)
		return -errno;
	while (!err && (entry = readdir(directory))) {
		char a[PATH_BYTES], b[PATH_BYTES];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		(void)snprintf(a, sizeof(a), "%s/%s", from, entry->d_name);
		(void)snprintf(b, sizeof(b), "%s/%s", to, entry->d_name);
		err = one(a, b, compare, counted, detail, size);
	}
	(void)closedir(directory);
	return err;
}

static int say(int err, const struct counted *counted, char *detail, size_t size)
{
	if (!err)
		(void)snprintf(detail, size, "%" PRIu64 " %" PRIu64, counted->files,
			       counted->bytes);
	return err;
}

/* copytree FROM TO: files and bytes. */
static int do_copytree(char **word, char *detail, size_t size)
{
	struct counted counted = {0, 0};

	return say(one(at_mount(word[1]), at_mount(word[2]), 0, &counted, detail, size), &counted,
		   detail, size);
}

/* comparetree A B: that everything in A is in B and the same; EILSEQ and where not. */
static int do_comparetree(char **word, char *detail, size_t size)
{
	struct counted counted = {0, 0};

	return say(walk(at_mount(word[1]), at_mount(word[2]), 1, &counted, detail, size), &counted,
		   detail, size);
}

/* removetree NAME: while it is being read, as rm -r does. */
static int remove_tree(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!directory)
		return errno == ENOTDIR ? (unlink(path) ? -errno : 0) : -errno;
	while (!err && (entry = readdir(directory))) {
		char below[PATH_BYTES];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		(void)snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		err = entry->d_type == DT_DIR ? remove_tree(below) : unlink(below) ? -errno : 0;
	}
	(void)closedir(directory);
	return err ? err : rmdir(path) ? -errno : 0;
}

static int do_removetree(char **word, char *detail, size_t size)
{
	(void)detail;
	(void)size;
	return remove_tree(at_mount(word[1]));
}

static int by_name(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* list NAME: the names in it, sorted. */
static int do_list(char **word, char *detail, size_t size)
{
	static char *names[4096];
	DIR *directory = opendir(at_mount(word[1]));
	struct dirent *entry;
	size_t count = 0;
	size_t used = 0;

	if (!directory)
		return -errno;
	while (count < 4096 && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			names[count++] = strdup(entry->d_name);
	(void)closedir(directory);
	qsort(names, count, sizeof(names[0]), by_name);
	for (size_t i = 0; i < count; i++) {
		if (used < size)
			used += (size_t)snprintf(detail + used, size - used, "%s%s", i ? " " : "",
						 names[i]);
		free(names[i]);
	}
	return 0;
}

/* stat NAME: mode, links, bytes. */
static int do_stat(char **word, char *detail, size_t size)
{
	struct stat found;

	if (lstat(at_mount(word[1]), &found))
		return -errno;
	(void)snprintf(detail, size, "%o %u %lld", (unsigned)found.st_mode,
		       (unsigned)found.st_nlink, (long long)found.st_size);
	return 0;
}

/* space NAME: bytes that df calls available, and all. */
static int do_space(char **word, char *detail, size_t size)
{
	struct statfs found;

	if (statfs(at_mount(word[1]), &found))
		return -errno;
	const unsigned long long unit = (unsigned long long)found.f_bsize;

	(void)snprintf(detail, size, "%llu %llu", found.f_bavail * unit, found.f_blocks * unit);
	return 0;
}

static int done(int result)
{
	return result ? -errno : 0;
}

#define NOT_SAID(...) (void)detail, (void)size, __VA_ARGS__

static int do_mkdir(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(mkdir(at_mount(word[1]), 0755)));
}
static int do_rmdir(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(rmdir(at_mount(word[1]))));
}
static int do_chmod(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(chmod(at_mount(word[1]), strtoul(word[2], NULL, 8))));
}
static int do_link(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(link(at_mount(word[1]), at_mount(word[2]))));
}
static int do_symlink(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(symlink(word[1], at_mount(word[2]))));
}
static int do_rename(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(rename(at_mount(word[1]), at_mount(word[2]))));
}
static int do_mknod(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(mknod(at_mount(word[1]), S_IFIFO | 0600, 0)));
}
static int do_sync(char **word, char *detail, size_t size)
{
	return (void)word, NOT_SAID(sync(), 0);
}
static int do_rest(char **word, char *detail, size_t size)
{
	return NOT_SAID(usleep((useconds_t)strtoul(word[1], NULL, 10)), 0);
}

/* readonly: what is mounted, from here on. */
static int do_readonly(char **word, char *detail, size_t size)
{
	return (void)word, NOT_SAID(done(mount(NULL, "/mnt", NULL, MS_REMOUNT | MS_RDONLY, NULL)));
}

static int do_truncate(char **word, char *detail, size_t size)
{
	return NOT_SAID(done(truncate(at_mount(word[1]), strtoll(word[2], NULL, 10))));
}

static int do_readlink(char **word, char *detail, size_t size)
{
	char text[PATH_BYTES];
	const int err = link_target(at_mount(word[1]), text);

	if (!err)
		(void)snprintf(detail, size, "%s", text);
	return err;
}

/* mapwrite NAME OFFSET BYTE COUNT: through a shared mapping, synced. */
static int do_mapwrite(char **word, char *detail, size_t size)
{
	const size_t from = strtoul(word[2], NULL, 10);
	const size_t count = strtoul(word[4], NULL, 10);
	const int fd = open(at_mount(word[1]), O_RDWR | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	(void)detail;
	(void)size;
	if (err)
		return err;
	char *bytes = mmap(NULL, from + count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED) {
		err = -errno;
	} else {
		memset(bytes + from, (int)strtoul(word[3], NULL, 10), count);
		err = done(msync(bytes, from + count, MS_SYNC));
		(void)munmap(bytes, from + count);
	}
	(void)close(fd);
	return err;
}

/* same NAME OFFSET BYTE COUNT: EILSEQ if not all of these bytes are that one. */
static int do_same(char **word, char *detail, size_t size)
{
	const size_t count = strtoul(word[4], NULL, 10);
	const int fd = open(at_mount(word[1]), O_RDONLY | O_CLOEXEC);
	char *bytes = malloc(count);
	int err = fd < 0 || !bytes ? -errno : 0;

	if (!err && pread(fd, bytes, count, strtoll(word[2], NULL, 10)) != (ssize_t)count)
		err = -EIO;
	for (size_t i = 0; i < count && !err; i++) {
		if (bytes[i] != (char)strtoul(word[3], NULL, 10)) {
			(void)snprintf(detail, size, "%zu", i);
			err = -EILSEQ;
		}
	}
	free(bytes);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

const struct tree_command tree_commands[] = {
	{"copytree", do_copytree, 3},
	{"comparetree", do_comparetree, 3},
	{"removetree", do_removetree, 2},
	{"list", do_list, 2},
	{"stat", do_stat, 2},
	{"space", do_space, 2},
	{"mkdir", do_mkdir, 2},
	{"rmdir", do_rmdir, 2},
	{"chmod", do_chmod, 3},
	{"link", do_link, 3},
	{"symlink", do_symlink, 3},
	{"rename", do_rename, 3},
	{"mknod", do_mknod, 2},
	{"sync", do_sync, 1},
	{"readonly", do_readonly, 1},
	{"rest", do_rest, 2},
	{"truncate", do_truncate, 3},
	{"readlink", do_readlink, 2},
	{"mapwrite", do_mapwrite, 5},
	{"same", do_same, 5},
	{NULL, NULL, 0},
};
