/* SPDX-License-Identifier: Apache-2.0 */
/* host/: a program of the host, run in a folder on flash by the kernel for programs (docs/exec.md).
 *
 * Includes: base, fs.
 */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

#include "base/base.h"
#include "fs/fs.h"

enum { HOST_GROUPS = 256, HOST_COVERS = 16 };

/* Where the kernel for programs has the host's descriptors, and those that programs get. */
enum { HOST_MAJOR = 241, HOST_REQUEST = 3, HOST_ANSWER = 4, HOST_STDIN = 5 };

/* request.c: what is to be run, read from the host */

enum host_entry { HOST_FOLDER, HOST_FILE, HOST_LINK };

/* Put into the folder on flash before the program begins. */
struct host_put {
	enum host_entry kind;
	mode_t mode;
	const char *path;   /* below the folder */
	const char *source; /* the host's file, or what a link says; NULL for a folder */
};

struct host_request {
	const char *fs;
	const char *at;      /* where the program sees the flash */
	const char *program; /* its path */
	uid_t uid;
	gid_t gid;
	gid_t groups[HOST_GROUPS];
	size_t groups_count;
	uint64_t memory_bytes;           /* of each folder in memory */
	const char *covers[HOST_COVERS]; /* folders that the program finds empty, in memory */
	size_t covers_count;
	struct host_put *puts;
	size_t puts_count;
	char **arguments; /* ends with NULL, as the next one */
	char **environment;
};

/* -EPROTO for a line that is not as expected; nothing is ever freed. */
int host_read_request(int fd, struct host_request *request);

/* view.c: the files that the program sees, and the rights that it has */

int host_open(int minor); /* a descriptor of the host's */
int host_make_view(const struct host_request *request, const char *flash, const char **what);
/* In the program's process, before it is executed. */
int host_enter_view(const struct host_request *request);

/* put.c */

int host_put_all(const struct host_request *request, const char *folder, const char **what);

/* launch.c: all of it */

bool host_is_kernel(void); /* whether this kernel is the one for programs */
int host_main(void);

#endif
