// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading: one chip, identified by the NAND core as any other, and one partition of
 * it as the only MTD device.
 *
 * Stands against nand_scan_with_ids and nand_cleanup of drivers/mtd/nand/raw/nand_base.c and
 * drivers/mtd/mtdcore.c. The core wants a chip of a power of two of MiB: it is told the next one,
 * and what lies past the last block is outside the partition, reads as 0xff and cannot be
 * programmed or erased.
 *
 * Invariant: whatever init had made when it failed is gone when it returns.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mtd/partitions.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

struct fbn flashbed = {
	.lock = __MUTEX_INITIALIZER(flashbed.lock),
};

static struct dentry *folder;

/* What a reboot would: the driver's bad block table and page buffer come from the chip again.
 * nand->lock is held. */
void fbn_forget_driver_state(void)
{
	struct nand_chip *nand = &flashbed.nand;
	u32 block;

	nand->pagecache.page = -1;
	if (!nand->bbt)
		return;
	for (block = 0; block < flashbed.p.blocks; block++) {
		const u8 mask = 3U << 2 * (block & 3);

		if (fbn_cells_marked_bad(&flashbed.cells, block))
			nand->bbt[block / 4] |= mask;
		else
			nand->bbt[block / 4] &= ~mask;
	}
}

int fbn_mark_factory_bad(u32 block)
{
	static const u8 mark;
	const struct fbn_effect whole = {.how = FBN_WHOLE};
	const struct fbn_program program = {
		.page = block << flashbed.p.page_in_block_shift,
		.from = fbn_marker_column(),
		.to = fbn_marker_column() + 1,
		.bytes = &mark,
	};

	if (fbn_cells_program(&flashbed.cells, &program, whole))
		return -ENOMEM;
	flashbed.cells.blocks[block].state = FBN_FACTORY_BAD;
	return 0;
}

/* As many as the parameters ask for. */
static int draw_factory_bad(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	u64 state = fbn_draw(p->seed, FBN_DRAW_BAD, 0);
	u32 marked = 0;

	while (marked < p->bad_blocks) {
		const u32 block = p->first_block + fbn_below(&state, p->partition_blocks);

		if (flashbed.cells.blocks[block].state == FBN_FACTORY_BAD)
			continue;
		if (fbn_mark_factory_bad(block))
			return -ENOMEM;
		marked++;
	}
	return 0;
}

/* The chip as it was when the module was loaded; what it has counted and logged goes on. */
int fbn_renew(void)
{
	struct fbn_cells fresh;
	int err = fbn_cells_init(&fresh);

	if (err)
		return err;
	fbn_history_forget();
	fbn_cells_free(&flashbed.cells);
	flashbed.cells = fresh;
	fbn_faults_start(&flashbed.faults, &flashbed.p);
	memset(&flashbed.power, 0, sizeof(flashbed.power));
	err = draw_factory_bad();
	fbn_forget_driver_state();
	return err;
}

static int make_chip(void)
{
	struct fbn_bus *bus = &flashbed.bus;
	int err = fbn_caches_create();

	if (!err)
		err = fbn_cells_init(&flashbed.cells);
	if (!err)
		err = draw_factory_bad();
	if (err)
		return err;
	fbn_faults_start(&flashbed.faults, &flashbed.p);
	bus->latch = kmalloc(flashbed.p.raw_bytes, GFP_KERNEL);
	if (!bus->latch)
		return -ENOMEM;
	memset(bus->latch, 0xff, flashbed.p.raw_bytes);
	bus->latch_from = flashbed.p.raw_bytes;
	bus->status = NAND_STATUS_WP | NAND_STATUS_READY | NAND_STATUS_TRUE_READY;
	return 0;
}

static void free_chip(void)
{
	fbn_load_abandon();
	fbn_history_forget();
	fbn_log_free(&flashbed.log);
	fbn_breaches_free();
	fbn_cells_free(&flashbed.cells);
	kfree(flashbed.bus.latch);
	fbn_caches_destroy();
}

static int scan(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u32 mib = ((u64)p->pages * p->page_bytes + SZ_1M - 1) >> 20;
	struct nand_chip *nand = &flashbed.nand;
	struct mtd_info *mtd = nand_to_mtd(nand);
	struct nand_flash_dev ids[2] = {};
	int i;

	ids[0].name = "flashbed";
	for (i = 0; i < sizeof(fbn_id); i++)
		ids[0].id[i] = fbn_id[i];
	ids[0].id_len = sizeof(fbn_id);
	ids[0].pagesize = p->page_bytes;
	ids[0].oobsize = p->oob_bytes;
	ids[0].erasesize = p->page_bytes * p->pages_per_block;
	ids[0].chipsize = roundup_pow_of_two(mib);
	nand_controller_init(&flashbed.controller);
	flashbed.controller.ops = &fbn_controller_ops;
	nand->controller = &flashbed.controller;
	mtd->owner = THIS_MODULE;
	mtd->name = "flashbed-chip";
	return nand_scan_with_ids(nand, 1, ids);
}

static int add_partition(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u64 block_bytes = (u64)p->page_bytes * p->pages_per_block;
	const struct mtd_partition part = {
		.name = FBN_PARTITION,
		.offset = p->first_block * block_bytes,
		.size = p->partition_blocks * block_bytes,
	};

	return mtd_device_register(nand_to_mtd(&flashbed.nand), &part, 1);
}

static int __init flashbed_init(void)
{
	int err = fbn_parameters_check(&flashbed.p);

	if (err)
		return err;
	err = make_chip();
	if (err)
		goto free;
	err = scan();
	if (err)
		goto free;
	fbn_calls_pay(nand_to_mtd(&flashbed.nand));
	err = add_partition();
	if (err)
		goto clean_up;
	err = fbn_debugfs_create(&folder);
	if (err)
		goto unregister;
	return 0;

unregister:
	WARN_ON(mtd_device_unregister(nand_to_mtd(&flashbed.nand)));
clean_up:
	nand_cleanup(&flashbed.nand);
free:
	free_chip();
	pr_err("not loaded: error %d\n", err);
	return err;
}

static void __exit flashbed_exit(void)
{
	debugfs_remove_recursive(folder);
	WARN_ON(mtd_device_unregister(nand_to_mtd(&flashbed.nand)));
	nand_cleanup(&flashbed.nand);
	free_chip();
}

module_init(flashbed_init);
module_exit(flashbed_exit);

MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION("A raw NAND chip in memory, with a datasheet's times, a log and power cuts");
MODULE_AUTHOR("flashbed");
