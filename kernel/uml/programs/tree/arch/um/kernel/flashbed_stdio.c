// SPDX-License-Identifier: GPL-2.0-only
/* Character devices that are descriptors of the host: major 241, the minor is the descriptor's
 * number. The agent makes their nodes; programs have them as standard input, output and error.
 *
 * Not a terminal: output comes out byte for byte, in the order in which it was written.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include <flashbed_host.h>

#define MAJOR_NUMBER 241
#define FIRST 3
#define LAST 9

static int fd_of(struct file *file)
{
	return iminor(file_inode(file));
}

static int host_open(struct inode *inode, struct file *file)
{
	if (iminor(inode) < FIRST || iminor(inode) > LAST)
		return -ENXIO;
	return stream_open(inode, file);
}

static ssize_t host_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	char *page = (char *)__get_free_page(GFP_KERNEL);
	const bool terminal = flashbed_host_is_terminal(fd_of(file));
	size_t done = 0;
	long got = 0;

	if (!page)
		return -ENOMEM;
	while (done < count) {
		const size_t part = min_t(size_t, count - done, PAGE_SIZE);

		got = flashbed_host_read(fd_of(file), page, part);
		if (got > 0 && copy_to_user(to + done, page, got))
			got = -EFAULT;
		if (got > 0)
			done += got;
		if (got < (long)part || terminal)
			break;
	}
	free_page((unsigned long)page);
	return done ? done : got;
}

static ssize_t host_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	char *page = (char *)__get_free_page(GFP_KERNEL);
	size_t done = 0;
	long put = 0;

	if (!page)
		return -ENOMEM;
	while (done < count && put >= 0) {
		const size_t part = min_t(size_t, count - done, PAGE_SIZE);

		put = copy_from_user(page, from + done, part)
			      ? -EFAULT
			      : flashbed_host_write(fd_of(file), page, part);
		if (put > 0)
			done += put;
	}
	free_page((unsigned long)page);
	if (put == -EPIPE)
		send_sig(SIGPIPE, current, 0);
	return done ? done : put;
}

static const struct file_operations host_fops = {
	.open = host_open,
	.read = host_read,
	.write = host_write,
	.llseek = no_llseek,
};

static int __init host_init(void)
{
	return register_chrdev(MAJOR_NUMBER, "flashbed_host", &host_fops);
}
device_initcall(host_init);
