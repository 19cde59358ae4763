// SPDX-License-Identifier: GPL-2.0-only
/* The MTD partitions: the board's, mtd0, and those of a layout one after the other within it.
 *
 * Mirrors no kernel code; they are registered by drivers/mtd/mtdpart.c. Those of a layout lie over
 * the board's, as MTD allows: the agent erases and counts by mtd0, file systems are on the others.
 */
#include <linux/mtd/partitions.h>
#include <linux/slab.h>

#include "flashbed_nand.h"

/* Allocates them; NULL if there is no memory. Their count is one more than a layout has. */
struct mtd_partition *fbn_parts(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u64 block_bytes = (u64)p->page_bytes * p->pages_per_block;
	struct mtd_partition *parts = kcalloc(p->parts_count + 1, sizeof(*parts), GFP_KERNEL);
	u32 block = p->first_block;
	u32 i;

	if (!parts)
		return NULL;
	parts[0].name = FBN_PARTITION;
	parts[0].offset = block * block_bytes;
	parts[0].size = p->partition_blocks * block_bytes;
	for (i = 0; i < p->parts_count; i++) {
		parts[i + 1].name = p->parts[i].name;
		parts[i + 1].offset = block * block_bytes;
		parts[i + 1].size = p->parts[i].blocks * block_bytes;
		block += p->parts[i].blocks;
	}
#ifdef MTD_SLC_ON_MLC_EMULATION
	for (i = 0; i <= p->parts_count; i++)
		parts[i].add_flags = p->slc_mode ? MTD_SLC_ON_MLC_EMULATION : 0;
#endif
	return parts;
}
