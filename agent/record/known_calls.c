/* SPDX-License-Identifier: Apache-2.0 */
/* Every system call that is followed, with its arguments (by the letters of record.h).
 *
 * An architecture has those whose numbers are in its headers. The names are the kernel's on x86-64:
 * `stat64` of a 32-bit machine is `stat`. Two calls have another order of arguments on ARM, because
 * a pair of registers begins with an even one. At the end are events that are no calls. Leaves out
 * calls that touch no file: a call that is not in the filter costs nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "record/record.h"

static const struct known_call calls[] = {
#ifdef __NR_open
	{"open", __NR_open, DO_OPEN, "pFm", 0},
#endif
#ifdef __NR_openat
	{"openat", __NR_openat, DO_OPEN, "dpFm", 0},
#endif
#ifdef __NR_openat2
	{"openat2", __NR_openat2, DO_OPEN, "dph.", 0},
#endif
#ifdef __NR_creat
	{"creat", __NR_creat, DO_OPEN, "pm", 0},
#endif
#ifdef __NR_close
	{"close", __NR_close, DO_CLOSE, "f", 0},
#endif
#ifdef __NR_close_range
	{"close_range", __NR_close_range, DO_CLOSE_RANGE, "fgF", 0},
#endif
#ifdef __NR_dup
	{"dup", __NR_dup, DO_DUPLICATE, "f", 0},
#endif
#ifdef __NR_dup2
	{"dup2", __NR_dup2, DO_DUPLICATE, "fg", 0},
#endif
#ifdef __NR_dup3
	{"dup3", __NR_dup3, DO_DUPLICATE, "fgF", 0},
#endif
#ifdef __NR_fcntl
	{"fcntl", __NR_fcntl, DO_FCNTL, "fcF", 0},
#endif
#ifdef __NR_fcntl64
	{"fcntl", __NR_fcntl64, DO_FCNTL, "fcF", 0},
#endif
#ifdef __NR_lseek
	{"lseek", __NR_lseek, DO_SEEK, "f.c", 0},
#endif
#ifdef __NR__llseek
	{"lseek", __NR__llseek, DO_LLSEEK, "f...c", 0},
#endif
#ifdef __NR_read
	{"read", __NR_read, DO_READ, "fbn", 0},
#endif
#ifdef __NR_readv
	{"readv", __NR_readv, DO_READ, "fv", 0},
#endif
#ifdef __NR_pread64
	{"pread64", __NR_pread64, DO_READ, "fbno", 0},
#endif
#ifdef __NR_preadv
	{"preadv", __NR_preadv, DO_READ, "fvH", 0},
#endif
#ifdef __NR_preadv2
	{"preadv2", __NR_preadv2, DO_READ, "fvHF", 0},
#endif
#ifdef __NR_write
	{"write", __NR_write, DO_WRITE, "fbn", 0},
#endif
#ifdef __NR_writev
	{"writev", __NR_writev, DO_WRITE, "fv", 0},
#endif
#ifdef __NR_pwrite64
	{"pwrite64", __NR_pwrite64, DO_WRITE, "fbno", 0},
#endif
#ifdef __NR_pwritev
	{"pwritev", __NR_pwritev, DO_WRITE, "fvH", 0},
#endif
#ifdef __NR_pwritev2
	{"pwritev2", __NR_pwritev2, DO_WRITE, "fvHF", 0},
#endif
#ifdef __NR_ftruncate
	{"ftruncate", __NR_ftruncate, DO_PLAIN, "fn", 0},
#endif
#ifdef __NR_ftruncate64
	{"ftruncate", __NR_ftruncate64, DO_PLAIN, "fl", 0},
#endif
#ifdef __NR_truncate
	{"truncate", __NR_truncate, DO_PLAIN, "pn", 0},
#endif
#ifdef __NR_truncate64
	{"truncate", __NR_truncate64, DO_PLAIN, "pl", 0},
#endif
#ifdef __NR_fallocate
	{"fallocate", __NR_fallocate, DO_PLAIN, "fmol", 0},
#endif
#ifdef __NR_copy_file_range
	{"copy_file_range", __NR_copy_file_range, DO_MOVE, "fOgTnF", 0},
#endif
#ifdef __NR_sendfile
	{"sendfile", __NR_sendfile, DO_MOVE, "gfOn", 0},
#endif
#ifdef __NR_sendfile64
	{"sendfile", __NR_sendfile64, DO_MOVE, "gfOn", 0},
#endif
#ifdef __NR_splice
	{"splice", __NR_splice, DO_MOVE, "fOgTnF", 0},
#endif
#ifdef __NR_fsync
	{"fsync", __NR_fsync, DO_PLAIN, "f", 0},
#endif
#ifdef __NR_fdatasync
	{"fdatasync", __NR_fdatasync, DO_PLAIN, "f", 0},
#endif
#ifdef __NR_syncfs
	{"syncfs", __NR_syncfs, DO_PLAIN, "f", 0},
#endif
#ifdef __NR_sync
	{"sync", __NR_sync, DO_SYNC, "", 0},
#endif
#ifdef __NR_flock
	{"flock", __NR_flock, DO_LOCK, "fc", CALL_BLOCKS},
#endif
#ifdef __NR_mkdir
	{"mkdir", __NR_mkdir, DO_PLAIN, "pm", CALL_NOFOLLOW},
#endif
#ifdef __NR_mkdirat
	{"mkdirat", __NR_mkdirat, DO_PLAIN, "dpm", CALL_NOFOLLOW},
#endif
#ifdef __NR_rmdir
	{"rmdir", __NR_rmdir, DO_PLAIN, "p", CALL_NOFOLLOW},
#endif
#ifdef __NR_unlink
	{"unlink", __NR_unlink, DO_PLAIN, "p", CALL_NOFOLLOW},
#endif
#ifdef __NR_unlinkat
	{"unlinkat", __NR_unlinkat, DO_PLAIN, "dpF", CALL_NOFOLLOW},
#endif
#ifdef __NR_rename
	{"rename", __NR_rename, DO_PLAIN, "pq", CALL_NOFOLLOW},
#endif
#ifdef __NR_renameat
	{"renameat", __NR_renameat, DO_PLAIN, "dpdq", CALL_NOFOLLOW},
#endif
#ifdef __NR_renameat2
	{"renameat2", __NR_renameat2, DO_PLAIN, "dpdqF", CALL_NOFOLLOW},
#endif
#ifdef __NR_link
	{"link", __NR_link, DO_PLAIN, "pq", CALL_NOFOLLOW},
#endif
#ifdef __NR_linkat
	{"linkat", __NR_linkat, DO_PLAIN, "dpdqF", CALL_NOFOLLOW},
#endif
#ifdef __NR_symlink
	{"symlink", __NR_symlink, DO_PLAIN, "sp", CALL_NOFOLLOW},
#endif
#ifdef __NR_symlinkat
	{"symlinkat", __NR_symlinkat, DO_PLAIN, "sdp", CALL_NOFOLLOW},
#endif
#ifdef __NR_readlink
	{"readlink", __NR_readlink, DO_PLAIN, "p..", CALL_NOFOLLOW},
#endif
#ifdef __NR_readlinkat
	{"readlinkat", __NR_readlinkat, DO_PLAIN, "dp..", CALL_NOFOLLOW},
#endif
#ifdef __NR_getdents
	{"getdents", __NR_getdents, DO_PLAIN, "f.n", 0},
#endif
#ifdef __NR_getdents64
	{"getdents64", __NR_getdents64, DO_PLAIN, "f.n", 0},
#endif
#ifdef __NR_stat
	{"stat", __NR_stat, DO_PLAIN, "p", 0},
#endif
#ifdef __NR_stat64
	{"stat", __NR_stat64, DO_PLAIN, "p", 0},
#endif
#ifdef __NR_lstat
	{"lstat", __NR_lstat, DO_PLAIN, "p", CALL_NOFOLLOW},
#endif
#ifdef __NR_lstat64
	{"lstat", __NR_lstat64, DO_PLAIN, "p", CALL_NOFOLLOW},
#endif
#ifdef __NR_fstat
	{"fstat", __NR_fstat, DO_PLAIN, "f", 0},
#endif
#ifdef __NR_fstat64
	{"fstat", __NR_fstat64, DO_PLAIN, "f", 0},
#endif
#ifdef __NR_newfstatat
	{"newfstatat", __NR_newfstatat, DO_PLAIN, "dp.F", CALL_FLAGS_AT},
#endif
#ifdef __NR_fstatat64
	{"newfstatat", __NR_fstatat64, DO_PLAIN, "dp.F", CALL_FLAGS_AT},
#endif
#ifdef __NR_statx
	{"statx", __NR_statx, DO_PLAIN, "dpF", CALL_FLAGS_AT},
#endif
#ifdef __NR_access
	{"access", __NR_access, DO_PLAIN, "p", 0},
#endif
#ifdef __NR_faccessat
	{"faccessat", __NR_faccessat, DO_PLAIN, "dp", 0},
#endif
#ifdef __NR_faccessat2
	{"faccessat2", __NR_faccessat2, DO_PLAIN, "dp.F", CALL_FLAGS_AT},
#endif
#ifdef __NR_chmod
	{"chmod", __NR_chmod, DO_PLAIN, "pm", 0},
#endif
#ifdef __NR_fchmod
	{"fchmod", __NR_fchmod, DO_PLAIN, "fm", 0},
#endif
#ifdef __NR_fchmodat
	{"fchmodat", __NR_fchmodat, DO_PLAIN, "dpm", 0},
#endif
#ifdef __NR_fchmodat2
	{"fchmodat2", __NR_fchmodat2, DO_PLAIN, "dpmF", CALL_FLAGS_AT},
#endif
#ifdef __NR_chown
	{"chown", __NR_chown, DO_PLAIN, "pur", 0},
#endif
#ifdef __NR_chown32
	{"chown", __NR_chown32, DO_PLAIN, "pur", 0},
#endif
#ifdef __NR_lchown
	{"lchown", __NR_lchown, DO_PLAIN, "pur", CALL_NOFOLLOW},
#endif
#ifdef __NR_lchown32
	{"lchown", __NR_lchown32, DO_PLAIN, "pur", CALL_NOFOLLOW},
#endif
#ifdef __NR_fchown
	{"fchown", __NR_fchown, DO_PLAIN, "fur", 0},
#endif
#ifdef __NR_fchown32
	{"fchown", __NR_fchown32, DO_PLAIN, "fur", 0},
#endif
#ifdef __NR_fchownat
	{"fchownat", __NR_fchownat, DO_PLAIN, "dpurF", CALL_FLAGS_AT},
#endif
#ifdef __NR_utime
	{"utime", __NR_utime, DO_PLAIN, "p", 0},
#endif
#ifdef __NR_utimes
	{"utimes", __NR_utimes, DO_PLAIN, "p", 0},
#endif
#ifdef __NR_futimesat
	{"futimesat", __NR_futimesat, DO_PLAIN, "dp", 0},
#endif
#ifdef __NR_utimensat
	{"utimensat", __NR_utimensat, DO_PLAIN, "dp.F", CALL_FLAGS_AT},
#endif
#ifdef __NR_utimensat_time64
	{"utimensat", __NR_utimensat_time64, DO_PLAIN, "dp.F", CALL_FLAGS_AT},
#endif
#ifdef __NR_setxattr
	{"setxattr", __NR_setxattr, DO_SETXATTR, "ptbnF", 0},
#endif
#ifdef __NR_lsetxattr
	{"lsetxattr", __NR_lsetxattr, DO_SETXATTR, "ptbnF", CALL_NOFOLLOW},
#endif
#ifdef __NR_fsetxattr
	{"fsetxattr", __NR_fsetxattr, DO_SETXATTR, "ftbnF", 0},
#endif
#ifdef __NR_getxattr
	{"getxattr", __NR_getxattr, DO_PLAIN, "pt.n", 0},
#endif
#ifdef __NR_lgetxattr
	{"lgetxattr", __NR_lgetxattr, DO_PLAIN, "pt.n", CALL_NOFOLLOW},
#endif
#ifdef __NR_fgetxattr
	{"fgetxattr", __NR_fgetxattr, DO_PLAIN, "ft.n", 0},
#endif
#ifdef __NR_listxattr
	{"listxattr", __NR_listxattr, DO_PLAIN, "p.n", 0},
#endif
#ifdef __NR_llistxattr
	{"llistxattr", __NR_llistxattr, DO_PLAIN, "p.n", CALL_NOFOLLOW},
#endif
#ifdef __NR_flistxattr
	{"flistxattr", __NR_flistxattr, DO_PLAIN, "f.n", 0},
#endif
#ifdef __NR_removexattr
	{"removexattr", __NR_removexattr, DO_PLAIN, "pt", 0},
#endif
#ifdef __NR_lremovexattr
	{"lremovexattr", __NR_lremovexattr, DO_PLAIN, "pt", CALL_NOFOLLOW},
#endif
#ifdef __NR_fremovexattr
	{"fremovexattr", __NR_fremovexattr, DO_PLAIN, "ft", 0},
#endif
#if defined(__NR_mmap) && UINTPTR_MAX > UINT32_MAX
	{"mmap", __NR_mmap, DO_MMAP, "anmFfo", 0},
#endif
#ifdef __NR_mmap2
	{"mmap", __NR_mmap2, DO_MMAP, "anmFfP", 0},
#endif
#ifdef __NR_mprotect
	{"mprotect", __NR_mprotect, DO_MPROTECT, "anm", 0},
#endif
#ifdef __NR_mremap
	{"mremap", __NR_mremap, DO_MREMAP, "anxF", 0},
#endif
#ifdef __NR_munmap
	{"munmap", __NR_munmap, DO_MUNMAP, "an", 0},
#endif
#ifdef __NR_msync
	{"msync", __NR_msync, DO_MSYNC, "anF", 0},
#endif
#ifdef __NR_madvise
	{"madvise", __NR_madvise, DO_MADVISE, "anc", 0},
#endif
#ifdef __NR_chdir
	{"chdir", __NR_chdir, DO_CHDIR, "p", 0},
#endif
#ifdef __NR_fchdir
	{"fchdir", __NR_fchdir, DO_CHDIR, "f", 0},
#endif
#ifdef __NR_execve
	{"execve", __NR_execve, DO_EXEC, "p", 0},
#endif
#ifdef __NR_execveat
	{"execveat", __NR_execveat, DO_EXEC, "dp..F", CALL_FLAGS_AT},
#endif
#ifdef __NR_wait4
	{"wait4", __NR_wait4, DO_WAIT, "....", CALL_BLOCKS},
#endif
#ifdef __NR_waitid
	{"waitid", __NR_waitid, DO_WAIT, ".....", CALL_BLOCKS},
#endif
#ifdef __NR_unshare
	{"unshare", __NR_unshare, DO_OWN_FILES, "", 0},
#endif
#ifdef __NR_nanosleep
	{"nanosleep", __NR_nanosleep, DO_SLEEP, "", 0},
#endif
#ifdef __NR_clock_nanosleep
	{"clock_nanosleep", __NR_clock_nanosleep, DO_SLEEP, "", 0},
#endif
#ifdef __NR_poll
	{"poll", __NR_poll, DO_SLEEP, "", 0},
#endif
#ifdef __NR_ppoll
	{"ppoll", __NR_ppoll, DO_SLEEP, "", 0},
#endif
#ifdef __NR_select
	{"select", __NR_select, DO_SLEEP, "", 0},
#endif
#ifdef __NR_pselect6
	{"pselect6", __NR_pselect6, DO_SLEEP, "", 0},
#endif
#ifdef __NR_epoll_wait
	{"epoll_wait", __NR_epoll_wait, DO_SLEEP, "", 0},
#endif
#ifdef __NR_epoll_pwait
	{"epoll_pwait", __NR_epoll_pwait, DO_SLEEP, "", 0},
#endif
#ifdef __NR_pause
	{"pause", __NR_pause, DO_SLEEP, "", 0},
#endif
#ifdef __NR_rt_sigsuspend
	{"rt_sigsuspend", __NR_rt_sigsuspend, DO_SLEEP, "", 0},
#endif
#ifdef __NR_rt_sigtimedwait
	{"rt_sigtimedwait", __NR_rt_sigtimedwait, DO_SLEEP, "", 0},
#endif
#ifdef __NR_io_uring_setup
	{"io_uring_setup", __NR_io_uring_setup, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_io_uring_enter
	{"io_uring_enter", __NR_io_uring_enter, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_io_setup
	{"io_setup", __NR_io_setup, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_io_submit
	{"io_submit", __NR_io_submit, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_mknod
	{"mknod", __NR_mknod, DO_UNKNOWN, "p", CALL_NOFOLLOW},
#endif
#ifdef __NR_mknodat
	{"mknodat", __NR_mknodat, DO_UNKNOWN, "dp", CALL_NOFOLLOW},
#endif
#ifdef __NR_ioctl
	{"ioctl", __NR_ioctl, DO_UNKNOWN, "fc", 0},
#endif
#ifdef __NR_open_by_handle_at
	{"open_by_handle_at", __NR_open_by_handle_at, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_remap_file_pages
	{"remap_file_pages", __NR_remap_file_pages, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_chroot
	{"chroot", __NR_chroot, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_pivot_root
	{"pivot_root", __NR_pivot_root, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_mount
	{"mount", __NR_mount, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_umount2
	{"umount2", __NR_umount2, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_setns
	{"setns", __NR_setns, DO_UNKNOWN, "", 0},
#endif
#ifdef __NR_clone
	{"clone", __NR_clone, DO_CLONE, "", 0},
#endif
#ifdef __NR_clone3
	{"clone3", __NR_clone3, DO_CLONE, "", 0},
#endif
#ifdef __NR_fork
	{"fork", __NR_fork, DO_CLONE, "", 0},
#endif
#ifdef __NR_vfork
	{"vfork", __NR_vfork, DO_CLONE, "", 0},
#endif
#ifdef __NR_fadvise64
	{"fadvise64", __NR_fadvise64, DO_PLAIN, "folc", 0},
#endif
#ifdef __NR_arm_fadvise64_64
	{"fadvise64", __NR_arm_fadvise64_64, DO_PLAIN, "fcol", 0},
#endif
#ifdef __NR_readahead
	{"readahead", __NR_readahead, DO_PLAIN, "fon", 0},
#endif
#ifdef __NR_sync_file_range
	{"sync_file_range", __NR_sync_file_range, DO_PLAIN, "folF", 0},
#endif
#ifdef __NR_arm_sync_file_range
	{"sync_file_range", __NR_arm_sync_file_range, DO_PLAIN, "fFol", 0},
#endif
	{"clone", -1, DO_PLAIN, "", 0},
	{"exit", -1, DO_PLAIN, "", 0},
	{"existed", -1, DO_PLAIN, "", 0},
	{"mapped_read", -1, DO_PLAIN, "", 0},
	{"mapped_write", -1, DO_PLAIN, "", 0},
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]), NUMBERS = 1024 };

#if defined(__mips__)
enum { FIRST_NUMBER = 4000 };
#else
enum { FIRST_NUMBER = 0 };
#endif

const struct known_call *known_calls(size_t *count)
{
	*count = CALLS;
	return calls;
}

const struct known_call *known_call_of(unsigned long number)
{
	static uint16_t of[NUMBERS]; /* from 1 */
	static bool filled;

	for (size_t i = 0; i < CALLS && !filled; i++)
		if (calls[i].number >= FIRST_NUMBER && calls[i].number < FIRST_NUMBER + NUMBERS)
			of[calls[i].number - FIRST_NUMBER] = (uint16_t)(i + 1);
	filled = true;
	/* ARM's own calls, with far higher numbers, are in no array. */
	if (number < FIRST_NUMBER || number >= FIRST_NUMBER + NUMBERS)
		return NULL;
	const uint16_t index = of[number - FIRST_NUMBER];

	return index ? &calls[index - 1] : NULL;
}

const struct known_call *known_call_named(const char *name)
{
	for (size_t i = CALLS; i > 0; i--)
		if (strcmp(calls[i - 1].name, name) == 0)
			return &calls[i - 1];
	return NULL;
}

uint16_t known_call_index(const struct known_call *call)
{
	return (uint16_t)(call - calls + 1);
}

/* O_TMPFILE and O_SYNC include other flags, so whole groups of bits are compared. */
uint64_t portable_open_flags(uint64_t flags)
{
	static const struct {
		uint64_t here;
		uint64_t there;
	} flag[] = {
		{O_CREAT, 0100},
		{O_EXCL, 0200},
		{O_NOCTTY, 0400},
		{O_TRUNC, 01000},
		{O_APPEND, 02000},
		{O_NONBLOCK, 04000},
		{O_DSYNC, 010000},
		{O_DIRECT, 040000},
		{O_DIRECTORY, 0200000},
		{O_NOFOLLOW, 0400000},
		{O_NOATIME, 01000000},
		{O_CLOEXEC, 02000000},
		{O_SYNC & ~O_DSYNC, 04000000},
		{O_PATH, 010000000},
		{O_TMPFILE & ~O_DIRECTORY, 020000000},
	};
	uint64_t portable = flags & O_ACCMODE & 3;

	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		if ((flags & flag[i].here) == flag[i].here)
			portable |= flag[i].there;
	return portable;
}

uint32_t portable_fcntl(uint32_t command)
{
	static const struct {
		uint32_t here;
		uint32_t there;
	} one[] = {{F_GETLK, 5}, {F_SETLK, 6}, {F_SETLKW, 7}};

	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++)
		if (command == one[i].here)
			return one[i].there;
	return command;
}
