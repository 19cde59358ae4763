// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/debug/flashbed_ftl/ctl: `attach MTD SPARE_PERMILLE MAP_PAGES` and `detach`. There is
 * one disk at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "flashbed_ftl.h"

#define COMMAND_BYTES 64
#define SPARE_PERMILLE_MAX 900
#define MAP_PAGES_MAX 65535

static DEFINE_MUTEX(control_lock);
static struct ftl ftl;
static struct dentry *folder;

static void forget(void)
{
	struct mtd_info *mtd = ftl.mtd;

	ftl_free(&ftl);
	memset(&ftl, 0, sizeof(ftl));
	put_mtd_device(mtd);
}

static int attach(int number, const struct ftl_options *options)
{
	struct mtd_info *mtd;
	int err;

	if (ftl.mtd)
		return -EBUSY;
	if (!options->spare_permille || options->spare_permille > SPARE_PERMILLE_MAX ||
	    options->map_pages > MAP_PAGES_MAX)
		return -EINVAL;
	mtd = get_mtd_device(NULL, number);
	if (IS_ERR(mtd))
		return PTR_ERR(mtd);
	ftl.mtd = mtd;
	err = ftl_make(&ftl, options);
	if (!err)
		err = ftl_disk_add(&ftl);
	if (err)
		forget();
	return err;
}

static int detach(void)
{
	if (!ftl.mtd)
		return -ENODEV;
	ftl_disk_remove();
	forget();
	return 0;
}

static int obey(const char *command)
{
	struct ftl_options options;
	int number;

	if (strcmp(command, "detach") == 0)
		return detach();
	if (sscanf(command, "attach %d %u %u", &number, &options.spare_permille,
		   &options.map_pages) == 3)
		return attach(number, &options);
	return -EINVAL;
}

static ssize_t ctl_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	char command[COMMAND_BYTES] = {};
	int err;

	if (count >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, from, count))
		return -EFAULT;
	mutex_lock(&control_lock);
	err = obey(strim(command));
	mutex_unlock(&control_lock);
	return err ? err : count;
}

static const struct file_operations ctl_fops = {
	.owner = THIS_MODULE,
	.write = ctl_write,
	.llseek = noop_llseek,
};

static int __init ftl_init(void)
{
	folder = debugfs_create_dir(FTL_NAME, NULL);
	if (IS_ERR(folder))
		return PTR_ERR(folder);
	debugfs_create_file("ctl", 0200, folder, NULL, &ctl_fops);
	return 0;
}

static void __exit ftl_exit(void)
{
	debugfs_remove_recursive(folder);
	detach();
}

module_init(ftl_init);
module_exit(ftl_exit);

MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION("A disk with a page-mapped flash translation layer, a model of a controller");
MODULE_AUTHOR("flashbed");
