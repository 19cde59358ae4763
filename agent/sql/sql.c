/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the statements of `sql_open`, `sql` and `sql_close` with SQLite, in the agent that is
 * linked with it (docs/models/sqlite.md).
 *
 * A connection uses SQLite's unix VFS on the mounted file system. What SQLite would take from the
 * machine is the same each time, and the same as in the host's recorder
 * (python/flashbed/plan/sqlite/recorder.py): random() and randomblob() follow from the seed of
 * `sql_open`, the clock stands still, and SQLite's own random numbers (a journal's nonce) are those
 * of a seed of zeros. A statement's text is unescaped before its time begins. Its time includes
 * preparing, binding, stepping and finalizing.
 *
 * Invariant: at most one connection, as in the grammar. Left out: a program's work on a row.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql.h"
#include "sqlite3.h"

enum { KEPT = 100, VALUES = 999 };

/* 2020-01-01 in milliseconds of the Julian day */
static const sqlite3_int64 CLOCK_MS = INT64_C(212444596800000);

struct span {
	const char *text;
	size_t length;
};

static struct {
	sqlite3 *db;
	bool prepared;
	uint64_t seed;
	uint64_t drawn;
	sqlite3_stmt *kept[KEPT]; /* statements that stay prepared */
	size_t kept_count;
	/* The statement to run next: */
	char text[MAX_LINE + 1];
	struct span statement;
	struct span values[VALUES];
	size_t values_count;
	sqlite3_stmt *again; /* if it was prepared before */
} sql;

const char *sql_version(void)
{
	return sqlite3_libversion();
}

static int same_time(sqlite3_vfs *vfs, sqlite3_int64 *now_ms)
{
	(void)vfs;
	*now_ms = CLOCK_MS;
	return SQLITE_OK;
}

static int same_day(sqlite3_vfs *vfs, double *now)
{
	(void)vfs;
	*now = (double)CLOCK_MS / 86400000.0;
	return SQLITE_OK;
}

static int same_seed(sqlite3_vfs *vfs, int count, char *out)
{
	(void)vfs;
	memset(out, 0, (size_t)count);
	return count;
}

int sql_init(void)
{
	static sqlite3_vfs vfs;
	int err = sqlite3_initialize();
	const sqlite3_vfs *unix_vfs = err ? NULL : sqlite3_vfs_find("unix");

	if (!unix_vfs)
		return -ENOSYS;
	vfs = *unix_vfs;
	vfs.zName = "flashbed";
	vfs.pNext = NULL;
	vfs.xRandomness = same_seed;
	vfs.xCurrentTime = same_day;
	vfs.xCurrentTimeInt64 = same_time;
	calls_hook(&vfs);
	err = sqlite3_vfs_register(&vfs, 1);
	return err ? -ENOSYS : 0;
}

static uint64_t draw(void)
{
	return data_word(sql.seed, sql.drawn++);
}

static void random_integer(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	(void)values;
	sqlite3_result_int64(context, (sqlite3_int64)draw());
}

static void random_blob(sqlite3_context *context, int count, sqlite3_value **values)
{
	const sqlite3_int64 asked = count == 1 ? sqlite3_value_int64(values[0]) : 1;
	const sqlite3_uint64 bytes = asked < 1 ? 1 : (sqlite3_uint64)asked;
	uint8_t *blob = bytes > INT32_MAX ? NULL : sqlite3_malloc64(bytes);

	if (!blob) {
		sqlite3_result_error_nomem(context);
		return;
	}
	data_fill(blob, 0, bytes, draw(), 0);
	sqlite3_result_blob64(context, blob, bytes, sqlite3_free);
}

static int64_t fail(struct sql_run *run, int code, const char *why)
{
	(void)snprintf(run->message, sizeof(run->message), "%s", why);
	return -(int64_t)code;
}

/* Checksums every value of a row with its type, so that equal results can be recognised
 * (python/flashbed/plan/sqlite/call_tables.py). */
static uint32_t sum_row(sqlite3_stmt *statement, uint32_t sum)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		const uint32_t type = (uint32_t)sqlite3_column_type(statement, i);
		const unsigned char *text = sqlite3_column_text(statement, i);

		sum = sum * 31 + type;
		sum = sum * 31 + data_crc32(text ? text : (const unsigned char *)"",
					    (size_t)sqlite3_column_bytes(statement, i));
	}
	return sum;
}

static int bind_values(sqlite3_stmt *statement)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < sql.values_count && !code; i++) {
		const struct span *value = &sql.values[i];

		if (value->text[0] == '\'')
			code = sqlite3_bind_text(statement, (int)i + 1, value->text + 1,
						 (int)value->length - 1, SQLITE_STATIC);
		else
			code = sqlite3_bind_int64(statement, (int)i + 1,
						  strtoll(value->text, NULL, 10));
	}
	return code;
}

/* Steps to the end, and adds the rows to `rows`. */
static int step_all(struct sql_run *run, sqlite3_stmt *statement, int64_t *rows)
{
	int code = bind_values(statement);

	if (!code)
		code = SQLITE_ROW;
	while (code == SQLITE_ROW) {
		code = sqlite3_step(statement);
		*rows += code == SQLITE_ROW;
		if (code == SQLITE_ROW && run->sum_rows)
			run->sum = sum_row(statement, run->sum);
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int64_t run_again(struct sql_run *run)
{
	int64_t rows = 0;
	const int code = step_all(run, sql.again, &rows);
	const int64_t result = code ? fail(run, code, sqlite3_errmsg(sql.db)) : rows;

	(void)sqlite3_reset(sql.again);
	return result;
}

static int finish(sqlite3_stmt *statement, int code)
{
	if (!sql.prepared || sql.kept_count == KEPT || code)
		return sqlite3_finalize(statement);
	sql.kept[sql.kept_count++] = statement;
	return sqlite3_reset(statement);
}

/* Prepares and runs one statement after another. */
static int64_t run_text(struct sql_run *run)
{
	const char *at = sql.statement.text;
	const char *end = at + sql.statement.length;
	int64_t rows = 0;

	while (at < end) {
		sqlite3_stmt *statement = NULL;
		int code = sqlite3_prepare_v3(sql.db, at, (int)(end - at),
					      sql.prepared ? SQLITE_PREPARE_PERSISTENT : 0,
					      &statement, &at);

		if (!code && !statement)
			break; /* a comment, or nothing */
		if (!code)
			code = step_all(run, statement, &rows);
		if (code) {
			const int64_t result = fail(run, code, sqlite3_errmsg(sql.db));

			(void)sqlite3_finalize(statement);
			return result;
		}
		code = finish(statement, code);
		if (code)
			return fail(run, code, sqlite3_errmsg(sql.db));
	}
	return rows;
}

static int64_t close_database(struct sql_run *run)
{
	for (size_t i = 0; i < sql.kept_count; i++)
		(void)sqlite3_finalize(sql.kept[i]);
	sql.kept_count = 0;
	const int code = sqlite3_close(sql.db);

	sql.db = NULL;
	return code ? fail(run, code, sqlite3_errstr(code)) : 0;
}

static int64_t open_database(struct sql_run *run, const struct op *op)
{
	char path[2 * MAX_PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/%s", run->directory, op->field[0]);
	sql.seed = op->number[1];
	sql.drawn = 0;
	sync_data_only = op->flags & SQL_FDATASYNC;
	sql.prepared = false;
	int code = sqlite3_open_v2(path, &sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

	if (!code)
		code = sqlite3_extended_result_codes(sql.db, 1);
	if (!code)
		code = sqlite3_create_function(sql.db, "random", 0, SQLITE_UTF8, NULL,
					       random_integer, NULL, NULL);
	if (!code)
		code = sqlite3_create_function(sql.db, "randomblob", 1, SQLITE_UTF8, NULL,
					       random_blob, NULL, NULL);
	int64_t result = code ? fail(run, code, sqlite3_errmsg(sql.db)) : run_text(run);

	if (result < 0) {
		(void)sqlite3_close(sql.db);
		sql.db = NULL;
		return result;
	}
	sql.prepared = op->flags & SQL_PREPARED;
	return 0;
}

static int hex(char digit)
{
	return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

/* Unescapes a statement and the values after it, whose escapes the reader has checked. */
static void unescape(const char *from)
{
	char *to = sql.text;
	struct span *span = &sql.statement;

	sql.values_count = 0;
	span->text = to;
	while (*from) {
		if (*from != '\\') {
			*to++ = *from++;
		} else if (from[1] == 'x') {
			*to++ = (char)(hex(from[2]) * 16 + hex(from[3]));
			from += 4;
		} else if (from[1] == '\\') {
			*to++ = '\\';
			from += 2;
		} else {
			span->length = (size_t)(to - span->text);
			*to++ = '\0';
			from += 2;
			if (sql.values_count == VALUES)
				break;
			span = &sql.values[sql.values_count++];
			span->text = to;
		}
	}
	span->length = (size_t)(to - span->text);
	*to = '\0';
}

void sql_ready(struct sql_run *run, const struct op *op)
{
	run->message[0] = '\0';
	run->sum = 0;
	sql.again = NULL;
	if (op->kind == OP_SQL_CLOSE)
		return;
	unescape(op->field[op->fields - 1]);
	for (size_t i = 0; i < sql.kept_count && op->kind == OP_SQL; i++)
		if (strcmp(sqlite3_sql(sql.kept[i]), sql.statement.text) == 0)
			sql.again = sql.kept[i];
}

int64_t sql_execute(struct sql_run *run, const struct op *op)
{
	if (op->kind == OP_SQL_OPEN)
		return open_database(run, op);
	if (!sql.db)
		return fail(run, SQLITE_MISUSE, "opening the database had failed");
	if (op->kind == OP_SQL_CLOSE)
		return close_database(run);
	return sql.again ? run_again(run) : run_text(run);
}

/* Writes a table's number of rows and their checksum, in the table's order. */
static int say_table(sqlite3 *db, const unsigned char *name, struct channel *out)
{
	char *text = sqlite3_mprintf("SELECT * FROM \"%w\" NOT INDEXED", name);
	sqlite3_stmt *rows = NULL;
	uint32_t sum = 0;
	uint64_t count = 0;
	int code = text ? sqlite3_prepare_v2(db, text, -1, &rows, NULL) : SQLITE_NOMEM;

	for (code = code ? code : SQLITE_ROW; code == SQLITE_ROW; count += code == SQLITE_ROW) {
		code = sqlite3_step(rows);
		if (code == SQLITE_ROW)
			sum = sum_row(rows, sum);
	}
	(void)sqlite3_finalize(rows);
	sqlite3_free(text);
	return channel_printf(out, "t %" PRIu64 " %" PRIu32 " %s\n", count,
			      code == SQLITE_DONE ? sum : (uint32_t)code, (const char *)name);
}

static int say_tables(sqlite3 *db, struct channel *out)
{
	sqlite3_stmt *names = NULL;
	int err = 0;

	if (sqlite3_prepare_v2(db,
			       "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
			       "LIKE 'sqlite_%' ORDER BY name",
			       -1, &names, NULL))
		return 0; /* the check has reported why */
	while (!err && sqlite3_step(names) == SQLITE_ROW)
		err = say_table(db, sqlite3_column_text(names, 0), out);
	(void)sqlite3_finalize(names);
	return err;
}

/* The first line of integrity_check's result ("ok" for no problem), or why it failed, with SQLite's
 * code. */
static int check(sqlite3 *db, char *message, size_t size)
{
	sqlite3_stmt *checked = NULL;
	int code = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);

	if (!code)
		code = sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &checked, NULL);
	if (!code && sqlite3_step(checked) == SQLITE_ROW)
		(void)snprintf(message, size, "%s", (const char *)sqlite3_column_text(checked, 0));
	else
		(void)snprintf(message, size, "%s", sqlite3_errmsg(db));
	const int finished = sqlite3_finalize(checked);

	message[strcspn(message, "\n")] = '\0';
	return code ? code : finished;
}

int sql_recover(const char *directory, const char *path, struct channel *out)
{
	char full[2 * MAX_PATH_BYTES];
	char message[MESSAGE_BYTES];
	sqlite3 *db = NULL;

	(void)snprintf(full, sizeof(full), "%s/%s", directory, path);
	sync_data_only = false;
	int code = sqlite3_open_v2(full, &db, SQLITE_OPEN_READWRITE, NULL);

	if (code)
		(void)snprintf(message, sizeof(message), "%s", sqlite3_errmsg(db));
	else
		code = check(db, message, sizeof(message));
	int err = channel_printf(out, "d %s %d %s\n", path, -code, message);

	if (!err && !code)
		err = say_tables(db, out);
	(void)sqlite3_close(db);
	return err;
}

void sql_close_all(void)
{
	static struct sql_run no_run;

	if (sql.db)
		(void)close_database(&no_run);
}
