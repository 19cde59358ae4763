// SPDX-License-Identifier: GPL-2.0-only
/* The controller's ECC, or the choice of the kernel's; and the free bytes of the spare area.
 *
 * Mirrors drivers/mtd/nand/raw/nand_base.c (nand_set_ecc_on_host_ops, nand_set_ecc_soft_ops)
 * and drivers/mtd/nand/ecc.c (layouts):
 *   software-subpage  the kernel's Hamming code, in the kernel's layouts if the code fits them,
 *                     like nandsim
 *   hardware-page     no code is calculated: the module knows the wrong bits (flips of this read;
 *                     `intended` of a torn page) and corrects like a BCH code of
 *                     ecc_strength_bits a step. The code's bytes in the spare area are reserved,
 *                     and stay 0xff
 *   none              nothing
 *   on-die            the chip corrects by itself, likewise (spi.c)
 * Leaves out wrong bits in the spare area, miscorrection by the hardware engine.
 */
#include <linux/bitops.h>
#include <linux/mtd/nand.h>
#include <linux/string.h>
#include <linux/version.h>

#include "flashbed_nand.h"

static int layout_ecc(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	const u32 total = mtd_to_nanddev(mtd)->ecc.ctx.total;

	if (section || !total)
		return -ERANGE;
	region->offset = mtd->oobsize - total;
	region->length = total;
	return 0;
}

/* All but the bad block marker (bytes 0 and 1; 5 of small pages) and the code at the end. */
static int layout_free(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	const u32 end = mtd->oobsize - mtd_to_nanddev(mtd)->ecc.ctx.total;
	const bool small = mtd->writesize <= 512;

	if (section > (small ? 1 : 0))
		return -ERANGE;
	if (small && !section) {
		region->offset = 0;
		region->length = NAND_BBM_POS_SMALL;
		return 0;
	}
	region->offset = small ? NAND_BBM_POS_SMALL + 1 : 2;
	region->length = end - region->offset;
	return 0;
}

static const struct mtd_ooblayout_ops layout = {
	.ecc = layout_ecc,
	.free = layout_free,
};

static u32 flips_in(u32 step)
{
	const struct fbn_bus *bus = &flashbed.bus;
	const u32 step_bits = flashbed.p.ecc_step_bytes * 8;
	u32 found = 0;
	int i;

	for (i = 0; i < bus->flips; i++)
		found += bus->flip_bits[i] / step_bits == step;
	return found;
}

static u32 different_bits(const u8 *a, const u8 *b, u32 count)
{
	u32 bits = 0;
	u32 i;

	for (i = 0; i < count; i++)
		bits += hweight8(a[i] ^ b[i]);
	return bits;
}

/* Corrects one step of a page in `bytes`; returns the number of bits, or -EBADMSG. */
int fbn_correct_step(const struct fbn_page *page, u32 step, u8 *bytes)
{
	const u32 step_bytes = flashbed.p.ecc_step_bytes;
	u32 wrong = flips_in(step);

	if (page && page->intended) {
		const u8 *intended = page->intended + step * step_bytes;

		fbn_flip(bytes, step * step_bytes, step_bytes);
		wrong = different_bits(bytes, intended, step_bytes);
		if (wrong > flashbed.p.ecc_strength_bits)
			return -EBADMSG;
		memcpy(bytes, intended, step_bytes);
	} else if (wrong > flashbed.p.ecc_strength_bits) {
		fbn_flip(bytes, step * step_bytes, step_bytes);
		return -EBADMSG;
	}
	return wrong;
}

/* ecc.read_page: transfers page and spare area together. */
static int read_page(struct nand_chip *nand, u8 *buf, int oob_required, int page)
{
	struct mtd_ecc_stats *stats = &nand_to_mtd(nand)->ecc_stats;
	const u32 step_bytes = flashbed.p.ecc_step_bytes;
	const struct fbn_page *cells;
	u64 started_ns;
	u64 spent_ns;
	int max_bitflips = 0;
	u32 step;

	fbn_begin();
	if (flashbed.power.off) {
		fbn_end(&started_ns, &spent_ns);
		return -EIO;
	}
	fbn_command_read(page, 0);
	fbn_move_in_whole(buf, nand->oob_poi);
	cells = fbn_cells_page(&flashbed.cells, page);
	for (step = 0; step < nand->ecc.steps && (flashbed.bus.flips || (cells && cells->intended));
	     step++) {
		const int wrong = fbn_correct_step(cells, step, buf + step * step_bytes);

		if (wrong < 0) {
			stats->failed++;
			fbn_record_flags(FBN_FLAG_FAILED);
		} else if (wrong) {
			stats->corrected += wrong;
			max_bitflips = max(max_bitflips, wrong);
			fbn_record_flags(FBN_FLAG_CORRECTED);
		}
	}
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns, spent_ns);
	return max_bitflips;
}

/* ecc.write_page: transfers page and spare area together, and programs. */
static int write_page(struct nand_chip *nand, const u8 *buf, int oob_required, int page)
{
	u64 started_ns;
	u64 spent_ns;
	int err = -EIO;

	fbn_begin();
	if (!flashbed.power.off) {
		fbn_command_program(page, 0);
		fbn_move_out_whole(buf, nand->oob_poi);
		err = fbn_confirm_program();
		if (!err && (flashbed.bus.status & NAND_STATUS_FAIL))
			err = -EIO;
	}
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns, spent_ns);
	return err;
}

/* Whether the kernel's layout for this spare area has space for its Hamming code. */
static bool kernel_layout_fits(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u32 total = p->page_bytes / p->ecc_step_bytes * p->ecc_bytes;

	if (p->page_bytes <= 512)
		return p->oob_bytes == 16 && total == 6;
	return (p->oob_bytes == 64 && total <= 24) || (p->oob_bytes == 128 && total <= 48);
}

/* Called between identification and the rest of nand_scan. */
int fbn_attach_chip(struct nand_chip *nand)
{
	const struct fbn_parameters *p = &flashbed.p;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	/* What nand_onfi_detect() would read in a parameter page: ONFI_OPT_CMD_READ_CACHE. */
	nand->parameters.supports_read_cache = p->cache_read_ns;
#endif
	fbn_pair(nand_to_mtd(nand));
	nand->ecc.size = p->ecc_step_bytes;
	nand->ecc.bytes = p->ecc_bytes;
	nand->ecc.strength = p->ecc_strength_bits;
	switch (p->ecc) {
	case FBN_ECC_SOFTWARE:
		nand->ecc.engine_type = NAND_ECC_ENGINE_TYPE_SOFT;
		nand->ecc.algo = NAND_ECC_ALGO_HAMMING;
		break;
	case FBN_ECC_HARDWARE:
		nand->ecc.engine_type = NAND_ECC_ENGINE_TYPE_ON_HOST;
		nand->ecc.read_page = read_page;
		nand->ecc.write_page = write_page;
		nand->options |= NAND_NO_SUBPAGE_WRITE;
		break;
	case FBN_ECC_NONE:
	case FBN_ECC_ON_DIE: /* of SPI only (parameters.c) */
		nand->ecc.engine_type = NAND_ECC_ENGINE_TYPE_NONE;
		break;
	}
	if (p->ecc != FBN_ECC_SOFTWARE || !kernel_layout_fits())
		mtd_set_ooblayout(nand_to_mtd(nand), &layout);
	return 0;
}
