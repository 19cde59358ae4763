/* SPDX-License-Identifier: GPL-2.0-only */
/* The core includes this header of U-Boot for memory allocation. */
#include <linux/slab.h>
#include <linux/vmalloc.h>
