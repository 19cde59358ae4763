/* SPDX-License-Identifier: Apache-2.0 */
/* The stream: a header, then chunks (agent/PROTOCOL.md).
 *
 * A chunk is a head of 24 bytes, then rows of one size, then their texts and bytes in the order of
 * the rows. It is written whole, from one buffer for rows and one for texts, so the recorder's
 * memory does not grow with the recording. The reader may be slow: the time that a write blocks is
 * counted, and nothing is lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"

enum { ROWS = 2048, TEXT_BYTES = 1 << 19 };

struct chunk_head {
	char tag[4];
	uint32_t rows;
	uint64_t bytes; /* after the head */
	uint64_t oldest;
};

static const char header[] = "flashbed-record 1\n";

static int write_all(struct row_stream *stream, const void *from, size_t count)
{
	const uint8_t *bytes = from;

	while (count > 0 && !stream->error) {
		const ssize_t put = write(stream->handle, bytes, count);

		if (put < 0 && errno != EINTR)
			stream->error = -errno;
		if (put > 0) {
			bytes += put;
			count -= (size_t)put;
			stream->written_bytes += (uint64_t)put;
		}
	}
	return stream->error;
}

int rows_init(struct row_stream *stream, int handle)
{
	memset(stream, 0, sizeof(*stream));
	stream->handle = handle;
	stream->row = malloc(ROWS * sizeof(*stream->row));
	stream->text = malloc(TEXT_BYTES);
	if (!stream->row || !stream->text)
		return -ENOMEM;
	return write_all(stream, header, sizeof(header) - 1);
}

int rows_flush(struct row_stream *stream)
{
	const uint64_t bytes = stream->rows * sizeof(*stream->row);
	const struct chunk_head head = {
		.tag = {'r', 'o', 'w', 's'},
		.rows = (uint32_t)stream->rows,
		.bytes = bytes + stream->texts,
		.oldest = stream->oldest,
	};
	const uint64_t begin = now_ns();

	if (stream->rows == 0)
		return stream->error;
	if (!write_all(stream, &head, sizeof(head)) && !write_all(stream, stream->row, bytes))
		(void)write_all(stream, stream->text, stream->texts);
	stream->rows = 0;
	stream->texts = 0;
	stream->blocked_ns += now_ns() - begin;
	return stream->error;
}

int rows_facts(struct row_stream *stream, const char *tag, const char *text)
{
	struct chunk_head head = {.bytes = strlen(text), .oldest = stream->oldest};

	memcpy(head.tag, tag, sizeof(head.tag));
	if (!rows_flush(stream) && !write_all(stream, &head, sizeof(head)))
		(void)write_all(stream, text, head.bytes);
	return stream->error;
}

static struct record_row *next_row(struct row_stream *stream, size_t texts)
{
	if (stream->rows == ROWS || stream->texts + texts > TEXT_BYTES)
		(void)rows_flush(stream);
	if (stream->rows == 0)
		stream->first_ns = now_ns();
	return &stream->row[stream->rows++];
}

void rows_add(struct row_stream *stream, const struct record_row *row, const char *const *texts)
{
	size_t length[ROW_TEXTS] = {0};
	size_t all = 0;

	for (int i = 0; i < ROW_TEXTS; i++) {
		length[i] = texts && texts[i] ? strlen(texts[i]) : 0;
		all += length[i];
	}
	struct record_row *new = next_row(stream, all);

	*new = *row;
	new->bytes = 0;
	for (int i = 0; i < ROW_TEXTS; i++) {
		new->text[i] = (uint16_t)length[i];
		if (length[i])
			memcpy(stream->text + stream->texts, texts[i], length[i]);
		stream->texts += length[i];
	}
}

/* The bytes of the row that was added last. If its chunk has no space for the rest, they become a
 * row of their own without a call. */
uint8_t *rows_bytes(struct row_stream *stream, const struct record_row *row, size_t *count)
{
	struct record_row *last = stream->rows ? &stream->row[stream->rows - 1] : NULL;

	if (!last || stream->texts == TEXT_BYTES) {
		last = next_row(stream, 1);
		memset(last, 0, sizeof(*last));
		last->order = row->order;
		last->start_ns = row->start_ns;
		last->task = row->task;
	}
	if (*count > TEXT_BYTES - stream->texts)
		*count = TEXT_BYTES - stream->texts;
	last->bytes += (uint32_t)*count;
	uint8_t *at = stream->text + stream->texts;

	stream->texts += *count;
	return at;
}
