/* SPDX-License-Identifier: Apache-2.0 */
/* fs/: the partition, the file system created and mounted on it, and the chip below. Formats,
 * mounts, read-ahead windows, directories of the user, and the commands and the log of
 * flashbed_nand.
 *
 * Includes: base.
 */
#ifndef FLASHBED_FS_H
#define FLASHBED_FS_H

#include "base/base.h"

/* nandlog.c: the chip's driver, if it is flashbed_nand */

struct flash_counts {
	uint64_t of[FLASH_KINDS];
	uint64_t missed;        /* operations the kernel could not record */
	uint64_t corrected;     /* corrected bits; of flashbed_nand only */
	uint64_t uncorrectable; /* uncorrectable ECC steps */
	uint64_t busy_ns;       /* of the chip; of flashbed_nand only */
	uint64_t until_ns;      /* later operations are not counted */
};

bool nandlog_there(void);
int nandlog_command(const char *text);
int nandlog_counts(struct flash_counts *counts);
int64_t nandlog_changes(void); /* changes of the chip since `record`, or -errno */
int nandlog_discard(void);
int nandlog_blocks(uint32_t first, uint32_t count, uint32_t *erases, int64_t *pages, int64_t *bad);
int nandlog_events(flash_sink sink, void *context);

/* Takes the chip's blocks in order; an error ends the reading. */
typedef int (*block_sink)(void *context, uint32_t block, uint32_t erases, const char *state);

int nandlog_each_block(block_sink sink, void *context);

/* fs.c: a new file system on an erased partition */

enum fs_kind {
	FS_NONE,
	FS_JFFS2,
	FS_YAFFS2,
	FS_UBIFS,
	FS_MTD,
	FS_MTD_DRIVER,
	FS_MTDBLOCK,
	FS_FTL,
	FS_EXT4,
	FS_F2FS,
	FS_KINDS
};

/* What trial.c found about a file system's read-ahead. */
struct window_trial {
	bool tried;
	int err;       /* why the trial failed; nothing is known then */
	bool switched; /* setting read_ahead_kb changes the window */
	int64_t kib;   /* the window after the mount; -1 if unknown */
};

/* The space that df shows as available; programmed pages and bad blocks of the partition (-1 if
 * unknown). */
struct fs_space {
	uint64_t bytes;
	int64_t pages;
	int64_t bad_blocks;
};

/* layout.c: a volume of a product, and what lies on it */
enum { LAYOUT_VOLUMES = 16, FS_STEPS = 24 };

struct layout_volume {
	char name[72];
	bool fixed;       /* a static volume */
	uint64_t bytes;   /* 0 for all that is left; of no meaning for a partition */
	char holds[16];   /* a type for mount(2), or `nothing` */
	char options[64]; /* of its mount, empty for none; the program's volume has those of `fs` */
	char image[96];   /* a file that is written to it; empty for none */
	uint64_t verity_blocks; /* of data that dm-verity checks; 0 for none */
	char root_hash[72];     /* in hex */
	char salt[72];
};

struct layout {
	struct layout_volume volumes[LAYOUT_VOLUMES];
	size_t count;
	bool on_mtd; /* its volumes are partitions of MTD, which the chip's driver made */
	const struct layout_volume *program; /* the volume that the program writes to */
	const struct layout_volume *root;    /* the one it boots from; NULL for the layer's */
	/* of a layer over two volumes; NULL for none */
	const struct layout_volume *lower;
	const struct layout_volume *upper;
};

/* steps.c: a step of the last mount: its time and what the chip did */
struct fs_step {
	char name[32];
	uint64_t ns;
	struct flash_counts counts; /* `missed` if they are not known */
};

struct fs {
	enum fs_kind mounted;
	enum fs_kind kind; /* the last format of the partition, or the directory's file system */
	int mtd;           /* -1 for none, below a directory that is on no flash */
	/* the name that the partition has to have when it is erased or mounted; NULL on our own
	 * kernels */
	const char *name;
	int32_t ubi; /* for UBIFS the UBI device and the volume */
	int volume;
	/* of the user, in which mount_point is a folder; NULL for our own partition */
	const char *directory;
	const char *mount_point;
	bool nor;           /* the flash is NOR: its marks are in the blocks */
	char options[128];  /* of mount(2), empty for none */
	bool authenticated; /* of protection.c */
	bool encrypted;
	unsigned int spare_permille; /* of a translation layer */
	unsigned int map_pages;
	struct flash_geometry geometry;
	const struct layout *layout; /* NULL for one volume or partition with one file system */
	/* what the partition holds in place of a new file system; NULL for none */
	const char *dump;
	uint32_t dump_oob_bytes; /* behind each page of it */
	/* of the mounted volumes of a layout their numbers in UBI or MTD, and 1 more */
	int volumes_up[LAYOUT_VOLUMES];
	bool layer_up;
	bool tells_steps; /* steps are looked at; it costs reads of debugfs */
	struct fs_step steps[FS_STEPS];
	size_t steps_count;
	struct fs_space fresh; /* of the new file system */
	struct window_trial trials[FS_KINDS];
	char detail[200]; /* the cause of a failure, for the error row */
};

int fs_init(struct fs *fs, int mtd, const char *mount_point);
/* Creates a folder in a directory of a mounted file system. */
int fs_use_directory(struct fs *fs, const char *directory, const char *folder);
/* Unmounts, and erases the partition for a file system: "ubifs", or "ubifs,bulk_read" with options
 * for every mount from now on. */
int fs_format(struct fs *fs, const char *name);
int fs_mount_fresh(struct fs *fs); /* the first mount after formatting */
int fs_unmount(struct fs *fs);
/* mounts what is on the partition; not while anything is mounted */
int fs_mount(struct fs *fs);
int fs_remount(struct fs *fs);
int fs_space(struct fs *fs, struct fs_space *room);
/* on a new mount: finds whether its window can be set; writes to it */
void fs_try_window(struct fs *fs);
/* Sets the window of the mounted file system (WINDOW_SHIPPED: its default), and returns its value
 * then, -1 if unknown. -ENOTSUP with `detail` if it cannot. */
int fs_set_read_ahead(struct fs *fs, int64_t kib, int64_t *there);

/* steps.c: nothing between `step_begin` and `step_end` may begin another one */

void steps_clear(struct fs *fs);
void step_begin(struct fs *fs, const char *name);
void step_end(struct fs *fs);

/* layout_lines.c: the lines of a layout in a job and in a program's request */

int layout_line(struct layout *layout, const char *word, char *rest); /* 1: another word */

/* layout_mtd.c: a layout of partitions */

int partition_number(const char *name);
int partition_fill(int number, const char *image);

/* layout.c: on an attached UBI device, or on partitions of MTD */

int volume_make(const struct fs *fs, int number, const struct layout_volume *volume);

int layout_mount(struct fs *fs, bool new);
int layout_unmount(struct fs *fs);
/* The folder that the device boots from. */
const char *layout_root(const struct fs *fs);

/* protection.c: takes its words out of the mount options; is called around each mount of UBIFS */

int protection_take(struct fs *fs);
int protection_before_mount(struct fs *fs);
int protection_after_mount(struct fs *fs, const char *path, bool new);

/* verity.c: a device that checks what is read of a volume's own, whose path it replaces; it is to
 * be closed even where opening it failed */

int verity_open(const struct layout_volume *volume, char *device, size_t size);
int verity_close(const struct layout_volume *volume);

/* format.c: erases a partition for a file system; used by fs.c */

int open_mtd(int mtd);                      /* the device, or -errno */
int open_soon(const char *path, int flags); /* a device that appears a moment later */
uint32_t block_count(const struct fs *fs);
int first_block(const struct fs *fs, uint32_t *first); /* of the partition, in the chip's numbers */
/* Writes the cause of a failure into `detail` and returns `err`; does nothing if that is 0. */
int fs_fail(struct fs *fs, int err, const char *what);
int format_partition(struct fs *fs, enum fs_kind kind);

/* dump.c: what a device's flash held; used by format.c */

/* Bytes of the partition that the dump fills; its bad blocks become bad. `first` is the
 * partition's first block, in the chip's numbers. */
int dump_begin(const struct fs *fs, uint32_t first, uint64_t *bytes);
/* Onto erased blocks of the device `to`. `erases` get those of UBI's headers, if not NULL. */
int dump_write(const struct fs *fs, int to, uint64_t bytes, uint32_t *erases);

/* window.c: the backing device of a file system's inodes, and its read_ahead_kb */

enum { WINDOW_PATH_BYTES = SETTING_PATH_BYTES, WINDOW_SHIPPED = -1, MTD_DISKS_MAJOR = 31 };

struct window_of {
	const char *fs; /* the type for mount(2) */
	dev_t device;   /* of a file in it */
	int ubi;        /* for UBIFS the UBI device and the volume */
	int volume;
};

/* -ENOENT if the kernel has no such device */
int window_path(const struct window_of *of, char *path, size_t size);
int window_disk_path(unsigned int mtd, char *path, size_t size); /* of mtdblock */
bool window_needs_disk(const char *fs); /* it is mounted on a block device */
int window_read(const char *path, uint64_t *kib);
/* the value before the first window_set */
int window_shipped(const char *path, uint64_t *kib);
int window_set(const char *path, uint64_t kib);
void window_below(const char *folder); /* another root of /sys and /proc; for tests */

/* trial.c: the window that files really have */

int window_measure(const char *directory, int64_t *kib);
/* NULL if there is no switch */
int window_try(const char *directory, const char *switch_path, struct window_trial *trial);

/* raw.c: the partition itself as the only file of a directory */

bool raw_kind(enum fs_kind kind);
int raw_link(const struct fs *fs, enum fs_kind kind);
int raw_unlink(const struct fs *fs);
int raw_erase(int fd, uint64_t offset, uint64_t length);

/* disk.c: a disk with a flash translation layer, and file systems of disks on it */

bool disk_kind(enum fs_kind kind);
void disk_take_options(struct fs *fs);
int disk_mount(struct fs *fs, enum fs_kind kind, const char *type, bool new);
int disk_detach(void);

/* folder.c: a directory of the user instead of our own partition */

struct mounted {
	char path[MAX_PATH_BYTES + 1]; /* of the mount point */
	char source[256];
	char type[32];
	dev_t device; /* of the directory */
	int mtd;      /* of the flash below; -1 for none */
	int ubi;      /* UBI device and volume; -1 for none */
	int volume;
};

int folder_mounted(const char *directory, struct mounted *mounted);

#endif
