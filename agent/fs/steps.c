/* SPDX-License-Identifier: Apache-2.0 */
/* What each step from attaching to the mounted stack took: its time, and what the chip did. The
 * steps of the last mount are kept; a board's own chip tells no counts.
 */
#define _GNU_SOURCE
#include <string.h>

#include "fs/fs.h"

void steps_clear(struct fs *fs)
{
	fs->steps_count = 0;
}

static void look(uint64_t *ns, struct flash_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	if (!nandlog_there() || nandlog_counts(counts))
		counts->missed = 1;
	*ns = now_ns();
}

void step_begin(struct fs *fs, const char *name)
{
	if (!fs->tells_steps || fs->steps_count == FS_STEPS)
		return;
	struct fs_step *step = &fs->steps[fs->steps_count];

	(void)snprintf(step->name, sizeof(step->name), "%s", name);
	look(&step->ns, &step->counts);
}

void step_end(struct fs *fs)
{
	struct flash_counts now;
	uint64_t ns;

	if (!fs->tells_steps || fs->steps_count == FS_STEPS)
		return;
	struct fs_step *step = &fs->steps[fs->steps_count++];

	look(&ns, &now);
	step->ns = ns - step->ns;
	for (int kind = 0; kind < FLASH_KINDS; kind++)
		step->counts.of[kind] = now.of[kind] - step->counts.of[kind];
	step->counts.busy_ns = now.busy_ns - step->counts.busy_ns;
}
