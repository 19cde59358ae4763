/* SPDX-License-Identifier: Apache-2.0 */
/* Flash operations, from whoever can tell: the driver's own log (nandlog.c) where flashbed_nand is the chip, kprobe events (flashmon.c)
 * anywhere else. Counts do not depend on events; a caller who gets fewer events than counts knows that some were lost. */
#define _GNU_SOURCE
#include <string.h>

#include "agent.h"

static bool by_log;

int flash_arm(char *points, size_t size)
{
	by_log = nandlog_there();
	if (!by_log)
		return flashmon_arm(points, size);
	(void)snprintf(points, size, "flashbed_nand");
	return 0;
}

int flash_counts(struct flash_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	return by_log ? nandlog_counts(counts) : flashmon_counts(counts);
}

int flash_discard(void)
{
	return by_log ? nandlog_discard() : flashmon_discard();
}

int flash_events(flash_sink sink, void *context)
{
	return by_log ? nandlog_events(sink, context) : flashmon_events(sink, context);
}

bool flash_knows_durations(void)
{
	return by_log;
}
