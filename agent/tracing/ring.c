/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's ring buffer in binary: events of all processors in order of time.
 *
 * Kernel interface: per_cpu/cpuN/trace_pipe_raw of tracefs, whose pages have nanoseconds (the text
 * has microseconds). events/header_page has a page's layout, include/linux/ring_buffer.h an event's
 * head, and an event's `format` its fields.
 *
 * Invariant: of each processor one page is read ahead, and no event later than the requested time
 * is passed on. If that time is not after the reading, no earlier event can still come.
 * per_cpu/cpuN/stats counts lost events (tracefs.c), not this file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { PATH_BYTES = 320, RECORD_HEAD = 8 };

/* A processor's buffer: the page that was read last, and the position of the next event in it. */
struct reader {
	int fd;
	uint8_t *page;
	size_t at;
	size_t end;
	uint64_t time_ns;
	struct trace_event next;
	bool has_next;
};

uint32_t trace_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

uint64_t trace_number(const uint8_t *bytes, unsigned int size)
{
	uint64_t wide;
	uint16_t narrow;

	switch (size) {
	case 8:
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	case 4:
		return trace_u32(bytes);
	case 2:
		memcpy(&narrow, bytes, sizeof(narrow));
		return narrow;
	default:
		return *bytes;
	}
}

/* The position of a string: the lower half is its offset from the record's beginning, the upper
 * half its length with the final 0. */
const char *trace_string(const struct trace_event *event, unsigned int offset, char *text,
			 size_t size)
{
	const uint32_t where = trace_u32(event->data + offset);
	const size_t at = where & 0xffff;
	size_t length = where >> 16;

	text[0] = '\0';
	if (!length || at + length > event->length)
		return text;
	if (length > size - 1)
		length = size - 1;
	memcpy(text, event->data + at, length);
	text[length] = '\0';
	return text;
}

/* Parses `field:TYPE NAME;	offset:N;	size:N;` of a format; arrays are `NAME[N]`. */
int trace_field(const char *format, const char *name, unsigned int *offset, unsigned int *size)
{
	const size_t length = strlen(name);

	for (const char *line = strstr(format, "field:"); line; line = strstr(line + 1, "field:")) {
		const char *end = strchr(line, ';');
		const char *at = end;

		if (!end)
			break;
		while (at > line && at[-1] != ' ' && at[-1] != '*')
			at--;
		if (strncmp(at, name, length) == 0 && (at[length] == ';' || at[length] == '['))
			return sscanf(end, ";%*[ \t]offset:%u;%*[ \t]size:%u", offset, size) == 2
				       ? 0
				       : -EPROTO;
	}
	return -ENOENT;
}

static int read_layout(struct ring *ring, const char *root)
{
	char path[PATH_BYTES];
	char text[1024];
	unsigned int size = 0;
	unsigned int ignored;

	(void)snprintf(path, sizeof(path), "%s/events/header_page", root);
	int err = read_file(path, text, sizeof(text));

	err = err < 0 ? err : trace_field(text, "commit", &ring->commit_at, &ignored);
	if (!err)
		err = trace_field(text, "data", &ring->data_at, &size);
	ring->page_bytes = ring->data_at + size;
	return err;
}

static int open_readers(struct ring *ring, const char *directory)
{
	char path[PATH_BYTES + 64];

	for (;;) {
		(void)snprintf(path, sizeof(path), "%s/per_cpu/cpu%zu/trace_pipe_raw", directory,
			       ring->processors);
		const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0)
			return ring->processors ? 0 : -errno;
		struct reader *more =
			realloc(ring->readers, (ring->processors + 1) * sizeof(*more));

		if (!more) {
			(void)close(fd);
			return -ENOMEM;
		}
		ring->readers = more;
		more[ring->processors] = (struct reader){.fd = fd};
		more[ring->processors].page = calloc(1, ring->page_bytes + RECORD_HEAD);
		if (!more[ring->processors++].page)
			return -ENOMEM;
	}
}

/* An event's bytes: u16 type, u8 flags, u8 preempt count, s32 pid, then the fields of its format.
 */
static void found(struct reader *reader, const uint8_t *data, size_t length)
{
	reader->has_next = length >= RECORD_HEAD;
	reader->next =
		(struct trace_event){.time_ns = reader->time_ns, .data = data, .length = length};
	reader->next.type = (unsigned int)trace_number(data, 2);
	reader->next.pid = (int)trace_u32(data + 4);
}

/* Parses the next event of a page (include/linux/ring_buffer.h of the kernel). */
static void parse_next(struct reader *reader)
{
	while (!reader->has_next && reader->at + 4 <= reader->end) {
		const uint8_t *at = reader->page + reader->at;
		const uint32_t head = trace_u32(at);
		const uint32_t word = trace_u32(at + 4);
		const unsigned int type = head & 31;
		size_t length = type * 4;

		if (type == 29 && head >> 5 == 0) {
			reader->at = reader->end;
			return;
		}
		if (type == 31)
			reader->time_ns = ((uint64_t)word << 27) + (head >> 5);
		else
			reader->time_ns += (head >> 5) + (type == 30 ? (uint64_t)word << 27 : 0);
		if (type >= 30)
			length = 4;
		else if (type == 0 || type == 29)
			length = word;
		if (type == 0 && length > 4)
			found(reader, at + 8, length - 4);
		else if (type && type < 29)
			found(reader, at + 4, length);
		reader->at += 4 + length;
	}
}

/* Reads the processor's next event into `next`, if there is one. */
static int advance(const struct ring *ring, struct reader *reader)
{
	for (;;) {
		parse_next(reader);
		if (reader->has_next)
			return 0;
		const ssize_t got = read(reader->fd, reader->page, ring->page_bytes);

		if (got <= 0)
			return got < 0 && errno != EAGAIN ? -errno : 0;
		memcpy(&reader->time_ns, reader->page, sizeof(reader->time_ns));
		reader->at = ring->data_at;
		reader->end = ring->data_at + (trace_u32(reader->page + ring->commit_at) & 0xfffff);
		if (reader->end > ring->page_bytes)
			return -EPROTO;
	}
}

int ring_drain(struct ring *ring, uint64_t until_ns, trace_sink sink, void *context)
{
	for (;;) {
		struct reader *first = NULL;

		for (size_t cpu = 0; cpu < ring->processors; cpu++) {
			struct reader *reader = &ring->readers[cpu];
			const int err = advance(ring, reader);

			if (err)
				return err;
			if (reader->has_next &&
			    (!first || reader->next.time_ns < first->next.time_ns))
				first = reader;
		}
		if (!first)
			return 0;
		struct trace_event event = first->next;

		event.time_ns += (uint64_t)ring->clock_offset_ns;
		if (event.time_ns > until_ns)
			return 0;
		first->has_next = false;
		const int err = sink ? sink(context, &event) : 0;

		if (err)
			return err;
	}
}

int ring_open(struct ring *ring, const char *root, const char *directory)
{
	const int err = read_layout(ring, root);

	return err ? err : open_readers(ring, directory);
}

void ring_close(struct ring *ring)
{
	for (size_t cpu = 0; cpu < ring->processors; cpu++) {
		(void)close(ring->readers[cpu].fd);
		free(ring->readers[cpu].page);
	}
	free(ring->readers);
	memset(ring, 0, sizeof(*ring));
}
