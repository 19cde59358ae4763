// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading: one chip, identified by the NAND core like any other, and its partitions
 * as MTD devices. Linux' drivers of SPI-NAND (spi.c) and SPI-NOR (nor.c) identify such chips.
 *
 * Mirrors nand_scan_with_ids and nand_cleanup of drivers/mtd/nand/raw/nand_base.c and
 * drivers/mtd/mtdcore.c. The core requires a power of two of MiB and gets the next one. What lies
 * after the last block is outside the partition, reads as 0xff and cannot be programmed or erased.
 *
 * Invariant: if init fails, everything that it created is freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mtd/partitions.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "flashbed_nand.h"

static struct dentry *folder;

static const struct nand_controller_ops controller_ops = {
	.attach_chip = fbn_attach_chip,
	.exec_op = fbn_exec_op,
};

static int scan(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u32 mib = ((u64)p->pages * p->page_bytes + SZ_1M - 1) >> 20;
	struct nand_chip *nand = &flashbed.nand;
	struct mtd_info *mtd = nand_to_mtd(nand);
	struct nand_flash_dev ids[2] = {};

	ids[0].name = "flashbed";
	fbn_id(ids[0].id);
	ids[0].id_len = sizeof(ids[0].id);
	ids[0].pagesize = p->page_bytes;
	ids[0].oobsize = p->oob_bytes;
	ids[0].erasesize = p->page_bytes * p->pages_per_block;
	ids[0].chipsize = roundup_pow_of_two(mib);
	nand_controller_init(&flashbed.controller);
	flashbed.controller.ops = &controller_ops;
	nand->controller = &flashbed.controller;
	mtd->owner = THIS_MODULE;
	mtd->name = "flashbed-chip";
	return nand_scan_with_ids(nand, 1, ids);
}

static int add_partitions(void)
{
	struct mtd_partition *parts = fbn_parts();
	int err;

	if (!parts)
		return -ENOMEM;
	err = mtd_device_register(nand_to_mtd(&flashbed.nand), parts, flashbed.p.parts_count + 1);
	kfree(parts);
	return err;
}

static int start_raw(void)
{
	int err = scan();

	if (err)
		return err;
	flashbed.core.mtd = nand_to_mtd(&flashbed.nand);
	flashbed.core.lock = &flashbed.nand.lock;
	fbn_calls_pay(flashbed.core.mtd);
	err = add_partitions();
	if (err)
		nand_cleanup(&flashbed.nand);
	return err;
}

static int start(void)
{
	if (flashbed.p.nor)
		return fbn_nor_start();
	return flashbed.p.spi_hz ? fbn_spi_start() : start_raw();
}

static void stop(void)
{
	if (flashbed.p.spi_hz) {
		fbn_spi_detach();
		return;
	}
	WARN_ON(mtd_device_unregister(nand_to_mtd(&flashbed.nand)));
	nand_cleanup(&flashbed.nand);
}

static int __init flashbed_init(void)
{
	int err = fbn_parameters_check(&flashbed.p);

	if (err)
		return err;
	err = fbn_chip_make();
	if (err)
		goto free;
	err = start();
	if (err)
		goto free;
	err = fbn_debugfs_create(&folder);
	if (err)
		goto stop;
	return 0;

stop:
	stop();
free:
	fbn_load_abandon();
	fbn_chip_free();
	pr_err("not loaded: error %d\n", err);
	return err;
}

static void __exit flashbed_exit(void)
{
	debugfs_remove_recursive(folder);
	stop();
	fbn_load_abandon();
	fbn_chip_free();
}

module_init(flashbed_init);
module_exit(flashbed_exit);

MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION(
	"A chip in memory, NAND or SPI-NOR, with a datasheet's times, a log and power cuts");
MODULE_AUTHOR("flashbed");
