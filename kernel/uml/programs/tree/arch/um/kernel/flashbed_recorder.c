// SPDX-License-Identifier: GPL-2.0-only
/* What a recorder must not change, and what it needs to know: whether a task slept.
 *
 * A stop of ptrace is two switches of tasks. Both are decisions of the scheduler, in which another
 * task could be picked, and both are quiescent states of RCU, after which a tick preempts less. So
 * a program would run otherwise while it is recorded. Here a task stays in the run queue while its
 * tracer (a real-time task: only the recorder is one) looks at it, and then continues with the
 * slice, the vruntime and the pending preemption that it had (core.c, fair.c, signal.c; see
 * ../changes). What the recorder frees does not make a tick preempt either (tiny.c).
 *
 * /sys/kernel/debug/flashbed_slept: 8 bytes at 8 * TID are how long that task has slept, in
 * nanoseconds of virtual time: from leaving the processor by itself until it was woken. Being
 * preempted, waiting for the processor and stops of ptrace are not part of it.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include <flashbed_recorder.h>

/* Of time.c. Reading the clock the usual way takes time. */
extern unsigned long long time_travel_time;

void flashbed_falls_asleep(struct task_struct *task, unsigned int state)
{
	if (!(state & (__TASK_STOPPED | __TASK_TRACED)))
		task->flashbed_asleep_ns = time_travel_time;
}

void flashbed_wakes(struct task_struct *task)
{
	if (task->flashbed_asleep_ns)
		task->flashbed_slept_ns += time_travel_time - task->flashbed_asleep_ns;
	task->flashbed_asleep_ns = 0;
}

static ssize_t slept_read(struct file *file, char __user *bytes, size_t count, loff_t *at)
{
	struct task_struct *task;
	u64 ns = 0;

	if (count != sizeof(ns))
		return -EINVAL;
	rcu_read_lock();
	task = find_task_by_vpid(*at / sizeof(ns));
	if (task)
		ns = task->flashbed_slept_ns;
	rcu_read_unlock();
	if (!task)
		return 0;
	return copy_to_user(bytes, &ns, sizeof(ns)) ? -EFAULT : sizeof(ns);
}

static const struct file_operations slept_fops = {
	.open = simple_open, /* its offset names a task */
	.read = slept_read,
	.llseek = default_llseek,
};

static int __init recorder_init(void)
{
	debugfs_create_file("flashbed_slept", 0400, NULL, NULL, &slept_fops);
	return 0;
}
device_initcall(recorder_init);
