/* SPDX-License-Identifier: Apache-2.0 */
/* What job.c, which runs a job, and answer.c, which says what came of a case, share.
 */
#ifndef FLASHBED_JOB_H
#define FLASHBED_JOB_H

#include "trace.h"

/* As many as kernel/flashbed_nand takes of either kind of chosen failure, and some. */
enum { LINE_BYTES = 65536, CHIP_COMMANDS = 160, CHIP_COMMAND_BYTES = 64 };

/* What a case's TRACE asks for besides counts. */
struct trace {
	bool flash;
	bool contents;
	bool changes;
	bool wear;
	bool calls;
	bool flush;
};

struct job {
	struct channel *in;
	struct channel *out;
	struct fs fs;
	struct runner runner;
	struct flash_counts before;
	struct flash_counts flushed; /* when `sync()` after the case had returned */
	/* by the end of the case; -1 when they were not counted yet */
	int64_t bad_blocks;
	struct wear wear;
	bool shared;               /* as of struct job_place */
	bool cut;                  /* power is to fail in cases of the group */
	uint64_t counted_since_ns; /* between the two readings of the counters */
	uint64_t counted_until_ns;
	bool group_ready;
	bool read_ahead_set;       /* of this mount; else it is as mounting left it */
	int64_t read_ahead_kib;    /* or WINDOW_SHIPPED */
	int64_t window_kib;        /* that was read back; -1 for not known */
	struct contents contents;  /* of the group's writes and its cases' */
	char recorded[MAX_ID + 1]; /* the case whose changes the chip remembers, or empty */
	char chip[CHIP_COMMANDS][CHIP_COMMAND_BYTES]; /* for the next mark */
	size_t chip_count;
	char (*setup)[CHIP_COMMAND_BYTES]; /* for the next group, before it is formatted */
	size_t setup_count;
	size_t setup_room;
	char traced[MAX_LINE]; /* what is to be traced in the next case, or empty */
	struct tracer *tracer;
	char line[LINE_BYTES];
};

/* answer.c: the rows of a case that was measured, but for its `end` */

bool answer_parse(char *words, struct trace *trace); /* TRACE of a case line, which it changes */
int answer(struct job *job, const struct trace *trace, const struct flash_counts *after);
int answer_count_bad(struct job *job); /* the bad blocks by now, where they are known */
/* SQLite's words are another program's: one line, and nothing of a journal's binary */
void answer_printable(char *words);

#endif
