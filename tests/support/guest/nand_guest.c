/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of a guest that tries kernel/flashbed_nand, and kernel/yaffs2 on it: obeys the lines of
 * a script, writes one line of result for each, powers off.
 *
 * Kernel interfaces: finit_module(2), mtd/mtd-user.h, mtd/ubi-user.h, mount(2). The folder of the
 * host that the kernel's command line names (`host=PATH`, user-mode Linux's hostfs) is /host: the
 * script is /host/script and results go to /host/result; without it they are /script and the
 * console. A result is `NUMBER COMMAND ERRNO NANOSECONDS DETAIL`, 0 for a success, with the time
 * the command took. File systems are made by the agent (agent/fs/fs.c). Linked with it; not part of
 * it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/mtd-user.h>
#include <mtd/ubi-user.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/fs.h"
#include "tree.h"

enum { FIELDS = 64, BUFFER = 1 << 22, DETAIL = 4096 };

static struct fs fs;
static uint8_t *buffer;
static char detail[DETAIL];
static char *field[FIELDS];
static int fields;

static uint64_t number(int at)
{
	return at < fields ? strtoull(field[at], NULL, 10) : 0;
}

/* The fields from `at` on as they were, with single spaces. */
static const char *rest(int at)
{
	static char text[2048];

	text[0] = '\0';
	for (; at < fields; at++) {
		strncat(text, field[at], sizeof(text) - strlen(text) - 2);
		if (at + 1 < fields)
			strcat(text, " ");
	}
	return text;
}

static void fill(uint8_t *bytes, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		bytes[i] = (uint8_t)(seed >> 56);
	}
}

static uint64_t hash(uint64_t so_far, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		so_far = (so_far ^ bytes[i]) * 1099511628211U;
	return so_far;
}

static int do_load(void)
{
	const int fd = open(field[1], O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = syscall(SYS_finit_module, fd, rest(2), 0) ? -errno : 0;

	(void)close(fd);
	return err;
}

static int do_unload(void)
{
	return syscall(SYS_delete_module, fields > 1 ? field[1] : "flashbed_nand", O_NONBLOCK)
		       ? -errno
		       : 0;
}

static int do_ctl(void)
{
	return write_file("/sys/kernel/debug/flashbed_nand/ctl", rest(1));
}

/* copy FROM TO [PIECE]: in pieces of so many bytes. */
static int do_copy(void)
{
	const size_t piece = fields > 3 ? number(3) : BUFFER;
	const int from = open(field[1], O_RDONLY | O_CLOEXEC);
	const int to = open(field[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int err = from < 0 || to < 0 ? -errno : 0;
	uint64_t total = 0;

	while (!err) {
		const ssize_t got = read(from, buffer, piece);
		ssize_t put = 0;

		if (got <= 0) {
			err = got < 0 ? -errno : 0;
			break;
		}
		for (ssize_t done = 0; done < got && !err; done += put) {
			put = write(to, buffer + done, (size_t)(got - done));
			err = put < 0 ? -errno : 0;
		}
		total += (uint64_t)got;
	}
	if (from >= 0)
		(void)close(from);
	if (to >= 0 && close(to) && !err)
		err = -errno;
	(void)snprintf(detail, DETAIL, "%" PRIu64, total);
	return err;
}

/* sum PATH: bytes and a hash of them. */
static int do_sum(void)
{
	const int fd = open(field[1], O_RDONLY | O_CLOEXEC);
	uint64_t total = 0;
	uint64_t sum = 14695981039346656037U;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, buffer, BUFFER)) > 0) {
		sum = hash(sum, buffer, (size_t)got);
		total += (uint64_t)got;
	}
	(void)snprintf(detail, DETAIL, "%" PRIu64 " %016" PRIx64, total, sum);
	const int err = got < 0 ? -errno : 0;

	(void)close(fd);
	return err;
}

/* show PATH: a text, its lines joined by |. */
static int do_show(void)
{
	const int got = read_file(field[1], detail, DETAIL);

	for (char *at = detail; *at; at++)
		if (*at == '\n')
			*at = '|';
	return got < 0 ? got : 0;
}

static int do_fresh(void)
{
	int err = fs_init(&fs, 0, "/mnt");

	if (!err)
		err = fs_format(&fs, field[1]);
	if (!err)
		err = fs_mount_fresh(&fs);
	if (err)
		(void)snprintf(detail, DETAIL, "%s", fs.detail);
	return err;
}

static void detach_ubi(void)
{
	const int fd = open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);
	int32_t ubi = 0;

	if (fd < 0 || ioctl(fd, UBI_IOCDET, &ubi))
		(void)fprintf(stderr, "nand_guest: detaching UBI: %s\n", strerror(errno));
	if (fd >= 0)
		(void)close(fd);
}

/* mount jffs2|yaffs2|ubifs [ro|OPTIONS]: what is on the chip. */
static int do_mount(void)
{
	struct ubi_attach_req attach = {.ubi_num = 0, .mtd_num = 0};
	const bool ubifs = !strcmp(field[1], "ubifs");
	int err = fs_init(&fs, 0, "/mnt");

	if (!err && ubifs) {
		const int fd = open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);

		err = fd < 0 || ioctl(fd, UBI_IOCATT, &attach) ? -errno : 0;
		if (fd >= 0)
			(void)close(fd);
	}
	if (err)
		return err;
	const char *options = fields > 2 ? field[2] : NULL;
	const bool read_only = options && !strcmp(options, "ro");

	err = mount(ubifs ? "ubi0_0" : "mtd0", "/mnt", field[1], read_only ? MS_RDONLY : 0,
		    read_only ? NULL : options)
		      ? -errno
		      : 0;
	if (!err)
		fs.mounted = ubifs ? FS_UBIFS : !strcmp(field[1], "yaffs2") ? FS_YAFFS2 : FS_JFFS2;
	else if (ubifs)
		detach_ubi();
	return err;
}

static int do_unmount(void)
{
	return fs_unmount(&fs);
}

/* put NAME BYTES SEED */
static int do_put(void)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "/mnt/%s", field[1]);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	fill(buffer, number(2), number(3));
	int err = write(fd, buffer, number(2)) == (ssize_t)number(2) ? 0 : -errno;

	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* check NAME BYTES SEED: 0 when the file has these bytes, EILSEQ when it has others. */
static int do_check(void)
{
	char path[300];
	const size_t count = number(2);

	(void)snprintf(path, sizeof(path), "/mnt/%s", field[1]);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const ssize_t got = read(fd, buffer, BUFFER / 2);
	const int err = got < 0 ? -errno : 0;

	(void)close(fd);
	fill(buffer + BUFFER / 2, count, number(3));
	return err                                                                    ? err
	       : got == (ssize_t)count && !memcmp(buffer, buffer + BUFFER / 2, count) ? 0
										      : -EILSEQ;
}

static int do_remove(void)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "/mnt/%s", field[1]);
	return unlink(path) ? -errno : 0;
}

static int mtd_io(int (*io)(int fd))
{
	const int fd = open("/dev/mtd0", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = io(fd);

	(void)close(fd);
	return err;
}

/* read OFFSET BYTES [TIMES]: a hash of what was read last. */
static int read_once(int fd)
{
	const uint64_t times = fields > 3 ? number(3) : 1;
	int err = 0;

	for (uint64_t i = 0; i < times && !err; i++) {
		const ssize_t got = pread(fd, buffer, number(2), (off_t)number(1));

		err = got < 0 ? -errno : got == (ssize_t)number(2) ? 0 : -EIO;
	}
	(void)snprintf(detail, DETAIL, "%016" PRIx64,
		       hash(14695981039346656037U, buffer, number(2)));
	return err;
}

/* write OFFSET BYTES SEED */
static int write_once(int fd)
{
	fill(buffer, number(2), number(3));
	(void)snprintf(detail, DETAIL, "%016" PRIx64,
		       hash(14695981039346656037U, buffer, number(2)));
	const ssize_t put = pwrite(fd, buffer, number(2), (off_t)number(1));

	return put < 0 ? -errno : put == (ssize_t)number(2) ? 0 : -EIO;
}

/* writeoob OFFSET BYTES SEED: into the free bytes of the spare area. */
static int write_oob(int fd)
{
	struct mtd_write_req request = {.start = number(1),
					.ooblen = number(2),
					.usr_oob = (uintptr_t)buffer,
					.mode = MTD_OPS_AUTO_OOB};

	fill(buffer, number(2), number(3));
	return ioctl(fd, MEMWRITE, &request) ? -errno : 0;
}

/* readoob OFFSET BYTES: raw, in hex. */
static int read_oob(int fd)
{
	struct mtd_oob_buf64 request = {
		.start = number(1), .length = (uint32_t)number(2), .usr_ptr = (uintptr_t)buffer};
	const int err = ioctl(fd, MEMREADOOB64, &request) ? -errno : 0;

	for (size_t i = 0; i < number(2) && 2 * i + 3 < DETAIL; i++)
		(void)snprintf(detail + 2 * i, 3, "%02x", buffer[i]);
	return err;
}

/* erase OFFSET BYTES */
static int erase(int fd)
{
	struct erase_info_user64 request = {number(1), number(2)};

	return ioctl(fd, MEMERASE64, &request) ? -errno : 0;
}

/* bad OFFSET: whether the block is */
static int is_bad(int fd)
{
	int64_t at = (int64_t)number(1);
	const int bad = ioctl(fd, MEMGETBADBLOCK, &at);

	(void)snprintf(detail, DETAIL, "%d", bad);
	return bad < 0 ? -errno : 0;
}

static int mark_bad(int fd)
{
	int64_t at = (int64_t)number(1);

	return ioctl(fd, MEMSETBADBLOCK, &at) ? -errno : 0;
}

static int do_read(void)
{
	return mtd_io(read_once);
}
static int do_write(void)
{
	return mtd_io(write_once);
}
static int do_writeoob(void)
{
	return mtd_io(write_oob);
}
static int do_readoob(void)
{
	return mtd_io(read_oob);
}
static int do_erase(void)
{
	return mtd_io(erase);
}
static int do_bad(void)
{
	return mtd_io(is_bad);
}
static int do_markbad(void)
{
	return mtd_io(mark_bad);
}

static int do_drop(void)
{
	sync();
	return write_file("/proc/sys/vm/drop_caches", "3");
}

static const struct {
	const char *name;
	int (*run)(void);
	int needs;
} commands[] = {
	{"load", do_load, 2},       {"unload", do_unload, 1}, {"ctl", do_ctl, 2},
	{"copy", do_copy, 3},       {"sum", do_sum, 2},       {"show", do_show, 2},
	{"fresh", do_fresh, 2},     {"mount", do_mount, 2},   {"unmount", do_unmount, 1},
	{"put", do_put, 4},         {"check", do_check, 4},   {"remove", do_remove, 2},
	{"read", do_read, 3},       {"write", do_write, 4},   {"writeoob", do_writeoob, 4},
	{"readoob", do_readoob, 3}, {"erase", do_erase, 3},   {"bad", do_bad, 2},
	{"markbad", do_markbad, 2}, {"drop", do_drop, 1},
};

static int obey(char *line)
{
	fields = 0;
	detail[0] = '\0';
	for (char *word = strtok(line, " "); word && fields < FIELDS; word = strtok(NULL, " "))
		field[fields++] = word;
	for (size_t i = 0; fields && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, field[0]))
			return fields < commands[i].needs ? -EINVAL : commands[i].run();
	for (const struct tree_command *at = tree_commands; fields && at->name; at++)
		if (!strcmp(at->name, field[0]))
			return fields < at->needs ? -EINVAL : at->run(field, detail, DETAIL);
	return -ENOSYS;
}

static void run(FILE *script, FILE *result)
{
	char line[2048];

	for (int at = 0; fgets(line, sizeof(line), script); at++) {
		line[strcspn(line, "\n")] = '\0';
		const uint64_t from_ns = now_ns();
		const int err = obey(line);
		const uint64_t took_ns = now_ns() - from_ns;

		/* Names on a spoiled chip are anything. */
		for (char *byte = detail; *byte; byte++)
			if ((unsigned char)*byte < ' ' || (unsigned char)*byte > '~')
				*byte = '?';
		(void)fprintf(result, "%d %s %d %" PRIu64 " %s\n", at, fields ? field[0] : "?",
			      -err, took_ns, detail);
		(void)fflush(result);
	}
}

static void mount_at(const char *type, const char *path, const char *options)
{
	(void)mkdir(path, 0755);
	if (mount(type, path, type, 0, options))
		(void)fprintf(stderr, "nand_guest: %s: %s\n", path, strerror(errno));
}

int main(void)
{
	static char cmdline[4096];
	char *host = NULL;

	buffer = malloc(BUFFER);
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("devtmpfs", "/dev", NULL);
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	(void)mkdir("/mnt", 0755);
	if (read_file("/proc/cmdline", cmdline, sizeof(cmdline)) > 0)
		host = strstr(cmdline, "host=");
	if (host) {
		host[strcspn(host, " \n")] = '\0';
		mount_at("hostfs", "/host", host + 5);
	}
	FILE *script = fopen(host ? "/host/script" : "/script", "r");
	FILE *result = host ? fopen("/host/result", "w") : stdout;

	if (buffer && script && result)
		run(script, result);
	else
		(void)fprintf(stderr, "nand_guest: no script or no place for results\n");
	if (result)
		(void)fclose(result);
	(void)reboot(RB_POWER_OFF);
	return 0;
}
