/* The SQLite paper's four requests through an engine's own interface:
 *
 *     requests ENGINE REQUEST NUMBER BYTES
 *
 * ENGINE is berkeleydb, lmdb or sqlite. REQUEST is insert, select, update or join, or what makes a
 * database for them: create (two empty tables), fill (NUMBER records in the first) or fill-both.
 * One transaction has all requests, as in Algorithm 1 of the paper. Keys are numbers from 1 on,
 * values random bytes, the same in each run.
 *
 * experiments/engines/README.md says in what each engine differs from its defaults, and why.
 */
#include <db.h>
#include <endian.h>
#include <errno.h>
#include <lmdb.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BYTES_MAX = 4096, TABLES = 2 };
static const char *const TABLE[TABLES] = {"table1", "table2"};
static const char *engine, *request;
static uint32_t number, bytes;

static int is(const char *name)
{
	return strcmp(request, name) == 0;
}
static int makes(void)
{
	return is("create") || is("fill") || is("fill-both");
}
static int changes(void)
{
	return is("insert") || is("update") || makes();
}

static void check(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "%s %s: %s: %d\n", engine, request, what, failed);
		exit(1);
	}
}

static uint64_t drawn;

/* The next record; a xorshift generator. */
static unsigned char *record(void)
{
	static unsigned char value[BYTES_MAX];
	for (uint32_t at = 0; at < bytes; at++) {
		drawn ^= drawn << 13;
		drawn ^= drawn >> 7;
		drawn ^= drawn << 17;
		value[at] = (unsigned char)(drawn >> 32);
	}
	return value;
}

/* ---- Berkeley DB */

static DB_ENV *bdb_env;
static DB *bdb[TABLES];
static DB_TXN *bdb_txn;

static void bdb_open(void)
{
	check(db_env_create(&bdb_env, 0), "db_env_create");
	check(bdb_env->set_lk_max_locks(bdb_env, 20000), "locks");
	check(bdb_env->set_lk_max_objects(bdb_env, 20000), "locks");
	check(bdb_env->set_mp_mmapsize(bdb_env, 1), "mmapsize");
	check(bdb_env->open(bdb_env, ".",
			    DB_CREATE | DB_PRIVATE | DB_INIT_MPOOL | DB_INIT_LOCK | DB_INIT_LOG |
				    DB_INIT_TXN,
			    0644),
	      "env");
	for (int table = 0; table < TABLES; table++) {
		check(db_create(&bdb[table], bdb_env, 0), "db_create");
		check(bdb[table]->open(bdb[table], NULL, "requests.bdb", TABLE[table], DB_BTREE,
				       DB_AUTO_COMMIT | (makes() ? DB_CREATE : 0), 0644),
		      "open");
	}
	check(bdb_env->txn_begin(bdb_env, NULL, &bdb_txn, 0), "txn_begin");
}

static void bdb_put(int table, uint32_t id)
{
	uint32_t key = htobe32(id);
	DBT at = {.data = &key, .size = sizeof(key)}, value = {.data = record(), .size = bytes};
	check(bdb[table]->put(bdb[table], bdb_txn, &at, &value, 0), "put");
}

static void bdb_get(int table, uint32_t id)
{
	uint32_t key = htobe32(id);
	DBT at = {.data = &key, .size = sizeof(key)}, value = {0};
	check(bdb[table]->get(bdb[table], bdb_txn, &at, &value, 0), "get");
	check(value.size != bytes, "length");
}

static void bdb_join(void)
{
	DBC *cursor;
	DBT at = {0}, value = {0};
	check(bdb[0]->cursor(bdb[0], bdb_txn, &cursor, 0), "cursor");
	while (cursor->get(cursor, &at, &value, DB_NEXT) == 0) {
		uint32_t id = be32toh(*(uint32_t *)at.data);
		if (id > number)
			break;
		bdb_get(1, id);
	}
	check(cursor->close(cursor), "cursor");
}

static void bdb_close(void)
{
	check(bdb_txn->commit(bdb_txn, 0), "commit");
	for (int table = 0; table < TABLES; table++)
		check(bdb[table]->close(bdb[table], 0), "close");
	if (makes()) /* the log is left behind */
		check(bdb_env->lsn_reset(bdb_env, "requests.bdb", 0), "lsn_reset");
	check(bdb_env->close(bdb_env, 0), "env");
}

/* ---- LMDB */

static MDB_env *mdb_env;
static MDB_txn *mdb_txn;
static MDB_dbi mdb[TABLES];

static void lmdb_open(void)
{
	int writes = changes();
	check(mdb_env_create(&mdb_env), "mdb_env_create");
	check(mdb_env_set_maxdbs(mdb_env, TABLES), "maxdbs");
	check(mdb_env_set_mapsize(mdb_env, 64 << 20), "mapsize");
	check(mdb_env_open(mdb_env, "requests.mdb",
			   MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD | (writes ? 0 : MDB_RDONLY),
			   0644),
	      "env");
	check(mdb_txn_begin(mdb_env, NULL, writes ? 0 : MDB_RDONLY, &mdb_txn), "txn_begin");
	for (int table = 0; table < TABLES; table++)
		check(mdb_dbi_open(mdb_txn, TABLE[table],
				   MDB_INTEGERKEY | (writes ? MDB_CREATE : 0), &mdb[table]),
		      "dbi_open");
}

static void lmdb_put(int table, uint32_t id)
{
	MDB_val at = {sizeof(id), &id}, value = {bytes, record()};
	check(mdb_put(mdb_txn, mdb[table], &at, &value, 0), "put");
}

static void lmdb_get(int table, uint32_t id)
{
	MDB_val at = {sizeof(id), &id}, value;
	static unsigned char copy[BYTES_MAX];
	check(mdb_get(mdb_txn, mdb[table], &at, &value), "get");
	check(value.mv_size != bytes, "length");
	memcpy(copy, value.mv_data, bytes);
}

static void lmdb_join(void)
{
	MDB_cursor *cursor;
	MDB_val at, value;
	check(mdb_cursor_open(mdb_txn, mdb[0], &cursor), "cursor");
	while (mdb_cursor_get(cursor, &at, &value, MDB_NEXT) == 0) {
		uint32_t id = *(uint32_t *)at.mv_data;
		if (id > number)
			break;
		lmdb_get(1, id);
	}
	mdb_cursor_close(cursor);
}

static void lmdb_close(void)
{
	check(mdb_txn_commit(mdb_txn), "commit");
	mdb_env_close(mdb_env);
}

/* ---- SQLite: each request a statement of its own, as in the paper */

static sqlite3 *sql;

static void sql_run(const char *text, const void *value, uint32_t id, uint32_t rows)
{
	sqlite3_stmt *statement;
	uint32_t found = 0;
	int step;
	check(sqlite3_prepare_v2(sql, text, -1, &statement, NULL), text);
	if (id)
		sqlite3_bind_int64(statement, 1, id);
	if (value)
		sqlite3_bind_blob(statement, 2, value, (int)bytes, SQLITE_STATIC);
	while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
		check(sqlite3_column_bytes(statement, 0) != (int)bytes, "length");
		found++;
	}
	check(step != SQLITE_DONE || found != rows, text);
	check(sqlite3_finalize(statement), text);
}

static void sqlite_open(void)
{
	check(sqlite3_open("requests.sqlite", &sql), "open");
	sql_run("PRAGMA page_size = 1024", NULL, 0, 0);
	if (makes())
		for (int table = 0; table < TABLES; table++) {
			char text[80];
			snprintf(text, sizeof(text),
				 "CREATE TABLE %s (id INTEGER PRIMARY KEY, val BLOB)",
				 TABLE[table]);
			sql_run(text, NULL, 0, 0);
		}
	sql_run("BEGIN", NULL, 0, 0);
}

static void sqlite_put(int table, uint32_t id)
{
	char text[80];
	snprintf(text, sizeof(text),
		 is("update") ? "UPDATE %s SET val = ?2 WHERE id = ?1"
			      : "INSERT INTO %s VALUES (?1, ?2)",
		 TABLE[table]);
	sql_run(text, record(), id, 0);
}

static void sqlite_get(int table, uint32_t id)
{
	char text[80];
	snprintf(text, sizeof(text), "SELECT val FROM %s WHERE id = ?1", TABLE[table]);
	sql_run(text, NULL, id, 1);
}

static void sqlite_join(void)
{
	sql_run("SELECT table2.val FROM table1, table2 WHERE table1.id = table2.id AND table2.id "
		"<= ?1",
		NULL, number, number);
}

static void sqlite_close(void)
{
	sql_run("END", NULL, 0, 0);
	check(sqlite3_close(sql), "close");
}

/* ---- */

static const struct {
	const char *name;
	void (*open)(void), (*put)(int table, uint32_t id), (*get)(int table, uint32_t id),
		(*join)(void), (*close)(void);
} ENGINES[] = {
	{"berkeleydb", bdb_open, bdb_put, bdb_get, bdb_join, bdb_close},
	{"lmdb", lmdb_open, lmdb_put, lmdb_get, lmdb_join, lmdb_close},
	{"sqlite", sqlite_open, sqlite_put, sqlite_get, sqlite_join, sqlite_close},
};

int main(int count, char **words)
{
	size_t at = 0;
	if (count != 5) {
		fprintf(stderr, "requests ENGINE REQUEST NUMBER BYTES\n");
		return 2;
	}
	engine = words[1], request = words[2];
	number = (uint32_t)atoi(words[3]), bytes = (uint32_t)atoi(words[4]);
	check(bytes > BYTES_MAX, "bytes");
	while (at < sizeof(ENGINES) / sizeof(*ENGINES) && strcmp(ENGINES[at].name, engine) != 0)
		at++;
	check(at == sizeof(ENGINES) / sizeof(*ENGINES), "no such engine");
	drawn = is("update") ? 0x9e3779b97f4a7c15 : 0x2545f4914f6cdd1d;
	ENGINES[at].open();
	for (uint32_t id = 1; id <= number; id++) {
		if (is("insert") || is("fill") || is("fill-both") || is("update"))
			ENGINES[at].put(0, id);
		if (is("fill-both"))
			ENGINES[at].put(1, id);
		if (is("select"))
			ENGINES[at].get(0, id);
	}
	if (is("join"))
		ENGINES[at].join();
	ENGINES[at].close();
	return 0;
}
