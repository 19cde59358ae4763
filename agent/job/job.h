/* SPDX-License-Identifier: Apache-2.0 */
/* job/: a job's groups and cases, which are prepared, run, measured, and answered as rows of the
 * stream (agent/PROTOCOL.md).
 *
 * Includes: base, tracing, fs, sql.
 */
#ifndef FLASHBED_JOB_H
#define FLASHBED_JOB_H

#include "base/base.h"
#include "fs/fs.h"
#include "sql/sql.h"
#include "tracing/tracing.h"

/* More commands than kernel/flashbed_nand takes chosen failures of both kinds. */
enum {
	MAX_ID = 255,
	ROW_BYTES = 160,
	LINE_BYTES = 65536,
	CHIP_COMMANDS = 160,
	CHIP_COMMAND_BYTES = 64
};

/* flash.c: flash operations, from the chip's driver (fs/nandlog.c) or from kprobe events
 * (tracing/flashmon.c) */

/* `points`: where operations are seen, or the reason why none are */
int flash_arm(const struct fs *fs, char *points, size_t size);
bool flash_seen(void);
int flash_counts(struct flash_counts *counts);
int flash_discard(void);
int flash_events(flash_sink sink, void *context); /* everything since the last discard */
bool flash_knows_durations(void);
void flash_disarm(void);

/* wear.c: erases of every block */

struct block_wear {
	uint32_t before;   /* before the group */
	uint32_t measured; /* since the mark */
	uint32_t later;    /* since the end of the case */
	uint32_t flushed;  /* of these, before `sync()` returned */
};

struct wear {
	struct block_wear *of; /* by block of the chip */
	size_t blocks;
};

int wear_begin(struct wear *wear); /* erases up to now do not count */
void wear_mark(struct wear *wear);
int wear_erased(struct wear *wear, uint32_t block);   /* counts an erase since the mark */
int wear_say(struct wear *wear, struct channel *out); /* writes `w` rows */
/* counts an erase since the end of the case */
int wear_erased_later(struct wear *wear, uint32_t block, bool flushed);
int wear_say_flushed(const struct wear *wear, struct channel *out); /* writes `b` rows */
void wear_free(struct wear *wear);

/* run.c: runs a program's operations in order; execute.c and mapped.c have the call of each */

struct mapping {
	uint8_t *at; /* NULL for none, MAP_FAILED if mmap failed */
	size_t length;
	uint64_t offset; /* in the file */
	/* pages that were stored to lie in between */
	uint64_t stored_from;
	uint64_t stored_to;
};

struct row {
	uint32_t line;
	uint64_t start_ns; /* absolute */
	uint64_t latency_ns;
	int64_t result;
	int64_t flash_ns; /* chip time within it, -1 if unknown */
	/* changes of the chip from the mark to its end, -1 if not requested */
	int64_t changes;
	/* `crc32` covers the bytes that a read returned, or the values of a statement's rows */
	bool summed;
	uint32_t crc32;
	char *message; /* SQLite's message for a statement that failed; else NULL */
};

struct runner {
	int directory; /* paths are relative to it; sql.directory is its own path */
	int fd[SLOTS];
	struct mapping mapping[SLOTS];
	int drop_caches;               /* /proc/sys/vm/drop_caches, or -1 */
	int null;                      /* /dev/null, or -1 */
	int task;                      /* the current task */
	uint64_t own_ns[MAX_TASKS];    /* the tasks' own times */
	uint64_t read_ns;              /* the last reading of the clock */
	char path[2 * MAX_PATH_BYTES]; /* of an extended attribute */
	/* buffer for names and attributes that are read and dropped */
	uint8_t extra[65536];
	uint8_t *buffer;
	size_t buffer_bytes;
	struct row *rows;
	size_t rows_capacity;
	size_t rows_count;
	uint64_t mark_ns;
	uint32_t failed_line; /* of the unmeasured operation that failed */
	const char *failed_op;
	bool contents; /* checksum what measured reads and statements return */
	bool calls;    /* record the calls that SQLite makes */
	/* count the changes of the chip, which its driver has to record */
	bool changes;
	/* Called between the last unmeasured operation and the mark; may sleep. NULL for none. */
	int (*before_mark)(void *context);
	/* Unmounts and mounts again, and reopens the directory. NULL where it made no file system.
	 */
	int (*remount)(void *context);
	void *context;
	struct sql_run sql;
};

/* prepares what an operation needs before the clock is read: bytes to write, a path */
void execute_ready(struct runner *runner, const struct ops *ops, size_t index);
int64_t execute(struct runner *runner, const struct op *op);
int sleep_ns(uint64_t ns, bool until);

int64_t mapped_execute(struct runner *runner, const struct op *op);
/* of the process so far */
int64_t count_faults(void);
/* whether a store is within a page, which it makes dirty if it faults */
bool mapped_by_faults(const struct op *op);
uint64_t mapped_offset(const struct runner *runner, const struct op *op);
void mapped_close_all(struct runner *runner);

int run_init(struct runner *runner);
int run_open_directory(struct runner *runner, const char *path);
int run_ops(struct runner *runner, const struct ops *ops, bool measure);
/* an `r` row without its line feed */
void run_print_row(const struct runner *runner, size_t index, char *text, size_t size);
void run_close_all(struct runner *runner);
void run_free(struct runner *runner);

/* survey.c: the files of a directory and their content */

struct content {
	uint64_t seed;
	uint64_t compressibility;
};

/* blocks that the stream has had, by their fingerprints; a free place has length 0 */
struct block {
	uint64_t fingerprint[2];
	uint32_t length;
	uint32_t number;
};

struct blocks {
	struct block *places;
	size_t capacity; /* a power of two, or 0 */
	uint32_t count;
};

struct contents {
	struct content *list;
	size_t count;
	size_t capacity;
	char database[MAX_PATH_BYTES + 1]; /* the last one opened; empty for none */
	struct blocks blocks;
};

/* adds the contents that are not listed yet */
int contents_add(struct contents *contents, const struct ops *ops);
void contents_free(struct contents *contents);
int survey(struct channel *out, struct contents *contents, const char *path);

/* blocks.c: the number of a block of bytes, which is written as a `k` row when it is new */
int blocks_number(struct blocks *blocks, struct channel *out, const uint8_t *bytes, size_t length,
		  uint32_t *number);

/* cuts.c: one power cut */

int cuts_make(struct fs *fs, struct runner *runner, struct contents *contents, struct channel *out,
	      const char *id, uint64_t change, uint64_t seed);

/* The state of a job. */

/* The TRACE of a case: what to record besides counts. */
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
	struct layout layout; /* no volumes for none */
	char dump[MAX_LINE];  /* what the flash of each group holds at first, or empty */
	struct runner runner;
	struct flash_counts before;
	struct flash_counts flushed; /* when `sync()` after the case returned */
	/* at the end of the case; -1 if not counted yet */
	int64_t bad_blocks;
	struct wear wear;
	bool shared;               /* as in struct job_place */
	bool cut;                  /* cases of the group have power cuts */
	uint64_t counted_since_ns; /* time of the first of two readings of the counters */
	uint64_t counted_until_ns;
	bool group_ready;
	bool read_ahead_set;       /* of this mount; else the window is the mount's default */
	int64_t read_ahead_kib;    /* or WINDOW_SHIPPED */
	int64_t window_kib;        /* as read back; -1 if unknown */
	struct contents contents;  /* of the writes of the group and its cases */
	char recorded[MAX_ID + 1]; /* the case whose changes the chip has recorded, or empty */
	char chip[CHIP_COMMANDS][CHIP_COMMAND_BYTES]; /* commands for the next mark */
	size_t chip_count;
	char (*setup)[CHIP_COMMAND_BYTES]; /* commands for the next group, before formatting */
	size_t setup_count;
	size_t setup_room;
	char traced[MAX_LINE]; /* the trace of the next case, or empty */
	struct tracer *tracer;
	char line[LINE_BYTES];
};

/* answer.c: the rows of a measured case except its `end`, and error rows */

/* parses TRACE of a case line, which it changes */
bool answer_parse(char *words, struct trace *trace);
int answer(struct job *job, const struct trace *trace, const struct flash_counts *after);
int answer_count_bad(struct job *job); /* counts the bad blocks, if they are known */
int answer_error(struct job *job, const char *scope, const char *id, uint32_t line,
		 const char *code, const char *message);
/* of an operation that failed before the mark, or of `err` */
int answer_run_error(struct job *job, const char *scope, const char *id, int err);

/* phases.c: when a group and a case begin */

uint64_t phase_next(bool shared); /* the next time at which one may begin */
int phase_sleep_until(uint64_t ns);
int phase_sleep_before(uint64_t mark_ns); /* sleeps until the flash counters are read */
int phase_settle(void);                   /* sleeps after a flush */
int phase_sleep_to_round(bool shared);
int phase_set_time_of_day(const struct job *job);

/* program.c: a program's text, and its operations, which point into the text */

int program_read(struct job *job, char **text, size_t *length);
/* returns 1 if an error was answered */
int program_parse(struct job *job, char *text, size_t length, struct ops *ops, const char *scope,
		  const char *id);

/* group.c */

bool group_parse(struct job *job, const char *first, const char *second, bool *wear);
int group_add_setup(struct job *job, const char *command);
int group_run(struct job *job, const char *id, const char *fs_name, bool wear);
int group_set_read_ahead(struct job *job, int64_t kib);
int group_remount(void *job); /* for struct runner */

/* case.c */

int case_run(struct job *job, const char *id, int64_t read_ahead_kib, const struct trace *trace);
int case_before_mark(void *job); /* for struct runner */

/* job.c: groups and cases of flashbed-job 1 */

struct job_place {
	int mtd;               /* the partition to format */
	const char *name;      /* the name that it has to have; NULL on our own kernels */
	const char *directory; /* or a mounted directory */
	/* where a partition is mounted; the folder to create in a directory */
	const char *mount_point;
	/* a board that its owner uses: time is real, and missing features are reported and left out
	 */
	bool shared;
};

int job_run(struct channel *in, struct channel *out, const struct job_place *place);

#endif
