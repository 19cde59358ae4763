/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a program sees, and its rights.
 *
 * The root is the host's through hostfs, which the kernel for programs can only read, or a folder
 * of the initramfs. On a user's board it is the board's. Mounted on it are the flash, folders in
 * memory (`cover`), /dev with the usual devices, and /proc and /sys of this kernel, read only. The
 * program runs in a chroot as the user who started flashbed. It may not mount, load a module or
 * gain rights. As root it keeps the rights over other users' files.
 *
 * Kernel interfaces: mount(2), chroot(2), capset(2), prctl(2), SIOCSIFFLAGS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/host.h"

#define VIEW "/view"

enum { LAST_CAPABILITY = 63, MEMORY_MAJOR = 1, TTY_MAJOR = 5 };

/* The rights that root keeps: access to other users' files, and becoming one of them. Not
 * CAP_DAC_READ_SEARCH, which opens files by handles and so escapes a chroot. */
static const uint32_t KEPT = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER |
			     1U << CAP_FSETID | 1U << CAP_KILL | 1U << CAP_SETGID |
			     1U << CAP_SETUID;

int host_open(int minor)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/host-%d", minor);
	if (mknod(path, S_IFCHR | 0600, makedev(HOST_MAJOR, (unsigned int)minor)) &&
	    errno != EEXIST)
		return -errno;
	const bool in = minor == HOST_REQUEST || minor == HOST_STDIN;
	const int fd = open(path, (in ? O_RDONLY : O_WRONLY) | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_folder(const char *path)
{
	struct stat about;

	return lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Mounts in the view. A missing folder is left out, or created if flashbed made the root. */
static int mount_in_view(const char *type, const char *path, unsigned long flags,
			 const char *options)
{
	char where[MAX_PATH_BYTES + 16];

	if (snprintf(where, sizeof(where), VIEW "%s", path) >= (int)sizeof(where))
		return -ENAMETOOLONG;
	if (!is_folder(where) && mkdir(where, 0755))
		return errno == EROFS || errno == EEXIST ? 0 : -errno;
	return mount(type, where, type, flags | MS_NOSUID, options) ? -errno : 0;
}

static int make_devices(void)
{
	static const struct {
		const char *path;
		unsigned int minor;
	} devices[] = {{VIEW "/dev/null", 3},
		       {VIEW "/dev/zero", 5},
		       {VIEW "/dev/full", 7},
		       {VIEW "/dev/random", 8},
		       {VIEW "/dev/urandom", 9}};
	const mode_t terminal = S_IFCHR | 0666;
	static const char *const links[][2] = {{"/proc/self/fd", VIEW "/dev/fd"},
					       {"/proc/self/fd/0", VIEW "/dev/stdin"},
					       {"/proc/self/fd/1", VIEW "/dev/stdout"},
					       {"/proc/self/fd/2", VIEW "/dev/stderr"}};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (mknod(devices[i].path, S_IFCHR | 0666,
			  makedev(MEMORY_MAJOR, devices[i].minor)) ||
		    chmod(devices[i].path, 0666))
			return -errno;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i][0], links[i][1]))
			return -errno;
	/* Of the program's terminal; ttyF0 is the name that ttyname(3) finds. */
	if (mknod(VIEW "/dev/tty", terminal, makedev(TTY_MAJOR, 0)) ||
	    chmod(VIEW "/dev/tty", 0666) ||
	    mknod(VIEW "/dev/ttyF0", terminal, makedev(HOST_TERMINAL_MAJOR, 0)) ||
	    chmod(VIEW "/dev/ttyF0", 0666))
		return -errno;
	return mkdir(VIEW "/dev/shm", 0755) ? -errno : 0;
}

/* UBI's devices of a layout, so that programs can update volumes; nodes without a volume answer
 * ENODEV. */
static int make_ubi_devices(void)
{
	char text[32];
	char path[32];

	if (read_file("/sys/class/ubi/ubi0/dev", text, sizeof(text)) < 0)
		return 0;
	const unsigned int major = (unsigned int)strtoul(text, NULL, 10);

	for (unsigned int minor = 0; minor <= LAYOUT_VOLUMES; minor++) {
		(void)snprintf(path, sizeof(path), minor ? VIEW "/dev/ubi0_%u" : VIEW "/dev/ubi0",
			       minor - 1);
		if (mknod(path, S_IFCHR | 0666, makedev(major, minor)) || chmod(path, 0666))
			return -errno;
	}
	return 0;
}

static int cover_all(const struct host_request *request)
{
	char options[64];
	int err = 0;

	(void)snprintf(options, sizeof(options), "mode=1777,size=%llu",
		       (unsigned long long)request->memory_bytes);
	for (size_t i = 0; i < request->covers_count && !err; i++)
		err = mount_in_view("tmpfs", request->covers[i], MS_NODEV, options);
	return err;
}

static int show_flash(const char *flash, const char *at)
{
	char where[MAX_PATH_BYTES + 16];

	if (snprintf(where, sizeof(where), VIEW "%s", at) >= (int)sizeof(where))
		return -ENAMETOOLONG;
	if (!is_folder(where) && mkdir(where, 0755))
		return -errno;
	return mount(flash, where, NULL, MS_BIND, NULL) ? -errno : 0;
}

int host_hide_flash(const struct host_request *request)
{
	char where[MAX_PATH_BYTES + 16];

	(void)snprintf(where, sizeof(where), VIEW "%s", request->at);
	return umount(where) ? -errno : 0;
}

/* Creates the device that `partition` names, where the flash has no file system. */
static int show_partition(const char *flash)
{
	char link[MAX_PATH_BYTES + 16];
	char device[64];
	char where[sizeof(device) + 16];
	struct stat about;

	if (snprintf(link, sizeof(link), "%s/partition", flash) >= (int)sizeof(link))
		return -ENAMETOOLONG;
	const ssize_t length = readlink(link, device, sizeof(device) - 1);

	if (length < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : -errno;
	device[length] = 0;
	if (strncmp(device, "/dev/mtd", strlen("/dev/mtd")) != 0)
		return 0;
	(void)snprintf(where, sizeof(where), VIEW "%s", device);
	if (stat(device, &about) || mknod(where, about.st_mode, about.st_rdev) ||
	    chmod(where, 0666))
		return -errno;
	return 0;
}

static int loopback_up(void)
{
	struct ifreq loopback = {.ifr_name = "lo"};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	loopback.ifr_flags = IFF_UP;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		err = -errno;
	if (fd >= 0)
		(void)close(fd);
	return err;
}

int host_make_view(const struct host_request *request, const struct host_place *place,
		   const char **what)
{
	const unsigned long read_only = MS_RDONLY | MS_NODEV;

	if (place->where == HOST_BOARD)
		return 0;
	*what = "the host's files";
	if (place->where == HOST_USER_MODE &&
	    (mkdir(VIEW, 0755) || mount("hostfs", VIEW, "hostfs", read_only | MS_NOSUID, NULL)))
		return -errno;
	*what = "/proc";
	int err = mount_in_view("proc", "/proc", read_only | MS_NOEXEC, NULL);

	if (err || !is_folder(VIEW "/proc/self/fd"))
		return err ? err : -ENOENT;
	*what = "/sys";
	err = mount_in_view("sysfs", "/sys", read_only | MS_NOEXEC, NULL);
	if (err)
		return err;
	*what = "/dev";
	err = mount_in_view("tmpfs", "/dev", 0, "mode=755");
	if (!err)
		err = make_devices();
	if (!err && request->layout.count)
		err = make_ubi_devices();
	if (err)
		return err;
	*what = "folders in memory";
	err = cover_all(request);
	if (err)
		return err;
	*what = request->at;
	err = show_flash(place->mount_point, request->at);
	if (!err)
		err = show_partition(place->mount_point);
	if (err)
		return err;
	*what = "the loopback network";
	return loopback_up();
}

static int drop_rights(const struct host_request *request)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	/* UBI asks for it in every change of a volume (drivers/mtd/ubi/cdev.c). */
	const uint32_t ubi = request->layout.count ? 1U << CAP_SYS_RESOURCE : 0;
	const uint32_t kept = (request->uid == 0 ? KEPT : 0) | ubi;
	const struct __user_cap_data_struct rights[2] = {{kept, kept, ubi}, {0, 0, 0}};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || (ubi && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)))
		return -errno;
	for (unsigned long i = 0; i <= LAST_CAPABILITY; i++)
		if ((i > 31 || !(kept >> i & 1)) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) &&
		    errno != EINVAL) /* the kernel has no such capability */
			return -errno;
	if (setgroups(request->groups_count, request->groups) ||
	    setresgid(request->gid, request->gid, request->gid) ||
	    setresuid(request->uid, request->uid, request->uid))
		return -errno;
	if (syscall(SYS_capset, &header, rights))
		return -errno;
	return ubi && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_RESOURCE, 0, 0) ? -errno
											  : 0;
}

/* A process that wants more gets an error. Otherwise the kernel would drop and read pages of files
 * without end: reading the host's files takes no virtual time, so the out-of-memory killer never
 * acts.
 */
static int limit_memory(const struct host_request *request)
{
	const rlim_t most = request->memory_bytes / 2 * 3;
	const struct rlimit data = {most, most};

	return setrlimit(RLIMIT_DATA, &data) ? -errno : 0;
}

int host_enter_view(const struct host_request *request, const struct host_place *place)
{
	if (place->where == HOST_BOARD)
		return chdir(place->mount_point) ? -errno : 0;
	if (chroot(VIEW) || chdir(request->at))
		return -errno;
	/* Addresses would be random otherwise, and programs hash addresses. */
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		return -errno;
	(void)umask(022);
	const int err = limit_memory(request);

	return err ? err : drop_rights(request);
}
