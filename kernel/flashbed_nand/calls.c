// SPDX-License-Identifier: GPL-2.0-only
/* Calls into the chip's MTD device, which wait for the time of their operations before they return
 * (wait.c).
 *
 * Mirrors the methods that nand_scan puts into struct mtd_info (drivers/mtd/nand/raw/nand_base.c):
 * calls each original method, then waits. Partitions call the chip's device, so theirs are
 * included. Left out: methods that do nothing to the chip.
 */
#include <linux/mtd/mtd.h>

#include "flashbed_nand.h"

static struct {
	int (*read_oob)(struct mtd_info *mtd, loff_t from, struct mtd_oob_ops *ops);
	int (*write_oob)(struct mtd_info *mtd, loff_t to, struct mtd_oob_ops *ops);
	int (*erase)(struct mtd_info *mtd, struct erase_info *erase);
	int (*block_isbad)(struct mtd_info *mtd, loff_t at);
	int (*block_markbad)(struct mtd_info *mtd, loff_t at);
} core;

static int paid(int result)
{
	fbn_pay();
	return result;
}

static int read_oob(struct mtd_info *mtd, loff_t from, struct mtd_oob_ops *ops)
{
	return paid(core.read_oob(mtd, from, ops));
}

static int write_oob(struct mtd_info *mtd, loff_t to, struct mtd_oob_ops *ops)
{
	return paid(core.write_oob(mtd, to, ops));
}

static int erase(struct mtd_info *mtd, struct erase_info *erase)
{
	return paid(core.erase(mtd, erase));
}

static int block_isbad(struct mtd_info *mtd, loff_t at)
{
	return paid(core.block_isbad(mtd, at));
}

static int block_markbad(struct mtd_info *mtd, loff_t at)
{
	return paid(core.block_markbad(mtd, at));
}

/* After nand_scan; waits for the time of the scan. */
void fbn_calls_pay(struct mtd_info *mtd)
{
	fbn_pay();
	core.read_oob = mtd->_read_oob;
	core.write_oob = mtd->_write_oob;
	core.erase = mtd->_erase;
	core.block_isbad = mtd->_block_isbad;
	core.block_markbad = mtd->_block_markbad;
	mtd->_read_oob = read_oob;
	mtd->_write_oob = write_oob;
	mtd->_erase = erase;
	mtd->_block_isbad = block_isbad;
	mtd->_block_markbad = block_markbad;
}
