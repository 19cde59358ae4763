/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a group and of a case, and the sleeps between them.
 *
 * Before the mark of each case the agent sleeps until the next multiple of PHASE_NS of
 * CLOCK_MONOTONIC, so that timer ticks fall into the same places whatever ran before. It reads the
 * flash counters LEAD_NS earlier and then sleeps again, so that reading them does not shift the
 * mark. Where time is real (a board that its owner uses) the phase is SHARED_PHASE_NS, and the
 * agent does not wait for JFFS2's `jiffies % 128`. sim/src/run/machine.rs has the same phases.
 *
 * Kernel interfaces: clock_nanosleep(2), adjtimex(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/timex.h>
#include <time.h>

#include "job/job.h"

static const uint64_t PHASE_NS = 1000000000;
static const uint64_t SHARED_PHASE_NS = 100000000;
static const uint64_t LEAD_NS = 2000000;
/* How long a file system's threads have after a flush to erase the blocks that it freed: sync()
 * does not wait for that. */
static const uint64_t SETTLE_NS = 100000000;
/* A multiple of a second and of 128 ticks of 4 ms. JFFS2 picks the block that it collects by
 * `jiffies % 128`. The timer of YAFFS2's thread starts with the mount and is rounded to 128 ticks.
 */
static const uint64_t ROUND_NS = 64000000000;
static const time_t PREPARED_AT_S = 1577923200; /* 2020-01-02 */

int phase_sleep_until(uint64_t ns)
{
	const struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	int err;

	do
		err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	while (err == EINTR);
	return -err;
}

static uint64_t next_whole(uint64_t phase_ns)
{
	return (now_ns() + 2 * LEAD_NS + phase_ns - 1) / phase_ns * phase_ns;
}

uint64_t phase_next(bool shared)
{
	return next_whole(shared ? SHARED_PHASE_NS : PHASE_NS);
}

int phase_sleep_before(uint64_t mark_ns)
{
	return phase_sleep_until(mark_ns - LEAD_NS);
}

int phase_settle(void)
{
	return phase_sleep_until(now_ns() + SETTLE_NS);
}

/* Sleeps to the next multiple of ROUND_NS, a second at a time. A timer that does not wake an idle
 * processor (writeout_period) then expires on time, and the kernel's count of pages written before
 * has decayed to one.
 */
int phase_sleep_to_round(bool shared)
{
	if (shared)
		return 0;
	const uint64_t until = next_whole(ROUND_NS);
	int err = 0;

	for (uint64_t next = now_ns() + PHASE_NS; next < until && !err; next += PHASE_NS)
		err = phase_sleep_until(next);
	return err ? err : phase_sleep_until(until);
}

/* For power cuts every preparation begins at the same time of day: the agent sets the clock back by
 * whole seconds. File systems write the time into their nodes. The content of the chip, down to a
 * checksum and the ECC result of a torn page, then does not depend on earlier cases. Without power
 * cuts the clock is not set: that (timekeeping_inject_offset) moves its coarse second to the next
 * tick, and UBIFS then writes an inode once more.
 */
int phase_set_time_of_day(const struct job *job)
{
	struct timex shift = {.modes = ADJ_SETOFFSET};
	struct timespec now;

	if (!job->cut || job->shared || !nandlog_there())
		return 0;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -errno;
	shift.time.tv_sec = PREPARED_AT_S + (time_t)(now_ns() % ROUND_NS / 1000000000) - now.tv_sec;
	return adjtimex(&shift) < 0 ? -errno : 0;
}
