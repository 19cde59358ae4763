/* SPDX-License-Identifier: Apache-2.0 */
/* host/: a program run in a folder on flash (docs/exec.md): one of the host by the kernel for
 * programs, one of a folder in the emulated board, one of a board that is somebody's.
 *
 * Includes: base, tracing, fs, job, record.
 */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

#include "base/base.h"
#include "fs/fs.h"
#include "job/job.h"

enum { HOST_GROUPS = 256, HOST_COVERS = 16 };

/* Where the kernel for programs has the host's descriptors, and those that programs get. */
enum { HOST_MAJOR = 241, HOST_REQUEST = 3, HOST_ANSWER = 4, HOST_STDIN = 5, HOST_KEEP = 8 };
enum { HOST_RECORD = 9 };

/* Its terminal, which is a terminal of the host's. */
enum { HOST_TERMINAL_MAJOR = 242 };

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
	uint64_t until_ns; /* after which the program is ended; 0 for never */
	bool keep;         /* what is left on the flash goes to HOST_KEEP */
	bool record;       /* what the program does goes to HOST_RECORD */
	bool terminal;     /* of the program's; else it has the host's descriptors */
	const char *shell; /* that looks around on a terminal afterwards; NULL for none */
	bool symbols;      /* only the kernel's symbols are wanted, of the emulated board */
	char **costs;      /* lines for the kernel's flashbed_costs; NULL for none */
	char **arguments;  /* ends with NULL, as the next one */
	char **environment;
};

/* -EPROTO for a line that is not as expected; nothing is ever freed. */
int host_read_request(int fd, struct host_request *request);

/* Where the program runs, and which files it sees. */
enum host_where {
	HOST_USER_MODE, /* in the kernel for programs: the host's, read only */
	HOST_GUEST,     /* on the emulated board: those of a folder of the initramfs */
	HOST_BOARD      /* on a board of the user's: its own, and it keeps its rights */
};

struct host_place {
	enum host_where where;
	int mtd;                 /* the partition that is erased */
	const char *name;        /* and has to be called so; NULL where the kernel is ours */
	const char *mount_point; /* of the flash */
	const char *folder;      /* for `out`, `err` and `in`; NULL for the host's descriptors */
};

/* view.c: the files that the program sees, and the rights that it has */

int host_open(int minor); /* a descriptor of the host's */
int host_make_view(const struct host_request *request, const struct host_place *place,
		   const char **what);
/* In the program's process, before it is executed. */
int host_enter_view(const struct host_request *request, const struct host_place *place);

/* put.c */

int host_put_all(const struct host_request *request, const struct host_place *place,
		 const char **what);

/* until.c: the program waited for, or ended when its time is up */

struct host_end {
	int status;  /* as of wait(2) */
	int signal;  /* that was sent because its time was up; 0 for none */
	uint64_t ns; /* when it had ended */
};

void host_wait(const struct host_request *request, pid_t program, struct host_end *end);

/* children.c: the processes of the program, also those that left it */

int host_adopt(void);           /* they become this process's when their parents end */
size_t host_signal(int number); /* sends it to all of them; how many there are */
void host_spare(pid_t process); /* one that is never signalled */
void host_kill_the_rest(void);

/* outcome.c: what the program did to the flash, as lines */

struct host_counts {
	struct flash_counts flash;
	uint32_t *erases;
};

/* Of the chip since it was armed. */
int host_count(const struct fs *fs, struct host_counts *counts);
void host_say_counts(struct channel *out, const char *when, const struct host_counts *from,
		     const struct host_counts *to);
void host_say_calls(struct channel *out);
void host_say_wear(struct channel *out, const struct fs *fs, const struct host_counts *from,
		   const struct host_counts *to);

/* keep.c: a folder and all in it, sent to the host */

int host_keep(struct channel *out, const char *folder);
int host_send_file(struct channel *out, const char *path, uint64_t size);

/* recorded.c: the recorder beside the program, in the kernel for programs */

struct host_recorder;

/* Begins the stream with what is on the flash. NULL in `made` if nothing is to be recorded. */
int host_record_begin(const struct host_request *request, const struct host_place *place,
		      struct host_recorder **made);
/* Starts it. Its process number is out of the way of those that programs get. */
int host_record_start(struct host_recorder *recorder);
/* Lets it follow a process that has been forked. */
int host_record_process(struct host_recorder *recorder, pid_t process);
/* In that process: waits until it is followed. */
int host_record_wait(struct host_recorder *recorder);
/* When all processes of the program have ended. */
int host_record_end(struct host_recorder *recorder);

/* shell.c: terminals */

/* In a process of its own: the terminal as its standard input, output and error. */
int host_use_terminal(void);
/* A shell in the view, until it ends. */
int host_shell(const struct host_request *request, const struct host_place *place);

/* launch.c: all of it */

bool host_is_kernel(void); /* whether this kernel is the one for programs */
bool host_is_asked(void);  /* whether the emulated board was booted for a program */
int host_main(void);       /* as process 1 of either */
int host_run(int request, struct channel *out, const struct host_place *place);

#endif
