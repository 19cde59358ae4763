/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader of operations share: ops.c (lines), fields.c (fields), fill.c (bytes
 * that are written) and order.c (what holds from line to line). */
#ifndef FLASHBED_READER_H
#define FLASHBED_READER_H

#include "base/base.h"

#define MAX_NUMBER ((uint64_t)INT64_MAX)

/* What is remembered from line to line. */
struct state {
	int version;
	bool open[SLOTS];
	const char *database; /* the one that is open */
	bool prepared;
	bool marked;
	uint64_t mapped[SLOTS]; /* bytes in whole pages, 0 for a mapping that is not open */
	bool stored[SLOTS];     /* a mapping that may be written to */
	int task;
	bool spawned[MAX_TASKS];
	bool ended[MAX_TASKS];
	uint32_t data_line; /* of the last `data` whose operation is still to come */
	uint64_t data_bytes;
};

struct named {
	const char *name;
	int value;
};

/* fails with a code of docs/operations.md: -EINVAL */
int reader_fail(struct ops_error *error, const char *code, const char *format, const char *what);

/* fields.c: a field by its letter (ops.c has the list), which may change its text */
int field_check(struct op *op, int index, char letter, int version, struct ops_error *error);
/* as written, but for the order of flags */
void field_print_flags(const struct op *op, const char *text, FILE *out);
bool number_parse(const char *text, size_t length, uint64_t *value);

/* fill.c */
bool fill_check(const char *text, uint64_t offset, uint64_t length, uint64_t seed);
/* a `data` line's text becomes its bytes; how many, or -1 */
int64_t data_decode(char *text);
void data_print(const char *bytes, uint64_t count, FILE *out);

/* names.c: names of any bytes */
/* in place; false for a text that is no path, no target, or no name of an attribute */
bool name_decode_path(char *text);
bool name_decode_target(char *text);
bool name_decode_attribute(char *text);
void name_print(const char *text, bool attribute, FILE *out);

/* order.c */
int order_check(const struct op *op, struct state *state, const char *fields,
		struct ops_error *error);

#endif
