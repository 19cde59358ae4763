// SPDX-License-Identifier: GPL-2.0-only
/* System calls of programs: what each costs, how many of each kind there were, how long they took
 * and what they wrote to files on flash.
 *
 * Called from handle_syscall(). Under inf-cpu running code takes no time, so a call costs
 * `syscall_ns=` of the command line. A program that asks for nothing but the time, again and again,
 * waits for it: it is given more each time. A call that blocks counts as long as it blocked.
 *
 * /sys/kernel/debug/flashbed_calls: `NAME CALLS NS BYTES` a kind that there was. Writing begins
 * anew. Calls of process 1 are not counted. Bytes are those that write(2) and its like returned;
 * shared mappings are not among them.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time-internal.h>
#include <asm/unistd.h>
#include <sysdep/ptrace.h>

#include <flashbed_calls.h>

#define ASKED_FREELY 64
#define ASKED_STEP_NS 1000u
#define ASKED_MOST_NS 100000u

struct call {
	u64 calls;
	u64 ns;
	u64 bytes;
};

#define __SYSCALL(nr, sym) [nr] = #sym,
static const char *const names[__NR_syscalls] = {
#include <asm/syscalls_64.h>
};
#undef __SYSCALL

/* Of time.c. Reading the clock the usual way takes time. */
extern unsigned long long time_travel_time;

static struct call calls[__NR_syscalls];
static unsigned int syscall_ns;

static int __init set_syscall_ns(char *text)
{
	return kstrtouint(text, 0, &syscall_ns) == 0;
}
__setup("syscall_ns=", set_syscall_ns);

static bool asks_time(int nr)
{
	return nr == __NR_clock_gettime || nr == __NR_gettimeofday || nr == __NR_time ||
	       nr == __NR_sched_yield;
}

static void spend(int nr)
{
	static unsigned int asked;
	unsigned int ns = syscall_ns;

	asked = asks_time(nr) ? asked + 1 : 0;
	if (asked > ASKED_FREELY)
		ns += min(ASKED_STEP_NS * (asked - ASKED_FREELY), ASKED_MOST_NS);
	if (ns && time_travel_mode != TT_MODE_OFF)
		ndelay(ns);
}

/* The descriptor that a call writes to; -1 for one that writes to none. */
static int written(struct uml_pt_regs *r, int nr)
{
	switch (nr) {
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_sendfile:
		return (int)UPT_SYSCALL_ARG1(r);
	case __NR_splice:
	case __NR_copy_file_range:
		return (int)UPT_SYSCALL_ARG3(r);
	default:
		return -1;
	}
}

static bool on_flash(int number)
{
	struct fd fd = fdget(number);
	const char *type;
	bool yes;

	if (!fd.file)
		return false;
	type = file_inode(fd.file)->i_sb->s_type->name;
	yes = !strcmp(type, "ubifs") || !strcmp(type, "jffs2") || !strcmp(type, "yaffs2");
	fdput(fd);
	return yes;
}

u64 flashbed_call_begins(int nr)
{
	if (!is_global_init(current))
		calls[nr].calls++;
	return time_travel_time;
}

void flashbed_call_ends(struct uml_pt_regs *r, int nr, long result, u64 began)
{
	int fd;

	spend(nr);
	if (is_global_init(current))
		return;
	calls[nr].ns += time_travel_time - began;
	fd = result > 0 ? written(r, nr) : -1;
	if (fd >= 0 && on_flash(fd))
		calls[nr].bytes += result;
}

static int calls_show(struct seq_file *file, void *unused)
{
	int nr;

	for (nr = 0; nr < __NR_syscalls; nr++)
		if (calls[nr].calls && names[nr])
			seq_printf(file, "%s %llu %llu %llu\n", names[nr] + strlen("sys_"),
				   calls[nr].calls, calls[nr].ns, calls[nr].bytes);
	return 0;
}

static int calls_open(struct inode *inode, struct file *file)
{
	return single_open(file, calls_show, NULL);
}

static ssize_t calls_write(struct file *file, const char __user *text, size_t count, loff_t *at)
{
	memset(calls, 0, sizeof(calls));
	return count;
}

static const struct file_operations calls_fops = {
	.open = calls_open,
	.read = seq_read,
	.write = calls_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int __init calls_init(void)
{
	debugfs_create_file("flashbed_calls", 0600, NULL, NULL, &calls_fops);
	return 0;
}
device_initcall(calls_init);
