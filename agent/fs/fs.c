/* SPDX-License-Identifier: Apache-2.0 */
/* A new file system on an erased MTD partition (format.c), and mounting it again. UBIFS gets one
 * dynamic volume of all the space; its default file system is created at the first mount.
 *
 * Kernel interfaces: /dev/mtdN with MEMGETINFO (mtd/mtd-user.h), /dev/ubi_ctrl with UBI_IOCATT and
 * UBI_IOCDET (mtd/ubi-user.h), mount(2). Volumes are layout.c's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/mtd-user.h>
#include <mtd/ubi-user.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/fs.h"

/* NOR writes single bytes; a command of SPI-NOR programs a page at most. */
enum { NOR_PAGE_BYTES = 256 };

static const char *const names[] = {"",           "jffs2",    "yaffs2", "ubifs", "mtd",
				    "mtd-driver", "mtdblock", "ftl",    "ext4",  "f2fs"};

int fs_init(struct fs *fs, int mtd, const char *mount_point)
{
	struct mtd_info_user info;

	memset(fs, 0, sizeof(*fs));
	fs->mtd = mtd;
	fs->mount_point = mount_point;
	const int fd = open_mtd(fs->mtd);

	if (fd < 0)
		return fs_fail(fs, fd, "opening the device");
	int err = ioctl(fd, MEMGETINFO, &info) ? -errno : 0;

	(void)close(fd);
	if (err)
		return fs_fail(fs, err, "MEMGETINFO");
	fs->nor = info.type == MTD_NORFLASH;
	fs->geometry = (struct flash_geometry){fs->nor ? NOR_PAGE_BYTES : info.writesize,
					       info.oobsize, info.erasesize, info.size};
	/* MEMGETINFO has a size of 32 bits. */
	err = mtd_value(fs->mtd, "size", &fs->geometry.size_bytes);
	return fs_fail(fs, err, "reading the partition's size");
}

/* After drivers were reloaded another partition may have this number, so its name is checked again
 * before anything is erased or written. */
static int check_name(struct fs *fs)
{
	char name[64];

	if (!fs->name)
		return 0;
	const int err = mtd_name(fs->mtd, name, sizeof(name));

	return fs_fail(fs,
		       err                           ? err
		       : strcmp(name, fs->name) != 0 ? -EPERM
						     : 0,
		       "the partition is not called what it was when it was confirmed");
}

static int ubi_control(unsigned long request, void *argument)
{
	const int fd = open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = ioctl(fd, request, argument) ? -errno : 0;

	(void)close(fd);
	return err;
}

static int mount_on_mtd(struct fs *fs, const char *type, const char *what)
{
	char device[32];

	(void)snprintf(device, sizeof(device),
		       window_needs_disk(type) ? "/dev/mtdblock%d" : "mtd%d", fs->mtd);
	step_begin(fs, "mount");
	const int err = mount(device, fs->mount_point, type, 0, fs->options) ? -errno : 0;

	step_end(fs);
	return fs_fail(fs, err, what);
}

static int mount_one_volume(struct fs *fs, bool new)
{
	char device[24];
	static const struct layout_volume whole = {.name = "flashbed"};
	int err = new ? fs_fail(fs, volume_make(fs, 0, &whole), "making the UBI volume") : 0;

	(void)snprintf(device, sizeof(device), "ubi%d_0", fs->ubi);
	if (!err)
		err = protection_before_mount(fs);
	if (err)
		return err;
	err = mount(device, fs->mount_point, "ubifs", 0, fs->options) ? -errno : 0;
	return err ? fs_fail(fs, err, "mounting ubifs")
		   : protection_after_mount(fs, fs->mount_point, new);
}

/* The kernel chooses the number of the UBI device, because a board may have others. */
static int mount_ubifs(struct fs *fs, bool new)
{
	struct ubi_attach_req attach = {.ubi_num = UBI_DEV_NUM_AUTO, .mtd_num = fs->mtd};

	step_begin(fs, "attach");
	int err = fs_fail(fs, ubi_control(UBI_IOCATT, &attach), "attaching UBI");

	step_end(fs);
	if (err)
		return err;
	fs->ubi = attach.ubi_num;
	if (fs->layout) {
		err = layout_mount(fs, new);
	} else {
		step_begin(fs, "mount");
		err = mount_one_volume(fs, new);
		step_end(fs);
	}
	if (err)
		(void)ubi_control(UBI_IOCDET, &fs->ubi);
	return err;
}

static int mount_kind(struct fs *fs, enum fs_kind kind, bool new)
{
	int err = check_name(fs);

	if (err)
		return err;
	steps_clear(fs);
	if (disk_kind(kind))
		err = disk_mount(fs, kind, names[kind], new);
	else if (raw_kind(kind))
		err = fs_fail(fs, raw_link(fs, kind), "naming the partition");
	else if (kind == FS_JFFS2 && fs->layout)
		err = layout_mount(fs, new);
	else if (kind == FS_JFFS2)
		err = mount_on_mtd(fs, "jffs2", "mounting jffs2");
	else if (kind == FS_YAFFS2)
		err = mount_on_mtd(fs, "yaffs2", "mounting yaffs2");
	else
		err = mount_ubifs(fs, new);
	if (!err)
		fs->mounted = kind;
	return err;
}

static int leave_directory(struct fs *fs)
{
	fs->mounted = FS_NONE;
	return fs_fail(fs, remove_folder(fs->mount_point), "removing the folder of the cases");
}

int fs_unmount(struct fs *fs)
{
	int err = 0;

	if (fs->directory)
		return leave_directory(fs);
	if (raw_kind(fs->mounted))
		err = fs_fail(fs, raw_unlink(fs), "naming the partition");
	else if (fs->layout && fs->mounted != FS_NONE)
		err = layout_unmount(fs);
	else if (fs->mounted != FS_NONE && umount(fs->mount_point))
		err = fs_fail(fs, -errno, "unmounting");
	if (err)
		return err;
	if (fs->mounted == FS_UBIFS)
		err = fs_fail(fs, ubi_control(UBI_IOCDET, &fs->ubi), "detaching UBI");
	if (disk_kind(fs->mounted))
		err = fs_fail(fs, disk_detach(), "detaching the translation layer");
	fs->mounted = FS_NONE;
	return err;
}

int fs_space(struct fs *fs, struct fs_space *room)
{
	struct statfs now;
	uint32_t first = 0;
	int err = statfs(fs->mount_point, &now) ? -errno : 0;

	*room = (struct fs_space){.pages = -1, .bad_blocks = -1};
	if (err)
		return fs_fail(fs, err, "asking for the room that is left");
	room->bytes = (uint64_t)now.f_bavail * (uint64_t)now.f_bsize;
	if (!nandlog_there())
		return 0;
	err = first_block(fs, &first);
	if (!err)
		err = nandlog_blocks(first, block_count(fs), NULL, &room->pages, &room->bad_blocks);
	return fs_fail(fs, err, "asking for the state of the blocks");
}

/* Uses a folder in a mounted directory instead of a new file system. The file system is left as it
 * is. */
int fs_use_directory(struct fs *fs, const char *directory, const char *folder)
{
	struct mounted mounted;
	int err = folder_mounted(directory, &mounted);

	memset(fs, 0, sizeof(*fs));
	if (err) {
		(void)snprintf(fs->detail, sizeof(fs->detail), "%.120s: %s", directory,
			       strerror(-err));
		return err;
	}
	for (fs->kind = FS_UBIFS;
	     fs->kind != FS_NONE && strcmp(names[fs->kind], mounted.type) != 0;)
		fs->kind--;
	fs->mtd = mounted.mtd;
	fs->ubi = mounted.ubi;
	fs->volume = mounted.volume;
	fs->directory = directory;
	fs->mount_point = folder;
	/* From sysfs, not by ioctl: a directory's user need not be root. */
	const int read = mounted.mtd < 0 ? 0 : mtd_geometry(fs->mtd, &fs->geometry);

	return fs_fail(fs, read, "reading the geometry of the flash below the directory");
}

int fs_format(struct fs *fs, const char *name)
{
	const size_t length = strcspn(name, ",");
	const char *options = name[length] ? name + length + 1 : "";
	enum fs_kind kind = FS_KINDS - 1;

	while (kind != FS_NONE &&
	       (strlen(names[kind]) != length || strncmp(name, names[kind], length) != 0))
		kind--;
	int err = fs_unmount(fs);

	if (kind == FS_NONE)
		return fs_fail(fs, -ENODEV, "this agent has no such file system");
	if (fs->directory)
		return err ? err
		       : kind == fs->kind && !*options
			       ? 0
			       : fs_fail(fs, -EINVAL, "another file system than is mounted there");
	(void)snprintf(fs->options, sizeof(fs->options), "%s", options);
	disk_take_options(fs);
	if (!err && kind == FS_UBIFS)
		err = protection_take(fs);
	if (raw_kind(kind) && *fs->options)
		return fs_fail(fs, -EINVAL, "mount options of a partition");
	if (!err)
		err = check_name(fs);
	if (!err)
		err = format_partition(fs, kind);
	if (!err)
		fs->kind = kind;
	return err;
}

int fs_mount_fresh(struct fs *fs)
{
	int err;

	err = mkdir(fs->mount_point, 0755) && errno != EEXIST
		      ? fs_fail(fs, -errno, "making the directory to mount on")
		      : 0;
	if (fs->directory && !err)
		fs->mounted = fs->kind;
	else if (!err)
		err = mount_kind(fs, fs->kind, !fs->dump);
	return err ? err : fs_space(fs, &fs->fresh);
}

int fs_mount(struct fs *fs)
{
	return fs->kind == FS_NONE || fs->directory ? -ENODEV : mount_kind(fs, fs->kind, false);
}

int fs_remount(struct fs *fs)
{
	const int err = fs->mounted == FS_NONE ? -ENODEV : fs_unmount(fs);

	return err ? err : fs_mount(fs);
}

/* Finds where the window of the mounted file system is set; empty if nowhere. */
static void find_window(const struct fs *fs, char *path, size_t size)
{
	struct stat about;
	const bool there = stat(fs->mount_point, &about) == 0;
	const struct window_of of = {names[fs->mounted], there ? about.st_dev : 0, fs->ubi,
				     fs->volume};

	if (!there || window_path(&of, path, size))
		path[0] = '\0';
}

void fs_try_window(struct fs *fs)
{
	struct window_trial *trial = &fs->trials[fs->mounted];
	char path[WINDOW_PATH_BYTES];

	find_window(fs, path, sizeof(path));
	*trial = (struct window_trial){.tried = true, .kib = -1};
	trial->err = window_try(fs->mount_point, *path ? path : NULL, trial);
}

static int lacks_window(struct fs *fs, const char *path)
{
	const int err = fs->trials[fs->mounted].err;

	if (err)
		(void)snprintf(fs->detail, sizeof(fs->detail),
			       "which window its files have could not be tried: %.100s",
			       strerror(-err));
	else if (*path)
		(void)snprintf(fs->detail, sizeof(fs->detail),
			       "%.120s is not what its files are read ahead by", path);
	else
		(void)snprintf(
			fs->detail, sizeof(fs->detail),
			"the kernel has no read_ahead_kb of the device that its inodes look at");
	return -ENOTSUP;
}

int fs_set_read_ahead(struct fs *fs, int64_t kib, int64_t *there)
{
	const struct window_trial *trial = &fs->trials[fs->mounted];
	char path[WINDOW_PATH_BYTES];
	uint64_t wanted = (uint64_t)kib;

	*there = 0;
	if (raw_kind(fs->mounted))
		return kib > 0 ? fs_fail(fs, -EINVAL, "setting read_ahead_kb of a partition") : 0;
	find_window(fs, path, sizeof(path));
	if (!*path || (trial->tried && !trial->switched)) {
		*there = trial->tried ? trial->kib : -1;
		return *there >= 0 && (kib == WINDOW_SHIPPED || kib == *there)
			       ? 0
			       : lacks_window(fs, path);
	}
	int err = kib == WINDOW_SHIPPED ? window_shipped(path, &wanted) : 0;

	if (!err)
		err = window_set(path, wanted);
	*there = (int64_t)wanted;
	return fs_fail(fs, err, "setting read_ahead_kb");
}
