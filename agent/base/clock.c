/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's one clock, for readings that a function call does not falsify. */
#define _GNU_SOURCE
#include "base/base.h"

uint64_t now_ns(void)
{
	return read_clock_ns();
}
