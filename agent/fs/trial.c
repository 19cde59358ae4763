/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead window that a file of a mounted file system really has, measured by reading one.
 *
 * Kernel interface: mincore(2) of a mapped file tells which of its pages are cached. Read page by
 * page from the beginning, a file of holes gets read-ahead that grows to the window and stays there
 * (get_next_ra_size of mm/readahead.c), on all kernels since 2.6.23. Holes cost the flash an inode
 * and no data. A switch of window.c is trusted if two of its settings show in this way.
 *
 * Leaves out: windows that the file is too short to show twice (more than TRIAL_BYTES / 4), and a
 * window of one page, which is none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/fs.h"

enum { TRIAL_BYTES = 1 << 20, TRIED_KIB = 64 };

static size_t cached(const unsigned char *pages, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += pages[i] & 1;
	return sum;
}

/* The pages that the largest step of read-ahead brought, once it has come twice. 1 if each read
 * brings only its own page, -1 if neither is seen. */
static int64_t largest_step(int fd, void *mapped, unsigned char *pages, size_t count, size_t page)
{
	size_t had = 0;
	size_t largest = 0;
	size_t times = 0;
	char *byte = malloc(page);

	for (size_t i = 0; byte && i < count; i++) {
		if (pread(fd, byte, page, (off_t)(i * page)) != (ssize_t)page ||
		    mincore(mapped, count * page, pages)) {
			times = 0;
			break;
		}
		const size_t has = cached(pages, count);
		const size_t step = has - had;

		times = step > largest ? 1 : times + (step == largest);
		largest = step > largest ? step : largest;
		had = has;
	}
	free(byte);
	return times > 1 ? (int64_t)largest : -1;
}

static int make_holes(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const int err = fd < 0 || ftruncate(fd, TRIAL_BYTES) ? -errno : 0;

	if (fd >= 0)
		(void)close(fd);
	return err;
}

int window_measure(const char *directory, int64_t *kib)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t count = TRIAL_BYTES / page;
	unsigned char *pages = calloc(1, count);
	char path[MAX_PATH_BYTES + 32];
	int err = pages ? 0 : -ENOMEM;

	*kib = -1;
	(void)snprintf(path, sizeof(path), "%s/flashbed-window", directory);
	if (!err)
		err = make_holes(path);
	/* JFFS2 refuses a shared mapping through a writable descriptor
	 * (generic_file_readonly_mmap). */
	const int fd = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);

	if (!err && fd < 0)
		err = -errno;
	void *mapped = err ? MAP_FAILED : mmap(NULL, TRIAL_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	if (!err && mapped == MAP_FAILED)
		err = -errno;
	if (!err) {
		const int64_t step = largest_step(fd, mapped, pages, count, page);

		*kib = step < 0 ? -1 : step == 1 ? 0 : step * (int64_t)page / 1024;
		(void)munmap(mapped, TRIAL_BYTES);
	}
	if (fd >= 0)
		(void)close(fd);
	if (unlink(path) && !err)
		err = -errno;
	free(pages);
	return err;
}

/* Sets a window; returns whether a file opened afterwards has it. */
static int window_shows(const char *directory, const char *switch_path, uint64_t kib, bool *seen)
{
	int64_t found = -1;
	int err = window_set(switch_path, kib);

	if (!err)
		err = window_measure(directory, &found);
	*seen = !err && found == (int64_t)kib;
	return err;
}

int window_try(const char *directory, const char *switch_path, struct window_trial *trial)
{
	uint64_t before = 0;
	bool large = false;
	bool none = false;
	int err = window_measure(directory, &trial->kib);

	trial->switched = false;
	if (err || !switch_path)
		return err;
	err = window_read(switch_path, &before);
	if (err)
		return err;
	err = window_shows(directory, switch_path, TRIED_KIB, &large);
	if (!err)
		err = window_shows(directory, switch_path, 0, &none);
	const int restored = window_set(switch_path, before);

	/* A user who may not set it may still see that it has the right value. */
	trial->switched =
		err == -EACCES || err == -EPERM ? trial->kib == (int64_t)before : large && none;
	if (err == -EACCES || err == -EPERM)
		return 0;
	return err ? err : restored;
}
