/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the bytes to write, FILL of docs/reference/operations.md: pieces, and the BASE64 of
 * `data` lines. data.c generates the bytes. Uses no kernel interface. */
#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

enum { PAGE = 4096, MAX_DATA_BYTES = 3000 };

static bool pieces_check(const char *text, uint64_t offset, uint64_t length)
{
	const uint64_t end = offset + length;
	struct fill_piece piece;
	uint64_t at = offset;

	for (bool more = true; more;) {
		more = data_next_piece(&text, &piece);
		if (piece.times == 0)
			return false;
		for (uint64_t i = 0; i < piece.times; i++) {
			const uint64_t page_end = (at / PAGE + 1) * PAGE;
			const uint64_t stop = page_end < end ? page_end : end;

			if (at == end || piece.zeroes > stop - at ||
			    piece.common + piece.own > stop - at - piece.zeroes)
				return false;
			at = stop;
		}
	}
	return at == end;
}

bool fill_check(const char *text, uint64_t offset, uint64_t length, uint64_t seed)
{
	uint64_t percent = 0;

	if (strcmp(text, "data") == 0)
		return seed == 0;
	if (strchr(text, '+'))
		return pieces_check(text, offset, length);
	return number_parse(text, strlen(text), &percent) && percent <= 100;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int64_t data_decode(char *text)
{
	const size_t length = strlen(text);
	const size_t used = strspn(text, alphabet);
	const size_t padding = length - used;
	const char *const end = text + used;
	uint8_t *out = (uint8_t *)text;
	uint32_t bits = 0;

	if (!length || length % 4 || padding > 2 || strspn(end, "=") != padding)
		return -1;
	const int64_t count = (int64_t)(length / 4 * 3 - padding);

	if (count > MAX_DATA_BYTES)
		return -1;
	for (size_t i = 0; i < used; i++) {
		bits = bits << 6 | (uint32_t)(strchr(alphabet, text[i]) - alphabet);
		if (i % 4)
			*out++ = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	/* unused bits of the last character have to be 0 */
	return padding && bits & ((1U << (2 * padding)) - 1) ? -1 : count;
}

void base64_encode(const uint8_t *bytes, uint64_t left, char text[BASE64_CHARS])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (left > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (left > 2)
		bits |= bytes[2];
	text[0] = alphabet[bits >> 18];
	text[1] = alphabet[bits >> 12 & 63];
	text[2] = left > 1 ? alphabet[bits >> 6 & 63] : '=';
	text[3] = left > 2 ? alphabet[bits & 63] : '=';
}

void data_print(const char *bytes, uint64_t count, FILE *out)
{
	char text[BASE64_CHARS];

	for (uint64_t i = 0; i < count; i += BASE64_BYTES) {
		base64_encode((const uint8_t *)bytes + i, count - i, text);
		(void)fwrite(text, sizeof(text), 1, out);
	}
}
