// SPDX-License-Identifier: GPL-2.0-only
/* Pages of the flash with their records, through MTD.
 *
 * A record is in the free bytes of the OOB (MTD_OPS_AUTO_OOB), and a page is programmed with it in
 * one operation. Mirrors nothing of Linux. Left out: failures of the chip, which end the request.
 */
#include <linux/crc32.h>
#include <linux/string.h>

#include "flashbed_ftl.h"

static loff_t address(const struct ftl *ftl, u32 page)
{
	return (loff_t)page * ftl->page_bytes;
}

static int read_result(int err)
{
	return mtd_is_bitflip(err) ? 0 : err;
}

int ftl_read_page(const struct ftl *ftl, u32 page, u32 column, u32 bytes, u8 *to)
{
	size_t done = 0;

	return read_result(mtd_read(ftl->mtd, address(ftl, page) + column, bytes, &done, to));
}

/* Reads a record, with the page if there is `data`. */
int ftl_read_record(const struct ftl *ftl, u32 page, u8 *data, struct ftl_record *record)
{
	struct mtd_oob_ops ops = {
		.mode = MTD_OPS_AUTO_OOB,
		.len = data ? ftl->page_bytes : 0,
		.datbuf = data,
		.ooblen = sizeof(*record),
		.oobbuf = (u8 *)record,
	};

	memset(record, 0xff, sizeof(*record));
	return read_result(mtd_read_oob(ftl->mtd, address(ftl, page), &ops));
}

static u32 record_crc(const struct ftl_record *record)
{
	return crc32_le(~0, (const u8 *)record, offsetof(struct ftl_record, crc));
}

int ftl_program_page(const struct ftl *ftl, u32 page, u32 logical, u32 sequence, const u8 *data)
{
	struct ftl_record record = {
		.logical = cpu_to_le32(logical),
		.sequence = cpu_to_le32(sequence),
		.data_crc = cpu_to_le32(crc32_le(~0, data, ftl->page_bytes)),
	};
	struct mtd_oob_ops ops = {
		.mode = MTD_OPS_AUTO_OOB,
		.len = ftl->page_bytes,
		.datbuf = (u8 *)data,
		.ooblen = sizeof(record),
		.oobbuf = (u8 *)&record,
	};

	record.crc = cpu_to_le32(record_crc(&record));
	return mtd_write_oob(ftl->mtd, address(ftl, page), &ops);
}

int ftl_erase_block(const struct ftl *ftl, u32 block)
{
	struct erase_info erase = {
		.addr = (u64)block * ftl->mtd->erasesize,
		.len = ftl->mtd->erasesize,
	};

	return mtd_erase(ftl->mtd, &erase);
}

bool ftl_record_valid(const struct ftl_record *record)
{
	return le32_to_cpu(record->crc) == record_crc(record);
}

bool ftl_record_blank(const struct ftl_record *record)
{
	return !memchr_inv(record, 0xff, sizeof(*record));
}

bool ftl_data_intact(const struct ftl *ftl, const struct ftl_record *record, const u8 *data)
{
	return le32_to_cpu(record->data_crc) == crc32_le(~0, data, ftl->page_bytes);
}
