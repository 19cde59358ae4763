// SPDX-License-Identifier: GPL-2.0-only
/* Random numbers that need no state: a seed, a kind and a number always give the same one.
 *
 * SplitMix64 (Steele, Lea, Flood 2014). sim/src/flash/draws.rs draws the same. Invariant: no 64-bit
 * division, which does not link in a 32-bit ARM kernel.
 */
#include <linux/types.h>

#include "flashbed_nand.h"

static u64 scramble(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The next number of a sequence. */
u64 fbn_next(u64 *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return scramble(*state);
}

/* The `number`th draw of a kind. */
u64 fbn_draw(u64 seed, enum fbn_draw what, u64 number)
{
	return scramble(scramble(scramble(seed + 1) + what + 1) + number + 1);
}

/* A number from 0 to limit - 1. */
u32 fbn_below(u64 *state, u32 limit)
{
	return (u32)((fbn_next(state) >> 32) * limit >> 32);
}

bool fbn_hit(u64 draw, u32 ppm)
{
	return ((draw >> 32) * FBN_PPM >> 32) < ppm;
}
