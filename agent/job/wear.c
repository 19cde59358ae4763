/* SPDX-License-Identifier: Apache-2.0 */
/* Erases of every block: since its group began, and since the mark.
 *
 * On flashbed_nand the file `blocks` has each block's erases since the module was loaded. A group
 * subtracts those before it, so a case does not depend on earlier ones. On other chips only the
 * erases seen during the measurement are known, for the blocks that had any.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

/* Makes both arrays long enough for `block`. */
static int grow(struct wear *wear, uint32_t block)
{
	const size_t blocks = (size_t)block + 1;

	if (blocks <= wear->blocks)
		return 0;
	const size_t wanted = blocks > 2 * wear->blocks ? blocks : 2 * wear->blocks;
	struct block_wear *more = realloc(wear->of, wanted * sizeof(*more));

	if (!more)
		return -ENOMEM;
	memset(more + wear->blocks, 0, (wanted - wear->blocks) * sizeof(*more));
	wear->of = more;
	wear->blocks = wanted;
	return 0;
}

static int take_before(void *context, uint32_t block, uint32_t erases, const char *state)
{
	struct wear *wear = context;
	const int err = grow(wear, block);

	(void)state;
	if (!err)
		wear->of[block].before = erases;
	return err;
}

int wear_begin(struct wear *wear)
{
	return nandlog_there() ? nandlog_each_block(take_before, wear) : 0;
}

void wear_mark(struct wear *wear)
{
	for (size_t block = 0; block < wear->blocks; block++)
		wear->of[block].measured = wear->of[block].later = wear->of[block].flushed = 0;
}

int wear_erased(struct wear *wear, uint32_t block)
{
	const int err = grow(wear, block);

	if (!err)
		wear->of[block].measured++;
	return err;
}

struct said {
	struct wear *wear;
	struct channel *out;
};

static int say_block(void *context, uint32_t block, uint32_t erases, const char *state)
{
	const struct said *said = context;
	const int err = grow(said->wear, block);

	if (err)
		return err;
	const struct block_wear *of = &said->wear->of[block];

	return channel_printf(said->out, "w %" PRIu32 " %" PRIu32 " %" PRIu32 " %s\n", block,
			      erases - of->before - of->later, of->measured, state);
}

int wear_erased_later(struct wear *wear, uint32_t block, bool flushed)
{
	const int err = grow(wear, block);

	if (err)
		return err;
	wear->of[block].later++;
	wear->of[block].flushed += flushed;
	return 0;
}

int wear_say_flushed(const struct wear *wear, struct channel *out)
{
	int err = 0;

	for (size_t block = 0; block < wear->blocks && !err; block++)
		if (wear->of[block].flushed)
			err = channel_printf(out, "b %zu %" PRIu32 "\n", block,
					     wear->of[block].flushed);
	return err;
}

int wear_say(struct wear *wear, struct channel *out)
{
	struct said said = {wear, out};
	int err = 0;

	if (nandlog_there())
		return nandlog_each_block(say_block, &said);
	for (size_t block = 0; block < wear->blocks && !err; block++)
		if (wear->of[block].measured)
			err = channel_printf(out, "w %zu - %" PRIu32 " -\n", block,
					     wear->of[block].measured);
	return err;
}

void wear_free(struct wear *wear)
{
	free(wear->of);
	memset(wear, 0, sizeof(*wear));
}
