/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a directory: every file below it and its bytes, as rows `s`, `p`, `k` and `y` of
 * `flashbed-stream 1`.
 *
 * Bytes are named by a content that they equal: zero, or what `write` generates from a seed and a
 * compressibility (data.c), of those that the caller lists. At each offset the longest match is
 * taken, zero before any other and earlier listed ones before later ones. Where there is none of a
 * word or more, the rest of the page is sent itself, once for all surveys (blocks.c). The rows are
 * the content in another form and do not depend on which write wrote it.
 *
 * Kernel interfaces: readdir(3), fstatat(2), readlinkat(2), pread(2) of a page at a time, so that
 * one unreadable page does not hide others. Leaves out empty directories, owners, modes, times and
 * attributes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/job.h"

enum { READ_BYTES = 4096, LINE = 64, WORD = 8 };

struct surveyor {
	struct channel *out;
	struct contents *contents;
	char path[MAX_PATH_BYTES + 1];
	uint8_t *bytes;
	size_t capacity;
};

int contents_add(struct contents *contents, const struct ops *ops)
{
	for (size_t i = 0; i < ops->count; i++) {
		const struct content new = {ops->list[i].number[3], ops->list[i].number[4]};
		size_t known = 0;

		if (ops->list[i].kind == OP_SQL_OPEN)
			(void)snprintf(contents->database, sizeof(contents->database), "%s",
				       ops->list[i].field[0]);
		if (ops->list[i].kind != OP_WRITE && ops->list[i].kind != OP_STORE)
			continue;
		if (strpbrk(ops->list[i].field[4], "+d"))
			continue;
		while (known < contents->count &&
		       memcmp(&contents->list[known], &new, sizeof(new)) != 0)
			known++;
		if (known < contents->count)
			continue;
		if (contents->count == contents->capacity) {
			const size_t capacity = contents->capacity ? 2 * contents->capacity : 64;
			struct content *more = realloc(contents->list, capacity * sizeof(*more));

			if (!more)
				return -ENOMEM;
			contents->list = more;
			contents->capacity = capacity;
		}
		contents->list[contents->count++] = new;
	}
	return 0;
}

void contents_free(struct contents *contents)
{
	free(contents->list);
	free(contents->blocks.places);
	memset(contents, 0, sizeof(*contents));
}

static size_t zeros(const uint8_t *bytes, size_t length)
{
	size_t count = 0;

	while (count < length && bytes[count] == 0)
		count++;
	return count;
}

/* How many bytes at `offset` of a file equal the content: compares one word first, which rules out
 * most contents, then line by line. */
static size_t matching(const struct content *content, const uint8_t *bytes, uint64_t offset,
		       size_t length)
{
	uint8_t line[LINE];
	size_t unit = WORD;
	size_t done = 0;

	while (done < length) {
		const uint64_t at = offset + done;
		const size_t left = length - done;
		const size_t step = left < unit - at % unit ? left : unit - (size_t)(at % unit);
		size_t same = 0;

		data_fill(line, at, step, content->seed, content->compressibility);
		while (same < step && line[same] == bytes[done + same])
			same++;
		done += same;
		if (same < step)
			break;
		unit = LINE;
	}
	return done;
}

/* The longest run at the beginning of `bytes`, which are at `offset` of their file, and its name. 0
 * if no content matches. */
static size_t name_run(const struct contents *contents, const uint8_t *bytes, uint64_t offset,
		       size_t length, char *name, size_t size)
{
	size_t longest = zeros(bytes, length);

	(void)snprintf(name, size, "zero");
	for (size_t i = 0; i < contents->count && longest < length; i++) {
		const size_t same = matching(&contents->list[i], bytes, offset, length);

		if (same > longest) {
			longest = same;
			(void)snprintf(name, size, "%" PRIu64 ":%" PRIu64, contents->list[i].seed,
				       contents->list[i].compressibility);
		}
	}
	return longest;
}

static int say_run(const struct surveyor *surveyor, uint64_t offset, uint64_t length,
		   const char *what)
{
	return channel_printf(surveyor->out, "p %" PRIu64 " %" PRIu64 " %s\n", offset, length,
			      what);
}

/* Writes a row for bytes that have no name. */
static int say_block(struct surveyor *surveyor, const uint8_t *bytes, uint64_t offset,
		     size_t length)
{
	char what[16];
	uint32_t number = 0;
	const int err =
		blocks_number(&surveyor->contents->blocks, surveyor->out, bytes, length, &number);

	(void)snprintf(what, sizeof(what), "=%" PRIu32, number);
	return err ? err : say_run(surveyor, offset, length, what);
}

/* Writes rows for `length` readable bytes at `offset` of their file. */
static int say_bytes(struct surveyor *surveyor, uint64_t offset, size_t length)
{
	char name[48];
	int err = 0;

	for (size_t at = 0; at < length && !err;) {
		const uint8_t *bytes = surveyor->bytes + at;
		const size_t page = READ_BYTES - (size_t)((offset + at) % READ_BYTES);
		const size_t rest = page < length - at ? page : length - at;
		const size_t run = name_run(surveyor->contents, bytes, offset + at, length - at,
					    name, sizeof(name));
		const bool named = run >= WORD || run >= rest;

		err = named ? say_run(surveyor, offset + at, run, name)
			    : say_block(surveyor, bytes, offset + at, rest);
		at += named ? run : rest;
	}
	return err;
}

static int say_unreadable(const struct surveyor *surveyor, uint64_t offset, uint64_t length,
			  int error)
{
	char what[16];

	(void)snprintf(what, sizeof(what), "%" PRId64, result_number(error));
	return say_run(surveyor, offset, length, what);
}

/* Reads from `offset` on to the end or to an unreadable page. Returns the bytes read, and why it
 * stopped in `error`. */
static size_t read_on(struct surveyor *surveyor, int fd, uint64_t offset, uint64_t size, int *error)
{
	size_t done = 0;

	*error = 0;
	while (offset + done < size) {
		const ssize_t got =
			pread(fd, surveyor->bytes + done, READ_BYTES, (off_t)(offset + done));

		if (got <= 0) {
			*error = got < 0 ? -errno : -ENODATA;
			break;
		}
		done += (size_t)got;
	}
	return done;
}

static int say_content(struct surveyor *surveyor, int fd, uint64_t size)
{
	const size_t needed = (size_t)size + READ_BYTES;
	uint64_t at = 0;
	int error = 0;
	int err = 0;

	if (needed > surveyor->capacity) {
		uint8_t *more = realloc(surveyor->bytes, needed);

		if (!more)
			return -ENOMEM;
		surveyor->bytes = more;
		surveyor->capacity = needed;
	}
	while (at < size && !err) {
		const size_t got = read_on(surveyor, fd, at, size, &error);

		err = say_bytes(surveyor, at, got);
		at += got;
		if (!err && error) {
			const uint64_t page_end = (at / READ_BYTES + 1) * READ_BYTES;
			const uint64_t end = page_end < size ? page_end : size;

			err = say_unreadable(surveyor, at, end - at, error);
			at = end;
		}
	}
	return err;
}

/* Whether it is the database's file or one of its journals. No operation wrote these; SQLite
 * reports their content (sql/sql.c). */
static bool is_sqlites(const struct surveyor *surveyor)
{
	const char *database = surveyor->contents->database;
	const size_t length = strlen(database);

	return length && strncmp(surveyor->path, database, length) == 0 &&
	       (surveyor->path[length] == '\0' || surveyor->path[length] == '-');
}

/* Writes a name of any bytes as operations write it, and what follows it. */
static int say_name(const struct surveyor *surveyor, const char *name, const char *after)
{
	char text[NAME_CHARS];
	int err = 0;

	for (; *name && !err; name++) {
		name_encode(*name, false, text);
		err = channel_printf(surveyor->out, "%s", text);
	}
	return err ? err : channel_printf(surveyor->out, "%s", after);
}

static int say_link(const struct surveyor *surveyor, int directory, const char *name)
{
	char target[MAX_PATH_BYTES + 1];
	const ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	int err = channel_printf(surveyor->out, "y ");

	if (!err)
		err = say_name(surveyor, surveyor->path, " ");
	return err ? err : say_name(surveyor, target, "\n");
}

static int say_file(struct surveyor *surveyor, int directory, const char *name, uint64_t size,
		    int error)
{
	const int fd = error ? -1 : openat(directory, name, O_RDONLY | O_CLOEXEC);

	if (!error && fd < 0)
		error = -errno;
	int err = channel_printf(surveyor->out, "s %" PRIu64 " ", size);

	if (!err)
		err = say_name(surveyor, surveyor->path, "\n");
	if (!err && (error || !is_sqlites(surveyor)))
		err = error ? say_unreadable(surveyor, 0, size, error)
			    : say_content(surveyor, fd, size);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

/* Whether a name is that of raw.c for a disk. */
static bool is_disk(int directory, const char *name)
{
	struct stat status;

	return fstatat(directory, name, &status, 0) == 0 && S_ISBLK(status.st_mode);
}

static int say_disk(struct surveyor *surveyor, int directory, const char *name)
{
	const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	const off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	const int error = size < 0 ? -errno : 0;

	if (fd >= 0)
		(void)close(fd);
	return say_file(surveyor, directory, name, error ? 0 : (uint64_t)size, error);
}

static int in_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

/* The names in a directory except `.` and `..`, sorted. `*error` is set if the listing ended early.
 */
static int list_names(DIR *stream, char ***names, size_t *count, int *error)
{
	size_t capacity = 0;

	*names = NULL;
	*count = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(stream);

		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (*count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			char **more = realloc(*names, capacity * sizeof(*more));

			if (!more)
				return -ENOMEM;
			*names = more;
		}
		(*names)[*count] = strdup(entry->d_name);
		if (!(*names)[(*count)++])
			return -ENOMEM;
	}
	*error = -errno;
	if (*count)
		qsort(*names, *count, sizeof(**names), in_order);
	return 0;
}

static int survey_below(struct surveyor *surveyor, int directory);

/* Surveys an entry by its name in `directory`; the path up to there is `length` long. */
static int survey_entry(struct surveyor *surveyor, int directory, const char *name, size_t length)
{
	struct stat status = {0};
	const int error = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) ? -errno : 0;

	if (length + strlen(name) + 2 > sizeof(surveyor->path))
		return -ENAMETOOLONG;
	(void)snprintf(surveyor->path + length, sizeof(surveyor->path) - length, "%s%s",
		       length ? "/" : "", name);
	if (!error && S_ISLNK(status.st_mode))
		return is_disk(directory, name) ? say_disk(surveyor, directory, name)
						: say_link(surveyor, directory, name);
	if (error || !S_ISDIR(status.st_mode))
		return say_file(surveyor, directory, name, (uint64_t)status.st_size, error);
	const int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return below < 0 ? say_file(surveyor, directory, name, 0, -errno)
			 : survey_below(surveyor, below);
}

/* Surveys an open directory, and closes it. */
static int survey_below(struct surveyor *surveyor, int directory)
{
	const size_t length = strlen(surveyor->path);
	char **names = NULL;
	size_t count = 0;
	int error = 0;
	DIR *stream = fdopendir(directory);

	if (!stream) {
		(void)close(directory);
		return -ENOMEM;
	}
	int err = list_names(stream, &names, &count, &error);

	for (size_t i = 0; i < count && !err; i++)
		err = survey_entry(surveyor, directory, names[i], length);
	surveyor->path[length] = '\0';
	/* A directory whose listing fails is listed among the files, with its error. */
	if (!err && error)
		err = say_file(surveyor, directory, ".", 0, error);
	free_names(names, count);
	(void)closedir(stream);
	return err;
}

int survey(struct channel *out, struct contents *contents, const char *path)
{
	struct surveyor surveyor = {.out = out, .contents = contents};

	const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int err = directory < 0 ? -errno : survey_below(&surveyor, directory);

	free(surveyor.bytes);
	return err;
}
