// SPDX-License-Identifier: GPL-2.0-only
/* The background thread of a mounted file system: writes directory headers each second, and
 * collects garbage as often as the urgency demands.
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_bg_gc_urgency, yaffs_bg_thread_fn) of July 2013, in jiffies as
 * there. Left out: the freezer.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "glue.h"

/* By how much of the free space is scattered among blocks in use: 0 little, 1 more than half, 2
 * more than three quarters.
 */
unsigned int yfs_urgency(const struct yaffs_dev *dev)
{
	const int erased = dev->n_erased_blocks * dev->param.chunks_per_block;
	const int scattered = max(dev->n_free_chunks - erased, 0);

	if (!yfs_of_dev(dev)->collector || scattered < 2 * dev->param.chunks_per_block ||
	    erased > dev->n_free_chunks / 2)
		return 0;
	return erased > dev->n_free_chunks / 4 ? 1 : 2;
}

static unsigned long pause_for(unsigned int urgency)
{
	static const unsigned long pauses[] = {2 * HZ, HZ / 10 + 1, HZ / 20 + 1};

	return pauses[urgency];
}

struct schedule {
	unsigned long directories;
	unsigned long collection;
};

static void work(struct yfs *yfs, struct schedule *next, unsigned long now)
{
	struct yaffs_dev *dev = &yfs->dev;

	if (time_after(now, next->directories)) {
		yaffs_update_dirty_dirs(dev);
		next->directories = now + HZ;
	}
	if (!time_after(now, next->collection))
		return;
	if (dev->is_checkpointed) {
		/* With nothing to collect the thread wakes as seldom as possible. */
		next->collection = next->directories;
	} else {
		const unsigned int urgency = yfs_urgency(dev);

		(void)yaffs_bg_gc(dev, urgency);
		next->collection = now + pause_for(urgency);
	}
}

static int collector(void *data)
{
	struct yfs *yfs = data;
	struct schedule next = {jiffies, jiffies};

	while (!kthread_should_stop()) {
		struct yfs *locked = yfs_lock(yfs->sb);
		const unsigned long now = jiffies;
		unsigned long until;

		work(locked, &next, now);
		yfs_unlock(locked);
		until = time_before(next.collection, next.directories) ? next.collection
								       : next.directories;
		if (time_before(until, now))
			until = now + HZ;
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			__set_current_state(TASK_RUNNING);
		else
			(void)schedule_timeout(max_t(long, (long)(until + 1 - jiffies), 1));
	}
	return 0;
}

int yfs_collector_start(struct yfs *yfs)
{
	struct task_struct *thread =
		kthread_create(collector, yfs, "yaffs-bg-%d", yfs->sb->s_mtd->index);

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	yfs->collector = thread;
	wake_up_process(thread);
	return 0;
}

void yfs_collector_stop(struct yfs *yfs)
{
	struct task_struct *thread = yfs->collector;

	if (!thread)
		return;
	yfs->collector = NULL;
	(void)kthread_stop(thread);
}
