// SPDX-License-Identifier: GPL-2.0-only
/* Chunks with their tags on an MTD device, for the core.
 *
 * A chunk is a page. Its tags (28 bytes with their own ECC) are in the free bytes of the OOB
 * (MTD_OPS_AUTO_OOB), and one read or one program transfers page and tags. A chip whose OOB has no
 * space for them has them in the last 16 bytes of the page (in-band).
 *
 * Mirrors yaffs_mtdif_multi.c and yaffs_tagsmarshall.c of July 2013, with one difference: the core
 * is told about bits that the chip's ECC corrected, and moves such a block (in the original a wrong
 * sign hides them). Left out: YAFFS1, chips that are not NAND.
 */
#include <linux/slab.h>

#include "glue.h"
#include "yaffs_packedtags2.h"

static struct mtd_info *mtd_of(const struct yaffs_dev *dev)
{
	return dev->driver_context;
}

static loff_t chunk_address(const struct yaffs_dev *dev, int chunk)
{
	return (loff_t)chunk * dev->param.total_bytes_per_chunk;
}

static loff_t block_address(const struct yaffs_dev *dev, int block)
{
	return (loff_t)block * mtd_of(dev)->erasesize;
}

static size_t tags_bytes(const struct yaffs_dev *dev)
{
	return dev->param.no_tags_ecc ? sizeof(struct yaffs_packed_tags2_tags_only)
				      : sizeof(struct yaffs_packed_tags2);
}

/* Whether the current mount will find another file system: the states of all blocks are read before
 * anything is changed. Until then nothing is written.
 */
static bool hands_off(const struct yfs *yfs)
{
	return !yfs->initialised && !yfs->seen.ours && yfs->seen.foreign >= 2;
}

static int write_chunk(struct yaffs_dev *dev, int chunk, const u8 *data,
		       const struct yaffs_ext_tags *tags)
{
	struct yaffs_packed_tags2 packed;
	struct mtd_oob_ops ops = {.mode = MTD_OPS_AUTO_OOB,
				  .len = dev->param.total_bytes_per_chunk,
				  .datbuf = (u8 *)data};

	if (hands_off(yfs_of_dev(dev)))
		return YAFFS_FAIL;
	if (dev->param.inband_tags) {
		yaffs_pack_tags2_tags_only((void *)(ops.datbuf + dev->data_bytes_per_chunk), tags);
	} else {
		/* The struct has holes. */
		memset(&packed, 0xff, sizeof(packed));
		yaffs_pack_tags2(&packed, tags, !dev->param.no_tags_ecc);
		ops.oobbuf = (u8 *)&packed;
		ops.ooblen = tags_bytes(dev);
	}
	return mtd_write_oob(mtd_of(dev), chunk_address(dev, chunk), &ops) ? YAFFS_FAIL : YAFFS_OK;
}

/* MTD's result of a read as the core's. */
static enum yaffs_ecc_result ecc_result(struct yaffs_dev *dev, int err)
{
	if (!err)
		return YAFFS_ECC_RESULT_NO_ERROR;
	if (err == -EUCLEAN) {
		dev->n_ecc_fixed++;
		return YAFFS_ECC_RESULT_FIXED;
	}
	dev->n_ecc_unfixed++;
	return YAFFS_ECC_RESULT_UNFIXED;
}

static int read_inband(struct yaffs_dev *dev, int chunk, u8 *data, struct yaffs_ext_tags *tags)
{
	u8 *page = data ? data : yaffs_get_temp_buffer(dev);
	struct mtd_oob_ops ops = {
		.mode = MTD_OPS_AUTO_OOB, .len = dev->param.total_bytes_per_chunk, .datbuf = page};
	const int err = mtd_read_oob(mtd_of(dev), chunk_address(dev, chunk), &ops);

	if (tags)
		yaffs_unpack_tags2_tags_only(tags, (void *)(page + dev->data_bytes_per_chunk));
	if (!data)
		yaffs_release_temp_buffer(dev, page);
	return err;
}

static int read_spare(struct yaffs_dev *dev, int chunk, u8 *data, struct yaffs_ext_tags *tags)
{
	struct yaffs_packed_tags2 packed;
	struct mtd_oob_ops ops = {.mode = MTD_OPS_AUTO_OOB,
				  .len = data ? dev->param.total_bytes_per_chunk : 0,
				  .datbuf = data};

	memset(&packed, 0xff, sizeof(packed));
	if (tags) {
		ops.oobbuf = (u8 *)&packed;
		ops.ooblen = tags_bytes(dev);
	}
	const int err = mtd_read_oob(mtd_of(dev), chunk_address(dev, chunk), &ops);

	if (tags)
		yaffs_unpack_tags2(tags, &packed, !dev->param.no_tags_ecc);
	return err;
}

static bool tags_are_ours(const struct yaffs_ext_tags *tags)
{
	const u32 number = tags->seq_number;

	return tags->ecc_result != YAFFS_ECC_RESULT_UNFIXED &&
	       (number == YAFFS_SEQUENCE_CHECKPOINT_DATA ||
		(number >= YAFFS_LOWEST_SEQUENCE_NUMBER &&
		 number <= YAFFS_HIGHEST_SEQUENCE_NUMBER));
}

static int read_chunk(struct yaffs_dev *dev, int chunk, u8 *data, struct yaffs_ext_tags *tags)
{
	const int err = dev->param.inband_tags ? read_inband(dev, chunk, data, tags)
					       : read_spare(dev, chunk, data, tags);
	const enum yaffs_ecc_result result = ecc_result(dev, err);

	/* The worse result of the tags' own ECC and the chip's. */
	if (tags && result > tags->ecc_result)
		tags->ecc_result = result;
	/* A mount that restores a checkpoint queries no block. */
	if (tags && tags->seq_number == YAFFS_SEQUENCE_CHECKPOINT_DATA && tags_are_ours(tags))
		yfs_of_dev(dev)->seen.ours++;
	return result == YAFFS_ECC_RESULT_UNFIXED ? YAFFS_FAIL : YAFFS_OK;
}

static int erase_block(struct yaffs_dev *dev, int block)
{
	struct erase_info erase = {.addr = block_address(dev, block),
				   .len = mtd_of(dev)->erasesize};

	return hands_off(yfs_of_dev(dev)) || mtd_erase(mtd_of(dev), &erase) ? YAFFS_FAIL : YAFFS_OK;
}

static int mark_bad(struct yaffs_dev *dev, int block)
{
	return hands_off(yfs_of_dev(dev)) ||
			       mtd_block_markbad(mtd_of(dev), block_address(dev, block))
		       ? YAFFS_FAIL
		       : YAFFS_OK;
}

/* The state of a block at the mount, from the tags of its first chunk. */
static int query_block(struct yaffs_dev *dev, int block, enum yaffs_block_state *state,
		       u32 *seq_number)
{
	struct yfs *yfs = yfs_of_dev(dev);
	struct yaffs_ext_tags tags;

	*seq_number = 0;
	if (mtd_block_isbad(mtd_of(dev), block_address(dev, block))) {
		*state = YAFFS_BLOCK_STATE_DEAD;
		return YAFFS_OK;
	}
	/* The tags tell about a read that fails. */
	(void)read_chunk(dev, block * dev->param.chunks_per_block, NULL, &tags);
	if (!tags.chunk_used) {
		*state = YAFFS_BLOCK_STATE_EMPTY;
		return YAFFS_OK;
	}
	if (tags_are_ours(&tags))
		yfs->seen.ours++;
	else
		yfs->seen.foreign++;
	*state = YAFFS_BLOCK_STATE_NEEDS_SCAN;
	*seq_number = tags.seq_number;
	return YAFFS_OK;
}

static int no_flash_to_initialise(struct yaffs_dev *dev)
{
	return YAFFS_OK;
}

void yfs_nand_install(struct yaffs_dev *dev)
{
	struct yaffs_param *param = &dev->param;

	param->write_chunk_tags_fn = write_chunk;
	param->read_chunk_tags_fn = read_chunk;
	param->erase_fn = erase_block;
	param->bad_block_fn = mark_bad;
	param->query_block_fn = query_block;
	param->initialise_flash_fn = no_flash_to_initialise;
}

/* Whether YAFFS2 can use such a device: NAND, pages of at least 1 KiB, OOB of at least 32 bytes,
 * whole pages in a block.
 */
int yfs_nand_fits(const struct mtd_info *mtd)
{
	/* The authors' own interface to MTD does not take MTD_MLCNANDFLASH. */
	if (mtd->type == MTD_MLCNANDFLASH) {
		pr_err("yaffs: MTD device is not NAND it's type %d\n", mtd->type);
		return -EINVAL;
	}
	if (!mtd_type_is_nand(mtd) || mtd->writesize < YAFFS_MIN_YAFFS2_CHUNK_SIZE ||
	    mtd->oobsize < YAFFS_MIN_YAFFS2_SPARE_SIZE) {
		pr_err("yaffs2: %s has pages of %u and OOB of %u bytes; YAFFS2 needs NAND with at "
		       "least %u and %u\n",
		       mtd->name, mtd->writesize, mtd->oobsize, YAFFS_MIN_YAFFS2_CHUNK_SIZE,
		       YAFFS_MIN_YAFFS2_SPARE_SIZE);
		return -EINVAL;
	}
	return 0;
}

static bool block_is_erased(struct yfs *yfs, int block, u8 *page)
{
	struct mtd_info *mtd = mtd_of(&yfs->dev);
	const loff_t address = block_address(&yfs->dev, block);
	size_t got = 0;

	if (mtd_block_isbad(mtd, address))
		return true;
	const int err = mtd_read(mtd, address, mtd->writesize, &got, page);

	return (!err || err == -EUCLEAN) && !memchr_inv(page, 0xff, mtd->writesize);
}

static int refuse_foreign(const struct yfs *yfs)
{
	pr_err("yaffs2: %s: there is something else than YAFFS2 on it; erase it first\n",
	       mtd_of(&yfs->dev)->name);
	return -EINVAL;
}

/* -EINVAL if another file system is on the partition. YAFFS2 itself has no magic number: it takes
 * anything for an empty file system and erases it over time. The partition is refused if no block
 * is YAFFS2's and at least two hold something else. A power cut in the very first program leaves
 * one such block.
 */
int yfs_nand_foreign(struct yfs *yfs)
{
	const struct yaffs_dev *dev = &yfs->dev;
	unsigned int foreign = 0;
	int block;
	u8 *page;

	if (dev->is_checkpointed || yfs->seen.ours)
		return 0;
	if (yfs->seen.foreign >= 2)
		return refuse_foreign(yfs);
	page = kmalloc(mtd_of(dev)->writesize, GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	for (block = dev->param.start_block; block <= dev->param.end_block && foreign < 2; block++)
		foreign += !block_is_erased(yfs, block, page);
	kfree(page);
	return foreign >= 2 ? refuse_foreign(yfs) : 0;
}
