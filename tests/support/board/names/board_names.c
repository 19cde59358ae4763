// SPDX-License-Identifier: GPL-2.0-only
/* Names of our choosing for nandsim's partitions, which are all called "NAND simulator partition N"
 * (drivers/mtd/nand/raw/nandsim.c, Linux 6.1).
 *
 * Stands in for the cmdlinepart parser, which Debian's ARM kernel does not have. The N-th of
 * `names` becomes the name of partition N, as /proc/mtd and sysfs show it. A name is allocated as
 * nandsim's were, because the MTD core frees it with its partition. Left out: a way back.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mtd/mtd.h>
#include <linux/slab.h>

#define NAMES_MAX 8

static char *names[NAMES_MAX];
static unsigned int count;
module_param_array(names, charp, &count, 0444);
MODULE_PARM_DESC(names, "names of nandsim's partitions, in their order");

static int rename_partition(unsigned int number)
{
	char *name = kstrdup(names[number], GFP_KERNEL);
	struct mtd_info *mtd;
	char old[32];

	if (!name)
		return -ENOMEM;
	snprintf(old, sizeof(old), "NAND simulator partition %u", number);
	mtd = get_mtd_device_nm(old);
	if (IS_ERR(mtd)) {
		pr_err("there is no %s\n", old);
		kfree(name);
		return PTR_ERR(mtd);
	}
	kfree(mtd->name);
	mtd->name = name;
	put_mtd_device(mtd);
	return 0;
}

static int __init board_names_init(void)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < count && !err; i++)
		err = rename_partition(i);
	return err;
}

module_init(board_names_init);

MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION("Names for nandsim's partitions");
MODULE_AUTHOR("flashbed");
