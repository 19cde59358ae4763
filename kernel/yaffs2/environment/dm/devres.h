/* SPDX-License-Identifier: GPL-2.0-only */
/* The core asks U-Boot for its memory allocation by this name. */
#include <linux/slab.h>
#include <linux/vmalloc.h>
