// SPDX-License-Identifier: GPL-2.0-only
/* Power cuts at any moment of a run without running it again: a snapshot of the chip, and every
 * change since with its bytes.
 *
 * No kernel code does this. A rewind returns to the snapshot and repeats changes with the functions
 * that made them (cells.c), the last one torn. A sweep upwards repeats each change only once,
 * because `reached` is kept between rewinds. Leaves out reads, and blocks or pages changed by
 * loading an image (which ends the recording). Invariants:
 * 1. Repeating all changes on the snapshot gives the chip as it was after the last recorded change,
 *    including failures and drops.
 * 2. After the first rewind nothing is added, because later changes belong to another history.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

struct fbn_change {
	struct fbn_effect effect;
	u32 page; /* for an erase the block */
	u16 from;
	u16 to;
	bool erase;
	u8 bytes[];
};

static bool make_room(struct fbn_history *history)
{
	const u32 size = history->size ? 2 * history->size : 256;
	struct fbn_change **changes;

	if (history->used < history->size)
		return true;
	changes = kvmalloc_array(size, sizeof(*changes), GFP_NOIO);
	if (!changes)
		return false;
	if (history->used)
		memcpy(changes, history->changes, history->used * sizeof(*changes));
	kvfree(history->changes);
	history->changes = changes;
	history->size = size;
	return true;
}

static void add(const struct fbn_program *program, bool erase, struct fbn_effect effect)
{
	struct fbn_history *history = &flashbed.history;
	const u32 count = program->to - program->from;
	struct fbn_change *change;

	if (!history->open)
		return;
	flashbed.counts.changes++;
	change = make_room(history) ? kmalloc(sizeof(*change) + count, GFP_NOIO) : NULL;
	if (!change) {
		history->broken = true;
		flashbed.counts.lost++;
		return;
	}
	change->effect = effect;
	change->page = program->page;
	change->from = program->from;
	change->to = program->to;
	change->erase = erase;
	memcpy(change->bytes, program->bytes, count);
	history->changes[history->used++] = change;
}

void fbn_history_add_program(const struct fbn_program *program, struct fbn_effect effect)
{
	add(program, false, effect);
}

void fbn_history_add_erase(u32 block, struct fbn_effect effect)
{
	const struct fbn_program none = {.page = block, .bytes = flashbed.scratch};

	add(&none, true, effect);
}

static int repeat(struct fbn_cells *cells, const struct fbn_change *change,
		  struct fbn_effect effect)
{
	const struct fbn_program program = {change->page, change->from, change->to, change->bytes};

	return change->erase ? fbn_cells_erase(cells, change->page, effect)
			     : fbn_cells_program(cells, &program, effect);
}

void fbn_history_forget(void)
{
	struct fbn_history *history = &flashbed.history;

	while (history->used)
		kfree(history->changes[--history->used]);
	kvfree(history->changes);
	fbn_cells_free(&history->snapshot);
	fbn_cells_free(&history->reached);
	memset(history, 0, sizeof(*history));
	flashbed.counts.changes = 0;
}

int fbn_history_start(void)
{
	struct fbn_history *history = &flashbed.history;
	int err;

	fbn_history_forget();
	err = fbn_cells_share(&history->snapshot, &flashbed.cells);
	if (err)
		return err;
	history->there = true;
	history->open = true;
	return 0;
}

/* Advances `reached` to the state after the first `changes` changes. */
static int reach(struct fbn_history *history, u32 changes)
{
	int err = 0;

	if (history->reached.blocks && history->reached_changes > changes)
		fbn_cells_free(&history->reached);
	if (!history->reached.blocks) {
		err = fbn_cells_share(&history->reached, &history->snapshot);
		history->reached_changes = 0;
	}
	while (!err && history->reached_changes < changes) {
		const struct fbn_change *change = history->changes[history->reached_changes];

		err = repeat(&history->reached, change, change->effect);
		if (!err)
			history->reached_changes++;
	}
	if (err)
		fbn_cells_free(&history->reached);
	return err;
}

/* Sets the chip to the state of a power cut in change number `change` (from 1; one more than there
 * are: after the last one).
 */
int fbn_history_rewind(u64 change, u64 seed)
{
	struct fbn_history *history = &flashbed.history;
	struct fbn_cells cells = {};
	int err;

	if (!history->there || history->broken || change < 1 || change > (u64)history->used + 1)
		return -EINVAL;
	err = reach(history, change - 1);
	if (!err)
		err = fbn_cells_share(&cells, &history->reached);
	if (!err && change <= history->used)
		err = repeat(&cells, history->changes[change - 1], fbn_torn(seed));
	if (err) {
		fbn_cells_free(&cells);
		return err;
	}
	fbn_cells_free(&flashbed.cells);
	flashbed.cells = cells;
	history->open = false;
	return 0;
}
