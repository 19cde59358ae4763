// SPDX-License-Identifier: GPL-2.0-only
/* System calls of programs: what each costs, how many of each kind there were, how long they took
 * and what they wrote to files on flash.
 *
 * Called from handle_syscall(). Under inf-cpu running code takes no time, so a call costs
 * `syscall_ns=` of the command line, or what flashbed_costs says of its kind. A program that asks
 * for nothing but the time, again and again, waits for it: each such call costs more than the one
 * before. A call that blocks counts as long as it blocked.
 *
 * /sys/kernel/debug/flashbed_calls: `NAME CALLS NS BYTES` a kind that there was. Writing starts
 * over, and random numbers with it: the program begins. Calls of process 1 are not counted. Bytes
 * are those that write(2) and its like returned; shared mappings are not among them
 * (flashbed_files.c).
 * /sys/kernel/debug/flashbed_failed: `NAME ERRNO CALLS` of calls that failed on flash, with 0 as
 * the errno of short writes. Writing to flashbed_calls starts over.
 * /sys/kernel/debug/flashbed_costs takes `NAME NS PS_PER_BYTE`, a line a write(2): what a call of
 * that kind costs, and a byte that it moved.
 * /sys/kernel/debug/flashbed_free: what a process that writes `1` does costs nothing and is not
 * counted, until it writes `0`. The recorder is one, and the program until it is followed.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>
#include <sysdep/ptrace.h>

#include <flashbed_calls.h>
#include <flashbed_files.h>
#include <flashbed_host.h>
#include <flashbed_recorder.h>

#define ASKED_FREELY 64
#define ASKED_STEP_NS 1000u
#define ASKED_MOST_NS 100000u
#define FREE_PROCESSES 4
#define FAILED_KINDS 64

struct call {
	u64 calls;
	u64 ns;
	u64 bytes;
};

struct failed {
	int nr;
	int error;
	u64 calls;
};

struct cost {
	bool given;
	unsigned int ns;
	unsigned int byte_ps;
};

#define __SYSCALL(nr, sym) [nr] = #sym,
static const char *const names[__NR_syscalls] = {
#include <asm/syscalls_64.h>
};
#undef __SYSCALL

/* Of time.c. Reading the clock the usual way takes time. */
extern unsigned long long time_travel_time;
/* Of random.c. */
extern void flashbed_random_begins(void);

static struct call calls[__NR_syscalls];
static struct failed failed[FAILED_KINDS]; /* those with calls, in the order of the first */
static struct cost costs[__NR_syscalls];
static unsigned int syscall_ns;
static pid_t free_processes[FREE_PROCESSES]; /* 0: none */

/* Of no call: it is made for nothing. */
static const u64 for_nothing = U64_MAX;

bool flashbed_is_free(void)
{
	int i;

	for (i = 0; i < FREE_PROCESSES; i++)
		if (free_processes[i] && free_processes[i] == current->tgid)
			return true;
	return false;
}

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

static u64 cost_of(int nr, long result)
{
	if (!costs[nr].given)
		return syscall_ns;
	return costs[nr].ns + (result > 0 ? div_u64((u64)result * costs[nr].byte_ps, 1000) : 0);
}

static void spend(int nr, long result)
{
	static unsigned int asked;
	u64 ns = cost_of(nr, result);

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

/* The descriptor that a call reads from. */
static int read_from(struct uml_pt_regs *r, int nr)
{
	switch (nr) {
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_splice:
	case __NR_copy_file_range:
		return (int)UPT_SYSCALL_ARG1(r);
	case __NR_sendfile:
		return (int)UPT_SYSCALL_ARG2(r);
	default:
		return -1;
	}
}

/* The descriptor that a call syncs. */
static int synced(struct uml_pt_regs *r, int nr)
{
	switch (nr) {
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_sync_file_range:
		return (int)UPT_SYSCALL_ARG1(r);
	default:
		return -1;
	}
}

/* Whether the descriptor is of a file on flash, in which case the file's row counts the call. */
static bool count_file(int number, enum flashbed_did did, u64 bytes, u64 ns)
{
	struct fd fd = fdget(number);
	bool yes;

	if (!fd.file)
		return false;
	yes = flashbed_file_did(fd.file, did, bytes, ns);
	fdput(fd);
	return yes;
}

/* Whether the descriptor is of a file on flash. */
static bool is_on_flash(int number)
{
	struct fd fd = fdget(number);
	bool yes = fd.file && flashbed_file_on_flash(fd.file);

	if (fd.file)
		fdput(fd);
	return yes;
}

/* The descriptor whose file decides whether a failed call is of the flash; -1 for none. */
static int decides(struct uml_pt_regs *r, int nr)
{
	switch (nr) {
	case __NR_ftruncate:
	case __NR_fallocate:
		return (int)UPT_SYSCALL_ARG1(r);
	case __NR_mmap:
		return (int)UPT_SYSCALL_ARG5(r);
	default:
		return max3(written(r, nr), read_from(r, nr), synced(r, nr));
	}
}

/* Whether an error tells that the flash or its file system is full, broken or lacks the call.
 * Others are answers: a name is not there, a lock is taken, a program can copy otherwise. */
static bool is_trouble(int nr, long error, bool of_file)
{
	switch (error) {
	case ENOSPC:
	case EIO:
	case EUCLEAN:
	case EBADMSG:
		return true;
	case EROFS:
		return of_file;
	case EINVAL:
	case ENODEV:
		return of_file && nr == __NR_mmap;
	default:
		return false;
	}
}

static bool is_short(struct uml_pt_regs *r, int nr, long result)
{
	return (nr == __NR_write || nr == __NR_pwrite64) && result >= 0 &&
	       result < (long)UPT_SYSCALL_ARG3(r);
}

static void count_failed(struct uml_pt_regs *r, int nr, long result)
{
	const int fd = decides(r, nr);
	const long error = result < 0 ? -result : 0;
	int i;

	if (!is_short(r, nr, result) && !is_trouble(nr, error, fd >= 0))
		return;
	if (fd >= 0 && !is_on_flash(fd))
		return;
	for (i = 0; i < FAILED_KINDS; i++)
		if (!failed[i].calls || (failed[i].nr == nr && failed[i].error == error)) {
			failed[i].nr = nr;
			failed[i].error = error;
			failed[i].calls++;
			return;
		}
}

u64 flashbed_call_begins(int nr)
{
	if (flashbed_is_free())
		return for_nothing;
	if (!is_global_init(current))
		calls[nr].calls++;
	return time_travel_time;
}

void flashbed_call_ends(struct uml_pt_regs *r, int nr, long result, u64 began)
{
	u64 ns;
	int fd;

	if (flashbed_is_free())
		flashbed_reclaim();
	else if (began != for_nothing)
		spend(nr, result);
	flashbed_progress->now_ns = time_travel_time;
	flashbed_terminal_looks();
	if (is_global_init(current) || began == for_nothing)
		return;
	ns = time_travel_time - began;
	calls[nr].ns += ns;
	count_failed(r, nr, result);
	if (result < 0)
		return;
	fd = written(r, nr);
	if (fd >= 0 && count_file(fd, FLASHBED_WROTE, result, ns))
		calls[nr].bytes += result;
	fd = read_from(r, nr);
	if (fd >= 0)
		count_file(fd, FLASHBED_READ, result, ns);
	fd = synced(r, nr);
	if (fd >= 0)
		count_file(fd, FLASHBED_SYNCED, 0, ns);
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

static int failed_show(struct seq_file *file, void *unused)
{
	int i;

	for (i = 0; i < FAILED_KINDS && failed[i].calls; i++)
		if (names[failed[i].nr])
			seq_printf(file, "%s %d %llu\n", names[failed[i].nr] + strlen("sys_"),
				   failed[i].error, failed[i].calls);
	return 0;
}

static int failed_open(struct inode *inode, struct file *file)
{
	return single_open(file, failed_show, NULL);
}

static const struct file_operations failed_fops = {
	.open = failed_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
};

static ssize_t calls_write(struct file *file, const char __user *text, size_t count, loff_t *at)
{
	memset(calls, 0, sizeof(calls));
	memset(failed, 0, sizeof(failed));
	flashbed_random_begins();
	flashbed_progress->began_ns = time_travel_time;
	flashbed_progress->programs_before = flashbed_progress->programs;
	return count;
}

static const struct file_operations calls_fops = {
	.open = calls_open,
	.read = seq_read,
	.write = calls_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int kind_of(const char *name)
{
	int nr;

	for (nr = 0; nr < __NR_syscalls; nr++)
		if (names[nr] && !strcmp(names[nr] + strlen("sys_"), name))
			return nr;
	return -1;
}

static ssize_t costs_write(struct file *file, const char __user *text, size_t count, loff_t *at)
{
	struct cost cost = {.given = true};
	char line[64] = "";
	char name[32];
	int nr;

	if (count >= sizeof(line) || copy_from_user(line, text, count))
		return -EINVAL;
	if (sscanf(line, "%31s %u %u", name, &cost.ns, &cost.byte_ps) != 3)
		return -EINVAL;
	nr = kind_of(name);
	if (nr < 0)
		return -ENOENT;
	costs[nr] = cost;
	return count;
}

static const struct file_operations costs_fops = {
	.open = nonseekable_open,
	.write = costs_write,
};

/* Replaces one process number by another. */
static int put_free(pid_t from, pid_t to)
{
	int i;

	for (i = 0; i < FREE_PROCESSES; i++)
		if (free_processes[i] == from) {
			free_processes[i] = to;
			return 0;
		}
	return -ENOSPC;
}

static ssize_t free_write(struct file *file, const char __user *text, size_t count, loff_t *at)
{
	char what;
	int err = 0;

	if (count != 1 || copy_from_user(&what, text, 1))
		return -EINVAL;
	if (what == '1' && !flashbed_is_free())
		err = put_free(0, current->tgid);
	else if (what == '0' && flashbed_is_free())
		err = put_free(current->tgid, 0);
	return err ? err : (ssize_t)count;
}

static const struct file_operations free_fops = {
	.open = nonseekable_open,
	.write = free_write,
};

static int __init calls_init(void)
{
	debugfs_create_file("flashbed_free", 0200, NULL, NULL, &free_fops);
	debugfs_create_file("flashbed_costs", 0200, NULL, NULL, &costs_fops);
	debugfs_create_file("flashbed_calls", 0600, NULL, NULL, &calls_fops);
	debugfs_create_file("flashbed_failed", 0400, NULL, NULL, &failed_fops);
	return 0;
}
device_initcall(calls_init);
