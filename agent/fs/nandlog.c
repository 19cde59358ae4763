/* SPDX-License-Identifier: Apache-2.0 */
/* Flash operations as the chip itself recorded them: the log of our own NAND driver, flashbed_nand
 * (kernel/flashbed_nand/README.md).
 *
 * Kernel interface: /sys/kernel/debug/flashbed_nand. `ctl` takes commands. `blocks` has wear and
 * use of each block, `counts` totals (`changes`: programs and erases since `record`), `log` the
 * operations in order, each with its duration, in the layout of struct record. The log grows as
 * needed; `lost` counts operations for which the kernel had no memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/fs.h"

#define DIRECTORY "/sys/kernel/debug/flashbed_nand/"

enum { RECORDS = 256 };

struct record {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint32_t page;
	uint32_t column;
	uint32_t length;
	uint8_t kind;
	uint8_t flags;
	uint16_t zero;
	char task[16];
};

bool nandlog_there(void)
{
	return access(DIRECTORY "log", R_OK) == 0;
}

int nandlog_command(const char *text)
{
	return write_file(DIRECTORY "ctl", text);
}

/* The number after `name ` at the beginning of a line; 0 if there is no such line. */
static uint64_t number_of(const char *text, const char *name)
{
	const size_t length = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	return 0;
}

int nandlog_counts(struct flash_counts *counts)
{
	char text[512];
	const int got = read_file(DIRECTORY "counts", text, sizeof(text));

	if (got < 0)
		return got;
	counts->of[FLASH_READ] = number_of(text, "reads");
	counts->of[FLASH_PROGRAM] = number_of(text, "programs");
	counts->of[FLASH_ERASE] = number_of(text, "erases");
	counts->missed = number_of(text, "lost");
	counts->corrected = number_of(text, "corrected");
	counts->uncorrectable = number_of(text, "uncorrectable");
	counts->busy_ns = number_of(text, "busy_ns");
	counts->until_ns = now_ns();
	return 0;
}

int64_t nandlog_changes(void)
{
	char text[512];
	const int got = read_file(DIRECTORY "counts", text, sizeof(text));

	return got < 0 ? got : (int64_t)number_of(text, "changes");
}

int nandlog_discard(void)
{
	return nandlog_command("clear");
}

/* Erase counts of `count` blocks of the chip if `erases` is given, their programmed pages, and the
 * number of bad ones. */
int nandlog_blocks(uint32_t first, uint32_t count, uint32_t *erases, int64_t *pages, int64_t *bad)
{
	FILE *blocks = fopen(DIRECTORY "blocks", "re");
	char line[64];
	uint32_t found = 0;

	if (!blocks)
		return -errno;
	*pages = 0;
	*bad = 0;
	while (found < count && fgets(line, sizeof(line), blocks)) {
		uint32_t number;
		uint32_t worn;
		uint32_t programmed;
		char state[8];

		if (sscanf(line, "%" SCNu32 " %" SCNu32 " %7s %" SCNu32, &number, &worn, state,
			   &programmed) != 4)
			break;
		if (number < first)
			continue;
		if (erases)
			erases[found] = worn;
		*pages += programmed;
		*bad += strcmp(state, "bad") == 0;
		found++;
	}
	(void)fclose(blocks);
	return found == count ? 0 : -EPROTO;
}

static int give(const struct record *record, flash_sink sink, void *context)
{
	struct flash_event event = {
		.start_ns = record->start_ns,
		.duration_ns = (int64_t)record->duration_ns,
		.page = record->page,
		.column = record->column,
		.length = record->length,
		.kind = (enum flash_kind)record->kind,
	};

	if (record->kind >= FLASH_KINDS)
		return -EPROTO;
	memcpy(event.task, record->task, sizeof(record->task));
	event.task[sizeof(record->task) - 1] = '\0';
	return sink(context, &event);
}

int nandlog_events(flash_sink sink, void *context)
{
	static struct record records[RECORDS];
	const int fd = open(DIRECTORY "log", O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;
	int err = fd < 0 ? -errno : 0;

	while (!err) {
		got = read(fd, records, sizeof(records));
		if (got <= 0)
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(records[0]) && !err; i++)
			err = give(&records[i], sink, context);
		if ((size_t)got % sizeof(records[0]))
			err = -EPROTO;
	}
	if (got < 0 && !err)
		err = -errno;
	if (fd >= 0)
		(void)close(fd);
	return err;
}

int nandlog_each_block(block_sink sink, void *context)
{
	FILE *file = fopen(DIRECTORY "blocks", "re");
	uint32_t block;
	uint32_t erases;
	char state[8];
	int fields;
	int err = 0;

	if (!file)
		return -errno;
	while (!err && (fields = fscanf(file, "%" SCNu32 " %" SCNu32 " %7s%*[^\n]", &block, &erases,
					state)) == 3)
		err = sink(context, block, erases, state);
	if (!err && (fields != EOF || ferror(file)))
		err = -EPROTO;
	return fclose(file) && !err ? -errno : err;
}
