/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only volume that dm-verity checks as it is read (docs/models/protection.md): a device of
 * the device mapper over the volume's block device. The image ends with the superblock and the tree
 * of hashes that veritysetup(8) writes.
 *
 * Kernel interfaces: /dev/mapper/control with DM_DEV_CREATE, DM_TABLE_LOAD, DM_DEV_SUSPEND (which
 * resumes) and DM_DEV_REMOVE (linux/dm-ioctl.h); the target `verity`, as
 * Documentation/admin-guide/device-mapper/verity.rst has it. Leaves out what it has options for:
 * error correction, a signed root hash, blocks that are checked once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/fs.h"

enum { BLOCK_BYTES = 4096, SECTOR_BYTES = 512, PARAMETERS_BYTES = 320 };

/* One request, with the table of one target behind it. */
struct request {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[PARAMETERS_BYTES];
};

static void begin(struct request *request, const struct layout_volume *volume)
{
	memset(request, 0, sizeof(*request));
	request->head.version[0] = DM_VERSION_MAJOR;
	request->head.data_size = sizeof(*request);
	request->head.data_start = offsetof(struct request, target);
	(void)snprintf(request->head.name, sizeof(request->head.name), "%s", volume->name);
}

static int ask(struct request *request, unsigned long what)
{
	const int control = open_soon("/dev/mapper/control", O_RDWR);

	if (control < 0)
		return control;
	const int err = ioctl(control, what, request) ? -errno : 0;

	(void)close(control);
	return err;
}

/* `device` is the volume's own: both the data and, behind them and a superblock, the hashes. */
static int load_table(const struct layout_volume *volume, const char *device)
{
	struct request request;
	struct stat about;

	if (stat(device, &about))
		return -errno;
	const unsigned int of[2] = {major(about.st_rdev), minor(about.st_rdev)};

	begin(&request, volume);
	request.head.flags = DM_READONLY_FLAG;
	request.head.target_count = 1;
	request.target.length = volume->verity_blocks * (BLOCK_BYTES / SECTOR_BYTES);
	(void)snprintf(request.target.target_type, sizeof(request.target.target_type), "verity");
	(void)snprintf(request.parameters, sizeof(request.parameters),
		       "1 %u:%u %u:%u %d %d %" PRIu64 " %" PRIu64 " sha256 %s %s", of[0], of[1],
		       of[0], of[1], BLOCK_BYTES, BLOCK_BYTES, volume->verity_blocks,
		       volume->verity_blocks + 1, volume->root_hash, volume->salt);
	return ask(&request, DM_TABLE_LOAD);
}

int verity_open(const struct layout_volume *volume, char *device, size_t size)
{
	struct request request;

	begin(&request, volume);
	int err = ask(&request, DM_DEV_CREATE);

	if (err)
		return err;
	const dev_t made = (dev_t)request.head.dev;

	err = load_table(volume, device);
	begin(&request, volume);
	if (!err)
		err = ask(&request, DM_DEV_SUSPEND);
	if (err)
		return err;
	(void)snprintf(device, size, "/dev/dm-%u", minor(made));
	const int there = open_soon(device, O_RDONLY);

	return there < 0 ? there : close(there) ? -errno : 0;
}

int verity_close(const struct layout_volume *volume)
{
	struct request request;

	begin(&request, volume);
	return ask(&request, DM_DEV_REMOVE);
}
