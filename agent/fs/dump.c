/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's flash held, put onto a partition: a dump by nanddump, with OOB or without, or an
 * image for nandwrite. Used by format.c, which erases first.
 *
 * Each page that is not all 0xff is written, as nandwrite does, so the driver makes the code and
 * the OOB is its own. Of the dump's OOB only the marks of bad blocks count: on flashbed_nand these
 * become bad, and UBI's erase counters the chip's.
 *
 * Kernel interface: /dev/mtdN. Leaves out YAFFS2, which keeps its tags in the OOB.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/mtd-user.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fs.h"

enum { PAGE_BYTES_MAX = 16384, OOB_BYTES_MAX = 4096, EC_HEADER_BYTES = 16, MARKED_PAGES = 2 };
/* NAND_BBM_POS_LARGE and NAND_BBM_POS_SMALL of include/linux/mtd/rawnand.h. */
enum { SMALL_PAGE_BYTES = 512, BAD_MARK = 0, BAD_MARK_SMALL = 5 };

static const uint8_t EC_MAGIC[] = {0x55, 0x42, 0x49, 0x23};

/* A page and its OOB as the file has them; 0xff where it ends. */
static int read_page(int fd, const struct fs *fs, uint64_t page, uint8_t *bytes)
{
	const size_t size = fs->geometry.page_bytes + fs->dump_oob_bytes;
	size_t got = 0;

	memset(bytes, 0xff, size);
	while (got < size) {
		const ssize_t more = pread(fd, bytes + got, size - got, (off_t)(page * size + got));

		if (more < 0)
			return -errno;
		if (more == 0)
			return 0;
		got += (size_t)more;
	}
	return 0;
}

static bool erased(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0xff)
			return false;
	return true;
}

static int open_dump(const struct fs *fs)
{
	const bool fits =
		fs->geometry.page_bytes <= PAGE_BYTES_MAX && fs->dump_oob_bytes <= OOB_BYTES_MAX;
	const int fd = fits ? open(fs->dump, O_RDONLY | O_CLOEXEC) : -1;

	return !fits ? -EINVAL : fd < 0 ? -errno : fd;
}

/* Makes the blocks bad whose first or second page is marked so. */
static int mark_bad(const struct fs *fs, int fd, uint32_t first, uint64_t blocks)
{
	static uint8_t bytes[PAGE_BYTES_MAX + OOB_BYTES_MAX];
	const uint32_t pages = fs->geometry.block_bytes / fs->geometry.page_bytes;
	const bool small = fs->geometry.page_bytes <= SMALL_PAGE_BYTES;
	const uint32_t mark = fs->geometry.page_bytes + (small ? BAD_MARK_SMALL : BAD_MARK);
	int err = 0;

	for (uint64_t block = 0; block < blocks && !err; block++) {
		bool bad = false;

		for (uint32_t page = 0; page < MARKED_PAGES && !err; page++) {
			err = read_page(fd, fs, block * pages + page, bytes);
			bad = bad || bytes[mark] == 0;
		}
		if (bad && !err) {
			char command[32];

			(void)snprintf(command, sizeof(command), "bad %" PRIu64, first + block);
			err = nandlog_command(command);
		}
	}
	return err;
}

int dump_begin(const struct fs *fs, uint32_t first, uint64_t *bytes)
{
	const uint64_t page = fs->geometry.page_bytes + fs->dump_oob_bytes;
	const uint64_t block = page * (fs->geometry.block_bytes / fs->geometry.page_bytes);
	struct stat about;
	const int fd = open_dump(fs);
	int err = fd < 0 ? fd : fstat(fd, &about) ? -errno : 0;
	const uint64_t blocks = err ? 0 : ((uint64_t)about.st_size + block - 1) / block;

	*bytes = blocks * fs->geometry.block_bytes;
	if (!err && *bytes > fs->geometry.size_bytes)
		err = -EFBIG;
	if (!err && fs->dump_oob_bytes && nandlog_there())
		err = mark_bad(fs, fd, first, blocks);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

/* What UBI's header says of the erases of its block. */
static void take_erases(const uint8_t *bytes, uint32_t *erases)
{
	uint64_t counter = 0;

	if (memcmp(bytes, EC_MAGIC, sizeof(EC_MAGIC)) != 0)
		return;
	for (int i = 8; i < EC_HEADER_BYTES; i++)
		counter = counter << 8 | bytes[i];
	*erases = counter > UINT32_MAX ? UINT32_MAX : (uint32_t)counter;
}

static int write_block(const struct fs *fs, int from, int to, uint64_t start, uint32_t *erases)
{
	static uint8_t bytes[PAGE_BYTES_MAX + OOB_BYTES_MAX];
	const uint32_t page = fs->geometry.page_bytes;
	int64_t at = (int64_t)start;
	/* NOR has no bad blocks, and its driver no answer. */
	const int bad = fs->nor ? 0 : ioctl(to, MEMGETBADBLOCK, &at);

	if (bad)
		return bad < 0 ? -errno : 0;
	for (uint64_t place = start; place < start + fs->geometry.block_bytes; place += page) {
		const int err = read_page(from, fs, place / page, bytes);

		if (err)
			return err;
		if (erases && place == start)
			take_erases(bytes, erases);
		if (erased(bytes, page))
			continue;
		const ssize_t put = pwrite(to, bytes, page, (off_t)place);

		if (put != (ssize_t)page)
			return put < 0 ? -errno : -EIO;
	}
	return 0;
}

int dump_write(const struct fs *fs, int to, uint64_t bytes, uint32_t *erases)
{
	const uint32_t block = fs->geometry.block_bytes;
	const int from = open_dump(fs);
	int err = from < 0 ? from : 0;

	for (uint64_t at = 0; at < bytes && !err; at += block)
		err = write_block(fs, from, to, at, erases ? erases + at / block : NULL);
	if (from >= 0)
		(void)close(from);
	return err;
}
