/* SPDX-License-Identifier: Apache-2.0 */
/* board/: the machine that a job runs on. Its features, and which partitions may be erased;
 * guarding and restoring a board that its owner uses (docs/reference/boards-over-ssh.md); being
 * process 1 of a guest.
 *
 * Includes: base, tracing, fs, job, host.
 */
#ifndef FLASHBED_BOARD_H
#define FLASHBED_BOARD_H

#include "base/base.h"
#include "fs/fs.h"
#include "host/host.h"
#include "job/job.h"
#include "tracing/tracing.h"

enum { PARTITIONS = 64, REASON_BYTES = 200, PARTITION_NAME_BYTES = 64 };

/* partition.c: the MTD partitions, and which of them may be erased */

struct partition {
	int number;
	char name[PARTITION_NAME_BYTES];
	char type[16];
	struct flash_geometry geometry;
	uint64_t flags;
	bool has_offset;
	uint64_t offset_bytes;      /* on its chip */
	char chip[256];             /* the device in /sys that it belongs to */
	char refused[REASON_BYTES]; /* why it must not be erased; empty if it may be */
};

int partition_ubi(int mtd); /* the UBI device attached to it; -1 for none */
size_t partitions_read(struct partition *list, size_t room); /* in order of their numbers */
/* Returns 0 if a partition of this name may be erased, else -EPERM and the reason. */
int partition_check(int mtd, const char *name, char *why, size_t size);

/* board.c: `flashbed-board 1` */

int board_say(struct channel *out, const char *directory);

/* guard.c: a job on a board, which is restored whatever happens */

struct guarded {
	int mtd;               /* the one to erase, or -1 */
	const char *name;      /* the name that the partition has to have */
	const char *directory; /* a mounted directory, or NULL */
	const char *home;      /* the agent's own folder, removed at the end; NULL for none */
	bool program;          /* a program, whose request is in the home, not a job */
};

int guard_run(const struct guarded *guarded); /* the agent's exit status */

/* tidy.c: what the agent has changed on a board */

enum { TIDY_SETTINGS = 2 + TRACE_SETTINGS };

struct tidy {
	char home[MAX_PATH_BYTES + 1];   /* empty for none, like all of these */
	char folder[MAX_PATH_BYTES + 1]; /* of the cases, in a mounted directory */
	/* read-ahead windows, and the trace buffer's settings; empty paths for none */
	struct setting settings[TIDY_SETTINGS];
	int mtd; /* the partition that is formatted, or -1 */
};

int tidy_write(const struct tidy *state);
void tidy_state(const struct tidy *state);
void tidy_abandoned(const char *home); /* restores after killed agents, whose homes are beside it */

/* init.c: the agent as process 1 */

int init_main(void);

#endif
