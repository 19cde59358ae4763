/* SPDX-License-Identifier: Apache-2.0 */
/* sql/: SQLite itself and a record of the system calls it makes (sql.c, syscalls.c); none.c in the
 * agent without it.
 *
 * Includes: base.
 */
#ifndef FLASHBED_SQL_H
#define FLASHBED_SQL_H

#include "base/base.h"

/* sql.c, or none.c */

enum { MESSAGE_BYTES = 200 };

/* How statements are executed, and the result of the last one. */
struct sql_run {
	const char *directory;       /* databases are below it */
	bool sum_rows;               /* checksum the values of a statement's rows */
	uint32_t sum;                /* that checksum */
	char message[MESSAGE_BYTES]; /* SQLite's message if the statement failed; else empty */
};

const char *sql_version(void); /* NULL without it */
int sql_init(void);
/* call before the time of sql_open, sql or sql_close begins */
void sql_ready(struct sql_run *run, const struct op *op);
/* returns rows, or SQLite's extended code as a negative number with `message` filled */
int64_t sql_execute(struct sql_run *run, const struct op *op);
void sql_close_all(void);
/* writes `d` and `t` rows of a database below a directory */
int sql_recover(const char *directory, const char *path, struct channel *out);

/* syscalls.c, or none.c: records SQLite's calls from now on, paths below the directory; NULL stops
 */

void calls_begin(const char *directory);
void calls_next_row(size_t seq);
int calls_say(struct channel *out); /* writes `o` rows */

/* syscalls.c, for sql.c */

struct sqlite3_vfs;

extern bool sync_data_only; /* a sync is fdatasync */

void calls_hook(struct sqlite3_vfs *vfs);

#endif
