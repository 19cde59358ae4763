// SPDX-License-Identifier: GPL-2.0-only
/* The block device /dev/flashbed_ftl: requests of sectors, one at a time, a page of the flash each.
 *
 * Mirrors drivers/mtd/mtd_blkdevs.c of Linux 6.1 in its queue. A write is on the flash
 * when its request ends, so a flush has nothing to do. A thread serves the requests: kblockd's
 * workers have the highest priority, and one that spins for the chip's time would leave no time to
 * make other workers (MAYDAY_INITIAL_TIMEOUT). Left out: discards, partitions of the disk.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "flashbed_ftl.h"

#define QUEUE_DEPTH 2

static struct blk_mq_tag_set tags;
static struct gendisk *disk;
static struct task_struct *server;
static LIST_HEAD(requests);
static DEFINE_SPINLOCK(requests_lock);
static DECLARE_WAIT_QUEUE_HEAD(requests_wait);

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

static struct request *next_request(void)
{
	struct request *request;

	spin_lock_irq(&requests_lock);
	request = list_first_entry_or_null(&requests, struct request, queuelist);
	if (request)
		list_del_init(&request->queuelist);
	spin_unlock_irq(&requests_lock);
	return request;
}

static int serve(void *context)
{
	struct ftl *ftl = context;

	while (!kthread_should_stop()) {
		struct request *request = NULL;
		blk_status_t status = BLK_STS_NOTSUPP;

		wait_event_interruptible(requests_wait,
					 (request = next_request()) || kthread_should_stop());
		if (!request)
			continue;
		if (req_op(request) == REQ_OP_READ || req_op(request) == REQ_OP_WRITE)
			status = move(ftl, request);
		blk_mq_end_request(request, status);
	}
	return 0;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *context, const struct blk_mq_queue_data *data)
{
	unsigned long flags;

	blk_mq_start_request(data->rq);
	spin_lock_irqsave(&requests_lock, flags);
	list_add_tail(&data->rq->queuelist, &requests);
	spin_unlock_irqrestore(&requests_lock, flags);
	wake_up(&requests_wait);
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
	struct gendisk *made = blk_mq_alloc_disk(&tags, ftl);

	if (IS_ERR(made))
		return made;
	blk_queue_max_hw_sectors(made->queue, FTL_REQUEST_SECTORS);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, made->queue);
	return made;
}

int ftl_disk_add(struct ftl *ftl)
{
	int err = blk_mq_alloc_sq_tag_set(&tags, &queue_ops, QUEUE_DEPTH, BLK_MQ_F_SHOULD_MERGE);

	if (err)
		return err;
	server = kthread_run(serve, ftl, FTL_NAME);
	if (IS_ERR(server)) {
		err = PTR_ERR(server);
		goto free_tags;
	}
	disk = allocate_disk(ftl);
	if (IS_ERR(disk)) {
		err = PTR_ERR(disk);
		goto stop;
	}
	disk->fops = &disk_ops;
	disk->flags |= GENHD_FL_NO_PART;
	snprintf(disk->disk_name, sizeof(disk->disk_name), FTL_NAME);
	set_capacity(disk, (u64)ftl->shown * (ftl->page_bytes / FTL_SECTOR));
	err = add_disk(disk);
	if (!err)
		return 0;
	put_disk(disk);
stop:
	kthread_stop(server);
free_tags:
	blk_mq_free_tag_set(&tags);
	return err;
}

void ftl_disk_remove(void)
{
	del_gendisk(disk);
	put_disk(disk);
	kthread_stop(server);
	blk_mq_free_tag_set(&tags);
}
