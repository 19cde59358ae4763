// SPDX-License-Identifier: GPL-2.0-only
/* Faults. What the seed decides has no state, so the same seed and operation number always give the
 * same fault.
 *
 * In the place of the weak blocks, weak pages and bit flips of drivers/mtd/nand/raw/nandsim.c.
 * Leaves out faults that cluster in a block.
 */
#include <linux/kernel.h>

#include "flashbed_nand.h"

/* How a power cut tears an operation. */
struct fbn_effect fbn_torn(u64 seed)
{
	static const u8 how[] = {FBN_NOTHING, FBN_PART, FBN_BITS, FBN_WHOLE};
	struct fbn_effect effect = {.seed = fbn_draw(seed, FBN_DRAW_TEAR, 0), .torn = true};

	effect.how = how[fbn_below(&effect.seed, ARRAY_SIZE(how))];
	return effect;
}

/* The faults that the parameters set. */
void fbn_faults_start(struct fbn_faults *faults, const struct fbn_parameters *p)
{
	*faults = (struct fbn_faults){
		.seed = p->seed,
		.program_fail_ppm = p->program_fail_ppm,
		.erase_fail_ppm = p->erase_fail_ppm,
		.bit_flip_ppm = p->bit_flip_ppm,
		.bit_flips_min = 1,
		.bit_flips_max = p->bit_flips_max,
		.wear_seed = p->seed,
		.wear_out_erases = p->wear_out_erases,
	};
}

/* Adds an operation that will fail. */
int fbn_choose(struct fbn_chosen *chosen, u64 number)
{
	if (chosen->used == FBN_CHOSEN_MAX)
		return -ENOSPC;
	chosen->numbers[chosen->used++] = number;
	return 0;
}

bool fbn_is_chosen(const struct fbn_chosen *chosen, u64 number)
{
	u32 i;

	for (i = 0; i < chosen->used; i++)
		if (chosen->numbers[i] == number)
			return true;
	return false;
}

/* The erases that a block endures: the mean, up to a tenth less or more. */
u32 fbn_endurance(const struct fbn_faults *faults, u32 block)
{
	u64 state = fbn_draw(faults->wear_seed, FBN_DRAW_WEAR, block);
	const u32 tenth = faults->wear_out_erases / 10;

	return faults->wear_out_erases - tenth + fbn_below(&state, 2 * tenth + 1);
}

/* The wrong bits of one page read, all in one ECC step of the main area. Spread over a page several
 * would rarely be in one step.
 */
int fbn_draw_flips(const struct fbn_faults *faults, u64 number, u32 *bits)
{
	u64 state = fbn_draw(faults->seed, FBN_DRAW_READ, number - faults->first_read);
	const struct fbn_parameters *p = &flashbed.p;
	const u32 step_bits = p->ecc_step_bytes * 8;
	u32 wanted;
	u32 first;
	int count = 0;

	if (!faults->bit_flip_ppm || !fbn_hit(fbn_next(&state), faults->bit_flip_ppm))
		return 0;
	wanted = faults->bit_flips_min +
		 fbn_below(&state, faults->bit_flips_max - faults->bit_flips_min + 1);
	first = fbn_below(&state, p->page_bytes / p->ecc_step_bytes) * step_bits;
	while (count < wanted) {
		const u32 bit = first + fbn_below(&state, step_bits);
		int i = 0;

		while (i < count && bits[i] != bit)
			i++;
		if (i == count)
			bits[count++] = bit;
	}
	return count;
}
