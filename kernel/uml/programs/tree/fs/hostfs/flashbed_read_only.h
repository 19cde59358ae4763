/* SPDX-License-Identifier: GPL-2.0-only */
/* Nothing of the host can be changed by hostfs: included behind the C library's headers, this takes
 * every call from hostfs_user.c that could, whatever is mounted and whichever process asks.
 *
 * Files are opened for reading alone, and without changing when they were last read where the host
 * allows that (its owner and root may ask for it).
 */
#ifndef FLASHBED_READ_ONLY_H
#define FLASHBED_READ_ONLY_H

#ifndef O_NOATIME
#define O_NOATIME 01000000
#endif

static inline int flashbed_refuse(void)
{
	errno = EROFS;
	return -1;
}

static inline int flashbed_open(const char *path)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	const int fd = open64(path, flags | O_NOATIME);

	return fd < 0 && errno == EPERM ? open64(path, flags) : fd;
}

#define open64(path, ...) flashbed_open(path)
#define pwrite64(...) flashbed_refuse()
#define fsync(...) flashbed_refuse()
#define fdatasync(...) flashbed_refuse()
#define fchmod(...) flashbed_refuse()
#define chmod(...) flashbed_refuse()
#define fchown(...) flashbed_refuse()
#define chown(...) flashbed_refuse()
#define ftruncate(...) flashbed_refuse()
#define truncate(...) flashbed_refuse()
#define futimes(...) flashbed_refuse()
#define utimes(...) flashbed_refuse()
#define symlink(...) flashbed_refuse()
#define unlink(...) flashbed_refuse()
#define mkdir(...) flashbed_refuse()
#define rmdir(...) flashbed_refuse()
#define mknod(...) flashbed_refuse()
#define link(...) flashbed_refuse()
#define rename(...) flashbed_refuse()
#define syscall(...) flashbed_refuse()

#endif
