// SPDX-License-Identifier: GPL-2.0-only
/* The block device /dev/flashbed_ftl: requests of sectors, one at a time, a page of the flash each.
 *
 * Mirrors drivers/mtd/mtd_blkdevs.c of Linux 6.1 and 6.12 in its queue. A write is on the flash
 * when its request ends, so a flush has nothing to do. Left out: discards, partitions of the disk.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/version.h>

#include "flashbed_ftl.h"

#define QUEUE_DEPTH 2

static struct blk_mq_tag_set tags;
static struct gendisk *disk;

static int move_pages(struct ftl *ftl, bool write, u64 at, u32 bytes)
{
	u32 done = 0;

	while (done < bytes) {
		u32 column;
		const u32 logical = div_u64_rem(at + done, ftl->page_bytes, &column);
		const u32 part = min(ftl->page_bytes - column, bytes - done);
		u8 *place = ftl->request + done;
		const int err = write ? ftl_write(ftl, logical, column, part, place)
				      : ftl_read(ftl, logical, column, part, place);

		if (err)
			return err;
		done += part;
	}
	return 0;
}

static blk_status_t move(struct ftl *ftl, struct request *request)
{
	const bool write = req_op(request) == REQ_OP_WRITE;
	const u32 bytes = blk_rq_bytes(request);
	struct req_iterator at;
	struct bio_vec part;
	u32 copied = 0;

	if (bytes > FTL_REQUEST_SECTORS * FTL_SECTOR)
		return BLK_STS_IOERR;
	if (write)
		rq_for_each_segment(part, request, at)
		{
			memcpy_from_bvec(ftl->request + copied, &part);
			copied += part.bv_len;
		}
	if (move_pages(ftl, write, blk_rq_pos(request) << SECTOR_SHIFT, bytes))
		return BLK_STS_IOERR;
	if (!write)
		rq_for_each_segment(part, request, at)
		{
			memcpy_to_bvec(&part, ftl->request + copied);
			copied += part.bv_len;
		}
	return BLK_STS_OK;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *context, const struct blk_mq_queue_data *data)
{
	struct ftl *ftl = context->queue->queuedata;
	struct request *request = data->rq;
	blk_status_t status = BLK_STS_NOTSUPP;

	blk_mq_start_request(request);
	mutex_lock(&ftl->lock);
	if (req_op(request) == REQ_OP_READ || req_op(request) == REQ_OP_WRITE)
		status = move(ftl, request);
	mutex_unlock(&ftl->lock);
	blk_mq_end_request(request, status);
	return BLK_STS_OK;
}

static const struct blk_mq_ops queue_ops = {
	.queue_rq = queue_rq,
};

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
};

static struct gendisk *allocate_disk(struct ftl *ftl)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	struct queue_limits limits = {.max_hw_sectors = FTL_REQUEST_SECTORS};

	return blk_mq_alloc_disk(&tags, &limits, ftl);
#else
	struct gendisk *made = blk_mq_alloc_disk(&tags, ftl);

	if (IS_ERR(made))
		return made;
	blk_queue_max_hw_sectors(made->queue, FTL_REQUEST_SECTORS);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, made->queue);
	return made;
#endif
}

int ftl_disk_add(struct ftl *ftl)
{
	int err = blk_mq_alloc_sq_tag_set(&tags, &queue_ops, QUEUE_DEPTH,
					  BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_BLOCKING);

	if (err)
		return err;
	disk = allocate_disk(ftl);
	if (IS_ERR(disk)) {
		err = PTR_ERR(disk);
		goto free_tags;
	}
	disk->fops = &disk_ops;
	disk->flags |= GENHD_FL_NO_PART;
	snprintf(disk->disk_name, sizeof(disk->disk_name), FTL_NAME);
	set_capacity(disk, (u64)ftl->shown * (ftl->page_bytes / FTL_SECTOR));
	err = add_disk(disk);
	if (!err)
		return 0;
	put_disk(disk);
free_tags:
	blk_mq_free_tag_set(&tags);
	return err;
}

void ftl_disk_remove(void)
{
	del_gendisk(disk);
	put_disk(disk);
	blk_mq_free_tag_set(&tags);
}
