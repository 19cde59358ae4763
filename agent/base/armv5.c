/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations for ARMv5, which has no instructions for them. The compiler calls these
 * functions instead: the C library's malloc needs them, and SQLite for its barriers.
 *
 * Kernel interface: `cmpxchg` at 0xffff0fc0, `memory_barrier` at 0xffff0fa0
 * (Documentation/arm/kernel_user_helpers.rst), which every kernel for ARMv5 has that can run
 * threads. Leaves out all others of the family, which nothing here calls. A new call would be an
 * undefined symbol when linking.
 */
#define _GNU_SOURCE
#include "base/base.h"

#if defined(__arm__) && __ARM_ARCH < 6

/* The compiler reserves these names, so the functions have others here and get the symbols by
 * __asm__. */
uint32_t swap_word_if(volatile uint32_t *at, uint32_t old,
		      uint32_t new) __asm__("__sync_val_compare_and_swap_4");
uint8_t swap_byte_if(volatile uint8_t *at, uint8_t old,
		     uint8_t new) __asm__("__sync_val_compare_and_swap_1");
uint8_t swap_byte(volatile uint8_t *at, uint8_t new) __asm__("__sync_lock_test_and_set_1");
void barrier(void) __asm__("__sync_synchronize");

/* Also a barrier, before and after. */
static bool stored(volatile uint32_t *at, uint32_t old, uint32_t new)
{
	return ((int (*)(uint32_t, uint32_t, volatile uint32_t *))0xffff0fc0)(old, new, at) == 0;
}

uint32_t swap_word_if(volatile uint32_t *at, uint32_t old, uint32_t new)
{
	for (;;) {
		const uint32_t found = *at;

		if (found != old || stored(at, old, new))
			return found;
	}
}

/* A byte is changed together with its word. */
static bool stored_byte(volatile uint8_t *at, uint8_t old, uint8_t new)
{
	volatile uint32_t *word = (volatile uint32_t *)((uintptr_t)at & ~(uintptr_t)3);
	const unsigned int shift = ((uintptr_t)at & 3) * 8;
	const uint32_t others = *word & ~(UINT32_C(0xff) << shift);

	return stored(word, others | (uint32_t)old << shift, others | (uint32_t)new << shift);
}

uint8_t swap_byte_if(volatile uint8_t *at, uint8_t old, uint8_t new)
{
	for (;;) {
		const uint8_t found = *at;

		if (found != old || stored_byte(at, old, new))
			return found;
	}
}

uint8_t swap_byte(volatile uint8_t *at, uint8_t new)
{
	for (;;) {
		const uint8_t found = *at;

		if (stored_byte(at, found, new))
			return found;
	}
}

void barrier(void)
{
	((void (*)(void))0xffff0fa0)();
}
#endif
