// SPDX-License-Identifier: GPL-2.0-only
/* The log: one record of 48 bytes a read, program or erase, in chunks that never move, so that a
 * record can be extended in place.
 *
 * In the place of kprobe events on nand_read_page_op and its like (agent/tracing/flashmon.c). Grows
 * without limit; a record for which there is no memory is counted as lost. Invariant: chunks
 * 0..chunks_used-1 exist, and all but the last of them are full.
 */
#include <linux/build_bug.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

#define CHUNK_RECORDS 1365 /* 64 KiB */
#define CHUNK_BYTES (CHUNK_RECORDS * sizeof(struct fbn_record))
#define CHUNKS_KEPT 64 /* kept for the next run when the log is cleared */

static bool add_chunk(struct fbn_log *log)
{
	const u32 size = log->chunks_size ? 2 * log->chunks_size : 64;
	struct fbn_record **chunks;

	static_assert(sizeof(struct fbn_record) == 48, "the log's format");
	if (log->chunks_used == log->chunks_size) {
		chunks = kvcalloc(size, sizeof(*chunks), GFP_NOIO);
		if (!chunks)
			return false;
		if (log->chunks_used)
			memcpy(chunks, log->chunks, log->chunks_used * sizeof(*chunks));
		kvfree(log->chunks);
		log->chunks = chunks;
		log->chunks_size = size;
	}
	log->chunks[log->chunks_used] = fbn_memory_get(CHUNK_BYTES);
	if (!log->chunks[log->chunks_used])
		return false;
	log->chunks_used++;
	return true;
}

/* Returns where the record is now; NULL if it is lost. */
struct fbn_record *fbn_log_add(struct fbn_log *log, const struct fbn_record *record)
{
	u32 chunk = log->records_chunk;
	struct fbn_record *at;

	if (chunk == log->chunks_used && !add_chunk(log))
		return NULL;
	at = &log->chunks[chunk][log->records_in_chunk];
	*at = *record;
	if (++log->records_in_chunk == CHUNK_RECORDS) {
		log->records_in_chunk = 0;
		log->records_chunk++;
	}
	log->records++;
	return at;
}

void fbn_log_clear(struct fbn_log *log)
{
	while (log->chunks_used > CHUNKS_KEPT)
		fbn_memory_put(log->chunks[--log->chunks_used], CHUNK_BYTES);
	log->records = 0;
	log->records_chunk = 0;
	log->records_in_chunk = 0;
}

void fbn_log_free(struct fbn_log *log)
{
	while (log->chunks_used)
		fbn_memory_put(log->chunks[--log->chunks_used], CHUNK_BYTES);
	kvfree(log->chunks);
	memset(log, 0, sizeof(*log));
}

/* The record of that number, and in `run` how many follow it in the same chunk, itself included;
 * NULL after the end.
 */
const struct fbn_record *fbn_log_at(const struct fbn_log *log, u64 number, u32 *run)
{
	u32 chunk;
	u32 in_chunk;

	if (number >= log->records)
		return NULL;
	chunk = div_u64_rem(number, CHUNK_RECORDS, &in_chunk);
	*run = min_t(u64, log->records - number, CHUNK_RECORDS - in_chunk);
	return &log->chunks[chunk][in_chunk];
}
