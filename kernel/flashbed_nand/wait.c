// SPDX-License-Identifier: GPL-2.0-only
/* How the time of an operation passes for the processor that requested it.
 *
 * Mirrors <linux/delay.h> and kernel/time/hrtimer.c. `busy` spins, like a driver that polls the
 * ready line. `halt` is the same except for an emulator's host: in long waits the processor halts
 * until an hrtimer expires MARGIN_NS before the end, and spins the rest. Preemption is off, so
 * nothing else is scheduled. `sleep` lets other tasks run. Under user-mode Linux with time travel
 * ndelay advances the clock and returns.
 *
 * Halting and waking costs an emulator's host as much as spinning through SHORTEST_NS, and one call
 * into MTD is many short operations: reading a part of a page is two. With `halt` the time of an
 * operation is therefore owed, and the call waits for all of its operations before it returns
 * (calls.c). The sum is the same. But the effect of a timer's interrupt within a call is seen only
 * after the operation in which it expires, and preemption waits for the core's next preemption
 * point. So time is never owed beyond a tick, nor by a kernel thread, because the timer of a
 * sleeping program may expire within its calls at any time; nor on NOR, where the calls into MTD
 * are Linux' own and one operation is one wait. The start of a command in the log
 * includes the time owed before it.
 *
 * Invariants: `busy` returns when the operation is over, counted from its start, and `halt` when
 * the call's operations are. The cost of simulating the chip is included. Nothing is owed after a
 * call into MTD has returned, and never beyond the next tick.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/version.h>

#if defined(CONFIG_ARM) || defined(CONFIG_ARM64)
#include <asm/barrier.h>
#endif

#include "flashbed_nand.h"

#if defined(CONFIG_ARM64) || (defined(CONFIG_ARM) && __LINUX_ARM_ARCH__ >= 7)
#define CAN_HALT 1
#define MARGIN_NS 6000     /* interrupt and timer handler on a slow emulated core */
#define SHORTEST_NS 100000 /* QEMU halts and wakes no faster than it spins through this */
#endif

/* CLOCK_MONOTONIC. On user-mode Linux with time travel reading the clock costs 256 ns unless
 * interrupts are off; a log must cost nothing.
 */
u64 fbn_now_ns(void)
{
	unsigned long flags;
	u64 now_ns;

	local_irq_save(flags);
	now_ns = ktime_get_ns();
	local_irq_restore(flags);
	return now_ns;
}

#ifdef CONFIG_UML
static void spin(u64 started_ns, u64 spent_ns)
{
	ndelay(spent_ns);
}
#else
static void spin(u64 started_ns, u64 spent_ns)
{
	while (ktime_get_ns() < started_ns + spent_ns)
		cpu_relax();
}
#endif

#ifdef CAN_HALT
struct fbn_alarm {
	struct hrtimer timer;
	bool rang;
};

static enum hrtimer_restart ring(struct hrtimer *timer)
{
	WRITE_ONCE(container_of(timer, struct fbn_alarm, timer)->rang, true);
	return HRTIMER_NORESTART;
}

static void halt_until(u64 until_ns)
{
	struct fbn_alarm alarm = {};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup_on_stack(&alarm.timer, ring, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init_on_stack(&alarm.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	alarm.timer.function = ring;
#endif
	preempt_disable();
	hrtimer_start(&alarm.timer, ns_to_ktime(until_ns), HRTIMER_MODE_ABS_PINNED_HARD);
	local_irq_disable();
	while (!READ_ONCE(alarm.rang)) {
		/* With interrupts off a pending one still ends wfi, so none is lost between the
		 * test and the halt.
		 */
		dsb(sy);
		wfi();
		local_irq_enable();
		local_irq_disable();
	}
	local_irq_enable();
	preempt_enable();
	destroy_hrtimer_on_stack(&alarm.timer);
}

static void halt(u64 until_ns, u64 owed_ns)
{
	if (owed_ns >= SHORTEST_NS)
		halt_until(until_ns - MARGIN_NS);
	spin(until_ns - owed_ns, owed_ns);
}
#else
static void halt(u64 until_ns, u64 owed_ns)
{
	spin(until_ns - owed_ns, owed_ns);
}
#endif

static atomic64_t owed = ATOMIC64_INIT(0);

/* The time that the current call still has to wait. */
u64 fbn_owed_ns(void)
{
	return atomic64_read(&owed);
}

/* Waits for all the time that is owed. */
void fbn_pay(void)
{
	const u64 owed_ns = atomic64_xchg(&owed, 0);

	if (owed_ns)
		halt(fbn_now_ns() + owed_ns, owed_ns);
}

/* Ticks come at multiples of TICK_NSEC (kernel/time/tick-sched.c). */
static bool is_past_a_tick(u64 now_ns, u64 owed_ns)
{
	return div_u64(now_ns, TICK_NSEC) != div_u64(now_ns + owed_ns, TICK_NSEC);
}

static void owe(u64 started_ns, u64 spent_ns)
{
	const u64 passed_ns = fbn_now_ns() - started_ns;

	if (spent_ns > passed_ns)
		atomic64_add(spent_ns - passed_ns, &owed);
	if (flashbed.p.nor || (current->flags & PF_KTHREAD) ||
	    is_past_a_tick(started_ns + passed_ns, fbn_owed_ns()))
		fbn_pay();
}

static void sleep_until(u64 until_ns)
{
	ktime_t until = ns_to_ktime(until_ns);

	do {
		set_current_state(TASK_UNINTERRUPTIBLE);
	} while (schedule_hrtimeout(&until, HRTIMER_MODE_ABS));
}

/* Lets the time pass of an operation that began at `started_ns` and takes `spent_ns`. */
void fbn_wait(u64 started_ns, u64 spent_ns)
{
	if (!spent_ns)
		return;
	switch (flashbed.p.wait) {
	case FBN_WAIT_BUSY:
		spin(started_ns, spent_ns);
		break;
	case FBN_WAIT_HALT:
		owe(started_ns, spent_ns);
		break;
	case FBN_WAIT_SLEEP:
		sleep_until(started_ns + spent_ns);
		break;
	}
}
