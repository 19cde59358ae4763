// SPDX-License-Identifier: GPL-2.0-only
/* Files on flash, and what programs did with each: bytes read and written by calls, pages written
 * through shared mappings, syncs, and the time in those calls.
 *
 * A file is counted under the path that it had when it was first used. A page of a shared mapping
 * counts as written whenever page_mkwrite makes it writable: once between two write-backs, however
 * often it is written to. /sys/kernel/debug/flashbed_files: a line a file, spaces in its path as
 * octal escapes, `PATH READS READ_BYTES WRITES WRITTEN_BYTES MAPPED_BYTES SYNCS NS`. Writing starts
 * over. Files beyond FILES_MOST are counted in one line, `others`.
 */
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <flashbed_files.h>

#define FILES_MOST 4096

struct file_row {
	struct hlist_node node;
	const struct super_block *sb;
	unsigned long inode;
	u32 generation;
	u64 reads, read_bytes;
	u64 writes, written_bytes, mapped_bytes;
	u64 syncs;
	u64 ns;
	char path[];
};

static DEFINE_HASHTABLE(rows, 10);
static struct file_row *others;
static unsigned int rows_count;

static bool on_flash(const struct inode *inode)
{
	static const char *const types[] = {"ubifs", "jffs2",   "yaffs2",   "ext4",
					    "f2fs",  "overlay", "squashfs", "erofs"};

	return match_string(types, ARRAY_SIZE(types), inode->i_sb->s_type->name) >= 0;
}

bool flashbed_file_on_flash(const struct file *file)
{
	return on_flash(file_inode(file));
}

static struct file_row *new_row(const char *path)
{
	struct file_row *row = kzalloc(sizeof(*row) + strlen(path) + 1, GFP_KERNEL);

	if (row)
		strcpy(row->path, path);
	return row;
}

static struct file_row *other_files(void)
{
	if (!others)
		others = new_row("others");
	return others;
}

static struct file_row *add_row(struct file *file, const struct inode *inode)
{
	char *text = kmalloc(PATH_MAX, GFP_KERNEL);
	char *path = text ? dentry_path_raw(file->f_path.dentry, text, PATH_MAX) : NULL;
	struct file_row *row = IS_ERR_OR_NULL(path) ? NULL : new_row(path);

	kfree(text);
	if (!row)
		return other_files();
	row->sb = inode->i_sb;
	row->inode = inode->i_ino;
	row->generation = inode->i_generation;
	hash_add(rows, &row->node, row->inode);
	rows_count++;
	return row;
}

static struct file_row *row_of(struct file *file)
{
	const struct inode *inode = file_inode(file);
	struct file_row *row;

	hash_for_each_possible(rows, row, node,
			       inode->i_ino) if (row->sb == inode->i_sb &&
						 row->inode == inode->i_ino &&
						 row->generation == inode->i_generation) return row;
	return rows_count < FILES_MOST ? add_row(file, inode) : other_files();
}

bool flashbed_file_did(struct file *file, enum flashbed_did did, u64 bytes, u64 ns)
{
	struct file_row *row;

	if (!on_flash(file_inode(file)))
		return false;
	row = row_of(file);
	if (!row)
		return true;
	row->ns += ns;
	switch (did) {
	case FLASHBED_READ:
		row->reads++;
		row->read_bytes += bytes;
		break;
	case FLASHBED_WROTE:
		row->writes++;
		row->written_bytes += bytes;
		break;
	case FLASHBED_MAPPED:
		row->mapped_bytes += bytes;
		break;
	case FLASHBED_SYNCED:
		row->syncs++;
		break;
	}
	return true;
}

void flashbed_page_written(struct vm_fault *vmf, vm_fault_t result)
{
	struct file *file = vmf->vma->vm_file;
	loff_t at = (loff_t)vmf->pgoff << PAGE_SHIFT;
	loff_t size;

	if (!file || is_global_init(current) || (result & (VM_FAULT_ERROR | VM_FAULT_NOPAGE)))
		return;
	size = i_size_read(file_inode(file));
	if (at < size)
		flashbed_file_did(file, FLASHBED_MAPPED, PAGE_SIZE, 0);
}

static void show_row(struct seq_file *out, const struct file_row *row)
{
	seq_escape(out, row->path, " \t\n\\");
	seq_printf(out, " %llu %llu %llu %llu %llu %llu %llu\n", row->reads, row->read_bytes,
		   row->writes, row->written_bytes, row->mapped_bytes, row->syncs, row->ns);
}

static int files_show(struct seq_file *out, void *unused)
{
	struct file_row *row;
	int bucket;

	hash_for_each(rows, bucket, row, node) show_row(out, row);
	if (others)
		show_row(out, others);
	return 0;
}

static int files_open(struct inode *inode, struct file *file)
{
	return single_open(file, files_show, NULL);
}

static ssize_t files_write(struct file *file, const char __user *text, size_t count, loff_t *at)
{
	struct file_row *row;
	struct hlist_node *next;
	int bucket;

	hash_for_each_safe(rows, bucket, next, row, node)
	{
		hash_del(&row->node);
		kfree(row);
	}
	kfree(others);
	others = NULL;
	rows_count = 0;
	return count;
}

static const struct file_operations files_fops = {
	.open = files_open,
	.read = seq_read,
	.write = files_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int __init flashbed_files_init(void)
{
	debugfs_create_file("flashbed_files", 0600, NULL, NULL, &files_fops);
	return 0;
}
device_initcall(flashbed_files_init);
