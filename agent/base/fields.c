/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of an operation: numbers, paths, flags, and words from a list. ops.c says which operation
 * has which fields. Uses no kernel interface except for its flags. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/base.h"

static const uint64_t max_transfer = UINT64_C(1) << 30;
static const uint64_t max_pause_ns = UINT64_C(1000000000000000);
static const uint64_t max_steps = UINT64_C(1000000000000);
static const uint64_t max_value = UINT64_C(65536);
enum { OLD_SLOTS = 64, PAGE = 4096 };

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

static const struct named *find(const struct named *table, const char *name, size_t length)
{
	for (; table->name; table++)
		if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
			return table;
	return NULL;
}

static const struct named access_flags[] = {
	{"ro", O_RDONLY}, {"wo", O_WRONLY}, {"rw", O_RDWR}, {NULL, 0}};
/* O_TMPFILE includes O_DIRECTORY. */
static const struct named other_flags[] = {{"create", O_CREAT},
					   {"excl", O_EXCL},
					   {"trunc", O_TRUNC},
					   {"append", O_APPEND},
					   {"sync", O_SYNC},
					   {"dsync", O_DSYNC},
					   {"direct", O_DIRECT},
					   /* version 2: */ {"directory", O_DIRECTORY},
					   {"nofollow", O_NOFOLLOW},
					   {"tmpfile", O_TMPFILE},
					   {NULL, 0}};
enum { OLD_FLAGS = 7 };
static const struct named range_flags[] = {{"wait_before", SYNC_FILE_RANGE_WAIT_BEFORE},
					   {"write", SYNC_FILE_RANGE_WRITE},
					   {"wait_after", SYNC_FILE_RANGE_WAIT_AFTER},
					   {NULL, 0}};

/* Parses flags joined by commas, none twice, from the first `count` entries of a table. */
static bool parse_joined(const char *text, const struct named *table, int count, int *flags)
{
	unsigned int seen = 0;

	for (;;) {
		const size_t length = strcspn(text, ",");
		const struct named *flag = find(table, text, length);
		const unsigned int bit = flag ? 1U << (flag - table) : 0;

		if (!flag || flag - table >= count || seen & bit)
			return false;
		seen |= bit;
		*flags |= flag->value;
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
}

static bool parse_flags(const char *text, int version, int *flags)
{
	const size_t length = strcspn(text, ",");
	const struct named *access = find(access_flags, text, length);

	if (!access)
		return false;
	*flags = access->value;
	return text[length] == '\0' ||
	       parse_joined(text + length + 1, other_flags, version == 1 ? OLD_FLAGS : 10, flags);
}

/* Parses the HOW of an operation. */
static bool parse_how(const struct op *op, const char *text, int *how)
{
	static const struct named fallocate_how[] = {
		{"allocate", 0},
		{"keep", FALLOC_FL_KEEP_SIZE},
		{"punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
		{"zero", FALLOC_FL_ZERO_RANGE},
		{"collapse", FALLOC_FL_COLLAPSE_RANGE},
		{"insert", FALLOC_FL_INSERT_RANGE},
		{NULL, 0}};
	static const struct named flock_how[] = {
		{"shared", LOCK_SH}, {"exclusive", LOCK_EX}, {"unlock", LOCK_UN}, {NULL, 0}};
	static const struct named mmap_how[] = {
		{"ro", MAP_TO_READ}, {"rw", MAP_TO_WRITE}, {"private", MAP_PRIVATELY}, {NULL, 0}};
	static const struct named msync_how[] = {{"sync", MS_SYNC}, {"async", MS_ASYNC}, {NULL, 0}};
	const struct named *table = op->kind == OP_FALLOCATE ? fallocate_how
				    : op->kind == OP_FLOCK   ? flock_how
				    : op->kind == OP_MMAP    ? mmap_how
							     : msync_how;
	const struct named *found = find(table, text, strlen(text));

	if (found)
		*how = found->value;
	return found != NULL;
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

static bool check_number(struct op *op, int index, char letter, int version)
{
	uint64_t *value = &op->number[index];

	if (!number_parse(op->field[index], strlen(op->field[index]), value))
		return false;
	/* an offset in the field before leaves less */
	const uint64_t left = MAX_NUMBER - (index ? op->number[index - 1] : 0);

	switch (letter) {
	case 's':
		op->slot = (int)*value;
		return *value < (version == 1 ? OLD_SLOTS : SLOTS);
	case 'S':
	case 'm':
	case 'k':
		return *value < SLOTS;
	case 't':
		return *value <= max_pause_ns;
	case 'w':
		return *value <= max_steps;
	case 'c':
		return *value <= 100;
	case 'M':
		return *value <= 07777;
	case 'u':
		return *value <= UINT32_MAX - 1;
	case 'v':
		return *value <= max_value;
	case 'O':
		return *value % PAGE == 0;
	case 'l':
		return *value >= 1 && *value <= max_transfer && *value <= left;
	case 'L': /* of `copy`, after two offsets */
		return *value >= 1 && *value <= max_transfer && *value <= left &&
		       *value <= MAX_NUMBER - op->number[index - 3];
	case 'r':
		return *value <= left;
	default:
		return true;
	}
}

/* Checks `SLOT:` and a number, or a path. */
static int check_linked(struct op *op, int index, struct ops_error *error)
{
	const char *text = op->field[index];
	uint64_t *slot = &op->number[index];

	op->slot = -1;
	if (strncmp(text, "SLOT:", 5) != 0)
		return name_decode_path(op->field[index])
			       ? 0
			       : reader_fail(error, "bad-path", "'%.100s' is no path", text);
	if (!number_parse(text + 5, strlen(text + 5), slot) || *slot >= SLOTS)
		return reader_fail(error, "bad-number", "'%.100s' is no slot", text);
	op->slot = (int)*slot;
	return 0;
}

static int check_text(struct op *op, int index, char letter, int version, struct ops_error *error)
{
	const char *text = op->field[index];

	switch (letter) {
	case 'p':
		if (version == 1 ? is_path(text) : name_decode_path(op->field[index]))
			return 0;
		return reader_fail(error, "bad-path", "'%.100s' is no path", text);
	case 'T':
		if (name_decode_target(op->field[index]))
			return 0;
		return reader_fail(error, "bad-path", "'%.100s' is no target", text);
	case 'x':
		if (name_decode_attribute(op->field[index]))
			return 0;
		return reader_fail(error, "bad-path", "'%.100s' is no user attribute", text);
	case 'f':
		if (parse_flags(text, version, &op->flags))
			return 0;
		return reader_fail(error, "bad-flags", "'%.100s' are no flags", text);
	case 'a':
		if (parse_advice(text, &op->flags))
			return 0;
		return reader_fail(error, "bad-advice", "'%.100s' is no advice", text);
	case 'd':
		if (parse_use(text, &op->flags))
			return 0;
		return reader_fail(error, "bad-flags", "'%.100s' is no use of a database", text);
	case 'h':
		if (parse_how(op, text, &op->flags))
			return 0;
		return reader_fail(error, "bad-word", "'%.100s'", text);
	case 'g':
		if (parse_joined(text, range_flags, 3, &op->flags))
			return 0;
		return reader_fail(error, "bad-word", "'%.100s'", text);
	default:
		if (is_statement(text))
			return 0;
		return reader_fail(error, "bad-statement", "'%.100s' has a \\ that means nothing",
				   text);
	}
}

int field_check(struct op *op, int index, char letter, int version, struct ops_error *error)
{
	const char *text = op->field[index];
	int64_t count;

	switch (letter) {
	case 'K':
		return check_linked(op, index, error);
	case 'F':
	case 'X':
		/* X belongs to an attribute, whose offset is 0. Pieces and data have no number. */
		(void)number_parse(text, strlen(text), &op->number[index]);
		if (fill_check(text, letter == 'X' ? 0 : op->number[index - 3],
			       op->number[index - 2], op->number[index - 1]))
			return 0;
		return reader_fail(error, "bad-fill", "'%.100s' is no fill, or does not fit", text);
	case 'B':
		count = data_decode(op->field[index]);
		op->number[index] = count > 0 ? (uint64_t)count : 0;
		return count > 0 ? 0 : reader_fail(error, "bad-data", "no BASE64%s", "");
	default:
		break;
	}
	if (strchr("pTxfadhg*", letter))
		return check_text(op, index, letter, version, error);
	return check_number(op, index, letter, version)
		       ? 0
		       : reader_fail(error, "bad-number", "'%.100s' is no number, or out of range",
				     text);
}

void field_print_flags(const struct op *op, const char *text, FILE *out)
{
	const struct named *flag = op->kind == OP_OPEN ? other_flags : range_flags;
	const char *between = "";

	(void)fputc(' ', out);
	if (op->kind == OP_OPEN) {
		(void)fprintf(out, "%.2s", text);
		between = ",";
		text += strcspn(text, ",");
	}
	for (; flag->name; flag++) {
		for (const char *rest = text; *rest; rest += strcspn(rest, ",")) {
			rest += *rest == ',';
			const size_t length = strcspn(rest, ",");

			if (strlen(flag->name) == length && memcmp(flag->name, rest, length) == 0) {
				(void)fprintf(out, "%s%s", between, flag->name);
				between = ",";
			}
		}
	}
}
