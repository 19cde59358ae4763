/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of operations (`flashbed-ops 1` and `2`). docs/reference/operations.md defines the
 * grammar, the error codes and the order in which a line is checked.
 *
 * The text is changed in place: spaces and line feeds become NUL, names and data are decoded. The
 * operations point into it. The table `words` is the grammar, one letter a field. Uses no kernel
 * interface; leaves out nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const char header[] = "flashbed-ops 1";
static const char header_2[] = "flashbed-ops 2";

/* Fields: s slot, S another slot, o offset, O offset of a page, l length of a transfer, L that of
 * two, r length of a range (0 allowed, after an offset), n number, t nanoseconds, w steps, c
 * compressibility, F bytes to write, X those of an attribute, v their length, p path, K source of a
 * link, T target, x name of an attribute, f flags, g flags of a range, a advice, h how, m mapping,
 * k task, M mode, u owner, d how a database is used, B data, * the rest of the line, a statement.
 */
static const struct {
	const char *name;
	const char *fields;
} words[] = {
	[OP_MKDIR] = {"mkdir", "p"},
	[OP_OPEN] = {"open", "spf"},
	[OP_CLOSE] = {"close", "s"},
	[OP_READ] = {"read", "sol"},
	[OP_WRITE] = {"write", "solnF"},
	[OP_FSYNC] = {"fsync", "s"},
	[OP_FDATASYNC] = {"fdatasync", "s"},
	[OP_TRUNCATE] = {"truncate", "sn"},
	[OP_FADVISE] = {"fadvise", "sora"},
	[OP_ERASE] = {"erase", "sol"},
	[OP_UNLINK] = {"unlink", "p"},
	[OP_RMDIR] = {"rmdir", "p"},
	[OP_RENAME] = {"rename", "pp"},
	[OP_SYNC] = {"sync", ""},
	[OP_DROP_CACHES] = {"drop_caches", ""},
	[OP_REMOUNT] = {"remount", ""},
	[OP_PAUSE] = {"pause", "t"},
	[OP_COMPUTE] = {"compute", "w"},
	[OP_SQL_OPEN] = {"sql_open", "pnd*"},
	[OP_SQL] = {"sql", "p*"},
	[OP_SQL_CLOSE] = {"sql_close", "p"},
	[OP_PREPARED] = {"prepared", ""},
	[OP_MARK] = {"mark", ""},
	/* version 2 */
	[OP_TASK] = {"task", "k"},
	[OP_SPAWN] = {"spawn", "k"},
	[OP_WAIT] = {"wait", "k"},
	[OP_STAT] = {"stat", "p"},
	[OP_READDIR] = {"readdir", "s"},
	[OP_LINK] = {"link", "Kp"},
	[OP_SYMLINK] = {"symlink", "Tp"},
	[OP_READLINK] = {"readlink", "p"},
	[OP_CHMOD] = {"chmod", "pM"},
	[OP_CHOWN] = {"chown", "puu"},
	[OP_UTIMENS] = {"utimens", "p"},
	[OP_SETXATTR] = {"setxattr", "pxvnX"},
	[OP_GETXATTR] = {"getxattr", "px"},
	[OP_LISTXATTR] = {"listxattr", "p"},
	[OP_REMOVEXATTR] = {"removexattr", "px"},
	[OP_FALLOCATE] = {"fallocate", "sorh"},
	[OP_COPY] = {"copy", "soSoL"},
	[OP_SEND] = {"send", "sol"},
	[OP_SYNC_RANGE] = {"sync_range", "sorg"},
	[OP_SYNCFS] = {"syncfs", "s"},
	[OP_FLOCK] = {"flock", "sh"},
	[OP_MMAP] = {"mmap", "mSOlh"},
	[OP_TOUCH] = {"touch", "mol"},
	[OP_STORE] = {"store", "molnF"},
	[OP_MSYNC] = {"msync", "mOlh"},
	[OP_MUNMAP] = {"munmap", "m"},
	[OP_DATA] = {"data", "B"},
};

enum { WORDS = sizeof(words) / sizeof(words[0]), OLD_WORDS = OP_MARK + 1 };

const char *ops_name(enum op_kind kind)
{
	return words[kind].name;
}

/* The letters of an operation's fields. */
static const char *letters_of(enum op_kind kind, int version)
{
	return kind == OP_WRITE && version == 1 ? "solnc" : words[kind].fields;
}

/* Splits a line into its word, which is at `line` afterwards, and its fields. Returns -1 for an
 * unknown word, else the number of fields, of which at most MAX_FIELDS are kept. */
static int cut(char *line, struct op *op, int version)
{
	const int known = version == 1 ? OLD_WORDS : WORDS;
	char *space = strchr(line, ' ');
	int kind = 0;
	int fields = 0;

	if (space)
		*space = '\0';
	while (kind < known && strcmp(words[kind].name, line) != 0)
		kind++;
	if (kind == known)
		return -1;
	op->kind = (enum op_kind)kind;
	while (space) {
		char *field = space + 1;
		const bool rest = (size_t)fields < strlen(words[kind].fields) &&
				  words[kind].fields[fields] == '*';

		space = rest ? NULL : strchr(field, ' ');
		if (space)
			*space = '\0';
		if (fields < MAX_FIELDS)
			op->field[fields] = field;
		fields++;
	}
	return fields;
}

static int parse_line(char *line, size_t length, struct op *op, struct state *state,
		      struct ops_error *error)
{
	if (length > MAX_LINE)
		return reader_fail(error, "line-too-long", "more than 4096 bytes%s", "");
	for (size_t i = 0; i < length; i++)
		if (line[i] < 0x20 || line[i] > 0x7e)
			return reader_fail(error, "bad-character",
					   "a byte outside printable ASCII%s", "");
	if (length == 0 || line[0] == '#')
		return 1;
	op->fields = cut(line, op, state->version);
	if (op->fields < 0)
		return reader_fail(error, "unknown-operation", "'%.100s' is no operation", line);
	const char *letters = letters_of(op->kind, state->version);
	const size_t wanted = strlen(letters);

	if ((size_t)op->fields != wanted ||
	    (wanted && letters[wanted - 1] == '*' && op->field[wanted - 1][0] == '\0'))
		return reader_fail(error, "wrong-arguments", "%s: too few or too many fields",
				   line);
	for (int i = 0; letters[i]; i++) {
		int err = field_check(op, i, letters[i], state->version, error);

		if (err)
			return err;
	}
	state->name = ops_name(op->kind);
	return order_check(op, state, letters, error);
}

static int add(struct ops *ops, const struct op *op)
{
	if (ops->count == ops->capacity) {
		const size_t capacity = ops->capacity ? ops->capacity * 2 : 64;
		struct op *list = realloc(ops->list, capacity * sizeof(*list));

		if (!list)
			return -ENOMEM;
		ops->list = list;
		ops->capacity = capacity;
	}
	ops->list[ops->count++] = *op;
	if (op->kind == OP_PREPARED || op->kind == OP_MARK)
		ops->measured_from = ops->count;
	if ((op->kind == OP_READ || op->kind == OP_WRITE || op->kind == OP_STORE ||
	     op->kind == OP_SETXATTR) &&
	    op->number[2] > ops->longest)
		ops->longest = op->number[2];
	return 0;
}

/* The version of a file with this first line; 0 for none. */
static int version_of(const char *line, size_t length)
{
	if (length != strlen(header))
		return 0;
	return memcmp(line, header, length) == 0 ? 1 : memcmp(line, header_2, length) == 0 ? 2 : 0;
}

static int parse_text(char *text, char *end, struct ops *ops, struct state *state,
		      struct ops_error *error)
{
	uint32_t number = 0;

	do {
		char *line_end = memchr(text, '\n', (size_t)(end - text));
		struct op op = {.line = ++number};
		int err;

		if (!line_end)
			line_end = end;
		error->line = number;
		*line_end = '\0';
		if (number == 1) {
			ops->version = state->version = version_of(text, (size_t)(line_end - text));
			if (!ops->version)
				return reader_fail(error, "bad-header",
						   "the first line is not '%s'", header);
		} else {
			err = parse_line(text, (size_t)(line_end - text), &op, state, error);
			if (err == 0)
				err = add(ops, &op);
			if (err < 0)
				return err;
		}
		text = line_end < end ? line_end + 1 : end;
	} while (text < end);
	error->line = state->data_line;
	return state->data_line ? reader_fail(error, "bad-data", "no operation after it%s", "") : 0;
}

int ops_parse(char *text, size_t length, struct ops *ops, struct ops_error *error)
{
	struct state *state = calloc(1, sizeof(*state));

	memset(ops, 0, sizeof(*ops));
	memset(error, 0, sizeof(*error));
	if (!state)
		return -ENOMEM;
	state->running[0] = true;
	const int err = parse_text(text, text + length, ops, state, error);

	free(state);
	return err;
}

void ops_print_header(const struct ops *ops, FILE *out)
{
	(void)fprintf(out, "%s\n", ops->version == 1 ? header : header_2);
}

static void print_field(const struct op *op, int index, char letter, FILE *out)
{
	const char *text = op->field[index];

	if (strchr("fg", letter)) {
		field_print_flags(op, text, out);
		return;
	}
	(void)fputc(' ', out);
	if (letter == 'B')
		data_print(text, op->number[index], out);
	else if (strchr("pTx", letter) || (letter == 'K' && op->slot < 0))
		name_print(text, letter == 'x', out);
	else if (strchr("Kadh*FX", letter))
		(void)fputs(text, out);
	else
		(void)fprintf(out, "%" PRIu64, op->number[index]);
}

void ops_print(const struct op *op, FILE *out)
{
	const char *letters = words[op->kind].fields;

	(void)fputs(words[op->kind].name, out);
	for (int i = 0; letters[i]; i++)
		print_field(op, i, letters[i], out);
	(void)fputc('\n', out);
}

void ops_free(struct ops *ops)
{
	free(ops->list);
	memset(ops, 0, sizeof(*ops));
}
