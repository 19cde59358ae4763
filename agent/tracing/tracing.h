/* SPDX-License-Identifier: Apache-2.0 */
/* tracing/: what happens in the kernel, by kprobes and trace points (agent/tracing/README.md).
 * Sessions of tracefs; flashmon, vfsmon, funcmon and valuemon on them; the tracers' command line.
 *
 * Includes: base.
 */
#ifndef FLASHBED_TRACING_H
#define FLASHBED_TRACING_H

#include "base/base.h"

enum { TRACE_NAME = 96, TRACE_DETAIL = 200 };

struct tracefs;

struct trace_event {
	uint64_t time_ns;
	unsigned int type; /* of the probe or trace point */
	int pid;
	const uint8_t *data; /* the record, including its common fields */
	size_t length;
};

/* Takes events in order of time; an error ends the reading. */
typedef int (*trace_sink)(void *context, const struct trace_event *event);

/* ring.c: reads the kernel's buffer */

struct ring {
	struct reader *readers;
	size_t processors;
	size_t page_bytes;
	unsigned int commit_at;
	unsigned int data_at;
	int64_t clock_offset_ns; /* to be added to an event's time */
};

int ring_open(struct ring *ring, const char *root, const char *directory);
int ring_drain(struct ring *ring, uint64_t until_ns, trace_sink sink, void *context);
void ring_close(struct ring *ring);
/* Offset and size of a field in a format; -ENOENT if it has no such field. */
int trace_field(const char *format, const char *name, unsigned int *offset, unsigned int *size);
uint32_t trace_u32(const uint8_t *bytes);
uint64_t trace_number(const uint8_t *bytes, unsigned int size); /* of 1, 2, 4 or 8 bytes */
/* The text that a `string` field points to; "" if the kernel could not read it. */
const char *trace_string(const struct trace_event *event, unsigned int offset, char *text,
			 size_t size);

/* tracefs.c: a tracing session */

enum { TRACE_SETTINGS = 4 };

struct tracefs_options {
	uint64_t buffer_kib; /* of each processor; 0 for 16 MiB */
	bool global;         /* act as if the kernel had no instances */
};

/* `detail` of TRACE_DETAIL bytes tells what failed. First removes what killed tracers have left. */
int tracefs_open(struct tracefs **made, const struct tracefs_options *options, char *detail);
/* Adds a probe: `p`, or `r` for a return, the function, its fetch arguments; `type` is set to the
 * type of its events. */
int tracefs_probe(struct tracefs *session, char kind, const char *name, const char *function,
		  const char *arguments, unsigned int *type);
/* a trace point, "filemap/mm_filemap_..." */
int tracefs_point(struct tracefs *session, const char *path, unsigned int *type);
int tracefs_forget_probes(struct tracefs *session); /* all so far, and their events */
/* Offset and size of a field of an event; -ENOENT if it has no such field. */
int tracefs_field(struct tracefs *session, unsigned int type, const char *name,
		  unsigned int *offset, unsigned int *size);
/* Passes on what was recorded up to a time of CLOCK_MONOTONIC; NULL drops it. */
int tracefs_drain(struct tracefs *session, uint64_t until_ns, trace_sink sink, void *context);
int tracefs_ignore(struct tracefs *session, int pid); /* drops events of that task */
int tracefs_stop(struct tracefs *session);            /* stops recording */
int tracefs_lost(struct tracefs *session, uint64_t *lost);
void tracefs_close(struct tracefs *session); /* removes everything */
void tracefs_below(const char *folder);      /* another tracefs; for tests */
const char *tracefs_detail(const struct tracefs *session);
/* returns the error, with `why` as its detail */
int tracefs_refuse(struct tracefs *session, int err, const char *why);

/* buffer.c: the global buffer; lists have space for TRACE_SETTINGS */

size_t buffer_settings(const char *root, struct setting *list);
size_t tracefs_settings(struct setting *list); /* of a kernel without instances; else none */
/* These lines of all processors' stats, `\nNAME: `, added up. */
int buffer_sum(const char *folder, size_t processors, const char *const *names, size_t count,
	       uint64_t *sum);
/* -EBUSY and the reason if another tracer uses it; `left`: its content is a killed tracer's. */
int buffer_check(const char *root, size_t processors, bool left, char *why, size_t size);

/* tasks.c */

const char *trace_task(int pid);

/* symbols.c: the kernel's symbols and its calling convention */

struct symbol {
	char *name;
	char *module; /* "" for the kernel itself */
};

struct symbols {
	struct symbol *list;
	size_t count;
	size_t capacity;
};

int symbols_read(struct symbols *symbols); /* reads the functions of /proc/kallsyms */
bool symbols_have(const struct symbols *symbols, const char *name);
void symbols_free(struct symbols *symbols);
bool glob_match(const char *pattern, const char *text);

unsigned int kernel_word(void);    /* bytes of a pointer */
unsigned int kernel_version(void); /* 601 for 6.1 */
/* The fetch argument of a function's argument at entry. On 32 bits a 64-bit argument takes two
 * places, the first of them even. */
const char *kernel_argument(unsigned int at);
bool kernel_arguments_known(void); /* else the kernel has to know `$argN` */

/* flashmon.c: flash operations by kprobe events */

enum flash_level { LEVEL_CHOOSE, LEVEL_NAND, LEVEL_PAGE, LEVEL_MTD };

struct flashmon;

int flashmon_open(struct flashmon **made, struct tracefs *session,
		  const struct flash_geometry *geometry, int mtd, enum flash_level level,
		  char *points, size_t size);
/* takes any event */
int flashmon_take(struct flashmon *flashmon, const struct trace_event *event, flash_sink sink,
		  void *context);
int flashmon_finish(struct flashmon *flashmon, flash_sink sink, void *context);
void flashmon_close(struct flashmon *flashmon);

/* vfsmon.c, funcmon.c: calls of functions */

struct call_row {
	const char *what; /* its kind, or the function's name */
	uint64_t start_ns;
	int64_t duration_ns; /* -1 if unknown */
	int64_t result;
	bool has_result;
	uint64_t inode; /* the rest is vfsmon's; 0 for none */
	int64_t offset;
	int64_t length;
	int pid;
	const char *file; /* "" for none */
};

typedef int (*call_sink)(void *context, const struct call_row *row);

struct vfsmon;

int vfsmon_open(struct vfsmon **made, struct tracefs *session, const struct symbols *symbols,
		char *points, size_t size);
int vfsmon_take(struct vfsmon *vfsmon, const struct trace_event *event, call_sink sink,
		void *context);
int vfsmon_finish(struct vfsmon *vfsmon, call_sink sink, void *context);
void vfsmon_close(struct vfsmon *vfsmon);

struct funcmon;

int funcmon_open(struct funcmon **made, struct tracefs *session, const struct symbols *symbols,
		 const char *const *patterns, size_t count, char *skipped, size_t size);
int funcmon_take(struct funcmon *funcmon, const struct trace_event *event, call_sink sink,
		 void *context);
int funcmon_finish(struct funcmon *funcmon, call_sink sink, void *context);
void funcmon_close(struct funcmon *funcmon);

/* valuemon.c: numbers read at places in the kernel */

enum { TRACE_VALUES = 4 };

typedef int (*value_sink)(void *context, const struct trace_event *event, const char *name,
			  uint64_t value);

struct valuemon;

int valuemon_open(struct valuemon **made, struct tracefs *session, const char *const *asked,
		  size_t count);
int valuemon_take(struct valuemon *valuemon, const struct trace_event *event, value_sink sink,
		  void *context);
void valuemon_close(struct valuemon *valuemon);

/* pairs.c: pairs entries and returns */

struct open_call {
	unsigned int probe;
	uint64_t inode;
	int64_t offset;
	int64_t length;
	int pid;
	uint64_t start_ns;
	char file[64];
};

struct open_calls {
	struct open_call *list;
	size_t count;
	size_t capacity;
};

int calls_enter(struct open_calls *calls, const struct open_call *call);
/* the last open call */
bool calls_leave(struct open_calls *calls, unsigned int probe, int pid, struct open_call *call);

/* tracer.c: all tracers together, and their rows */

enum { TRACE_PATTERNS = 32 };

struct trace_request {
	bool flash;
	bool vfs;
	const char *functions[TRACE_PATTERNS];
	size_t function_count;
	const char *values[TRACE_VALUES];
	size_t value_count;
	enum flash_level level;
	int mtd; /* -1 for the first NAND chip */
	struct tracefs_options session;
};

struct tracer;

/* parses the words of a job's `trace` line; keeps pointers into the text */
int tracer_parse(struct trace_request *request, char *text);
int tracer_open(struct tracer **made, const struct trace_request *request, struct channel *out,
		const char *prefix, char *detail);
/* Rows cover what begins at `since_ns` or later; their times count from `zero_ns`. */
void tracer_begin(struct tracer *tracer, uint64_t since_ns, uint64_t zero_ns);
int tracer_ignore(struct tracer *tracer, int pid);
int tracer_rows(struct tracer *tracer, uint64_t until_ns);
/* writes the last rows and what was lost; the trace ends at `until_ns` */
int tracer_end(struct tracer *tracer, uint64_t until_ns);
void tracer_close(struct tracer *tracer);
uint64_t tracer_lost(const struct tracer *tracer);

/* trace_main.c: flashbed-agent flashmon | vfsmon | funcmon | trace */
int trace_main(int argc, char **argv);

#endif
