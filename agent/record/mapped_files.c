/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files: which pages were touched and which were changed, approximately.
 *
 * Page faults do not stop the program. When a mapping is removed (munmap, exec, the end of its last
 * task) each page in the page table counts as read once. A kernel that faults in pages around
 * another one makes those count, too, and without /proc/TID/pagemap all pages count. Pages of a
 * shared writable mapping are looked at at msync, fsync of the file, sync, and when the mapping is
 * removed. A page that differs from its hash counts as written then.
 *
 * In virtual time, where the recorder is root and costs nothing, a page also counts if it is dirty:
 * each time that it became so, whatever was written. Time passes while the program sleeps, and the
 * flusher may then write the page back. So the pages are looked at before it sleeps and after it.
 *
 * Leaves out changes by a process that is not followed; outside of virtual time, pages written
 * with the same bytes; in it, pages that are written twice while their task waits for another
 * thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"

enum {
	ENTRIES = 512,
	RUN_PAGES = 64,
	PROTECT_WRITE = 2,
	IS_SHARED = 1,
	ACCESS = 3,
	READ_WRITE = 2
};
static const uint64_t PRESENT = UINT64_C(1) << 63 | UINT64_C(1) << 62;
static const uint64_t FRAME = (UINT64_C(1) << 55) - 1;
static const uint64_t DIRTY = UINT64_C(1) << 4; /* in /proc/kpageflags */
/* In a page's hash: it was dirty, and that was reported. */
static const uint64_t SAID = 1;
/* A longer mapping is not compared, and counted. */
static const uint64_t COMPARED_BYTES_MAX = UINT64_C(8) << 30;

/* Hashes of all pages that a mapping had at first, 0 if unknown. Its parts and a child's copy share
 * them, so that a change is reported once. */
struct page_hashes {
	unsigned int uses;
	uint64_t page[];
};

struct mapping {
	struct mapping *next;
	uint64_t start;
	uint64_t end;
	int64_t offset; /* in the file */
	uint64_t file;
	uint32_t device;
	bool may_write;             /* shared, and its file was opened for writing */
	struct page_hashes *hashes; /* NULL if it is not compared */
	uint64_t first;             /* the index of its first page among them */
};

static uint64_t page_bytes(void)
{
	static uint64_t bytes;

	if (!bytes)
		bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	return bytes;
}

static uint64_t hash_of(const uint8_t *page)
{
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t at = 0; at < page_bytes(); at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, page + at, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return hash & ~SAID;
}

struct address_space *space_new(void)
{
	struct address_space *space = calloc(1, sizeof(*space));

	if (space)
		space->uses = 1;
	return space;
}

static struct mapping *copy_of(const struct mapping *one, uint64_t start, uint64_t end)
{
	struct mapping *made = malloc(sizeof(*made));

	if (!made)
		return NULL;
	*made = *one;
	made->start = start;
	made->end = end;
	made->offset += (int64_t)(start - one->start);
	made->first += (start - one->start) / page_bytes();
	made->next = NULL;
	if (made->hashes)
		made->hashes->uses++;
	return made;
}

struct address_space *space_copy(const struct address_space *from)
{
	struct address_space *space = space_new();

	for (const struct mapping *one = from->first; space && one; one = one->next) {
		struct mapping *made = copy_of(one, one->start, one->end);

		if (!made)
			break;
		made->next = space->first;
		space->first = made;
	}
	return space;
}

static void release(struct page_hashes *hashes)
{
	if (hashes && --hashes->uses == 0)
		free(hashes);
}

static struct page_hashes *hashes_of(uint64_t pages)
{
	struct page_hashes *made = calloc(1, sizeof(*made) + pages * sizeof(made->page[0]));

	if (made)
		made->uses = 1;
	return made;
}

static void drop(struct mapping *one)
{
	release(one->hashes);
	free(one);
}

void space_release(struct address_space *space)
{
	if (!space || --space->uses > 0)
		return;
	while (space->first) {
		struct mapping *one = space->first;

		space->first = one->next;
		drop(one);
	}
	free(space);
}

bool space_touches(const struct address_space *space, uint64_t address, uint64_t length)
{
	for (const struct mapping *one = space->first; one; one = one->next)
		if (address < one->end && address + length > one->start)
			return true;
	return false;
}

/* Computes the hashes of all pages, from the file if its descriptor is known, which brings no page
 * into the tracee's table. In virtual time that would read flash: there all hashes are unknown, 0.
 */
static void compare_from_now(struct recorder *recorder, const struct tracee *tracee,
			     struct mapping *one, int descriptor)
{
	const uint64_t length = one->end - one->start;
	char path[64];
	uint8_t *page = malloc(page_bytes());

	if (length <= COMPARED_BYTES_MAX)
		one->hashes = hashes_of(length / page_bytes());
	if (!page || !one->hashes)
		count_one(recorder, "mapping too long to be compared");
	if (recorder->in_virtual_time) {
		free(page);
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tracee->tid, descriptor);
	const int fd = descriptor < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);

	for (uint64_t at = 0; page && one->hashes && at < length; at += page_bytes()) {
		memset(page, 0, page_bytes());
		if (fd < 0)
			(void)memory_read(tracee->tid, one->start + at, page, page_bytes());
		else if (pread(fd, page, page_bytes(), (off_t)one->offset + (off_t)at) <= 0)
			memset(page, 0, page_bytes());
		one->hashes->page[at / page_bytes()] = hash_of(page);
	}
	if (fd >= 0)
		(void)close(fd);
	free(page);
}

void space_add(struct recorder *recorder, struct tracee *tracee, const struct record_row *row,
	       const struct description *description)
{
	struct mapping *made = calloc(1, sizeof(*made));
	const uint64_t length = ((uint64_t)row->length + page_bytes() - 1) / page_bytes();

	if (!made)
		return;
	made->start = (uint64_t)row->result;
	made->end = made->start + length * page_bytes();
	made->offset = row->offset;
	made->file = description->file;
	made->device = description->device;
	made->may_write = row->flags & IS_SHARED && (description->flags & ACCESS) == READ_WRITE;
	if (made->may_write && row->mode & PROTECT_WRITE)
		compare_from_now(recorder, tracee, made, row->descriptor);
	made->next = tracee->space->first;
	tracee->space->first = made;
}

struct page_run {
	uint64_t start;
	uint64_t end;
};

/* Writes rows for a run of pages that were read. */
static void say_read(struct recorder *recorder, struct tracee *tracee, const struct page_run *run)
{
	struct record_row row = {.address = run->start, .length = (int64_t)(run->end - run->start)};

	row.has = HAS_ADDRESS | HAS_LENGTH;
	event_row(recorder, tracee, "mapped_read", &row, NULL);
}

static void say_written(struct recorder *recorder, struct tracee *tracee, const struct mapping *one,
			const struct page_run *run, const uint8_t *bytes)
{
	struct record_row row = {.address = run->start, .length = (int64_t)(run->end - run->start)};

	row.has = HAS_ADDRESS | HAS_LENGTH | HAS_BYTES;
	row.file = one->file;
	row.device = one->device;
	row.at = one->offset + (int64_t)(run->start - one->start);
	event_row(recorder, tracee, "mapped_write", &row, NULL);
	for (size_t done = 0; done < (size_t)row.length;) {
		size_t count = (size_t)row.length - done;
		uint8_t *room = rows_bytes(&recorder->stream, &row, &count);

		memcpy(room, bytes + done, count);
		done += count;
	}
}

/* A walk over the pages of one mapping: collects present ones in `reads`, and writes rows for
 * changed ones. */
struct page_walk {
	struct recorder *recorder;
	struct tracee *tracee;
	struct mapping *one;
	bool reads;
	bool cleans; /* the pages are written back next */
	struct page_run read;
	struct page_run written;
	uint8_t *bytes; /* of the run that was written */
};

static void end_read(struct page_walk *walk)
{
	if (walk->reads && walk->read.end > walk->read.start)
		say_read(walk->recorder, walk->tracee, &walk->read);
	walk->read = (struct page_run){0, 0};
}

static void end_written(struct page_walk *walk)
{
	if (walk->written.end > walk->written.start)
		say_written(walk->recorder, walk->tracee, walk->one, &walk->written, walk->bytes);
	walk->written = (struct page_run){0, 0};
}

/* Whether the mapping at this address has any dirty page. */
static bool has_dirty_pages(pid_t tid, uint64_t address)
{
	char path[64];
	char line[RECORD_PATH + 128];
	bool inside = false;
	bool found = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)tid);
	FILE *maps = fopen(path, "re");

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		char *end = NULL;
		const uint64_t first = strtoull(line, &end, 16);
		const char *dirty = strstr(line, "_Dirty:");

		if (*end == '-')
			inside = address >= first && address < strtoull(end + 1, NULL, 16);
		else if (inside && dirty)
			found = strtoull(dirty + sizeof("_Dirty:") - 1, NULL, 10) > 0;
	}
	if (maps)
		(void)fclose(maps);
	return found;
}

enum page_state { IS_CLEAN, IS_DIRTY, MAY_BE_DIRTY };

/* Whether the page is dirty, which only root may ask. The kernel does not answer for frames after
 * what it takes for the last. Such a page may be dirty if any page of the mapping is. */
static enum page_state state_of(pid_t tid, uint64_t address, uint64_t entry)
{
	static int flags_of = -1;
	const off_t place = (off_t)((entry & FRAME) * sizeof(uint64_t));
	uint64_t flags = 0;

	if (flags_of < 0)
		flags_of = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (place && pread(flags_of, &flags, sizeof(flags), place) == sizeof(flags))
		return flags & DIRTY ? IS_DIRTY : IS_CLEAN;
	return has_dirty_pages(tid, address) ? MAY_BE_DIRTY : IS_CLEAN;
}

/* Reads the page and compares it with what is known of it; returns whether it was written. */
static bool was_written(const struct page_walk *walk, uint64_t address, uint64_t entry,
			uint8_t *bytes)
{
	const uint64_t index = walk->one->first + (address - walk->one->start) / page_bytes();
	const pid_t tid = walk->tracee->tid;
	uint64_t *known = &walk->one->hashes->page[index];
	enum page_state state = IS_CLEAN;

	if (walk->recorder->in_virtual_time) {
		state = state_of(tid, address, entry);
		if (state == IS_CLEAN) {
			*known &= ~SAID;
			return false;
		}
	}
	if (memory_read(tid, address, bytes, page_bytes()) != (int64_t)page_bytes())
		return false;
	const uint64_t now = hash_of(bytes);
	const bool written = now != (*known & ~SAID) || (state == IS_DIRTY && !(*known & SAID));

	*known = now | (state == IS_DIRTY && !walk->cleans ? SAID : 0);
	return written;
}

static void visit(struct page_walk *walk, uint64_t address, uint64_t entry)
{
	const uint64_t page = page_bytes();

	if (!(entry & PRESENT)) {
		end_read(walk);
		end_written(walk);
		return;
	}
	if (walk->read.end != address)
		walk->read.start = address;
	walk->read.end = address + page;
	if (!walk->one->hashes || !walk->bytes)
		return;
	if (walk->written.end - walk->written.start == RUN_PAGES * page)
		end_written(walk);
	uint8_t *bytes = walk->bytes + (walk->written.end - walk->written.start);

	if (!was_written(walk, address, entry, bytes)) {
		end_written(walk);
		return;
	}
	if (walk->written.end != address)
		walk->written.start = address;
	walk->written.end = address + page;
}

static void walk_pages(struct page_walk *walk, uint64_t start, uint64_t end)
{
	char path[64];
	uint64_t entry[ENTRIES];

	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)walk->tracee->tid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	for (uint64_t at = start; at < end;) {
		uint64_t pages = (end - at) / page_bytes();

		pages = pages < ENTRIES ? pages : ENTRIES;
		const off_t place = (off_t)(at / page_bytes() * sizeof(*entry));
		const ssize_t got = fd < 0 ? -1 : pread(fd, entry, pages * sizeof(*entry), place);
		const bool seen = got == (ssize_t)(pages * sizeof(*entry));

		if (!seen)
			count_one(walk->recorder, "pages of mappings that could not be looked at");
		for (uint64_t i = 0; i < pages; i++, at += page_bytes())
			visit(walk, at, seen ? entry[i] : PRESENT);
	}
	if (fd >= 0)
		(void)close(fd);
	end_read(walk);
	end_written(walk);
}

static void say_part(struct recorder *recorder, struct tracee *tracee, struct mapping *one,
		     const struct page_run *part, enum space_saying what)
{
	const bool reads = what == SAY_ALL || what == SAY_GONE;
	struct page_walk walk = {recorder, tracee, one, .reads = reads,
				 .cleans = what == SAY_SYNCED};

	if (!reads && !one->hashes)
		return;
	walk.bytes = one->hashes ? malloc(RUN_PAGES * page_bytes() + page_bytes()) : NULL;
	walk_pages(&walk, part->start, part->end);
	free(walk.bytes);
}

/* Removes a part of a mapping, which leaves up to two. */
static void cut(struct mapping **place, const struct page_run *part)
{
	struct mapping *one = *place;
	struct mapping *before =
		part->start > one->start ? copy_of(one, one->start, part->start) : NULL;
	struct mapping *behind = part->end < one->end ? copy_of(one, part->end, one->end) : NULL;

	*place = one->next;
	if (behind) {
		behind->next = *place;
		*place = behind;
	}
	if (before) {
		before->next = *place;
		*place = before;
	}
	drop(one);
}

void space_say(struct recorder *recorder, struct tracee *tracee, uint64_t address, uint64_t length,
	       enum space_saying what)
{
	const uint64_t end = (address + length + page_bytes() - 1) / page_bytes() * page_bytes();
	struct mapping **place = &tracee->space->first;

	while (*place) {
		struct mapping *one = *place;
		const struct page_run part = {address > one->start ? address : one->start,
					      end < one->end ? end : one->end};

		if (part.start >= part.end) {
			place = &one->next;
			continue;
		}
		say_part(recorder, tracee, one, &part, what);
		if (what == SAY_GONE)
			cut(place, &part);
		else
			place = &one->next;
	}
}

void space_say_file(struct recorder *recorder, struct tracee *tracee,
		    const struct description *description)
{
	for (struct mapping *one = tracee->space->first; one; one = one->next) {
		const struct page_run part = {one->start, one->end};

		if (!description ||
		    (one->file == description->file && one->device == description->device))
			say_part(recorder, tracee, one, &part, SAY_SYNCED);
	}
}

bool space_look(struct recorder *recorder, struct tracee *tracee)
{
	bool compared = false;

	if (!recorder->in_virtual_time)
		return false;
	for (struct mapping *one = tracee->space->first; one; one = one->next) {
		const struct page_run part = {one->start, one->end};

		say_part(recorder, tracee, one, &part, SAY_CHANGED);
		compared = compared || one->hashes;
	}
	return compared;
}

void space_moved(struct tracee *tracee, const struct record_row *row)
{
	const uint64_t length = ((uint64_t)row->to_offset + page_bytes() - 1) / page_bytes();

	for (struct mapping *one = tracee->space->first; one; one = one->next) {
		if (one->start != row->address)
			continue;
		const uint64_t pages = (one->end - one->start) / page_bytes();

		/* Pages that a mapping gained have no hashes, so all of them are reported. */
		if (one->hashes && length > pages) {
			struct page_hashes *more = hashes_of(length);

			if (more)
				memcpy(more->page, one->hashes->page + one->first,
				       pages * sizeof(more->page[0]));
			release(one->hashes);
			one->hashes = more;
			one->first = 0;
		}
		one->start = (uint64_t)row->result;
		one->end = one->start + length * page_bytes();
		return;
	}
}

void space_protected(struct recorder *recorder, struct tracee *tracee, const struct record_row *row)
{
	if (!(row->mode & PROTECT_WRITE))
		return;
	for (struct mapping *one = tracee->space->first; one; one = one->next)
		if (one->may_write && !one->hashes && row->address < one->end &&
		    row->address + (uint64_t)row->length > one->start)
			compare_from_now(recorder, tracee, one, -1);
}
