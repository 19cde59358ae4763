/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the arguments of a call into its row, by the letters of known_calls.c.
 *
 * On 32-bit machines a pair of registers for 64 bits begins with an even one. Leaves out buffers,
 * which are read when the call is over (call.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "record/record.h"

enum { AT_FLAG_NOFOLLOW = 0x100, AT_FLAG_FOLLOW = 0x400, AT_FLAG_EMPTY = 0x1000, VECTORS = 1024 };
enum { TEXT_PATH, TEXT_TO_PATH, TEXT_NAME, TEXT_TARGET };

struct open_how_words {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

/* The progress of reading a call's arguments, and what was found. */
struct reading {
	struct recorder *recorder;
	struct tracee *tracee;
	struct record_row *row;
	size_t at; /* the index of the argument */
	int folder;
	uint64_t at_flags; /* AT_ flags of the call */
	bool no_flags;     /* the call that it became has none */
	bool followed;
};

static uint64_t next(struct reading *reading)
{
	return reading->at < CALL_ARGUMENTS ? reading->tracee->registers.argument[reading->at++]
					    : 0;
}

static int64_t next_64(struct reading *reading)
{
#if UINTPTR_MAX > UINT32_MAX
	return (int64_t)next(reading);
#else
	reading->at += reading->at % 2;
	const uint64_t low = next(reading);

	return (int64_t)(low | next(reading) << 32);
#endif
}

static void say(struct reading *reading, unsigned int part)
{
	reading->row->has = (uint16_t)(reading->row->has | part);
}

static char *text_of(struct tracee *tracee, int which)
{
	return tracee->texts + (size_t)which * RECORD_PATH;
}

static bool symlink_is_followed(const struct reading *reading)
{
	const struct known_call *call = reading->tracee->call;

	if (call->flags & CALL_NOFOLLOW)
		return reading->at_flags & AT_FLAG_FOLLOW && strcmp(call->name, "linkat") == 0;
	if (call->flags & CALL_FLAGS_AT)
		return !(reading->at_flags & AT_FLAG_NOFOLLOW);
	if (call->action == DO_OPEN)
		return !(reading->row->flags & 0400000) && (reading->row->flags & 0300) != 0300;
	return true;
}

/* A call on a descriptor with an empty path becomes the call on the descriptor. */
static void by_descriptor(struct reading *reading)
{
	static const char *const other[][2] = {{"newfstatat", "fstat"}, {"statx", "fstat"},
					       {"fchownat", "fchown"},  {"fchmodat2", "fchmod"},
					       {"linkat", "linkat"},    {"utimensat", "utimensat"}};
	struct tracee *tracee = reading->tracee;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (strcmp(tracee->call->name, other[i][0]) == 0) {
			reading->row->descriptor = reading->folder;
			say(reading, HAS_DESCRIPTOR);
			if (strcmp(other[i][0], other[i][1]) != 0) {
				tracee->call = known_call_named(other[i][1]);
				reading->at_flags = 0;
				reading->no_flags = true;
			}
			if (descriptor(reading->recorder, tracee, reading->folder))
				reading->followed = true;
			return;
		}
}

/* Whether it links a file without a name by its descriptor in /proc. */
static bool is_own_link(struct reading *reading, const char *path)
{
	static const char *const own[] = {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"};
	char *end = NULL;

	if (strcmp(reading->tracee->call->name, "linkat") != 0 ||
	    !(reading->at_flags & AT_FLAG_FOLLOW))
		return false;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0) {
			reading->folder = (int)strtol(path + strlen(own[i]), &end, 10);
			return *end == '\0';
		}
	return false;
}

static void take_path(struct reading *reading, int which)
{
	struct tracee *tracee = reading->tracee;
	char path[RECORD_PATH];
	char *absolute = text_of(tracee, which);
	const uint64_t address = next(reading);
	const bool empty =
		!address || memory_text(tracee->tid, address, path, sizeof(path)) || !path[0];
	const int folder = reading->folder;

	absolute[0] = '\0';
	if (!empty && is_own_link(reading, path)) {
		by_descriptor(reading);
		return;
	}
	if (empty && folder != AT_FDCWD && (!address || reading->at_flags & AT_FLAG_EMPTY)) {
		by_descriptor(reading);
		return;
	}
	if (empty)
		return;
	const int err = resolve(reading->recorder, tracee, folder, path,
				symlink_is_followed(reading), absolute);

	if (err == -ENAMETOOLONG)
		count_one(reading->recorder, "calls on files of too long a path");
	if (err)
		return;
	say(reading, which == TEXT_PATH ? HAS_PATH : HAS_TO_PATH);
	if (folders_have(&reading->recorder->folders, absolute))
		reading->followed = true;
}

static void take_text(struct reading *reading, int which)
{
	char *text = text_of(reading->tracee, which);

	if (memory_text(reading->tracee->tid, next(reading), text, RECORD_PATH))
		text[0] = '\0';
	say(reading, which == TEXT_NAME ? HAS_NAME : HAS_TARGET);
}

static void take_descriptor(struct reading *reading, bool to)
{
	const int fd = (int)(int64_t)next(reading);
	struct tracee *tracee = reading->tracee;
	const enum call_action action = tracee->call->action;
	/* A descriptor that is only copied is not resolved until it is used. */
	const bool peek = action == DO_DUPLICATE || action == DO_FCNTL;
	const struct description *there =
		peek ? table_get(tracee->table, fd) : descriptor(reading->recorder, tracee, fd);

	if (to)
		reading->row->to_descriptor = fd;
	else
		reading->row->descriptor = fd;
	say(reading, to ? HAS_TO_DESCRIPTOR : HAS_DESCRIPTOR);
	if (there && there != &not_followed)
		reading->followed = true;
}

/* Reads an offset that the argument points to. For a null pointer it is the descriptor's own
 * position. */
static void take_pointed(struct reading *reading, bool to)
{
	const uint64_t address = next(reading);
	int64_t offset = 0;
	size_t bytes = sizeof(offset);

	if (!address)
		return;
#if defined(__NR_sendfile64) && UINTPTR_MAX == UINT32_MAX
	if (reading->tracee->registers.number == __NR_sendfile)
		bytes = sizeof(int32_t);
#endif
	if (memory_read(reading->tracee->tid, address, &offset, bytes) != (int64_t)bytes)
		return;
	if (to)
		reading->row->to_offset = offset;
	else
		reading->row->offset = offset;
	say(reading, to ? HAS_TO_OFFSET : HAS_OFFSET);
}

static void take_vector(struct reading *reading)
{
	static struct iovec vector[VECTORS];
	const uint64_t address = next(reading);
	uint64_t count = next(reading);

	count = count < VECTORS ? count : VECTORS;
	const size_t bytes = (size_t)count * sizeof(vector[0]);

	reading->row->length = 0;
	if (memory_read(reading->tracee->tid, address, vector, bytes) == (int64_t)bytes)
		for (uint64_t i = 0; i < count; i++)
			reading->row->length += (int64_t)vector[i].iov_len;
	say(reading, HAS_LENGTH);
}

static void take_position(struct reading *reading)
{
	uint64_t offset = next(reading);
	const uint64_t high = next(reading);

#if UINTPTR_MAX == UINT32_MAX
	offset |= high << 32;
#else
	(void)high;
#endif
	/* preadv2 and pwritev2: -1 means the descriptor's own position. */
	if ((int64_t)offset == -1)
		return;
	reading->row->offset = (int64_t)offset;
	say(reading, HAS_OFFSET);
}

static void take_how(struct reading *reading)
{
	struct open_how_words how = {0, 0, 0};

	(void)memory_read(reading->tracee->tid, next(reading), &how, sizeof(how));
	reading->row->flags = portable_open_flags(how.flags);
	reading->row->mode = (uint32_t)how.mode;
	say(reading, HAS_FLAGS | HAS_MODE);
}

static void take_number(struct reading *reading, char letter)
{
	struct record_row *row = reading->row;
	const uint64_t value = next(reading);

	if (letter == 'n')
		row->length = (int64_t)value, say(reading, HAS_LENGTH);
	else if (letter == 'x')
		row->to_offset = (int64_t)value, say(reading, HAS_TO_OFFSET);
	else if (letter == 'a')
		row->address = value, say(reading, HAS_ADDRESS);
	else if (letter == 'F')
		row->flags = (uint32_t)value, say(reading, HAS_FLAGS);
	else if (letter == 'm')
		row->mode = (uint32_t)value, say(reading, HAS_MODE);
	else if (letter == 'c')
		row->command = (uint32_t)value, say(reading, HAS_COMMAND);
	else if (letter == 'u')
		row->user = (uint32_t)value, say(reading, HAS_USER);
	else if (letter == 'r')
		row->group = (uint32_t)value, say(reading, HAS_GROUP);
}

static void take(struct reading *reading, char letter)
{
	struct record_row *row = reading->row;

	if (letter == 'd')
		reading->folder = (int)(int64_t)next(reading);
	else if (letter == 'p' || letter == 'q')
		take_path(reading, letter == 'p' ? TEXT_PATH : TEXT_TO_PATH);
	else if (letter == 'f' || letter == 'g')
		take_descriptor(reading, letter == 'g');
	else if (letter == 't' || letter == 's')
		take_text(reading, letter == 't' ? TEXT_NAME : TEXT_TARGET);
	else if (letter == 'O' || letter == 'T')
		take_pointed(reading, letter == 'T');
	else if (letter == 'o')
		row->offset = next_64(reading), say(reading, HAS_OFFSET);
	else if (letter == 'P')
		row->offset = (int64_t)next(reading) * 4096, say(reading, HAS_OFFSET);
	else if (letter == 'l')
		row->length = next_64(reading), say(reading, HAS_LENGTH);
	else if (letter == 'H')
		take_position(reading);
	else if (letter == 'v')
		take_vector(reading);
	else if (letter == 'h')
		take_how(reading);
	else if (letter == '.' || letter == 'b')
		reading->at++;
	else
		take_number(reading, letter);
}

/* Flags that decide how paths are resolved come after them, so they are read first. */
static void look_ahead(struct reading *reading)
{
	const struct known_call *call = reading->tracee->call;
	const char *flags = strchr(call->arguments, 'F');
	const char *how = strchr(call->arguments, 'h');
	const struct call_registers *registers = &reading->tracee->registers;

	if (how) {
		reading->at = (size_t)(how - call->arguments);
		take_how(reading);
		reading->at = 0;
	} else if (flags && call->action == DO_OPEN) {
		reading->row->flags =
			portable_open_flags(registers->argument[flags - call->arguments]);
	} else if (flags && call->action != DO_READ && call->action != DO_WRITE) {
		reading->at_flags = registers->argument[flags - call->arguments];
	}
}

bool arguments_read(struct recorder *recorder, struct tracee *tracee)
{
	struct record_row *row = &tracee->row;
	struct reading reading = {recorder, tracee, row, .folder = AT_FDCWD};
	const struct known_call *call = tracee->call;

	if (!tracee->texts)
		tracee->texts = malloc((size_t)ROW_TEXTS * RECORD_PATH);
	if (!tracee->texts)
		return false;
	for (int i = 0; i < ROW_TEXTS; i++)
		text_of(tracee, i)[0] = '\0';
	memset(row, 0, sizeof(*row));
	row->task = tracee->number;
	look_ahead(&reading);
	for (const char *letter = call->arguments; *letter; letter++) {
		reading.folder =
			letter > call->arguments && letter[-1] == 'd' ? reading.folder : AT_FDCWD;
		take(&reading, *letter);
	}
	if (call->action == DO_OPEN && strchr(call->arguments, 'F'))
		row->flags = portable_open_flags(row->flags);
	else if (strcmp(call->name, "creat") == 0)
		row->flags = 01 | 0100 | 01000;
	if (reading.no_flags)
		row->has &= (uint16_t)~HAS_FLAGS;
	if (call->action == DO_FCNTL)
		row->command = portable_fcntl(row->command);
	return reading.followed;
}

void call_texts(const struct tracee *tracee, const char *texts[ROW_TEXTS])
{
	for (int i = 0; i < ROW_TEXTS; i++)
		texts[i] = text_of((struct tracee *)(uintptr_t)tracee, i);
}
