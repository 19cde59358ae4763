// SPDX-License-Identifier: GPL-2.0-only
/* What the chip's driver finds in this kernel (kernel/flashbed_nand/host.c): memory of the host, so
 * that the flash is not in the guest's, as on a board; and where to count its programs.
 */
#include <linux/export.h>
#include <linux/init.h>

#include <flashbed_host.h>

EXPORT_SYMBOL_GPL(flashbed_host_memory);
EXPORT_SYMBOL_GPL(flashbed_host_memory_free);

void flashbed_page_programmed(void)
{
	flashbed_progress->programs++;
}
EXPORT_SYMBOL_GPL(flashbed_page_programmed);

static int __init progress_init(void)
{
	flashbed_host_shows_progress();
	return 0;
}
device_initcall(progress_init);
