// SPDX-License-Identifier: GPL-2.0-only
/* Checks the datasheet's rules for programs and reports violations. A program that breaks a rule
 * still takes effect.
 *
 * Mirrors the "programming order" and "partial page program" (NOP) sections of SLC
 * datasheets:
 *   programmed-twice            a sub-page (a quarter of the main area) that was programmed since
 *                               the erase is programmed again
 *   out-of-order                a later page of its block was programmed since the erase
 *   too-many-partial-programs   a fifth program of the page, even of its spare area alone; a second
 *                               one where a cell holds more than a bit
 *   sets-bits                   of SPI-NOR alone: a bit would become 1, which only an erase does
 * A sub-page that only gets 0xff is not programmed: nand_base.c pads a page in that way to write a
 * part of it. The bad block marker may be written at any time. Leaves out reads of erased
 * pages.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flashbed_nand.h"

#define BREACHES_MAX (1U << 20)

static bool marks_bad_block(const struct fbn_program *program)
{
	const u32 marker = fbn_marker_column();
	u32 at;

	if (program->page & (flashbed.p.pages_per_block - 1) || program->from > marker ||
	    program->to <= marker)
		return false;
	at = marker - program->from;
	return program->bytes[at] != 0xff && !memchr_inv(program->bytes, 0xff, at) &&
	       !memchr_inv(program->bytes + at + 1, 0xff, program->to - marker - 1);
}

static bool make_room(struct fbn_breaches *breaches)
{
	const u32 size = breaches->size ? 2 * breaches->size : 64;
	struct fbn_breach *list;

	if (breaches->used < breaches->size)
		return true;
	list = size <= BREACHES_MAX ? kvmalloc_array(size, sizeof(*list), GFP_NOIO) : NULL;
	if (!list)
		return false;
	if (breaches->used)
		memcpy(list, breaches->list, breaches->used * sizeof(*list));
	kvfree(breaches->list);
	breaches->list = list;
	breaches->size = size;
	return true;
}

static void report(enum fbn_rule rule, u32 page, u64 time_ns)
{
	struct fbn_breaches *breaches = &flashbed.breaches;
	struct fbn_breach *breach;

	flashbed.counts.breaches++;
	if (!make_room(breaches)) {
		flashbed.counts.lost++;
		return;
	}
	breach = &breaches->list[breaches->used++];
	breach->time_ns = time_ns;
	breach->page = page;
	breach->rule = rule;
	memcpy(breach->task, current->comm, sizeof(breach->task));
}

/* A program of NOR may be repeated, but it sets no bit. */
static bool sets_bits(const struct fbn_program *program, const struct fbn_page *page)
{
	u32 i;

	for (i = program->from; page && page->data && i < program->to; i++)
		if (program->bytes[i - program->from] & ~page->data[i])
			return true;
	return false;
}

/* Whether the program, which has not happened yet, breaks a rule. */
bool fbn_rules_check(const struct fbn_program *program, u64 time_ns)
{
	const struct fbn_parameters *p = &flashbed.p;
	const struct fbn_page *page = fbn_cells_page(&flashbed.cells, program->page);
	const struct fbn_block *block =
		&flashbed.cells.blocks[program->page >> p->page_in_block_shift];
	const u64 before = flashbed.counts.breaches;

	if (p->nor) {
		if (sets_bits(program, page))
			report(FBN_SETS_BITS, program->page, time_ns);
		return flashbed.counts.breaches != before;
	}
	if (marks_bad_block(program))
		return false;
	if (page && (page->touched & fbn_subpages_touched(program)))
		report(FBN_PROGRAMMED_TWICE, program->page, time_ns);
	if ((program->page & (p->pages_per_block - 1)) + 1 < block->next_page)
		report(FBN_OUT_OF_ORDER, program->page, time_ns);
	if (page && page->programs >= (p->bits_per_cell > 1 ? 1 : FBN_PROGRAMS_A_PAGE))
		report(FBN_TOO_MANY_PROGRAMS, program->page, time_ns);
	return flashbed.counts.breaches != before;
}

void fbn_breaches_free(void)
{
	kvfree(flashbed.breaches.list);
	memset(&flashbed.breaches, 0, sizeof(flashbed.breaches));
}

int fbn_breaches_show(struct seq_file *file, void *unused)
{
	static const char *const names[] = {"programmed-twice", "out-of-order",
					    "too-many-partial-programs", "sets-bits"};
	u32 i;

	mutex_lock(&flashbed.lock);
	for (i = 0; i < flashbed.breaches.used; i++) {
		const struct fbn_breach *breach = &flashbed.breaches.list[i];

		seq_printf(file, "%llu %s %u %u %.16s\n", breach->time_ns, names[breach->rule],
			   breach->page >> flashbed.p.page_in_block_shift, breach->page,
			   breach->task);
	}
	mutex_unlock(&flashbed.lock);
	return 0;
}
