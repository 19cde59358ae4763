/* SPDX-License-Identifier: Apache-2.0 */
/* host/: runs a program in a folder on flash (docs/models/programs.md): a program of the host on
 * the kernel for programs, one of a folder on the emulated board, or one of a user's board.
 *
 * Includes: base, tracing, fs, job, record.
 */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

#include "base/base.h"
#include "fs/fs.h"
#include "job/job.h"

enum { HOST_GROUPS = 256, HOST_COVERS = 16 };

/* Device numbers of the host's descriptors in the kernel for programs, and those that programs get.
 */
enum { HOST_MAJOR = 241, HOST_REQUEST = 3, HOST_ANSWER = 4, HOST_STDIN = 5, HOST_KEEP = 8 };
enum { HOST_RECORD = 9 };

/* The program's terminal, which is a terminal of the host. */
enum { HOST_TERMINAL_MAJOR = 242 };

/* request.c: what to run, read from the host */

enum host_entry { HOST_FOLDER, HOST_FILE, HOST_LINK };

/* An entry that is put into the folder on flash before the program begins. */
struct host_put {
	enum host_entry kind;
	mode_t mode;
	const char *path;   /* below the folder */
	const char *source; /* the host's file, or a link's target; NULL for a folder */
};

/* How the device is switched off before the boot that is looked at. */
enum host_boot { BOOT_NONE, BOOT_CLEAN, BOOT_UNCLEAN };

struct host_request {
	const char *fs;       /* with its mount options: "ubifs,bulk_read" */
	struct layout layout; /* of a product; no volumes for none */
	const char *dump;     /* what the flash holds at first; NULL for a new file system */
	uint32_t dump_oob_bytes;
	const char *at;      /* where the program sees the flash */
	const char *program; /* its path */
	uid_t uid;
	gid_t gid;
	gid_t groups[HOST_GROUPS];
	size_t groups_count;
	uint64_t memory_bytes;           /* of each folder in memory */
	const char *covers[HOST_COVERS]; /* folders that are empty and in memory for the program */
	size_t covers_count;
	struct host_put *puts;
	size_t puts_count;
	uint64_t until_ns;      /* after this the program is ended; 0 for never */
	bool keep;              /* send what is left on the flash to HOST_KEEP */
	bool record;            /* send the program's calls to HOST_RECORD */
	bool terminal;          /* the program has a terminal; else the host's descriptors */
	const char *shell;      /* to look around on a terminal afterwards; NULL for none */
	bool symbols;           /* send only the kernel's symbols, of the emulated board */
	int64_t read_ahead_kib; /* the window of the mount; WINDOW_SHIPPED for the kernel's own */
	char **sysctls;         /* NAME VALUE, for /proc/sys; NULL for none */
	char **costs;           /* lines for the kernel's flashbed_costs; NULL for none */
	enum host_boot boot;
	int64_t cuts; /* boots after so many power cuts instead; 0 for none */
	char **reads; /* files that are read after it; NULL for none */
	/* none if nothing runs before a boot; ends with NULL, like the next one */
	char **arguments;
	char **environment;
};

/* -EPROTO for an unexpected line; nothing is ever freed. */
int host_read_request(int fd, struct host_request *request);

/* Where the program runs, and which files it sees. */
enum host_where {
	HOST_USER_MODE, /* in the kernel for programs: the host's, read only */
	HOST_GUEST,     /* on the emulated board: those of a folder of the initramfs */
	HOST_BOARD      /* on a user's board: its own, and the program keeps its rights */
};

struct host_place {
	enum host_where where;
	int mtd;                 /* the partition to erase */
	const char *name;        /* the name that it has to have; NULL on our own kernels */
	const char *mount_point; /* of the flash */
	const char *folder;      /* for `out`, `err` and `in`; NULL for the host's descriptors */
};

/* view.c: the files that the program sees, and its rights */

int host_open(int minor); /* opens a descriptor of the host */
int host_make_view(const struct host_request *request, const struct host_place *place,
		   const char **what);
/* Takes the flash out of it again, so that it can be unmounted. */
int host_hide_flash(const struct host_request *request);
/* In the program's process, before its exec. */
int host_enter_view(const struct host_request *request, const struct host_place *place);

/* put.c */

/* Where the guest has mounted the host's files; empty where files travel with the guest. */
const char *host_files(const struct host_place *place);
int host_put_all(const struct host_request *request, const struct host_place *place,
		 const char **what);

/* until.c: waits for the program, or ends it when its time is up */

struct host_end {
	int status;  /* as of wait(2) */
	int signal;  /* sent because its time was up; 0 for none */
	uint64_t ns; /* when it ended */
};

void host_wait(const struct host_request *request, pid_t program, struct host_end *end);

/* children.c: the program's processes, including those that left it */

int host_adopt(void);           /* they become this process's children when their parents end */
size_t host_signal(int number); /* sends it to all of them; returns their number */
void host_spare(pid_t process); /* a process that is never signalled */
void host_kill_the_rest(void);

/* outcome.c: what the program did to the flash, as lines */

struct host_counts {
	struct flash_counts flash;
	uint32_t *erases;
};

/* Counts of the chip since it was armed. */
int host_count(const struct fs *fs, struct host_counts *counts);
void host_say_counts(struct channel *out, const char *when, const struct host_counts *from,
		     const struct host_counts *to);
void host_say_calls(struct channel *out);
void host_say_steps(struct channel *out, const struct fs *fs, const char *word);
void host_say_wear(struct channel *out, const struct fs *fs, const struct host_counts *from,
		   const struct host_counts *to);

/* boot.c */

int host_boot_begin(const struct host_request *request); /* before the program */
/* Before the program and before the mount that it begins with: reading leaves files in memory. */
int host_boot_before(const struct host_request *request, const struct fs *fs, struct channel *out);
int host_boot(const struct host_request *request, struct fs *fs, struct channel *out,
	      const char **what);

/* keep.c: a folder with its content, sent to the host */

/* `flash_bytes` are those of the partition; what claims many times more is left out. */
int host_keep(struct channel *out, const char *folder, uint64_t flash_bytes);
int host_send_file(struct channel *out, const char *path, uint64_t size);

/* recorded.c: the recorder next to the program, in the kernel for programs */

struct host_recorder;

/* Begins the stream with what is on the flash. `made` is NULL if nothing is to be recorded. */
int host_record_begin(const struct host_request *request, const struct host_place *place,
		      struct host_recorder **made);
/* Starts it, with a process number far from those that programs get. */
int host_record_start(struct host_recorder *recorder);
/* Makes it follow a process that has been forked. */
int host_record_process(struct host_recorder *recorder, pid_t process);
/* In that process: waits until it is followed. */
int host_record_wait(struct host_recorder *recorder);
/* Kills what the program left running, and waits for the recorder; none of it takes time. */
int host_record_end(struct host_recorder *recorder);

/* shell.c: terminals */

/* In a process of its own: makes the terminal its standard input, output and error. */
int host_use_terminal(void);
/* Runs a shell in the view until it ends. */
int host_shell(const struct host_request *request, const struct host_place *place);

/* launch.c: all of it */

bool host_is_kernel(void);   /* whether this kernel is the one for programs */
bool host_has_request(void); /* whether the emulated board was booted for a program */
int host_main(void);         /* process 1 of either */
int host_run(int request, struct channel *out, const struct host_place *place);

#endif
