/* SPDX-License-Identifier: Apache-2.0 */
/* Erases a partition and marks it for a new file system, without mtd-utils.
 *
 * - jffs2: erases every good block and writes a clean marker into its spare area, of NOR into its
 *   first bytes, as `flash_erase -j` does, so that the mount scan puts the blocks on the free list
 *   in order. The garbage collector would erase a block without a marker again during the
 *   measurement.
 * - yaffs2 (kernel/yaffs2), and a disk with a translation layer: erases every good block.
 * - ubifs: erases every good block and writes a UBI erase-counter header, into the first two also
 *   an empty layout volume, as `ubiformat` does. UBI's thread would erase an empty chip again. On
 *   flashbed_nand the headers get the chip's erase counts, which a case may have set, and
 *   formatting leaves these unchanged. Elsewhere the headers count from 0.
 *
 * With a dump (dump.c) the blocks that it fills are erased, on NAND of JFFS2 marked, and get its
 * pages; those after it are marked as of a new file system, as `ubiformat -f` does.
 *
 * Kernel interfaces: /dev/mtdN with MEMGETBADBLOCK, MEMERASE64 and MEMWRITE (mtd/mtd-user.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/mtd-user.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "fs/fs.h"

enum {
	UBI_HEADER_BYTES = 64,
	MAX_PAGE_BYTES = 16384,
	MAX_VOLUMES = 128,
	UBI_LAYOUT_BLOCKS = 2,
	VOLUME_RECORD_BYTES = 172
};

int fs_fail(struct fs *fs, int err, const char *what)
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

int open_mtd(int mtd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/mtd%d", mtd);
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A device node appears a moment after the kernel object. */
int open_soon(const char *path, int flags)
{
	const struct timespec tick = {0, 10000000};
	int fd = -1;

	for (int i = 0; i < 100 && fd < 0; i++) {
		fd = open(path, flags | O_CLOEXEC);
		if (fd < 0)
			(void)nanosleep(&tick, NULL);
	}
	return fd < 0 ? -errno : fd;
}

static int erase_block(int fd, uint64_t start, uint32_t bytes)
{
	struct erase_info_user64 erase = {start, bytes};

	return ioctl(fd, MEMERASE64, &erase) ? -errno : 0;
}

/* Writes the first eight bytes of a JFFS2 node, in the board's byte order, into the free bytes of
 * the spare area. */
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

/* JFFS2's crc32 begins with 0 and is not inverted. */
static uint32_t crc32_jffs2(const uint8_t *bytes, size_t count)
{
	uint32_t crc = 0;

	for (size_t i = 0; i < count; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* On NOR the marker is a whole header at the start of the block. */
static int write_clean_marker_in_block(int fd, uint64_t start)
{
	struct {
		uint16_t magic;
		uint16_t type;
		uint32_t bytes;
		uint32_t crc;
	} marker = {0x1985, 0x2003, sizeof(marker), 0};

	marker.crc = crc32_jffs2((const uint8_t *)&marker, 8);
	const ssize_t put = pwrite(fd, &marker, sizeof(marker), (off_t)start);

	return put < 0 ? -errno : put == (ssize_t)sizeof(marker) ? 0 : -EIO;
}

static void put_big_endian(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		at[i] = (uint8_t)value;
}

/* UBI does not invert its crc32 at the end. */
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

/* Builds struct ubi_vid_hdr for copy `copy` of the layout volume, then its table of empty struct
 * ubi_vtbl_record. Returns the number of bytes to write. */
static uint32_t put_layout(const struct fs *fs, uint8_t *block, uint32_t unit, uint32_t data,
			   uint32_t copy)
{
	static const uint8_t empty[VOLUME_RECORD_BYTES];
	const uint32_t fit = (fs->geometry.block_bytes - data) / VOLUME_RECORD_BYTES;
	const uint32_t records = fit < MAX_VOLUMES ? fit : MAX_VOLUMES;
	uint8_t *vid = block + unit;

	put_header(vid, 0x55424921);
	vid[5] = 1; /* dynamic */
	vid[7] = 5; /* a UBI that does not know the volume rejects the image */
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

/* What formatting writes into a block. */
struct plan {
	enum fs_kind kind;
	uint32_t unit; /* of headers: the smallest that the chip can write */
	/* good blocks so far: the first two hold UBI's layout volume */
	uint32_t good;
	const uint32_t *erases; /* of each block before formatting, or NULL */
	uint64_t dumped;        /* bytes that a dump fills */
};

/* drivers/mtd/ubi/ubi-media.h: struct ubi_ec_hdr. The volume-identifier header comes at the next
 * unit that the chip can write. */
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
	if (good < UBI_LAYOUT_BLOCKS)
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
	if (plan->kind != FS_JFFS2 && plan->kind != FS_UBIFS)
		return 0;
	if (start < plan->dumped && (plan->kind == FS_UBIFS || fs->nor))
		return 0;
	if (plan->kind == FS_UBIFS)
		return write_ubi_headers(fs, fd, start, plan);
	return fs->nor ? write_clean_marker_in_block(fd, start) : write_clean_marker(fd, start);
}

uint32_t block_count(const struct fs *fs)
{
	return (uint32_t)(fs->geometry.size_bytes / fs->geometry.block_bytes);
}

/* The chip's number of the partition's first block. */
int first_block(const struct fs *fs, uint32_t *first)
{
	uint64_t offset = 0;
	const int err = mtd_value(fs->mtd, "offset", &offset);

	*first = (uint32_t)(offset / fs->geometry.block_bytes);
	return err;
}

/* Sends one command for each run of blocks with equal erase counts. */
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

/* Of a device of MTD: the partition, or one of a layout's. */
static int format_device(struct fs *fs, int mtd, uint64_t bytes, struct plan *plan)
{
	const int fd = open_mtd(mtd);
	int err = 0;

	if (fd < 0)
		return fs_fail(fs, fd, "opening the device");
	for (uint64_t at = 0; at < bytes && !err; at += fs->geometry.block_bytes)
		err = format_block(fs, fd, at, plan);
	if (close(fd) && !err)
		err = -errno;
	return fs_fail(fs, err, "formatting");
}

static int format_blocks(struct fs *fs, struct plan *plan)
{
	const struct layout *layout = fs->layout;
	int err = 0;

	if (!layout || !layout->on_mtd)
		return format_device(fs, fs->mtd, fs->geometry.size_bytes, plan);
	for (size_t at = 0; at < layout->count && !err; at++) {
		const struct layout_volume *volume = &layout->volumes[at];
		const int mtd = partition_number(volume->name);
		uint64_t bytes = 0;

		plan->kind = strcmp(volume->holds, "jffs2") == 0 ? FS_JFFS2 : FS_MTD;
		err = mtd < 0 ? mtd : mtd_value(mtd, "size", &bytes);
		err = err ? fs_fail(fs, err, "finding a partition of the layout")
			  : format_device(fs, mtd, bytes, plan);
	}
	return err;
}

static int write_dump(struct fs *fs, uint64_t bytes, uint32_t *erases)
{
	const int to = open_mtd(fs->mtd);
	int err = to < 0 ? to : dump_write(fs, to, bytes, erases);

	if (to >= 0 && close(to) && !err)
		err = -errno;
	return fs_fail(fs, err, "writing the dump");
}

int format_partition(struct fs *fs, enum fs_kind kind)
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
	err = fs_fail(fs, err, "reading sub-page size and wear");
	if (!err && fs->dump) {
		plan.good = UBI_LAYOUT_BLOCKS; /* the dump has them */
		err = fs_fail(fs, dump_begin(fs, first, &plan.dumped), "reading the dump");
	}
	if (!err)
		err = format_blocks(fs, &plan);
	if (!err && fs->dump)
		err = write_dump(fs, plan.dumped, erases);
	if (!err && erases)
		err = fs_fail(fs, set_erases(first, block_count(fs), erases), "setting the wear");
	free(erases);
	return err;
}
