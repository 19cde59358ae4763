/* SPDX-License-Identifier: Apache-2.0 */
/* A fresh file system on an erased MTD partition, without mtd-utils, and the same one mounted
 * again.
 *
 * Kernel interfaces: /dev/mtdN with MEMGETINFO, MEMGETBADBLOCK, MEMERASE64 and MEMWRITE
 * (mtd/mtd-user.h), /dev/ubi_ctrl with UBI_IOCATT and UBI_IOCDET, /dev/ubiN with UBI_IOCMKVOL
 * (mtd/ubi-user.h), mount(2).
 * - jffs2: every good block is erased and gets a clean marker in its spare area, as `flash_erase
 *   -j` does, so that the mount scan puts the blocks on the free list in order. A block without one
 *   would be erased again by the garbage collector, while we measure.
 * - yaffs2 (kernel/yaffs2): every good block is erased.
 * - ubifs: every good block is erased and gets a UBI erase-counter header, the first two an empty
 *   layout volume, as `ubiformat` does (an empty chip would be erased again by UBI's thread); one
 *   dynamic volume of all the space; UBIFS makes its default file system at the first mount.
 * Where the chip is flashbed_nand its erase counters, which a case may have set, go into those
 * headers, and formatting leaves them as they were; elsewhere the headers count from 0. Leaves out
 * clean markers in band (NOR), more than one UBI volume.
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
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

static const char *const names[] = {"", "jffs2", "yaffs2", "ubifs", "mtd", "mtd-driver"};

enum {
	UBI_HEADER_BYTES = 64,
	MAX_PAGE_BYTES = 16384,
	MAX_VOLUMES = 128,
	VOLUME_RECORD_BYTES = 172
};

static int fail(struct fs *fs, int err, const char *what)
{
	if (err)
		(void)snprintf(fs->detail, sizeof(fs->detail),
			       "%s on mtd%d (%" PRIu64 " blocks of %" PRIu32 " bytes): %s", what,
			       fs->mtd,
			       fs->geometry.block_bytes
				       ? fs->geometry.size_bytes / fs->geometry.block_bytes
				       : 0,
			       fs->geometry.block_bytes, strerror(-err));
	return err;
}

static int open_mtd(const struct fs *fs)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/mtd%d", fs->mtd);
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int read_number(const char *path, uint64_t *number)
{
	char text[32];
	const int got = read_file(path, text, sizeof(text));

	*number = got > 0 ? strtoull(text, NULL, 10) : 0;
	return got < 0 ? got : 0;
}

int fs_init(struct fs *fs, int mtd, const char *mount_point)
{
	struct mtd_info_user info;

	memset(fs, 0, sizeof(*fs));
	fs->mtd = mtd;
	fs->mount_point = mount_point;
	const int fd = open_mtd(fs);

	if (fd < 0)
		return fail(fs, fd, "opening the device");
	int err = ioctl(fd, MEMGETINFO, &info) ? -errno : 0;

	(void)close(fd);
	if (err)
		return fail(fs, err, "MEMGETINFO");
	fs->geometry =
		(struct flash_geometry){info.writesize, info.oobsize, info.erasesize, info.size};
	/* There the size has 32 bits. */
	err = mtd_value(fs->mtd, "size", &fs->geometry.size_bytes);
	return fail(fs, err, "reading the partition's size");
}

static int erase_block(int fd, uint64_t start, uint32_t bytes)
{
	struct erase_info_user64 erase = {start, bytes};

	return ioctl(fd, MEMERASE64, &erase) ? -errno : 0;
}

/* The first eight bytes of a JFFS2 node, in the board's own byte order, into the free bytes of the
 * spare area. */
static int write_clean_marker(int fd, uint64_t start)
{
	static const struct {
		uint16_t magic;
		uint16_t type;
		uint32_t bytes;
	} marker = {0x1985, 0x2003, 8};
	struct mtd_write_req request = {.start = start,
					.ooblen = 8,
					.usr_oob = (uintptr_t)&marker,
					.mode = MTD_OPS_AUTO_OOB};

	return ioctl(fd, MEMWRITE, &request) ? -errno : 0;
}

static void put_big_endian(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		at[i] = (uint8_t)value;
}

/* UBI's crc32 is not inverted at the end. */
static uint32_t crc32_ubi(const uint8_t *bytes, size_t count)
{
	return ~data_crc32(bytes, count);
}

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void put_header(uint8_t *at, uint32_t magic)
{
	memset(at, 0, UBI_HEADER_BYTES);
	put_big_endian(at, magic, 4);
	at[4] = 1;
}

static void seal_header(uint8_t *at)
{
	put_big_endian(at + UBI_HEADER_BYTES - 4, crc32_ubi(at, UBI_HEADER_BYTES - 4), 4);
}

/* struct ubi_vid_hdr of copy `copy` of the layout volume, then its table of empty struct
 * ubi_vtbl_record; the number of bytes to write. */
static uint32_t put_layout(const struct fs *fs, uint8_t *block, uint32_t unit, uint32_t data,
			   uint32_t copy)
{
	static const uint8_t empty[VOLUME_RECORD_BYTES];
	const uint32_t fit = (fs->geometry.block_bytes - data) / VOLUME_RECORD_BYTES;
	const uint32_t records = fit < MAX_VOLUMES ? fit : MAX_VOLUMES;
	uint8_t *vid = block + unit;

	put_header(vid, 0x55424921);
	vid[5] = 1; /* dynamic */
	vid[7] = 5; /* a UBI that does not know it rejects the image */
	put_big_endian(vid + 8, 0x7fffefff, 4);
	put_big_endian(vid + 12, copy, 4);
	seal_header(vid);
	for (uint32_t i = 0; i < records; i++) {
		uint8_t *record = block + data + i * VOLUME_RECORD_BYTES;

		memset(record, 0, VOLUME_RECORD_BYTES);
		put_big_endian(record + VOLUME_RECORD_BYTES - 4,
			       crc32_ubi(empty, VOLUME_RECORD_BYTES - 4), 4);
	}
	return round_up(data + records * VOLUME_RECORD_BYTES, fs->geometry.page_bytes);
}

/* What a block gets when it is formatted. */
struct plan {
	enum fs_kind kind;
	uint32_t unit; /* of headers: the least the chip can write */
	/* blocks so far that are not bad: the first two hold UBI's layout volume */
	uint32_t good;
	const uint32_t *erases; /* of each block before, or NULL */
};

/* drivers/mtd/ubi/ubi-media.h: struct ubi_ec_hdr; the volume-identifier header comes at the next
 * unit the chip can write. */
static int write_ubi_headers(const struct fs *fs, int fd, uint64_t start, struct plan *plan)
{
	const uint32_t unit = plan->unit;
	const uint32_t good = plan->good++;
	static uint8_t block[3 * MAX_PAGE_BYTES + MAX_VOLUMES * VOLUME_RECORD_BYTES];
	const uint32_t data = round_up(unit + UBI_HEADER_BYTES, fs->geometry.page_bytes);
	uint32_t bytes = unit;

	if (unit < UBI_HEADER_BYTES || fs->geometry.page_bytes > MAX_PAGE_BYTES ||
	    data >= fs->geometry.block_bytes)
		return -EINVAL;
	memset(block, 0xff, sizeof(block));
	put_header(block, 0x55424923);
	put_big_endian(block + 8, plan->erases ? plan->erases[start / fs->geometry.block_bytes] : 0,
		       8);
	put_big_endian(block + 16, unit, 4);
	put_big_endian(block + 20, data, 4);
	seal_header(block);
	if (good < 2)
		bytes = put_layout(fs, block, unit, data, good);
	const ssize_t put = pwrite(fd, block, bytes, (off_t)start);

	return put < 0 ? -errno : put == (ssize_t)bytes ? 0 : -EIO;
}

/* Erases and marks one block, unless it is bad. */
static int format_block(const struct fs *fs, int fd, uint64_t start, struct plan *plan)
{
	int64_t at = (int64_t)start;
	const int bad = ioctl(fd, MEMGETBADBLOCK, &at);

	if (bad)
		return bad < 0 ? -errno : 0;
	const int err = erase_block(fd, start, fs->geometry.block_bytes);

	if (err)
		return err;
	if (raw_kind(plan->kind) || plan->kind == FS_YAFFS2)
		return 0;
	return plan->kind == FS_JFFS2 ? write_clean_marker(fd, start)
				      : write_ubi_headers(fs, fd, start, plan);
}

static uint32_t block_count(const struct fs *fs)
{
	return (uint32_t)(fs->geometry.size_bytes / fs->geometry.block_bytes);
}

/* The partition's first block, as the chip counts. */
static int first_block(const struct fs *fs, uint32_t *first)
{
	uint64_t offset = 0;
	const int err = mtd_value(fs->mtd, "offset", &offset);

	*first = (uint32_t)(offset / fs->geometry.block_bytes);
	return err;
}

/* One command for each run of blocks that were erased as often. */
static int set_erases(uint32_t first, uint32_t count, const uint32_t *erases)
{
	uint32_t from = 0;
	int err = 0;

	for (uint32_t at = 1; at <= count && !err; at++) {
		char command[64];

		if (at < count && erases[at] == erases[from])
			continue;
		(void)snprintf(command, sizeof(command), "wear %" PRIu32 " %" PRIu32 " %" PRIu32,
			       first + from, at - from, erases[from]);
		err = nandlog_command(command);
		from = at;
	}
	return err;
}

static int format_blocks(struct fs *fs, struct plan *plan)
{
	const int fd = open_mtd(fs);
	int err = 0;

	if (fd < 0)
		return fail(fs, fd, "opening the device");
	for (uint64_t at = 0; at < fs->geometry.size_bytes && !err; at += fs->geometry.block_bytes)
		err = format_block(fs, fd, at, plan);
	if (close(fd) && !err)
		err = -errno;
	return fail(fs, err, "formatting");
}

/* The number of a partition is another one's when drivers are loaded anew: its name is read again
 * before anything is erased or written. */
static int insist(struct fs *fs)
{
	char name[64];

	if (!fs->name)
		return 0;
	const int err = mtd_name(fs->mtd, name, sizeof(name));

	return fail(fs,
		    err                           ? err
		    : strcmp(name, fs->name) != 0 ? -EPERM
						  : 0,
		    "the partition is not called what it was when it was confirmed");
}

static int format(struct fs *fs, enum fs_kind kind)
{
	struct plan plan = {.kind = kind};
	uint32_t *erases = NULL;
	uint64_t unit = 0;
	uint32_t first = 0;
	int64_t pages = 0;
	int64_t bad = 0;
	int err = mtd_value(fs->mtd, "subpagesize", &unit);

	if (!err && nandlog_there()) {
		err = first_block(fs, &first);
		erases = calloc(block_count(fs), sizeof(*erases));
		if (!err)
			err = erases ? nandlog_blocks(first, block_count(fs), erases, &pages, &bad)
				     : -ENOMEM;
	}
	plan.unit = (uint32_t)unit;
	plan.erases = erases;
	if (err)
		err = fail(fs, err, "reading sub-page size and wear");
	else
		err = format_blocks(fs, &plan);
	if (!err && erases)
		err = fail(fs, set_erases(first, block_count(fs), erases), "setting the wear");
	free(erases);
	return err;
}

/* A device node appears a moment after the kernel object. */
static int open_soon(const char *path)
{
	const struct timespec tick = {0, 10000000};
	int fd = -1;

	for (int i = 0; i < 100 && fd < 0; i++) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			(void)nanosleep(&tick, NULL);
	}
	return fd < 0 ? -errno : fd;
}

static int ubi_number(const struct fs *fs, const char *name, uint64_t *number)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d/%s", fs->ubi, name);
	return read_number(path, number);
}

static int make_volume(const struct fs *fs)
{
	char path[24];
	struct ubi_mkvol_req volume = {.vol_id = 0,
				       .alignment = 1,
				       .vol_type = UBI_DYNAMIC_VOLUME,
				       .name_len = 8,
				       .name = "flashbed"};
	uint64_t blocks = 0;
	uint64_t bytes = 0;
	int err = ubi_number(fs, "avail_eraseblocks", &blocks);

	if (!err)
		err = ubi_number(fs, "eraseblock_size", &bytes);
	if (err)
		return err;
	volume.bytes = (int64_t)(blocks * bytes);
	(void)snprintf(path, sizeof(path), "/dev/ubi%d", fs->ubi);
	const int fd = open_soon(path);

	if (fd < 0)
		return fd;
	err = ioctl(fd, UBI_IOCMKVOL, &volume) ? -errno : 0;
	(void)close(fd);
	return err;
}

static int ubi_control(unsigned long request, void *argument)
{
	const int fd = open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = ioctl(fd, request, argument) ? -errno : 0;

	(void)close(fd);
	return err;
}

static int mount_on_mtd(struct fs *fs, const char *type, const char *what)
{
	char device[32];

	(void)snprintf(device, sizeof(device),
		       window_needs_disk(type) ? "/dev/mtdblock%d" : "mtd%d", fs->mtd);
	return fail(fs, mount(device, fs->mount_point, type, 0, fs->options) ? -errno : 0, what);
}

/* The kernel gives the UBI device its number: a board may have others. */
static int mount_ubifs(struct fs *fs, bool new)
{
	struct ubi_attach_req attach = {.ubi_num = UBI_DEV_NUM_AUTO, .mtd_num = fs->mtd};
	char device[24];
	int err = fail(fs, ubi_control(UBI_IOCATT, &attach), "attaching UBI");

	if (err)
		return err;
	fs->ubi = attach.ubi_num;
	(void)snprintf(device, sizeof(device), "ubi%d_0", fs->ubi);
	if (new)
		err = fail(fs, make_volume(fs), "making the UBI volume");
	if (!err)
		err = fail(fs, mount(device, fs->mount_point, "ubifs", 0, fs->options) ? -errno : 0,
			   "mounting ubifs");
	if (err)
		(void)ubi_control(UBI_IOCDET, &fs->ubi);
	return err;
}

static int mount_kind(struct fs *fs, enum fs_kind kind, bool new)
{
	int err = insist(fs);

	if (err)
		return err;
	if (raw_kind(kind))
		err = fail(fs, raw_link(fs, kind), "naming the partition");
	else if (kind == FS_JFFS2)
		err = mount_on_mtd(fs, "jffs2", "mounting jffs2");
	else if (kind == FS_YAFFS2)
		err = mount_on_mtd(fs, "yaffs2", "mounting yaffs2");
	else
		err = mount_ubifs(fs, new);
	if (!err)
		fs->mounted = kind;
	return err;
}

static int leave_directory(struct fs *fs)
{
	fs->mounted = FS_NONE;
	return fail(fs, tidy_remove(fs->mount_point), "removing the folder of the cases");
}

int fs_unmount(struct fs *fs)
{
	int err = 0;

	if (fs->directory)
		return leave_directory(fs);
	if (raw_kind(fs->mounted))
		err = fail(fs, raw_unlink(fs), "naming the partition");
	else if (fs->mounted != FS_NONE && umount(fs->mount_point))
		return fail(fs, -errno, "unmounting");
	if (fs->mounted == FS_UBIFS)
		err = fail(fs, ubi_control(UBI_IOCDET, &fs->ubi), "detaching UBI");
	fs->mounted = FS_NONE;
	return err;
}

int fs_room(struct fs *fs, struct fs_room *room)
{
	struct statfs now;
	uint32_t first = 0;
	int err = statfs(fs->mount_point, &now) ? -errno : 0;

	*room = (struct fs_room){.pages = -1, .bad_blocks = -1};
	if (err)
		return fail(fs, err, "asking for the room that is left");
	room->bytes = (uint64_t)now.f_bavail * (uint64_t)now.f_bsize;
	if (!nandlog_there())
		return 0;
	err = first_block(fs, &first);
	if (!err)
		err = nandlog_blocks(first, block_count(fs), NULL, &room->pages, &room->bad_blocks);
	return fail(fs, err, "asking for the state of the blocks");
}

/* A folder in a directory that is mounted takes the place of a fresh file system: what is there is
 * as it is. */
int fs_use_directory(struct fs *fs, const char *directory, const char *folder)
{
	struct mounted mounted;
	int err = folder_mounted(directory, &mounted);

	memset(fs, 0, sizeof(*fs));
	if (err) {
		(void)snprintf(fs->detail, sizeof(fs->detail), "%.120s: %s", directory,
			       strerror(-err));
		return err;
	}
	for (fs->kind = FS_UBIFS;
	     fs->kind != FS_NONE && strcmp(names[fs->kind], mounted.type) != 0;)
		fs->kind--;
	fs->mtd = mounted.mtd;
	fs->ubi = mounted.ubi;
	fs->volume = mounted.volume;
	fs->directory = directory;
	fs->mount_point = folder;
	/* Not by ioctl: a directory's user need not be root. */
	const int read = mounted.mtd < 0 ? 0 : mtd_geometry(fs->mtd, &fs->geometry);

	return fail(fs, read, "reading the geometry of the flash below the directory");
}

int fs_format(struct fs *fs, const char *name)
{
	const size_t length = strcspn(name, ",");
	const char *options = name[length] ? name + length + 1 : "";
	enum fs_kind kind = FS_MTD_DRIVER;

	while (kind != FS_NONE &&
	       (strlen(names[kind]) != length || strncmp(name, names[kind], length) != 0))
		kind--;
	int err = fs_unmount(fs);

	if (kind == FS_NONE)
		return fail(fs, -ENODEV, "this agent has no such file system");
	if (raw_kind(kind) && *options)
		return fail(fs, -EINVAL, "mount options of a partition");
	if (fs->directory)
		return err ? err
		       : kind == fs->kind && !*options
			       ? 0
			       : fail(fs, -EINVAL, "another file system than is mounted there");
	(void)snprintf(fs->options, sizeof(fs->options), "%s", options);
	if (!err)
		err = insist(fs);
	if (!err)
		err = format(fs, kind);
	if (!err)
		fs->kind = kind;
	return err;
}

int fs_mount_fresh(struct fs *fs)
{
	int err;

	err = mkdir(fs->mount_point, 0755) && errno != EEXIST
		      ? fail(fs, -errno, "making the directory to mount on")
		      : 0;
	if (fs->directory && !err)
		fs->mounted = fs->kind;
	else if (!err)
		err = mount_kind(fs, fs->kind, true);
	return err ? err : fs_room(fs, &fs->fresh);
}

int fs_mount(struct fs *fs)
{
	return fs->kind == FS_NONE || fs->directory ? -ENODEV : mount_kind(fs, fs->kind, false);
}

int fs_remount(struct fs *fs)
{
	const int err = fs->mounted == FS_NONE ? -ENODEV : fs_unmount(fs);

	return err ? err : fs_mount(fs);
}

/* Where the window of what is mounted is set; empty where nowhere. */
static void find_window(const struct fs *fs, char *path, size_t size)
{
	struct stat about;
	const bool there = stat(fs->mount_point, &about) == 0;
	const struct window_of of = {names[fs->mounted], there ? about.st_dev : 0, fs->ubi,
				     fs->volume};

	if (!there || window_path(&of, path, size))
		path[0] = '\0';
}

void fs_try_window(struct fs *fs)
{
	struct window_trial *trial = &fs->trials[fs->mounted];
	char path[WINDOW_PATH_BYTES];

	find_window(fs, path, sizeof(path));
	*trial = (struct window_trial){.tried = true, .kib = -1};
	trial->err = window_try(fs->mount_point, *path ? path : NULL, trial);
}

static int lacks_window(struct fs *fs, const char *path)
{
	const int err = fs->trials[fs->mounted].err;

	if (err)
		(void)snprintf(fs->detail, sizeof(fs->detail),
			       "which window its files have could not be tried: %.100s",
			       strerror(-err));
	else if (*path)
		(void)snprintf(fs->detail, sizeof(fs->detail),
			       "%.120s is not what its files are read ahead by", path);
	else
		(void)snprintf(
			fs->detail, sizeof(fs->detail),
			"the kernel has no read_ahead_kb of the device that its inodes look at");
	return -ENOTSUP;
}

int fs_set_read_ahead(struct fs *fs, int64_t kib, int64_t *there)
{
	const struct window_trial *trial = &fs->trials[fs->mounted];
	char path[WINDOW_PATH_BYTES];
	uint64_t wanted = (uint64_t)kib;

	*there = 0;
	if (raw_kind(fs->mounted))
		return kib > 0 ? fail(fs, -EINVAL, "setting read_ahead_kb of a partition") : 0;
	find_window(fs, path, sizeof(path));
	if (!*path || (trial->tried && !trial->switched)) {
		*there = trial->tried ? trial->kib : -1;
		return *there >= 0 && (kib == WINDOW_SHIPPED || kib == *there)
			       ? 0
			       : lacks_window(fs, path);
	}
	int err = kib == WINDOW_SHIPPED ? window_shipped(path, &wanted) : 0;

	if (!err)
		err = window_set(path, wanted);
	*there = (int64_t)wanted;
	return fail(fs, err, "setting read_ahead_kb");
}
