// SPDX-License-Identifier: GPL-2.0-only
/* The state of the machine's one chip. flashbed_nand.h says what guards it. */
#include "flashbed_nand.h"

struct fbn flashbed = {
	.lock = __MUTEX_INITIALIZER(flashbed.lock),
};
