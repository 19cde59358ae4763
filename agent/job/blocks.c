/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of bytes that surveys find and no content names: each is sent once, as a row `k` of
 * `flashbed-stream 1`, and has a number by which later rows refer to it.
 *
 * Kept are fingerprints of 128 bits rather than the bytes, so that the memory of the machine that
 * is measured stays free. Uses no kernel interface.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

enum { FIRST_CAPACITY = 256 };

/* Two chains of splitmix64, which differ in their seeds. */
static struct block fingerprint_of(const uint8_t *bytes, size_t length)
{
	struct block block = {.fingerprint = {1, 2}, .length = (uint32_t)length};

	for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
		const size_t left = length - at;
		uint64_t word = 0;

		memcpy(&word, bytes + at, left < sizeof(word) ? left : sizeof(word));
		block.fingerprint[0] = data_word(block.fingerprint[0] ^ word, at);
		block.fingerprint[1] = data_word(block.fingerprint[1] + word, ~at);
	}
	return block;
}

/* The place of a block, or the free one where it belongs. */
static struct block *place_of(const struct blocks *blocks, const struct block *block)
{
	size_t at = (size_t)block->fingerprint[0];

	for (;; at++) {
		struct block *place = &blocks->places[at & (blocks->capacity - 1)];

		if (!place->length || (place->length == block->length &&
				       memcmp(place->fingerprint, block->fingerprint,
					      sizeof(place->fingerprint)) == 0))
			return place;
	}
}

/* Keeps at least half of the places free. */
static int make_room(struct blocks *blocks)
{
	struct blocks more = *blocks;

	if (2 * (size_t)blocks->count < blocks->capacity)
		return 0;
	more.capacity = blocks->capacity ? 2 * blocks->capacity : FIRST_CAPACITY;
	more.places = calloc(more.capacity, sizeof(*more.places));
	if (!more.places)
		return -ENOMEM;
	for (size_t i = 0; i < blocks->capacity; i++) {
		if (blocks->places[i].length)
			*place_of(&more, &blocks->places[i]) = blocks->places[i];
	}
	free(blocks->places);
	*blocks = more;
	return 0;
}

static int say_base64(struct channel *out, const uint8_t *bytes, size_t length)
{
	char text[BASE64_CHARS];
	int err = 0;

	for (size_t i = 0; i < length && !err; i += BASE64_BYTES) {
		base64_encode(bytes + i, length - i, text);
		err = channel_put(out, text, sizeof(text));
	}
	return err ? err : channel_printf(out, "\n");
}

int blocks_number(struct blocks *blocks, struct channel *out, const uint8_t *bytes, size_t length,
		  uint32_t *number)
{
	const struct block block = fingerprint_of(bytes, length);
	int err = make_room(blocks);

	if (err)
		return err;
	struct block *place = place_of(blocks, &block);

	if (!place->length) {
		*place = block;
		place->number = blocks->count++;
		err = channel_printf(out, "k %" PRIu32 " ", place->number);
		if (!err)
			err = say_base64(out, bytes, length);
	}
	*number = place->number;
	return err;
}
