/* SPDX-License-Identifier: Apache-2.0 */
/* What a program did to the flash, as lines of the answer (launch.c lists them).
 *
 * Kernel interfaces: /sys/kernel/debug/flashbed_calls, flashbed_failed and flashbed_files, which
 * only the kernel for programs has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "host/host.h"

#define CALLS "/sys/kernel/debug/flashbed_calls"
#define FAILED "/sys/kernel/debug/flashbed_failed"
#define FILES "/sys/kernel/debug/flashbed_files"

enum { WEAR_IN_LINE = 64, FILE_LINE_BYTES = 4 * 4096 + 256 };

/* Erases seen by probes, by block of the partition. */
struct seen {
	uint32_t *erases;
	uint32_t blocks;
	uint32_t pages_per_block;
	uint32_t first;
};

static int see(void *context, const struct flash_event *event)
{
	struct seen *seen = context;
	const uint32_t block = event->page / seen->pages_per_block - seen->first;

	if (event->kind == FLASH_ERASE && block < seen->blocks)
		seen->erases[block]++;
	return 0;
}

int host_count(const struct fs *fs, struct host_counts *counts)
{
	const uint32_t blocks = block_count(fs);
	uint32_t first = 0;
	int64_t pages;
	int64_t bad;
	int err = first_block(fs, &first);

	/* Kernels before 4.1 do not tell the offset of a partition; there probes count from its
	 * start. */
	if (err && !nandlog_there())
		err = 0;
	if (!err)
		err = flash_counts(&counts->flash);
	counts->erases = calloc(blocks, sizeof(*counts->erases));
	if (!err && !counts->erases)
		err = -ENOMEM;
	if (err || !flash_seen())
		return err;
	if (nandlog_there())
		return nandlog_blocks(first, blocks, counts->erases, &pages, &bad);
	struct seen seen = {counts->erases, blocks,
			    fs->geometry.block_bytes / fs->geometry.page_bytes, first};

	return flash_events(see, &seen);
}

void host_say_counts(struct channel *out, const char *when, const struct host_counts *from,
		     const struct host_counts *to)
{
	const int64_t busy_ns =
		flash_knows_durations() ? (int64_t)(to->flash.busy_ns - from->flash.busy_ns) : -1;

	if (!flash_seen())
		return;
	(void)channel_printf(out, "counts %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
			     when, to->flash.of[FLASH_READ] - from->flash.of[FLASH_READ],
			     to->flash.of[FLASH_PROGRAM] - from->flash.of[FLASH_PROGRAM],
			     to->flash.of[FLASH_ERASE] - from->flash.of[FLASH_ERASE], busy_ns);
	if (to->flash.missed > from->flash.missed)
		(void)channel_printf(out, "missed %" PRIu64 "\n",
				     to->flash.missed - from->flash.missed);
}

static void say_lines(struct channel *out, const char *word, const char *path)
{
	static char line[FILE_LINE_BYTES];
	FILE *calls = fopen(path, "re");

	while (calls && fgets(line, sizeof(line), calls))
		(void)channel_printf(out, "%s %s", word, line);
	if (calls)
		(void)fclose(calls);
}

void host_say_calls(struct channel *out)
{
	say_lines(out, "call", CALLS);
	say_lines(out, "failed", FAILED);
	say_lines(out, "file", FILES);
}

/* Steps of the mount before the program. */
void host_say_steps(struct channel *out, const struct fs *fs, const char *word)
{
	for (size_t i = 0; i < fs->steps_count; i++) {
		const struct fs_step *step = &fs->steps[i];
		const struct flash_counts *counts = &step->counts;

		if (counts->missed)
			(void)channel_printf(out, "%s %s %" PRIu64 "\n", word, step->name,
					     step->ns);
		else
			(void)channel_printf(out,
					     "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
					     " %" PRIu64 "\n",
					     word, step->name, step->ns, counts->of[FLASH_READ],
					     counts->of[FLASH_PROGRAM], counts->of[FLASH_ERASE],
					     counts->busy_ns);
	}
}

void host_say_wear(struct channel *out, const struct fs *fs, const struct host_counts *from,
		   const struct host_counts *to)
{
	for (uint32_t block = 0; flash_seen() && block < block_count(fs); block++) {
		if (block % WEAR_IN_LINE == 0)
			(void)channel_printf(out, "%swear", block ? "\n" : "");
		(void)channel_printf(out, " %" PRIu32, to->erases[block] - from->erases[block]);
	}
	(void)channel_printf(out, "\npage %" PRIu32 "\n", fs->geometry.page_bytes);
}
