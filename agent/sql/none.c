/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces sql.c in the agent without SQLite. job/program.c refuses programs with statements there.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "sql/sql.h"

const char *sql_version(void)
{
	return NULL;
}

int sql_init(void)
{
	return 0;
}

void sql_ready(struct sql_run *run, const struct op *op)
{
	(void)run;
	(void)op;
}

int64_t sql_execute(struct sql_run *run, const struct op *op)
{
	(void)run;
	(void)op;
	return -ENOSYS;
}

void sql_close_all(void)
{
}

int sql_recover(const char *directory, const char *path, struct channel *out)
{
	(void)directory;
	(void)path;
	(void)out;
	return 0;
}

void calls_begin(const char *directory)
{
	(void)directory;
}

void calls_next_row(size_t seq)
{
	(void)seq;
}

int calls_say(struct channel *out)
{
	(void)out;
	return 0;
}
