/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of operations (`flashbed-ops 1`): grammar, error codes and the order in which a line
 * is checked are docs/operations.md's.
 *
 * The text is changed in place (spaces and line feeds become NUL) and the operations point into it.
 * The table `words` is the grammar: one letter a field. Uses no kernel interface; leaves out
 * nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const char header[] = "flashbed-ops 1";
static const uint64_t max_number = INT64_MAX;
static const uint64_t max_transfer = UINT64_C(1) << 30;
static const uint64_t max_pause_ns = UINT64_C(1000000000000000);
static const uint64_t max_steps = UINT64_C(1000000000000);

/* Fields: s slot, o offset, l length of a transfer, r length of a range (0 allowed, with an offset
 * before it), n number, t nanoseconds, w steps, c compressibility, p path, f flags, a advice, d how
 * a database is used, * the rest of the line, a statement. */
static const struct {
	const char *name;
	const char *fields;
} words[] = {
	[OP_MKDIR] = {"mkdir", "p"},
	[OP_OPEN] = {"open", "spf"},
	[OP_CLOSE] = {"close", "s"},
	[OP_READ] = {"read", "sol"},
	[OP_WRITE] = {"write", "solnc"},
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
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

/* What is remembered from line to line. */
struct state {
	bool open[SLOTS];
	const char *database; /* the one that is open */
	bool prepared;
	bool marked;
};

const char *ops_name(enum op_kind kind)
{
	return words[kind].name;
}

static int fail(struct ops_error *error, const char *code, const char *format, const char *what)
{
	error->code = code;
	(void)snprintf(error->detail, sizeof(error->detail), format, what);
	return -EINVAL;
}

static bool parse_number(const char *text, uint64_t *value)
{
	uint64_t sum = 0;

	if (*text == '\0' || (text[0] == '0' && text[1] != '\0'))
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		const uint64_t digit = (uint64_t)(*text - '0');
		if (sum > (max_number - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}

static bool is_name_byte(char byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

static bool is_path(const char *path)
{
	if (strlen(path) > MAX_PATH_BYTES)
		return false;
	for (;;) {
		size_t length = 0;

		while (is_name_byte(path[length]))
			length++;
		if (length == 0 || length > MAX_NAME_BYTES ||
		    (path[length] != '/' && path[length] != '\0'))
			return false;
		if (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.')))
			return false;
		if (path[length] == '\0')
			return true;
		path += length + 1;
	}
}

struct named {
	const char *name;
	int value;
};

static const struct named *find(const struct named *table, const char *name, size_t length)
{
	for (; table->name; table++)
		if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
			return table;
	return NULL;
}

static const struct named access_flags[] = {
	{"ro", O_RDONLY}, {"wo", O_WRONLY}, {"rw", O_RDWR}, {NULL, 0}};
static const struct named other_flags[] = {
	{"create", O_CREAT}, {"excl", O_EXCL},   {"trunc", O_TRUNC},   {"append", O_APPEND},
	{"sync", O_SYNC},    {"dsync", O_DSYNC}, {"direct", O_DIRECT}, {NULL, 0}};

static bool parse_flags(const char *text, int *flags)
{
	unsigned int seen = 0;

	for (bool first = true;; first = false) {
		const size_t length = strcspn(text, ",");
		const struct named *flag = find(first ? access_flags : other_flags, text, length);

		if (!flag)
			return false;
		if (first) {
			*flags = flag->value;
		} else {
			const unsigned int bit = 1U << (flag - other_flags);

			if (seen & bit)
				return false;
			seen |= bit;
			*flags |= flag->value;
		}
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
}

static bool parse_advice(const char *text, int *advice)
{
	static const struct named table[] = {{"normal", POSIX_FADV_NORMAL},
					     {"random", POSIX_FADV_RANDOM},
					     {"sequential", POSIX_FADV_SEQUENTIAL},
					     {"willneed", POSIX_FADV_WILLNEED},
					     {"dontneed", POSIX_FADV_DONTNEED},
					     {"noreuse", POSIX_FADV_NOREUSE},
					     {NULL, 0}};
	const struct named *found = find(table, text, strlen(text));

	if (found)
		*advice = found->value;
	return found != NULL;
}

static bool parse_use(const char *text, int *flags)
{
	const size_t length = strcspn(text, ",");
	const bool data_only = length == 9 && memcmp(text, "fdatasync", 9) == 0;

	if (!data_only && !(length == 5 && memcmp(text, "fsync", 5) == 0))
		return false;
	*flags = data_only ? SQL_FDATASYNC : 0;
	if (text[length] == '\0')
		return true;
	*flags |= SQL_PREPARED;
	return strcmp(text + length, ",prepared") == 0;
}

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

static bool is_statement(const char *text)
{
	while ((text = strchr(text, '\\')) != NULL) {
		if (text[1] == 'x' && is_hex(text[2]) && is_hex(text[3]))
			text += 4;
		else if (text[1] == '\\' || text[1] == '|')
			text += 2;
		else
			return false;
	}
	return true;
}

static bool check_number(struct op *op, int index, char letter)
{
	uint64_t *value = &op->number[index];

	if (!parse_number(op->field[index], value))
		return false;
	switch (letter) {
	case 's':
		op->slot = (int)*value;
		return *value < SLOTS;
	case 't':
		return *value <= max_pause_ns;
	case 'w':
		return *value <= max_steps;
	case 'c':
		return *value <= 100;
	case 'l':
		return *value >= 1 && *value <= max_transfer &&
		       *value <= max_number - op->number[index - 1];
	case 'r':
		return *value <= max_number - op->number[index - 1];
	default:
		return true;
	}
}

static int check_field(struct op *op, int index, char letter, struct ops_error *error)
{
	const char *text = op->field[index];

	switch (letter) {
	case 'p':
		return is_path(text) ? 0 : fail(error, "bad-path", "'%.100s' is no path", text);
	case 'f':
		return parse_flags(text, &op->flags)
			       ? 0
			       : fail(error, "bad-flags", "'%.100s' are no flags", text);
	case 'a':
		return parse_advice(text, &op->flags)
			       ? 0
			       : fail(error, "bad-advice", "'%.100s' is no advice", text);
	case 'd':
		return parse_use(text, &op->flags)
			       ? 0
			       : fail(error, "bad-flags", "'%.100s' is no use of a database", text);
	case '*':
		return is_statement(text) ? 0
					  : fail(error, "bad-statement",
						 "'%.100s' has a \\ that means nothing", text);
	default:
		return check_number(op, index, letter)
			       ? 0
			       : fail(error, "bad-number", "'%.100s' is no number, or out of range",
				      text);
	}
}

static int check_order(const struct op *op, struct state *state, struct ops_error *error)
{
	const char *name = words[op->kind].name;

	if (op->kind == OP_OPEN) {
		if (state->open[op->slot])
			return fail(error, "slot-open", "slot %s is open", op->field[0]);
		state->open[op->slot] = true;
	} else if (words[op->kind].fields[0] == 's') {
		if (!state->open[op->slot])
			return fail(error, "slot-closed", "slot %s is not open", op->field[0]);
		if (op->kind == OP_CLOSE)
			state->open[op->slot] = false;
	} else if (op->kind == OP_SQL_OPEN) {
		if (state->database)
			return fail(error, "slot-open", "%s is open", state->database);
		state->database = op->field[0];
	} else if (op->kind == OP_SQL || op->kind == OP_SQL_CLOSE) {
		if (!state->database || strcmp(state->database, op->field[0]) != 0)
			return fail(error, "slot-closed", "%s is not open", op->field[0]);
		if (op->kind == OP_SQL_CLOSE)
			state->database = NULL;
	} else if (op->kind == OP_PREPARED || op->kind == OP_REMOUNT) {
		if (state->database)
			return fail(error, "slot-open", "%s with an open database", name);
		for (int slot = 0; slot < SLOTS; slot++)
			if (state->open[slot])
				return fail(error, "slot-open", "%s with an open slot", name);
		if (op->kind == OP_REMOUNT)
			return 0;
		if (state->prepared || state->marked)
			return fail(error, "repeated", "%s again, or after mark", name);
		state->prepared = true;
	} else if (op->kind == OP_MARK) {
		if (state->marked)
			return fail(error, "repeated", "%s again", name);
		state->marked = true;
	}
	return 0;
}

/* Cuts a line into its word and fields; the word is at `line` afterwards. -1 for no such word, else
 * the number of fields (of which at most MAX_FIELDS are kept). */
static int cut(char *line, struct op *op)
{
	char *space = strchr(line, ' ');
	int kind = 0;
	int fields = 0;

	if (space)
		*space = '\0';
	while (kind < WORDS && strcmp(words[kind].name, line) != 0)
		kind++;
	if (kind == WORDS)
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
		return fail(error, "line-too-long", "more than 4096 bytes%s", "");
	for (size_t i = 0; i < length; i++)
		if (line[i] < 0x20 || line[i] > 0x7e)
			return fail(error, "bad-character", "a byte outside printable ASCII%s", "");
	if (length == 0 || line[0] == '#')
		return 1;
	op->fields = cut(line, op);
	if (op->fields < 0)
		return fail(error, "unknown-operation", "'%.100s' is no operation", line);
	const char *letters = words[op->kind].fields;
	const size_t wanted = strlen(letters);

	if ((size_t)op->fields != wanted ||
	    (wanted && letters[wanted - 1] == '*' && op->field[wanted - 1][0] == '\0'))
		return fail(error, "wrong-arguments", "%s: too few or too many fields", line);
	for (int i = 0; letters[i]; i++) {
		int err = check_field(op, i, letters[i], error);

		if (err)
			return err;
	}
	return check_order(op, state, error);
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
	if ((op->kind == OP_READ || op->kind == OP_WRITE) && op->number[2] > ops->longest)
		ops->longest = op->number[2];
	return 0;
}

int ops_parse(char *text, size_t length, struct ops *ops, struct ops_error *error)
{
	struct state state = {{false}, NULL, false, false};
	char *end = text + length;
	uint32_t number = 0;

	memset(ops, 0, sizeof(*ops));
	memset(error, 0, sizeof(*error));
	do {
		char *line_end = memchr(text, '\n', (size_t)(end - text));
		struct op op = {.line = ++number};

		if (!line_end)
			line_end = end;
		const size_t line_length = (size_t)(line_end - text);
		error->line = number;
		*line_end = '\0';
		if (number == 1) {
			if (line_length != strlen(header) || memcmp(text, header, line_length) != 0)
				return fail(error, "bad-header", "the first line is not '%s'",
					    header);
		} else {
			int err = parse_line(text, line_length, &op, &state, error);

			if (err < 0)
				return err;
			if (err == 0)
				err = add(ops, &op);
			if (err < 0)
				return err;
		}
		text = line_end < end ? line_end + 1 : end;
	} while (text < end);
	return 0;
}

/* As written, but for the order, which is the table's. */
static void print_flags(const char *text, FILE *out)
{
	(void)fprintf(out, " %.2s", text);
	for (const struct named *flag = other_flags; flag->name; flag++) {
		const char *rest = text;

		while ((rest = strchr(rest, ',')) != NULL) {
			const size_t length = strcspn(++rest, ",");

			if (strlen(flag->name) == length && memcmp(flag->name, rest, length) == 0)
				(void)fprintf(out, ",%s", flag->name);
		}
	}
}

void ops_print(const struct op *op, FILE *out)
{
	const char *letters = words[op->kind].fields;

	(void)fputs(words[op->kind].name, out);
	for (int i = 0; letters[i]; i++) {
		if (letters[i] == 'f')
			print_flags(op->field[i], out);
		else if (strchr("pad*", letters[i]))
			(void)fprintf(out, " %s", op->field[i]);
		else
			(void)fprintf(out, " %" PRIu64, op->number[i]);
	}
	(void)fputc('\n', out);
}

void ops_free(struct ops *ops)
{
	free(ops->list);
	memset(ops, 0, sizeof(*ops));
}
