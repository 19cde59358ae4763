/* SPDX-License-Identifier: Apache-2.0 */
/* Flash operations, seen by kprobe events on the NAND core's functions; no kernel module of ours.
 *
 * Kernel interface: tracefs. `kprobe_events` arms one event a function of drivers/mtd/nand/raw/nand_base.c:
 *   nand_read_page_op                                one page-read command; with exec_op drivers nand_read_oob_op ends here as well
 *   nand_prog_page_begin_op, nand_prog_page_op       one program each; the second is used for the spare area alone
 *   nand_erase_op                                    one erase
 * Counts are differences of `kprobe_profile`, which does not depend on the ring buffer; rows come from per_cpu/cpu0/trace_pipe_raw, whose
 * binary pages keep nanoseconds (the text has microseconds). The events are armed and drained alike whether rows are wanted or not, so
 * that times are the same. Fewer rows than counts means that the ring buffer overflowed: the caller reports it.
 *
 * Leaves out: column changes within a page (nand_change_read_column_op), controllers that bypass these functions, more than one CPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

#define TRACEFS "/sys/kernel/tracing/"

/* Where the second, third and fifth argument of a function are at its entry. */
#if defined(__arm__)
#define ARGUMENTS "page=%r1:u32 column=%r2:u32 length=$stack0:u32"
#define ERASE_ARGUMENTS "page=%r1:u32"
#elif defined(__aarch64__)
#define ARGUMENTS "page=%x1:u32 column=%x2:u32 length=%x4:u32"
#define ERASE_ARGUMENTS "page=%x1:u32"
#elif defined(__x86_64__)
#define ARGUMENTS "page=%si:u32 column=%dx:u32 length=%r8:u32"
#define ERASE_ARGUMENTS "page=%si:u32"
#elif defined(__riscv)
#define ARGUMENTS "page=%a1:u32 column=%a2:u32 length=%a4:u32"
#define ERASE_ARGUMENTS "page=%a1:u32"
#else
#define ARGUMENTS "page=$arg2:u32 column=$arg3:u32 length=$arg5:u32"
#define ERASE_ARGUMENTS "page=$arg2:u32"
#endif

enum { PROBES = 4, RING_PAGE = 4096, TASKS = 64, TASK_NAME = 32 };

static struct probe {
	const char *event;
	const char *function;
	const char *arguments;
	enum flash_kind kind;
	unsigned int id;
	unsigned int page_at;
	unsigned int column_at;
	unsigned int length_at;
} probes[PROBES] = {
	{"read", "nand_read_page_op", ARGUMENTS, FLASH_READ, 0, 0, 0, 0},
	{"program", "nand_prog_page_begin_op", ARGUMENTS, FLASH_PROGRAM, 0, 0, 0, 0},
	{"program_at_once", "nand_prog_page_op", ARGUMENTS, FLASH_PROGRAM, 0, 0, 0, 0},
	{"erase", "nand_erase_op", ERASE_ARGUMENTS, FLASH_ERASE, 0, 0, 0, 0},
};

static struct task {
	int pid;
	char name[TASK_NAME];
} tasks[TASKS];

static int ring = -1;

/* `field:u32 NAME;	offset:N;` of an event's format file; 0 when it has no such field. */
static unsigned int field_offset(const char *format, const char *name)
{
	char wanted[40];

	(void)snprintf(wanted, sizeof(wanted), " %s;\toffset:", name);
	const char *found = strstr(format, wanted);

	return found ? (unsigned int)strtoul(found + strlen(wanted), NULL, 10) : 0;
}

static int arm_probe(struct probe *probe)
{
	char path[128];
	char text[2048];
	const int fd = open(TRACEFS "kprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "p:flashbed/%s %s %s\n", probe->event, probe->function, probe->arguments);
	int err = write(fd, text, strlen(text)) < 0 ? -errno : 0;

	(void)close(fd);
	if (err)
		return err;
	(void)snprintf(path, sizeof(path), TRACEFS "events/flashbed/%s/format", probe->event);
	err = read_file(path, text, sizeof(text));
	if (err < 0)
		return err;
	const char *id = strstr(text, "ID: ");

	if (!id)
		return -EPROTO;
	probe->id = (unsigned int)strtoul(id + 4, NULL, 10);
	probe->page_at = field_offset(text, "page");
	probe->column_at = field_offset(text, "column");
	probe->length_at = field_offset(text, "length");
	return probe->page_at ? 0 : -EPROTO;
}

int flashmon_arm(char *points, size_t size)
{
	char path[128];

	if (sysconf(_SC_NPROCESSORS_ONLN) != 1)
		return -ENOTSUP;
	int err = write_file(TRACEFS "trace_clock", "mono");

	if (!err)
		err = write_file(TRACEFS "buffer_size_kb", "16384");
	for (int i = 0; i < PROBES && !err; i++) {
		err = arm_probe(&probes[i]);
		(void)snprintf(path, sizeof(path), TRACEFS "events/flashbed/%s/enable", probes[i].event);
		if (!err)
			err = write_file(path, "1");
		const size_t used = i ? strlen(points) : 0;

		(void)snprintf(points + used, size - used, "%s%s", i ? "," : "", probes[i].function);
	}
	if (err)
		return err;
	ring = open(TRACEFS "per_cpu/cpu0/trace_pipe_raw", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return ring < 0 ? -errno : 0;
}

int flashmon_counts(struct flash_counts *counts)
{
	char text[1024];
	char *line = text;
	const int err = read_file(TRACEFS "kprobe_profile", text, sizeof(text));

	if (err < 0)
		return err;
	while (*line) {
		char *end = line + strcspn(line, "\n");
		char *name = line + strspn(line, " ");
		char *name_end = name + strcspn(name, " \n");

		for (int i = 0; i < PROBES; i++) {
			if (strlen(probes[i].event) == (size_t)(name_end - name) && !strncmp(probes[i].event, name, strlen(probes[i].event))) {
				counts->of[probes[i].kind] += strtoull(name_end, &name_end, 10);
				counts->missed += strtoull(name_end, &name_end, 10);
				break;
			}
		}
		line = *end ? end + 1 : end;
	}
	return 0;
}

static const char *task_name(int pid)
{
	struct task *task = NULL;
	char path[40];

	for (int i = 0; i < TASKS; i++) {
		task = &tasks[i];
		if (task->name[0] == '\0' || task->pid == pid)
			break;
	}
	if (task->name[0] && task->pid == pid)
		return task->name;
	task->pid = pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (pid == 0)
		(void)snprintf(task->name, sizeof(task->name), "idle");
	else if (read_file(path, task->name, sizeof(task->name)) <= 0)
		(void)snprintf(task->name, sizeof(task->name), "pid-%d", pid);
	task->name[strcspn(task->name, "\n")] = '\0';
	for (char *byte = task->name; *byte; byte++)
		if (*byte == ' ')
			*byte = '_';
	return task->name;
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

struct reader {
	flash_sink sink;
	void *context;
};

/* An event's own bytes: u16 type, u8 flags, u8 preempt count, s32 pid, then what its format says. */
static int emit(const struct reader *reader, uint64_t time_ns, const uint8_t *data)
{
	struct flash_event event = {.start_ns = time_ns, .duration_ns = -1};
	const struct probe *probe = NULL;
	uint16_t type;

	memcpy(&type, data, sizeof(type));
	for (int i = 0; i < PROBES; i++)
		if (probes[i].id == type)
			probe = &probes[i];
	if (!probe)
		return 0;
	event.kind = probe->kind;
	if (event.kind == FLASH_ERASE) {
		event.block = u32_at(data + probe->page_at);
	} else {
		event.page = u32_at(data + probe->page_at);
		event.column = u32_at(data + probe->column_at);
		event.length = u32_at(data + probe->length_at);
	}
	(void)snprintf(event.task, sizeof(event.task), "%s", task_name((int)u32_at(data + 4)));
	return reader->sink(reader->context, &event);
}

/* One page of the ring buffer: u64 time stamp, long used bytes, then events (include/linux/ring_buffer.h of the kernel). */
static int emit_page(const struct reader *reader, const uint8_t *page)
{
	const size_t start = sizeof(uint64_t) + sizeof(long);
	uint64_t time_ns;

	memcpy(&time_ns, page, sizeof(time_ns));
	const size_t end = start + (u32_at(page + sizeof(uint64_t)) & 0xfffff);

	for (size_t at = start; at + 8 <= end && end <= RING_PAGE;) {
		const uint32_t head = u32_at(page + at);
		const uint32_t next = u32_at(page + at + 4);
		const unsigned int type = head & 31;
		int err = 0;

		if (type == 29 && head >> 5 == 0)
			break;
		if (type == 31) {
			time_ns = ((uint64_t)next << 27) + (head >> 5);
			at += 8;
			continue;
		}
		time_ns += head >> 5;
		if (type == 30)
			time_ns += (uint64_t)next << 27;
		else if (type == 0)
			err = emit(reader, time_ns, page + at + 8);
		else if (type < 29)
			err = emit(reader, time_ns, page + at + 4);
		if (err)
			return err;
		at += type == 30 ? 8 : 4 + (type == 0 || type == 29 ? next : type * 4);
	}
	return 0;
}

static int drain(const struct reader *reader)
{
	static uint8_t page[RING_PAGE] __attribute__((aligned(8)));

	for (;;) {
		const ssize_t got = read(ring, page, sizeof(page));

		if (got < 0 && errno == EAGAIN)
			return 0;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		const int err = reader ? emit_page(reader, page) : 0;

		if (err)
			return err;
	}
}

int flashmon_discard(void)
{
	return drain(NULL);
}

int flashmon_events(flash_sink sink, void *context)
{
	const struct reader reader = {sink, context};

	return drain(&reader);
}
