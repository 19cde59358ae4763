/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a product (docs/models/layouts.md): volumes of one UBI device or partitions of MTD,
 * what each holds, and a layer over two of them. The program's folder is the layer, or the volume
 * it writes to.
 *
 * An image is written to its volume by UBI's volume update, as ubiupdatevol does. Read-only file
 * systems are mounted on the block device of a volume or partition, UBIFS and JFFS2 on it.
 *
 * Kernel interfaces: /dev/ubiN with UBI_IOCMKVOL, /dev/ubiN_V with UBI_IOCVOLUP, UBI_IOCVOLCRBLK
 * and UBI_IOCVOLRMBLK (mtd/ubi-user.h), mount(2). Leaves out more than one layer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mtd/ubi-user.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fs.h"

#define FOLDER "/layout"

enum { PATH_BYTES = 160, DEVICE_BYTES = 32 };

/* `path` is at least PATH_BYTES. */
static const char *mount_point_of(const struct fs *fs, const struct layout_volume *volume,
				  char *path)
{
	const struct layout *layout = fs->layout;

	if (!layout->upper && layout->program == volume)
		return fs->mount_point;
	(void)snprintf(path, PATH_BYTES, FOLDER "/%s", volume->name);
	return path;
}

static bool on_block_device(const struct layout_volume *volume)
{
	return strcmp(volume->holds, "ubifs") != 0 && strcmp(volume->holds, "jffs2") != 0;
}

static bool mounted(const struct layout_volume *volume)
{
	return strcmp(volume->holds, "nothing") != 0;
}

static int of_ubi(const struct fs *fs, const char *name, uint64_t *number)
{
	char path[64];
	char text[32];

	(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d/%s", fs->ubi, name);
	const int got = read_file(path, text, sizeof(text));

	*number = got > 0 ? strtoull(text, NULL, 10) : 0;
	return got < 0 ? got : 0;
}

static int open_volume(const struct fs *fs, int number)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/ubi%d_%d", fs->ubi, number);
	return open_soon(path, O_RDWR);
}

/* The number of the volume with this name, which an update may have changed; -ENOENT for none. */
static int number_of(const struct fs *fs, const char *name)
{
	char path[64];
	char text[160];

	if (fs->layout->on_mtd)
		return partition_number(name);
	for (int number = 0; number < 2 * LAYOUT_VOLUMES; number++) {
		(void)snprintf(path, sizeof(path), "/sys/class/ubi/ubi%d_%d/name", fs->ubi, number);
		if (read_file(path, text, sizeof(text)) < 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, name) == 0)
			return number;
	}
	return -ENOENT;
}

int volume_make(const struct fs *fs, int number, const struct layout_volume *volume)
{
	struct ubi_mkvol_req request = {.vol_id = number,
					.alignment = 1,
					.vol_type = volume->fixed ? UBI_STATIC_VOLUME
								  : UBI_DYNAMIC_VOLUME,
					.name_len = (int16_t)strlen(volume->name)};
	char path[24];
	uint64_t blocks = 0;
	uint64_t bytes = 0;
	int err = of_ubi(fs, "avail_eraseblocks", &blocks);

	if (!err)
		err = of_ubi(fs, "eraseblock_size", &bytes);
	if (err)
		return err;
	request.bytes = (int64_t)(volume->bytes ? volume->bytes : blocks * bytes);
	(void)snprintf(request.name, sizeof(request.name), "%s", volume->name);
	(void)snprintf(path, sizeof(path), "/dev/ubi%d", fs->ubi);
	const int device = open_soon(path, O_RDWR);

	if (device < 0)
		return device;
	err = ioctl(device, UBI_IOCMKVOL, &request) ? -errno : 0;
	(void)close(device);
	return err;
}

/* UBI_IOCVOLUP announces the size; the update is over when as many bytes are written. */
static int update_volume(const struct fs *fs, size_t number)
{
	struct stat about;
	const int from = open(fs->layout->volumes[number].image, O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return -errno;
	const int to = open_volume(fs, (int)number);
	int err = to < 0 ? to : fstat(from, &about) ? -errno : 0;
	int64_t bytes = err ? 0 : (int64_t)about.st_size;

	if (!err && ioctl(to, UBI_IOCVOLUP, &bytes))
		err = -errno;
	if (!err)
		err = copy_file(from, to);
	if (to >= 0 && close(to) && !err)
		err = -errno;
	(void)close(from);
	return err;
}

static int write_image(const struct fs *fs, size_t number)
{
	const struct layout_volume *volume = &fs->layout->volumes[number];

	return fs->layout->on_mtd ? partition_fill(partition_number(volume->name), volume->image)
				  : update_volume(fs, number);
}

static int make_volumes(struct fs *fs)
{
	int err = 0;

	for (size_t at = 0; at < fs->layout->count && !err; at++) {
		const struct layout_volume *volume = &fs->layout->volumes[at];
		const char *what = "making the volume";

		err = fs->layout->on_mtd ? 0 : volume_make(fs, (int)at, volume);
		if (!err && volume->image[0]) {
			what = "writing the image of the volume";
			err = write_image(fs, at);
		}
		if (err)
			(void)snprintf(fs->detail, sizeof(fs->detail), "%s %s: %s", what,
				       volume->name, strerror(-err));
	}
	return err;
}

/* mtdblock's is there for every partition. */
static int block_device(const struct fs *fs, int number, unsigned long request)
{
	struct ubi_blkcreate_req none = {.padding = {0}};

	if (fs->layout->on_mtd)
		return 0;
	const int volume = open_volume(fs, number);
	int err = volume < 0 ? volume : 0;

	if (!err && ioctl(volume, request, &none))
		err = -errno;
	if (volume >= 0)
		(void)close(volume);
	return err;
}

/* What mount(2) is given. */
static void name_device(const struct fs *fs, bool block, int number, char device[DEVICE_BYTES])
{
	if (fs->layout->on_mtd)
		(void)snprintf(device, DEVICE_BYTES, block ? "/dev/mtdblock%d" : "mtd%d", number);
	else
		(void)snprintf(device, DEVICE_BYTES, block ? "/dev/ubiblock%d_%d" : "ubi%d_%d",
			       fs->ubi, number);
}

static int mount_volume(struct fs *fs, const struct layout_volume *volume, int number, bool new)
{
	const bool block = on_block_device(volume);
	const bool writes = volume == fs->layout->program;
	char path[PATH_BYTES];
	char device[DEVICE_BYTES];
	const char *at = mount_point_of(fs, volume, path);
	int err = mkdir(at, 0755) && errno != EEXIST ? -errno : 0;

	if (!err && block)
		err = block_device(fs, number, UBI_IOCVOLCRBLK);
	name_device(fs, block, number, device);
	if (!err && block) {
		const int there = open_soon(device, O_RDONLY);

		err = there < 0 ? there : close(there) ? -errno : 0;
	}
	if (!err && volume->verity_blocks)
		err = verity_open(volume, device, sizeof(device));
	if (!err && writes)
		err = protection_before_mount(fs);
	if (!err && mount(device, at, volume->holds, writes ? 0 : MS_RDONLY,
			  writes ? fs->options : volume->options))
		err = -errno;
	if (err && volume->verity_blocks)
		(void)verity_close(volume);
	if (err && block)
		(void)block_device(fs, number, UBI_IOCVOLRMBLK);
	if (!err && writes) {
		fs->volume = number;
		err = protection_after_mount(fs, at, new);
	}
	return err;
}

static int mount_one(struct fs *fs, size_t at, bool new)
{
	const struct layout_volume *volume = &fs->layout->volumes[at];
	const int number = number_of(fs, volume->name);
	const int err = number < 0 ? number : mount_volume(fs, volume, number, new);

	if (err)
		(void)snprintf(fs->detail, sizeof(fs->detail), "mounting %s of volume %s: %s",
			       volume->holds, volume->name, strerror(-err));
	else
		fs->volumes_up[at] = number + 1;
	return err;
}

/* overlayfs wants a folder for what it prepares beside that of the changes. */
static int mount_layer(struct fs *fs)
{
	const struct layout *layout = fs->layout;
	char options[512];
	char path[PATH_BYTES];
	int err = 0;

	(void)snprintf(path, sizeof(path), FOLDER "/%s/upper", layout->upper->name);
	err = mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
	(void)snprintf(path, sizeof(path), FOLDER "/%s/work", layout->upper->name);
	if (!err && mkdir(path, 0755) && errno != EEXIST)
		err = -errno;
	(void)snprintf(options, sizeof(options),
		       "lowerdir=" FOLDER "/%s,upperdir=" FOLDER "/%s/upper,workdir=" FOLDER
		       "/%s/work",
		       layout->lower->name, layout->upper->name, layout->upper->name);
	if (!err && mount("overlay", fs->mount_point, "overlay", 0, options))
		err = -errno;
	fs->layer_up = !err;
	return fs_fail(fs, err, "mounting the layer");
}

int layout_mount(struct fs *fs, bool new)
{
	const struct layout *layout = fs->layout;
	int err = mkdir(FOLDER, 0755) && errno != EEXIST
			  ? fs_fail(fs, -errno, "making the folder of the layout")
			  : 0;

	if (!err && new)
		err = make_volumes(fs);
	for (size_t at = 0; at < layout->count && !err; at++) {
		if (!mounted(&layout->volumes[at]))
			continue;
		step_begin(fs, layout->volumes[at].name);
		err = mount_one(fs, at, new);
		step_end(fs);
	}
	if (!err && layout->upper) {
		step_begin(fs, "layer");
		err = mount_layer(fs);
		step_end(fs);
	}
	if (err) {
		char why[sizeof(fs->detail)];

		memcpy(why, fs->detail, sizeof(why));
		(void)layout_unmount(fs);
		memcpy(fs->detail, why, sizeof(why));
	}
	return err;
}

const char *layout_root(const struct fs *fs)
{
	static char path[PATH_BYTES];

	return fs->layout && fs->layout->root ? mount_point_of(fs, fs->layout->root, path)
					      : fs->mount_point;
}

int layout_unmount(struct fs *fs)
{
	const struct layout *layout = fs->layout;
	char path[PATH_BYTES];
	int err = fs->layer_up && umount(fs->mount_point) ? -errno : 0;

	fs->layer_up = fs->layer_up && err;
	for (size_t at = layout->count; at-- > 0 && !err;) {
		const struct layout_volume *volume = &layout->volumes[at];

		if (!fs->volumes_up[at])
			continue;
		if (umount(mount_point_of(fs, volume, path)))
			err = -errno;
		if (!err && volume->verity_blocks)
			err = verity_close(volume);
		if (!err && on_block_device(volume))
			err = block_device(fs, fs->volumes_up[at] - 1, UBI_IOCVOLRMBLK);
		if (!err)
			fs->volumes_up[at] = 0;
	}
	return fs_fail(fs, err, "unmounting the layout");
}
