// SPDX-License-Identifier: GPL-2.0-only
/* Files: pages are read one by one, and writes go straight to the core.
 *
 * There is no readahead operation, so the kernel reads each page of a read-ahead separately; a page
 * is its chunks one after another. A write goes to the core within the system call (its short-op
 * cache keeps it there), and its page stays clean. Only a shared mapping makes pages dirty. The
 * page of a write is read first, even if all of it will be overwritten.
 *
 * Mirrors yaffs_vfs_multi.c (yaffs_readpage_nolock, yaffs_write_begin, yaffs_write_end,
 * yaffs_writepage, yaffs_sync_object) of July 2013.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/writeback.h>

#include "glue.h"

#define CHUNKS_HELD_BACK 20

static int read_page(struct inode *inode, struct folio *folio)
{
	u8 *bytes = kmap_local_folio(folio, 0);
	struct yfs *yfs = yfs_lock(inode->i_sb);
	const int got = yaffs_file_rd(yfs_obj(inode), bytes, folio_pos(folio), PAGE_SIZE);

	yfs_unlock(yfs);
	flush_dcache_folio(folio);
	kunmap_local(bytes);
	if (got < 0)
		return -EIO;
	folio_mark_uptodate(folio);
	return 0;
}

static int read_folio(struct file *file, struct folio *folio)
{
	const int err = read_page(folio->mapping->host, folio);

	folio_unlock(folio);
	return err;
}

static bool has_room(const struct super_block *sb)
{
	struct yfs *yfs = yfs_lock(sb);
	const int chunks = yaffs_get_n_free_chunks(&yfs->dev);

	yfs_unlock(yfs);
	return chunks > CHUNKS_HELD_BACK;
}

static int begin(struct address_space *mapping, loff_t pos, struct page **found)
{
	struct page *page = grab_cache_page_write_begin(mapping, pos >> PAGE_SHIFT);
	int err = 0;

	if (!page)
		return -ENOMEM;
	if (!has_room(mapping->host->i_sb))
		err = -ENOSPC;
	else if (!PageUptodate(page))
		err = read_page(mapping->host, page_folio(page));
	if (err) {
		unlock_page(page);
		put_page(page);
		return err;
	}
	*found = page;
	return 0;
}

static int end(struct inode *inode, loff_t pos, unsigned int copied, struct page *page)
{
	u8 *bytes = kmap_local_page(page);
	struct yfs *yfs = yfs_lock(inode->i_sb);
	const int put =
		copied ? yaffs_wr_file(yfs_obj(inode), bytes + offset_in_page(pos), pos, copied, 0)
		       : 0;

	yfs->dirty = true;
	if (put > 0 && pos + put > inode->i_size) {
		i_size_write(inode, pos + put);
		inode->i_blocks = (inode->i_size + 511) >> 9;
	}
	yfs_unlock(yfs);
	kunmap_local(bytes);
	/* Bytes in the page that are not in the file must not be read. */
	if (put < (int)copied)
		ClearPageUptodate(page);
	unlock_page(page);
	put_page(page);
	return put <= 0 && copied ? -ENOSPC : put;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static int write_begin(struct file *file, struct address_space *mapping, loff_t pos,
		       unsigned int len, struct folio **folio, void **data)
{
	struct page *page;
	const int err = begin(mapping, pos, &page);

	if (!err)
		*folio = page_folio(page);
	return err;
}

static int write_end(struct file *file, struct address_space *mapping, loff_t pos, unsigned int len,
		     unsigned int copied, struct folio *folio, void *data)
{
	return end(mapping->host, pos, copied, folio_page(folio, 0));
}
#else
static int write_begin(struct file *file, struct address_space *mapping, loff_t pos,
		       unsigned int len, struct page **page, void **data)
{
	return begin(mapping, pos, page);
}

static int write_end(struct file *file, struct address_space *mapping, loff_t pos, unsigned int len,
		     unsigned int copied, struct page *page, void *data)
{
	return end(mapping->host, pos, copied, page);
}
#endif

/* Writes a page that a shared mapping has made dirty. */
static int writepage(struct page *page, struct writeback_control *wbc)
{
	struct inode *inode = page->mapping->host;
	const loff_t start = page_offset(page);
	const loff_t left = i_size_read(inode) - start;
	const int bytes = (int)clamp_t(loff_t, left, 0, PAGE_SIZE);
	int put = 0;

	zero_user_segment(page, bytes, PAGE_SIZE);
	set_page_writeback(page);
	unlock_page(page);
	if (bytes) {
		u8 *from = kmap_local_page(page);
		struct yfs *yfs = yfs_lock(inode->i_sb);

		put = yaffs_wr_file(yfs_obj(inode), from, start, bytes, 0);
		yfs->dirty = true;
		yfs_unlock(yfs);
		kunmap_local(from);
	}
	if (put != bytes)
		mapping_set_error(inode->i_mapping, -ENOSPC);
	end_page_writeback(page);
	return put == bytes ? 0 : -ENOSPC;
}

int yfs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	int err = file_write_and_wait_range(file, start, end);

	if (err)
		return err;
	struct yfs *yfs = yfs_lock(inode->i_sb);

	err = yfs_flush_obj(yfs, yfs_obj(inode), datasync);
	yfs_unlock(yfs);
	return err;
}

/* Each close writes the core's cached chunks of the file. */
static int flush(struct file *file, fl_owner_t id)
{
	struct inode *inode = file_inode(file);
	struct yfs *yfs = yfs_lock(inode->i_sb);
	const int err = yfs_flush_obj(yfs, yfs_obj(inode), false);

	yfs_unlock(yfs);
	return err;
}

const struct address_space_operations yfs_file_aops = {
	.read_folio = read_folio,
	.write_begin = write_begin,
	.write_end = write_end,
	.writepage = writepage,
	.dirty_folio = filemap_dirty_folio,
};

const struct file_operations yfs_file_fops = {
	.llseek = generic_file_llseek,
	.read_iter = generic_file_read_iter,
	.write_iter = generic_file_write_iter,
	.mmap = generic_file_mmap,
	.flush = flush,
	.fsync = yfs_fsync,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	.splice_read = filemap_splice_read,
#else
	.splice_read = generic_file_splice_read,
#endif
	.splice_write = iter_file_splice_write,
};
