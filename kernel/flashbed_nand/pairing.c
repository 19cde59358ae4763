// SPDX-License-Identifier: GPL-2.0-only
/* Pages that share cells, of a chip whose cells hold two bits each.
 *
 * Mirrors struct mtd_pairing_scheme of include/linux/mtd/mtd.h and the scheme dist3 of
 * drivers/mtd/nand/raw/nand_base.c: the first page and every odd one are the first of a pair, its
 * second one is three pages behind it, and two at the end of the block. Leaves out other schemes.
 */
#include <linux/kernel.h>
#include <linux/mtd/mtd.h>

#include "flashbed_nand.h"

#define GROUPS 2

static int get_info(struct mtd_info *mtd, int page, struct mtd_pairing_info *info)
{
	const int pages = flashbed.p.pages_per_block;

	info->group = page && !(page & 1) ? 1 : 0;
	if (page == pages - 1)
		info->group = 1;
	if (!info->group)
		info->pair = (page + 1) / 2;
	else
		info->pair = page == pages - 1 ? pages / 2 - 1 : page / 2 - 1;
	return 0;
}

static int get_wunit(struct mtd_info *mtd, const struct mtd_pairing_info *info)
{
	const int pages = flashbed.p.pages_per_block;

	if (info->pair < 0 || info->pair >= pages / GROUPS)
		return -EINVAL;
	if (!info->group)
		return info->pair ? 2 * info->pair - 1 : 0;
	return info->pair == pages / GROUPS - 1 ? pages - 1 : 2 * info->pair + 2;
}

static const struct mtd_pairing_scheme scheme = {
	.ngroups = GROUPS,
	.get_info = get_info,
	.get_wunit = get_wunit,
};

/* The page whose cells a page of the chip shares, if it was programmed first; else -1. */
s32 fbn_paired_before(u32 page)
{
	const u32 first = page & ~(flashbed.p.pages_per_block - 1);
	struct mtd_pairing_info info;

	if (!flashbed.p.pairs)
		return -1;
	get_info(NULL, page - first, &info);
	if (!info.group)
		return -1;
	info.group = 0;
	return first + get_wunit(NULL, &info);
}

/* The page as the partition counts it, whose blocks have only the first pages of pairs in SLC mode.
 */
u32 fbn_page_of_partition(u32 page)
{
	const u32 in_block = page & (flashbed.p.pages_per_block - 1);

	return flashbed.p.slc_mode ? (page - in_block) / GROUPS + (in_block + 1) / GROUPS : page;
}

/* Tells the core of MTD. */
void fbn_pair(struct mtd_info *mtd)
{
	if (flashbed.p.pairs)
		mtd_set_pairing_scheme(mtd, &scheme);
}
