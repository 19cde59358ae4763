// SPDX-License-Identifier: GPL-2.0-only
/* Bit errors that follow the chip: how many an ECC step has after so many erases, reads and hours,
 * and which bits they are.
 *
 * Mirrors sim/src/flash/errors.rs to the bit; docs/models/bit-errors.md has the curve. The errors
 * of a step arrive as a Poisson process of rate 1 does, drawn from the seed, the page, the erases
 * of its block and the step. Those that arrive before the expected number are there.
 *
 * Fixed point: a logarithm has 24 bits behind the point, a power 16, a number of errors 32.
 * Invariant: no floats, and no 64-bit division (draws.c).
 */
#include <linux/bitops.h>
#include <linux/kernel.h>

#include "flashbed_nand.h"

#define LOG2_BITS 24
#define POWER_BITS 16
#define MOST_LOG2 ((s64)20 << LOG2_BITS)
#define MOST_ERRORS (1ULL << (32 + 20))
#define LN_2 2977044472ULL

/* 2^(2^-1), 2^(2^-2), ... with 31 bits behind the point. */
static const u32 roots_of_2[LOG2_BITS] = {
	3037000500U, 2553802834U, 2341847524U, 2242560872U, 2194507417U, 2170868212U,
	2159144272U, 2153306067U, 2150392887U, 2148937775U, 2148210589U, 2147847087U,
	2147665360U, 2147574502U, 2147529075U, 2147506361U, 2147495005U, 2147489326U,
	2147486487U, 2147485068U, 2147484358U, 2147484003U, 2147483825U, 2147483737U,
};

/* Rounded down. `number` is not 0. */
s64 fbn_log2(u64 number)
{
	const int whole = fls64(number) - 1;
	u64 left = whole > 31 ? number >> (whole - 31) : number << (31 - whole);
	u64 log = whole;
	int i;

	for (i = 0; i < LOG2_BITS; i++) {
		const u32 above = (left * left) >> 63;

		left = (left * left) >> (31 + above);
		log = log << 1 | above;
	}
	return log;
}

/* 2 to the power of a logarithm, as a number of errors. */
u64 fbn_exp2(s64 log)
{
	u64 found = 1ULL << 31;
	int shift;
	int i;

	log = min(log, MOST_LOG2);
	for (i = 0; i < LOG2_BITS; i++)
		if (log >> (LOG2_BITS - 1 - i) & 1)
			found = found * roots_of_2[i] >> 31;
	shift = (int)(log >> LOG2_BITS) + 1;
	if (shift < -63)
		return 0;
	return shift < 0 ? found >> -shift : found << shift;
}

/* The time to the next arrival of a process of rate 1, -ln(u) of a uniform draw. */
u64 fbn_wait_for_error(u64 uniform)
{
	const u64 rest = ~uniform >> 32;

	if (!(rest >> 20))
		return rest + (rest * rest >> 33);
	return (u64)(((s64)64 << LOG2_BITS) - fbn_log2(uniform | 1)) * LN_2 >> LOG2_BITS;
}

static s64 raised(u32 power, u32 number)
{
	return (s64)power * fbn_log2(max(number, 1U)) >> POWER_BITS;
}

static u64 term(const struct fbn_term *term, u32 erases, u32 other)
{
	return fbn_exp2(term->log2 + raised(term->erases_power, erases) +
			raised(term->power, other));
}

/* Errors of an ECC step, of a page that was programmed after so many erases of its block, so many
 * hours ago, in a block that was read so often since.
 */
u64 fbn_expected(const struct fbn_curve *curve, u32 erases, u32 hours, u32 reads)
{
	u64 errors = term(&curve->terms[FBN_TERM_FRESH], erases, 1) +
		     term(&curve->terms[FBN_TERM_WEAR], erases, 1);

	if (hours)
		errors += term(&curve->terms[FBN_TERM_RETENTION], erases, hours);
	if (reads)
		errors += term(&curve->terms[FBN_TERM_DISTURB], erases, reads);
	return min(errors, MOST_ERRORS);
}

static bool is_among(u32 bit, const u32 *bits, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (bits[i] == bit)
			return true;
	return false;
}

/* The wrong bits of an ECC step, counted from its first; at most FBN_STEP_ERRORS_MAX of them.
 * `step` is the chip's: the page times FBN_STEPS_MAX, and its step.
 */
u32 fbn_draw_errors(u64 seed, u32 erases, const struct fbn_step *step, u32 *bits)
{
	u64 state = fbn_draw(seed, FBN_DRAW_ERRORS, (u64)erases << 32 | step->number);
	u64 arrival = 0;
	u32 count = 0;

	while (count < FBN_STEP_ERRORS_MAX) {
		u32 bit;

		arrival += fbn_wait_for_error(fbn_next(&state));
		if (arrival > step->expected)
			break;
		do {
			bit = fbn_below(&state, step->bits);
		} while (is_among(bit, bits, count));
		bits[count++] = bit;
	}
	return count;
}
