/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a job: `ops LINES` and its lines, read and parsed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

/* Reads `ops LINES` and the lines as one text, into which the operations point. */
int program_read(struct job *job, char **text, size_t *length)
{
	size_t size = 4096;
	uint64_t lines = 0;
	int got = channel_get_line(job->in, job->line, sizeof(job->line));

	*length = 0;
	*text = got < 0 ? NULL : malloc(size);
	if (!*text)
		return got < 0 ? got : -ENOMEM;
	if (strncmp(job->line, "ops ", 4) != 0)
		return -EPROTO;
	for (lines = strtoull(job->line + 4, NULL, 10); lines; lines--) {
		got = channel_get_line(job->in, job->line, sizeof(job->line));
		if (got < 0)
			return got;
		while (*length + (size_t)got + 2 > size) {
			char *more = realloc(*text, size * 2);

			if (!more)
				return -ENOMEM;
			*text = more;
			size *= 2;
		}
		memcpy(*text + *length, job->line, (size_t)got);
		*length += (size_t)got;
		(*text)[(*length)++] = '\n';
	}
	return 0;
}

static bool has_sql(const struct ops *ops, uint32_t *line)
{
	for (size_t i = 0; i < ops->count; i++) {
		*line = ops->list[i].line;
		if (ops->list[i].kind == OP_SQL_OPEN)
			return true;
	}
	return false;
}

/* Parses a program. Answers an error and returns 1 if there is one. */
int program_parse(struct job *job, char *text, size_t length, struct ops *ops, const char *scope,
		  const char *id)
{
	struct ops_error error;
	uint32_t line = 0;
	int err = ops_parse(text, length, ops, &error);

	if (err == -EINVAL)
		err = answer_error(job, scope, id, error.line, error.code, error.detail);
	else if (err)
		err = answer_error(job, scope, id, 0, error_name(err), strerror(-err));
	else if (!sql_version() && has_sql(ops, &line))
		err = answer_error(job, scope, id, line, "ENOSYS",
				   "sql: not supported by this agent");
	else
		return 0;
	return err ? err : 1;
}
