// SPDX-License-Identifier: GPL-2.0-only
/* YAFFS2 as a file system of Linux: mounting on an MTD device, statfs, unmounting, and the module.
 *
 * `mount -t yaffs2 mtd0 DIR`. The backing device, and with it read_ahead_kb, is that of MTD. The
 * core is set up as by the Linux glue of July 2013: 10 short-op caches, 5 reserved blocks, a block
 * refreshed every 500 collections, lost+found emptied at the mount, directories written late,
 * summaries. Options have that glue's names.
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_internal_read_super, yaffs_put_super, yaffs_statfs) of July
 * 2013. In addition, a partition that holds something else is refused (nand.c). Left out: YAFFS1,
 * mounting by block device, remounting read-only or read-write.
 */
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mtd/super.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/statfs.h>

#include "glue.h"
#include "yaffs_packedtags2.h"

#define RESERVED_BLOCKS 5
#define SHORT_OP_CACHES 10
#define REFRESH_PERIOD 500
#define STATFS_NAME_BYTES 254

/* Variables of the core; the second is how many blocks' worth of pages it tries before a write
 * fails.
 */
unsigned int yaffs_trace_mask = YAFFS_TRACE_BAD_BLOCKS | YAFFS_TRACE_ALWAYS;
unsigned int yaffs_wr_attempts = YAFFS_WR_ATTEMPTS;

module_param_named(trace_mask, yaffs_trace_mask, uint, 0644);
MODULE_PARM_DESC(trace_mask, "what the core says in the kernel's log (yaffs_trace.h)");

static bool background = true;
module_param(background, bool, 0644);
MODULE_PARM_DESC(background, "whether mounts have a background thread");

enum option {
	OPTION_NO_CACHE,
	OPTION_NO_CHECKPOINT,
	OPTION_NO_CHECKPOINT_READ,
	OPTION_NO_CHECKPOINT_WRITE,
	OPTION_DISABLE_SUMMARY,
	OPTION_INBAND_TAGS,
	OPTION_TAGS_ECC_OFF,
	OPTION_LAZY_LOADING_OFF,
	OPTION_EMPTY_LOST_AND_FOUND_OFF,
};

static const struct fs_parameter_spec parameters[] = {
	fsparam_flag("no-cache", OPTION_NO_CACHE),
	fsparam_flag("no-checkpoint", OPTION_NO_CHECKPOINT),
	fsparam_flag("no-checkpoint-read", OPTION_NO_CHECKPOINT_READ),
	fsparam_flag("no-checkpoint-write", OPTION_NO_CHECKPOINT_WRITE),
	fsparam_flag("disable-summary", OPTION_DISABLE_SUMMARY),
	fsparam_flag("inband-tags", OPTION_INBAND_TAGS),
	fsparam_flag("tags-ecc-off", OPTION_TAGS_ECC_OFF),
	fsparam_flag("lazy-loading-off", OPTION_LAZY_LOADING_OFF),
	fsparam_flag("empty-lost-and-found-off", OPTION_EMPTY_LOST_AND_FOUND_OFF),
	{}};

static void mark_dirty(struct yaffs_dev *dev)
{
	yfs_of_dev(dev)->dirty = true;
}

/* The VFS's blocks are pages. */
static int statfs(struct dentry *dentry, struct kstatfs *room)
{
	struct super_block *sb = dentry->d_sb;
	struct yfs *yfs = yfs_lock(sb);
	const struct yaffs_dev *dev = &yfs->dev;
	const u64 blocks = dev->param.end_block - dev->param.start_block + 1;
	const int free = yaffs_get_n_free_chunks(&yfs->dev);

	yfs_unlock(yfs);
	room->f_type = YAFFS_MAGIC;
	room->f_bsize = sb->s_blocksize;
	room->f_namelen = STATFS_NAME_BYTES;
	room->f_blocks = div_u64(blocks * dev->param.chunks_per_block * dev->data_bytes_per_chunk,
				 sb->s_blocksize);
	room->f_bfree = div_u64((u64)max(free, 0) * dev->data_bytes_per_chunk, sb->s_blocksize);
	room->f_bavail = room->f_bfree;
	return 0;
}

static void put_super(struct super_block *sb)
{
	struct yfs *yfs = yfs_of(sb);

	yfs_collector_stop(yfs);
	if (!sb_rdonly(sb))
		yfs_save(yfs);
}

static const struct super_operations operations = {
	.statfs = statfs,
	.evict_inode = yfs_evict_inode,
	.put_super = put_super,
	.sync_fs = yfs_sync_fs,
};

static void set_up(struct yfs *yfs, struct super_block *sb)
{
	struct mtd_info *mtd = sb->s_mtd;
	struct yaffs_dev *dev = &yfs->dev;
	struct yaffs_param *param = &dev->param;

	yfs->sb = sb;
	mutex_init(&yfs->gross_lock);
	dev->os_context = yfs;
	dev->driver_context = mtd;
	dev->read_only = sb_rdonly(sb);
	param->name = mtd->name;
	param->is_yaffs2 = 1;
	param->use_nand_ecc = 1;
	param->total_bytes_per_chunk = mtd->writesize;
	param->chunks_per_block = mtd->erasesize / mtd->writesize;
	param->start_block = 0;
	param->end_block = (int)div_u64(mtd->size, mtd->erasesize) - 1;
	param->n_reserved_blocks = RESERVED_BLOCKS;
	param->refresh_period = REFRESH_PERIOD;
	param->enable_xattr = 1;
	param->sb_dirty_fn = mark_dirty;
	if (mtd->oobavail < sizeof(struct yaffs_packed_tags2))
		param->inband_tags = 1;
	yfs_nand_install(dev);
}

static int set_root(struct super_block *sb)
{
	struct inode *root = yfs_iget(sb, YAFFS_OBJECTID_ROOT);

	if (IS_ERR(root))
		return PTR_ERR(root);
	sb->s_root = d_make_root(root);
	return sb->s_root ? 0 : -ENOMEM;
}

static int initialise(struct super_block *sb)
{
	struct yfs *yfs = yfs_lock(sb);
	int err = yaffs_guts_initialise(&yfs->dev) == YAFFS_OK ? 0 : -EIO;

	if (!err) {
		yfs->initialised = true;
		err = yfs_nand_foreign(yfs);
	}
	if (!err)
		sb->s_maxbytes = min_t(loff_t, yaffs_max_file_size(&yfs->dev), MAX_LFS_FILESIZE);
	yfs->dirty = !yfs->dev.is_checkpointed;
	yfs_unlock(yfs);
	return err;
}

/* sget_fc has given sb->s_fs_info the context's struct yfs, with the options in its parameters. */
static int fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct yfs *yfs = yfs_of(sb);
	int err = yfs_nand_fits(sb->s_mtd);

	if (err)
		return err;
	sb->s_magic = YAFFS_MAGIC;
	sb->s_op = &operations;
	sb->s_flags |= SB_NOATIME;
	sb->s_time_gran = NSEC_PER_SEC;
	sb->s_time_min = 0;
	sb->s_time_max = U32_MAX;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	set_up(yfs, sb);
	err = initialise(sb);
	if (!err && background && !sb_rdonly(sb))
		err = yfs_collector_start(yfs);
	if (err)
		return err;
	/* Without the thread no task would write them. */
	yfs->dev.param.defered_dir_update = yfs->collector != NULL;
	err = set_root(sb);
	if (err)
		yfs_collector_stop(yfs);
	return err;
}

static void free_yfs(struct yfs *yfs)
{
	if (yfs && yfs->initialised)
		yaffs_deinitialise(&yfs->dev);
	kfree(yfs);
}

static void kill_sb(struct super_block *sb)
{
	struct yfs *yfs = yfs_of(sb);

	kill_mtd_super(sb);
	free_yfs(yfs);
}

static int parse_param(struct fs_context *fc, struct fs_parameter *given)
{
	struct fs_parse_result result;
	struct yaffs_param *param = &((struct yfs *)fc->s_fs_info)->dev.param;
	const int option = fs_parse(fc, parameters, given, &result);

	switch (option) {
	case OPTION_NO_CACHE:
		param->n_caches = 0;
		break;
	case OPTION_NO_CHECKPOINT:
		param->skip_checkpt_rd = 1;
		param->skip_checkpt_wr = 1;
		break;
	case OPTION_NO_CHECKPOINT_READ:
		param->skip_checkpt_rd = 1;
		break;
	case OPTION_NO_CHECKPOINT_WRITE:
		param->skip_checkpt_wr = 1;
		break;
	case OPTION_DISABLE_SUMMARY:
		param->disable_summary = 1;
		break;
	case OPTION_INBAND_TAGS:
		param->inband_tags = 1;
		break;
	case OPTION_TAGS_ECC_OFF:
		param->no_tags_ecc = 1;
		break;
	case OPTION_LAZY_LOADING_OFF:
		param->disable_lazy_load = 1;
		break;
	case OPTION_EMPTY_LOST_AND_FOUND_OFF:
		param->empty_lost_n_found = 0;
		break;
	default:
		return option;
	}
	return 0;
}

static int get_tree(struct fs_context *fc)
{
	return get_tree_mtd(fc, fill_super);
}

/* The VFS handles read-only and read-write. */
static int reconfigure(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;
	const int err = sync_filesystem(sb);

	if (err)
		return err;
	return (fc->sb_flags ^ sb->s_flags) & SB_RDONLY ? -EINVAL : 0;
}

static void free_fc(struct fs_context *fc)
{
	free_yfs(fc->s_fs_info);
}

static const struct fs_context_operations context_operations = {
	.parse_param = parse_param,
	.get_tree = get_tree,
	.reconfigure = reconfigure,
	.free = free_fc,
};

static int init_fs_context(struct fs_context *fc)
{
	struct yfs *yfs = kzalloc(sizeof(*yfs), GFP_KERNEL);

	if (!yfs)
		return -ENOMEM;
	yfs->dev.param.n_caches = SHORT_OP_CACHES;
	yfs->dev.param.empty_lost_n_found = 1;
	fc->s_fs_info = yfs;
	fc->ops = &context_operations;
	return 0;
}

static struct file_system_type yaffs2 = {
	.owner = THIS_MODULE,
	.name = "yaffs2",
	.init_fs_context = init_fs_context,
	.parameters = parameters,
	.kill_sb = kill_sb,
};
MODULE_ALIAS_FS("yaffs2");

static int __init yaffs2_init(void)
{
	return register_filesystem(&yaffs2);
}

static void __exit yaffs2_exit(void)
{
	unregister_filesystem(&yaffs2);
	/* Inodes are freed after a grace period. */
	rcu_barrier();
}

module_init(yaffs2_init);
module_exit(yaffs2_exit);
MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION("YAFFS2 on MTD");
