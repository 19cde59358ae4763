/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler, ptrace and RCU call of flashbed's (flashbed_recorder.c). */
#ifndef FLASHBED_RECORDER_H
#define FLASHBED_RECORDER_H

#include <linux/types.h>

struct rcu_head;
struct sched_entity;
struct task_struct;

/* The task that continues when its tracer sleeps again; NULL for none. Of core.c. */
extern struct sched_entity *flashbed_continues;
/* Of core.c: lets the tracer run. Returns whether it did; else the caller calls schedule(). */
bool flashbed_hand_over(bool resched);

void flashbed_falls_asleep(struct task_struct *task, unsigned int state);
void flashbed_wakes(struct task_struct *task);

/* Of tiny.c: runs what the recorder deferred with call_rcu(). */
void flashbed_reclaim(void);

#endif
