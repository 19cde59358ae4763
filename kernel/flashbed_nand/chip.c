// SPDX-License-Identifier: GPL-2.0-only
/* The chip as a whole: created and freed, renewed by `ctl`, its factory-bad blocks marked; and what
 * the NAND core caches about it.
 *
 * Mirrors struct nand_chip of include/linux/mtd/rawnand.h: its bad block table (bbt) and page
 * buffer (pagecache). Leaves out the chip's identification (module.c).
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

/* Empties the raw driver's page buffer. SPI's has none. */
void fbn_forget_page(void)
{
	flashbed.nand.pagecache.page = -1;
}

/* Does what a reboot would: the driver's bad block table and page buffer are read from the chip
 * again. The caller holds flashbed.core.lock.
 */
void fbn_forget_driver_state(void)
{
	struct nand_chip *nand = &flashbed.nand;
	u32 block;

	if (flashbed.p.nor) {
		fbn_nor_forget();
		return;
	}
	if (flashbed.p.spi_hz) {
		fbn_spi_forget();
		return;
	}
	fbn_forget_page();
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

/* Draws as many factory-bad blocks as the parameters say. */
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

/* Restores the chip as it was when the module was loaded. Its counts and log continue. */
int fbn_chip_renew(void)
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

/* Creates the chip by the parameters. After a failure fbn_chip_free() frees what was created. */
int fbn_chip_make(void)
{
	struct fbn_bus *bus = &flashbed.bus;
	int err = fbn_pools_create();

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

void fbn_chip_free(void)
{
	fbn_history_forget();
	fbn_log_free(&flashbed.log);
	fbn_breaches_free();
	fbn_cells_free(&flashbed.cells);
	kfree(flashbed.bus.latch);
	fbn_pools_destroy();
}
