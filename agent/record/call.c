/* SPDX-License-Identifier: Apache-2.0 */
/* One system call, at its entry and at its exit.
 *
 * A call that touches no followed file stops once and continues at once. Any other call stops again
 * when it is over, for its result, its duration, and the bytes that it wrote. Its effects on
 * descriptors, positions and names are applied here.
 *
 * Leaves out what an interrupted and restarted call did before the restart: it is a row when it
 * ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "record/record.h"

enum { ERESTART_FIRST = 512, ERESTART_LAST = 516, VECTORS = 1024, VECTOR_BYTES_AT = 1 };
enum { ACCESS = 3, READ_ONLY = 0 };
enum { DUPFD = 0, DUPFD_CLOEXEC = 1030, APPEND = 02000, IS_FIXED = 0x10, IS_SYNC = 4 };
enum { RANGE_CLOEXEC = 4, P_INFO_AT = 2, LOCK_WAITING = 7, LOCK_WAITING_OFD = 38 };

static void opened(struct recorder *recorder, struct tracee *tracee, struct record_row *row)
{
	const int fd = (int)row->result;
	struct description *made = description_new(tracee, fd, row->flags);

	(void)recorder;
	if (made)
		table_set(tracee->table, fd, made);
	if (made)
		row->file = made->file, row->device = made->device;
}

static void duplicated(struct tracee *tracee, const struct record_row *row)
{
	struct description *there = table_get(tracee->table, row->descriptor);

	if (row->result != row->descriptor)
		table_share(tracee->table, (int)row->result, there);
}

/* A 32-bit lseek returns its result in memory. */
static void apply_seek(struct tracee *tracee, struct record_row *row)
{
	struct description *there = table_get(tracee->table, row->descriptor);
	int64_t position = row->result;

	if (tracee->call->action == DO_LLSEEK &&
	    memory_read(tracee->tid, tracee->registers.argument[3], &position, sizeof(position)) >
		    0)
		row->result = position;
	if (there && there != &not_followed)
		there->position = position;
}

/* Advances the position of a descriptor through which `bytes` were moved. */
static void moved(struct tracee *tracee, int fd, int64_t bytes)
{
	struct description *there = table_get(tracee->table, fd);

	if (there && there != &not_followed)
		there->position += bytes;
}

static void say_bytes(struct recorder *recorder, struct tracee *tracee,
		      const struct record_row *row, uint64_t address, uint64_t length)
{
	while (length > 0) {
		size_t count = length < SIZE_MAX ? (size_t)length : SIZE_MAX;
		uint8_t *room = rows_bytes(&recorder->stream, row, &count);
		const int64_t got = memory_read(tracee->tid, address, room, count);

		if (got < (int64_t)count) {
			memset(room + (got > 0 ? got : 0), 0, count - (size_t)(got > 0 ? got : 0));
			count_one(recorder, "bytes that could not be read");
		}
		address += count;
		length -= count;
	}
}

static void say_vector(struct recorder *recorder, struct tracee *tracee,
		       const struct record_row *row, uint64_t length)
{
	static struct iovec vector[VECTORS];
	uint64_t count = tracee->registers.argument[VECTOR_BYTES_AT + 1];

	count = count < VECTORS ? count : VECTORS;
	const size_t bytes = (size_t)count * sizeof(vector[0]);

	if (memory_read(tracee->tid, tracee->registers.argument[VECTOR_BYTES_AT], vector, bytes) !=
	    (int64_t)bytes)
		count_one(recorder, "bytes that could not be read");
	for (uint64_t i = 0; i < count && length > 0; i++) {
		const uint64_t part = vector[i].iov_len < length ? vector[i].iov_len : length;

		say_bytes(recorder, tracee, row, (uint64_t)(uintptr_t)vector[i].iov_base, part);
		length -= part;
	}
}

/* The offset that a write went to, and its descriptor's new position. */
static void written(struct tracee *tracee, struct record_row *row)
{
	struct description *there = table_get(tracee->table, row->descriptor);

	if (!there || there == &not_followed)
		return;
	row->file = there->file;
	row->device = there->device;
	if (there->flags & APPEND)
		row->at = descriptor_size(tracee, row->descriptor) - row->result;
	else
		row->at = row->has & HAS_OFFSET ? row->offset : there->position;
	if (row->result > 0)
		row->has = (uint16_t)(row->has | HAS_BYTES);
	if (!(row->has & HAS_OFFSET))
		there->position = row->at + row->result;
}

/* Folders that are remembered by name may have changed. */
static void names_changed(struct recorder *recorder, struct tracee *tracee)
{
	const char *name = tracee->call->name;
	const char *texts[ROW_TEXTS];
	struct stat is;

	call_texts(tracee, texts);
	if (strncmp(name, "rename", 6) == 0) {
		if (lstat(texts[1], &is) == 0 && !S_ISDIR(is.st_mode) && !S_ISLNK(is.st_mode))
			return;
		recorder->names++;
		resolve_forget(NULL);
	} else if (strncmp(name, "unlink", 6) == 0 || strcmp(name, "rmdir") == 0) {
		resolve_forget(texts[0]);
	}
}

/* Sets the recording's number of the task that was waited for. */
static bool set_waited_task(struct recorder *recorder, struct tracee *tracee,
			    struct record_row *row)
{
	enum { PID_AT = sizeof(void *) == 8 ? 4 : 3 };
	int info[PID_AT + 1] = {0};
	pid_t tid = (pid_t)row->result;

	if (row->result < 0)
		return false;
	if (strcmp(tracee->call->name, "waitid") == 0) {
		const uint64_t address = tracee->registers.argument[P_INFO_AT];

		if (!address || memory_read(tracee->tid, address, info, sizeof(info)) < 0)
			return false;
		tid = info[PID_AT];
	}
	const int64_t number = tracees_ended(&recorder->tracees, tid);

	row->result = number;
	return tid > 0 && number >= 0;
}

static void apply_descriptors(struct recorder *recorder, struct tracee *tracee,
			      struct record_row *row)
{
	switch (tracee->call->action) {
	case DO_OPEN:
		opened(recorder, tracee, row);
		break;
	case DO_CLOSE_RANGE:
		if (!(row->flags & RANGE_CLOEXEC))
			table_close_range(tracee->table, (uint32_t)row->descriptor,
					  (uint32_t)row->to_descriptor);
		break;
	case DO_DUPLICATE:
		duplicated(tracee, row);
		break;
	case DO_FCNTL:
		if (row->command == DUPFD || row->command == DUPFD_CLOEXEC)
			duplicated(tracee, row);
		break;
	case DO_SEEK:
	case DO_LLSEEK:
		apply_seek(tracee, row);
		break;
	case DO_READ:
		if (!(row->has & HAS_OFFSET))
			moved(tracee, row->descriptor, row->result);
		break;
	case DO_MOVE:
		if (!(row->has & HAS_OFFSET))
			moved(tracee, row->descriptor, row->result);
		if (!(row->has & HAS_TO_OFFSET))
			moved(tracee, row->to_descriptor, row->result);
		break;
	default:
		break;
	}
}

/* Applies the effects of a successful call. */
static void apply(struct recorder *recorder, struct tracee *tracee, struct record_row *row)
{
	struct description *there = table_get(tracee->table, row->descriptor);

	switch (tracee->call->action) {
	case DO_WRITE:
		written(tracee, row);
		break;
	case DO_SETXATTR:
		row->has = (uint16_t)(row->has | (row->length > 0 ? HAS_BYTES : 0));
		break;
	case DO_MMAP:
		if (there && there != &not_followed)
			space_add(recorder, tracee, row, there);
		break;
	case DO_MREMAP:
		space_moved(tracee, row);
		break;
	case DO_MPROTECT:
		space_protected(recorder, tracee, row);
		break;
	case DO_CHDIR:
		folder_changed(tracee->folder);
		break;
	case DO_PLAIN:
		names_changed(recorder, tracee);
		break;
	default:
		apply_descriptors(recorder, tracee, row);
		break;
	}
}

static void add_row(struct recorder *recorder, struct tracee *tracee)
{
	struct record_row *row = &tracee->row;
	const char *texts[ROW_TEXTS];

	call_texts(tracee, texts);
	row->call = known_call_index(tracee->call);
	rows_add(&recorder->stream, row, texts);
	recorder->calls++;
	if (!(row->has & HAS_BYTES))
		return;
	if (tracee->call->action == DO_SETXATTR)
		say_bytes(recorder, tracee, row, tracee->registers.argument[2],
			  (uint64_t)row->length);
	else if (strchr(tracee->call->arguments, 'v'))
		say_vector(recorder, tracee, row, (uint64_t)row->result);
	else
		say_bytes(recorder, tracee, row, tracee->registers.argument[1],
			  (uint64_t)row->result);
}

/* Whether the call may wait for another task; its row is then written when it returns. */
static bool may_block(const struct tracee *tracee)
{
	const uint32_t command = tracee->row.command;

	return tracee->call->flags & CALL_BLOCKS ||
	       (tracee->call->action == DO_FCNTL &&
		(command == LOCK_WAITING || command == LOCK_WAITING_OFD));
}

static bool has_row(const struct known_call *call)
{
	return call->action != DO_CHDIR && call->action != DO_OWN_FILES && call->action != DO_SLEEP;
}

void call_end(struct recorder *recorder, struct tracee *tracee)
{
	struct record_row *row = &tracee->row;
	int64_t result = 0;
	bool wanted = has_row(tracee->call);

	if (tracee->call->action == DO_SLEEP || tracee->call->action == DO_WAIT)
		(void)space_look(recorder, tracee);
	row->duration_ns = recorder->now_ns - recorder->zero_ns - row->start_ns;
	row->duration_ns -= row->duration_ns < recorder->overhead.call_ns
				    ? row->duration_ns
				    : recorder->overhead.call_ns;
	if (registers_at_exit(tracee->tid, &result) ||
	    (result <= -ERESTART_FIRST && result >= -ERESTART_LAST))
		wanted = false;
	row->result = result_number(result);
	if (wanted && tracee->call->action == DO_WAIT)
		wanted = set_waited_task(recorder, tracee, row);
	if (tracee->call->action == DO_CLOSE && wanted)
		table_set(tracee->table, row->descriptor, NULL);
	if (row->result >= 0 && result == row->result)
		apply(recorder, tracee, row);
	if (may_block(tracee) && wanted) {
		row->duration_ns = 0;
		event_stamp(recorder, tracee, row);
	}
	if (wanted)
		add_row(recorder, tracee);
	tracees_leave(&recorder->tracees, tracee);
	tracee->call = NULL;
	tracee->cpu_ns = event_cpu_ns(recorder, tracee);
	tracee->rows = true;
}

static void unshare_files(struct tracee *tracee)
{
	const uint64_t flags = tracee->registers.argument[0];

	if (flags & CLONE_FILES && tracee->table->uses > 1) {
		struct descriptor_table *own = table_copy(tracee->table);

		if (own) {
			table_release(tracee->table);
			tracee->table = own;
		}
	}
	if (flags & CLONE_FS && tracee->folder->uses > 1) {
		struct working_folder *own = folder_new();

		if (own) {
			folder_release(tracee->folder);
			tracee->folder = own;
		}
	}
}

/* Begins a call on mapped memory: only ranges of followed files matter. */
static bool begin_memory(struct recorder *recorder, struct tracee *tracee)
{
	const uint64_t *argument = tracee->registers.argument;
	const enum call_action action = tracee->call->action;
	const bool mapping = action == DO_MMAP;

	if (!mapping && !space_touches(tracee->space, argument[0], argument[1]))
		return false;
	if (mapping && argument[3] & IS_FIXED)
		space_say(recorder, tracee, argument[0], argument[1], SAY_GONE);
	if (mapping)
		return arguments_read(recorder, tracee);
	(void)arguments_read(recorder, tracee);
	if (action == DO_MUNMAP)
		space_say(recorder, tracee, argument[0], argument[1], SAY_GONE);
	if (action == DO_MSYNC)
		space_say(recorder, tracee, argument[0], argument[1],
			  argument[2] & IS_SYNC ? SAY_SYNCED : SAY_CHANGED);
	return true;
}

/* Begins a call that is a row only if one of its descriptors is already followed. */
static bool begin_copy(struct recorder *recorder, struct tracee *tracee)
{
	const int to = (int)tracee->registers.argument[1];

	if (tracee->call->action == DO_CLOSE) {
		const int fd = (int)tracee->registers.argument[0];
		const struct description *there = table_get(tracee->table, fd);

		if (there && there != &not_followed)
			return arguments_read(recorder, tracee);
		table_set(tracee->table, fd, NULL);
		return false;
	}
	if (arguments_read(recorder, tracee))
		return true;
	/* An unknown descriptor is duplicated onto `to`, so what was known of `to` no longer
	 * holds. */
	if (tracee->call->action == DO_DUPLICATE && tracee->row.has & HAS_TO_DESCRIPTOR)
		table_set(tracee->table, to, NULL);
	return false;
}

static bool begin_other(struct recorder *recorder, struct tracee *tracee)
{
	const struct known_call *call = tracee->call;

	switch (call->action) {
	case DO_EXEC:
		/* exec replaces the memory, unless a parent still shares it (vfork). */
		if (tracee->space->uses == 1)
			space_say(recorder, tracee, 0, UINT64_MAX / 2, SAY_ALL);
		return false;
	case DO_CLONE:
		return false;
	case DO_OWN_FILES:
		unshare_files(tracee);
		return false;
	case DO_UNKNOWN:
		if (!*call->arguments || arguments_read(recorder, tracee))
			count_one(recorder, call->name);
		return false;
	case DO_SLEEP:
		return space_look(recorder, tracee);
	case DO_WAIT:
		(void)space_look(recorder, tracee);
		(void)arguments_read(recorder, tracee);
		return true;
	case DO_CLOSE_RANGE:
	case DO_CHDIR:
		(void)arguments_read(recorder, tracee);
		return true;
	case DO_SYNC:
		(void)arguments_read(recorder, tracee);
		space_say_file(recorder, tracee, NULL);
		return true;
	default:
		return arguments_read(recorder, tracee);
	}
}

static bool is_wanted(struct recorder *recorder, struct tracee *tracee)
{
	switch (tracee->call->action) {
	case DO_CLOSE:
	case DO_DUPLICATE:
	case DO_FCNTL:
		return begin_copy(recorder, tracee);
	case DO_MMAP:
	case DO_MUNMAP:
	case DO_MREMAP:
	case DO_MPROTECT:
	case DO_MSYNC:
	case DO_MADVISE:
		return begin_memory(recorder, tracee);
	default:
		return begin_other(recorder, tracee);
	}
}

/* Any file system accepts an offset below this. */
static const int64_t FORESEEN_MAX = INT64_C(1) << 40;

/* Whether a call's result is known before it is made and the call is quick. It then needs no second
 * stop, and has no duration. */
static bool is_foreseen(const struct tracee *tracee, const struct record_row *row, int64_t *result)
{
	const struct description *there = table_get(tracee->table, row->descriptor);
	const enum call_action action = tracee->call->action;

	if (!there || there == &not_followed)
		return false;
	*result = 0;
	if (action == DO_CLOSE)
		return (there->flags & ACCESS) == READ_ONLY;
	if (action != DO_SEEK || there->is_folder)
		return strcmp(tracee->call->name, "fstat") == 0;
	*result = row->offset;
	return row->command == SEEK_SET && row->offset >= 0 && row->offset < FORESEEN_MAX;
}

static void foreseen(struct recorder *recorder, struct tracee *tracee, int64_t result)
{
	struct record_row *row = &tracee->row;

	row->result = result;
	if (tracee->call->action == DO_CLOSE)
		table_set(tracee->table, row->descriptor, NULL);
	else if (tracee->call->action == DO_SEEK)
		table_get(tracee->table, row->descriptor)->position = result;
	event_stamp(recorder, tracee, row);
	add_row(recorder, tracee);
	tracee->call = NULL;
}

/* The file that a call writes, and the description whose position it moves; NULL for neither. */
struct call_reach {
	const struct description *written;
	const struct description *moved[2];
};

static struct call_reach reach_of(const struct tracee *tracee)
{
	const struct record_row *row = &tracee->row;
	const struct description *from = table_get(tracee->table, row->descriptor);
	const struct description *to = table_get(tracee->table, row->to_descriptor);
	const bool own = !(row->has & HAS_OFFSET);

	switch (tracee->call->action) {
	case DO_WRITE:
		return (struct call_reach){from, {own ? from : NULL, NULL}};
	case DO_MOVE:
		return (struct call_reach){
			to, {own ? from : NULL, row->has & HAS_TO_OFFSET ? NULL : to}};
	case DO_READ:
		return (struct call_reach){NULL, {own ? from : NULL, NULL}};
	case DO_SEEK:
	case DO_LLSEEK:
		return (struct call_reach){NULL, {from, NULL}};
	default:
		return (struct call_reach){NULL, {NULL, NULL}};
	}
}

static bool is_followed(const struct description *description)
{
	return description && description != &not_followed;
}

static bool collide(const struct call_reach *one, const struct call_reach *other)
{
	if (is_followed(one->written) && is_followed(other->written) &&
	    one->written->file == other->written->file &&
	    one->written->device == other->written->device)
		return true;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if (is_followed(one->moved[i]) && one->moved[i] == other->moved[j])
				return true;
	return false;
}

/* The kernel serialises writes to one file, and calls that move one position. The recorder must
 * know their order, so the next one begins only after the one before has returned. */
static bool has_to_wait(const struct recorder *recorder, const struct tracee *tracee)
{
	if (!recorder->tracees.first)
		return false;
	const struct call_reach own = reach_of(tracee);

	for (const struct tracee *other = recorder->tracees.first; other; other = other->behind) {
		const struct call_reach its = reach_of(other);

		if (other != tracee && collide(&own, &its))
			return true;
	}
	return false;
}

struct tracee *call_begin_parked(struct recorder *recorder)
{
	struct tracee *tracee = recorder->tracees.parked;

	while (tracee && has_to_wait(recorder, tracee))
		tracee = tracee->parked_behind;
	if (!tracee)
		return NULL;
	tracees_unpark(&recorder->tracees, tracee);
	event_stamp(recorder, tracee, &tracee->row);
	tracees_enter(&recorder->tracees, tracee);
	return tracee;
}

/* The offset of lseek has no letter: on 32 bits it is in two arguments, the high half first. */
static void take_seek(struct tracee *tracee)
{
	const uint64_t *argument = tracee->registers.argument;
	struct record_row *row = &tracee->row;

	row->has |= HAS_OFFSET;
	row->offset = tracee->call->action == DO_SEEK ? (int64_t)(intptr_t)argument[1]
						      : (int64_t)(argument[1] << 32 | argument[2]);
}

enum call_course call_begin(struct recorder *recorder, struct tracee *tracee)
{
	const int err = registers_at_entry(tracee->tid, &tracee->registers);
	struct record_row *row = &tracee->row;
	int64_t result = 0;

	tracee->stops++;
	if (err == -ENOSYS)
		count_one(recorder, "calls of another architecture");
	tracee->call = err ? NULL : known_call_of(tracee->registers.number);
	if (!tracee->call || !is_wanted(recorder, tracee)) {
		tracee->call = NULL;
		return CALL_GOES_ON;
	}
	const enum call_action action = tracee->call->action;

	if (action == DO_SLEEP)
		return CALL_RETURNS;
	if (strcmp(tracee->call->name, "fsync") == 0 ||
	    strcmp(tracee->call->name, "fdatasync") == 0)
		space_say_file(recorder, tracee, table_get(tracee->table, row->descriptor));
	if (action == DO_SEEK || action == DO_LLSEEK)
		take_seek(tracee);
	if (has_to_wait(recorder, tracee)) {
		tracees_park(&recorder->tracees, tracee);
		return CALL_WAITS;
	}
	if (is_foreseen(tracee, row, &result)) {
		foreseen(recorder, tracee, result);
		return CALL_GOES_ON;
	}
	if (may_block(tracee)) {
		row->start_ns = event_now(recorder);
		return CALL_RETURNS;
	}
	event_stamp(recorder, tracee, row);
	tracees_enter(&recorder->tracees, tracee);
	return CALL_RETURNS;
}
