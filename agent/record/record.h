/* SPDX-License-Identifier: Apache-2.0 */
/* record/: a program's system calls on files below some folders, by ptrace and seccomp
 * (docs/reference/recording.md), as the stream `flashbed-record 1`
 * (agent/PROTOCOL.md).
 *
 * Includes: base.
 *
 * Numbers in rows are those of x86-64: flags of openat, commands of fcntl, errno. A tracee is only
 * read while it is stopped. A function that reads a tracee's memory or /proc fails if the tracee
 * was killed meanwhile, and the row then lacks what was not read.
 */
#ifndef FLASHBED_RECORD_H
#define FLASHBED_RECORD_H

#include "base/base.h"

enum { CALL_ARGUMENTS = 7, RECORD_PATH = 4096, RECORD_FOLDERS = 16, RECORD_NAME = 256 };

struct recorder;
struct tracee;

/* registers.c: a stopped task's registers */

struct call_registers {
	unsigned long number; /* of the system call */
	uint64_t argument[CALL_ARGUMENTS];
};

int registers_at_entry(pid_t tid, struct call_registers *registers);
int registers_at_exit(pid_t tid, int64_t *result); /* -errno in x86-64's numbers */
extern const uint32_t record_audit_arch;           /* seccomp's number for this architecture */

/* known_calls.c: every system call that is followed, by the kernel's name */

enum call_action {
	DO_PLAIN, /* only a row */
	DO_OPEN,
	DO_CLOSE,
	DO_CLOSE_RANGE,
	DO_DUPLICATE,
	DO_FCNTL,
	DO_SEEK,
	DO_LLSEEK,
	DO_READ,
	DO_WRITE,
	DO_MOVE, /* between two descriptors, within the kernel */
	DO_SETXATTR,
	DO_MMAP,
	DO_MUNMAP,
	DO_MREMAP,
	DO_MPROTECT,
	DO_MSYNC,
	DO_CHDIR,
	DO_EXEC,
	DO_WAIT,
	DO_SYNC,
	DO_MADVISE,
	DO_LOCK,  /* a row when it returns: it may wait for another task */
	DO_SLEEP, /* in virtual time only: changed pages count before the time passes */
	DO_OWN_FILES,
	DO_CLONE,  /* its arguments are needed when the child exists */
	DO_UNKNOWN /* counted if it may touch a followed file */
};

/* A letter of `arguments` for each argument of the call:
 *   d  a folder's descriptor, for the path after it     p q  path, to_path
 *   f g  descriptor, to_descriptor                       o l  offset, length, of 64 bits
 *   O T  offset, to_offset, where the argument points    H    position in two arguments, low first
 *   n F m c u r a x  length, flags, mode, command, user, group, address, to_offset
 *   b v  bytes; iovec, and how many of it in the next    t s  name, target
 *   h    struct open_how                                 .    nothing
 */
struct known_call {
	const char *name;
	long number; /* -1: an event, no system call */
	enum call_action action;
	const char *arguments;
	unsigned int flags;
};

enum { CALL_NOFOLLOW = 1, CALL_FLAGS_AT = 2, CALL_PATH_MAY_BE_NULL = 4, CALL_BLOCKS = 8 };

const struct known_call *known_calls(size_t *count);
const struct known_call *known_call_of(unsigned long number); /* NULL for any other */
const struct known_call *known_call_named(const char *name);
uint16_t known_call_index(const struct known_call *call); /* in the stream, from 1 */
uint64_t portable_open_flags(uint64_t flags);
uint32_t portable_fcntl(uint32_t command);

/* filter.c: the seccomp filter */

/* In the program's process, before its exec. */
int filter_install(bool in_virtual_time);

/* rows.c: the stream */

enum row_part {
	HAS_DESCRIPTOR = 1 << 0,
	HAS_PATH = 1 << 1,
	HAS_OFFSET = 1 << 2,
	HAS_LENGTH = 1 << 3,
	HAS_TO_DESCRIPTOR = 1 << 4,
	HAS_TO_PATH = 1 << 5,
	HAS_TO_OFFSET = 1 << 6,
	HAS_FLAGS = 1 << 7,
	HAS_MODE = 1 << 8,
	HAS_COMMAND = 1 << 9,
	HAS_USER = 1 << 10,
	HAS_GROUP = 1 << 11,
	HAS_NAME = 1 << 12,
	HAS_TARGET = 1 << 13,
	HAS_ADDRESS = 1 << 14,
	HAS_BYTES = 1 << 15
};

enum { ROW_TEXTS = 4 };

/* The layout in the stream: little-endian, like all machines of the agent. */
struct record_row {
	uint64_t order; /* of call beginnings */
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t cpu_ns; /* in virtual time, that in which the task did not sleep */
	int64_t result;
	int64_t offset;
	int64_t to_offset;
	int64_t length;
	uint64_t address;
	uint64_t flags;
	uint64_t file; /* inode of the file that is written, or was there */
	int64_t at;    /* offset of the bytes in the file */
	uint32_t task;
	uint32_t mode;
	uint32_t command;
	uint32_t user;
	uint32_t group;
	int32_t descriptor;
	int32_t to_descriptor;
	uint32_t bytes;
	uint16_t call;
	uint16_t has;
	uint16_t text[ROW_TEXTS]; /* lengths of path, to_path, name, target */
	uint32_t device;
};

struct row_stream {
	int handle;
	uint64_t oldest; /* no later row has a lower order */
	uint64_t blocked_ns;
	uint64_t written_bytes;
	size_t rows;
	size_t row_limit;
	size_t texts;
	uint64_t first_ns; /* when the oldest unwritten row was added */
	struct record_row *row;
	uint8_t *text;
	int error;
};

int rows_init(struct row_stream *stream, int handle);
/* Adds a row with texts in the order of its lengths; rows_bytes() adds bytes. */
void rows_add(struct row_stream *stream, const struct record_row *row, const char *const *texts);
/* Returns space for the last row's next bytes, and sets `count` to its size. */
uint8_t *rows_bytes(struct row_stream *stream, const struct record_row *row, size_t *count);
int rows_flush(struct row_stream *stream);
int rows_facts(struct row_stream *stream, const char *tag, const char *text);

/* memory.c: a tracee's memory and /proc */

/* Returns how many bytes were read: fewer at the end of mapped memory, -errno for none. */
int64_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t count);
int memory_text(pid_t tid, uint64_t address, char *text, size_t size);
/* Reads a link of /proc/TID without " (deleted)"; returns its length or -errno. */
int proc_link(pid_t tid, const char *name, int fd, char *text, size_t size);
int64_t proc_position(pid_t tid, int fd, uint64_t *flags);
uint64_t proc_cpu_ns(const struct tracee *tracee);
/* How long a task has slept, from the kernel for programs. */
uint64_t proc_slept_ns(int slept_of, pid_t tid);

/* followed.c: the folders below which files are followed */

struct followed_folders {
	char *path[RECORD_FOLDERS];
	size_t length[RECORD_FOLDERS];
	size_t count;
};

int folders_add(struct followed_folders *folders, const char *path);
/* The same for an absolute path without links, which may be missing. */
int folders_add_named(struct followed_folders *folders, const char *path);
bool folders_have(const struct followed_folders *folders, const char *path);

/* events.c: writing rows */

/* counts something that is not followed */
void count_one(struct recorder *recorder, const char *name);
/* The beginning of what the program does; the recorder's own time is not included. */
uint64_t event_now(const struct recorder *recorder);
/* Sets the fields of every row: its task, its order, when it begins, the processor time before it.
 */
void event_stamp(struct recorder *recorder, struct tracee *tracee, struct record_row *row);
/* The processor time of a task; in virtual time, how long it has not slept. */
uint64_t event_cpu_ns(const struct recorder *recorder, const struct tracee *tracee);
/* Adds a row now for something that is no call of the task's own. */
void event_row(struct recorder *recorder, struct tracee *tracee, const char *name,
	       struct record_row *row, const char *path);

/* descriptors.c: open file descriptions, shared tables of descriptors, working folders */

struct description {
	unsigned int uses;
	bool is_folder;
	uint64_t file;
	uint32_t device;
	uint64_t flags;
	int64_t position;
	char *path;
	unsigned int path_of; /* generation of names for which `path` is right */
};

struct descriptor_table {
	unsigned int uses;
	struct description **list; /* NULL: unknown; &not_followed */
	size_t count;
};

struct working_folder {
	unsigned int uses;
	char *path;
	unsigned int path_of;
};

extern struct description not_followed;

struct descriptor_table *table_new(void);
struct descriptor_table *table_copy(const struct descriptor_table *from);
void table_release(struct descriptor_table *table);
void table_set(struct descriptor_table *table, int fd, struct description *description);
void table_share(struct descriptor_table *table, int fd, struct description *description);
struct description *table_get(const struct descriptor_table *table, int fd);
void table_after_exec(struct tracee *tracee);
void table_close_range(struct descriptor_table *table, uint64_t first, uint64_t last);
/* The description of what the tracee has just opened; NULL unless it is a file or folder. */
struct description *description_new(const struct tracee *tracee, int fd, uint64_t flags);
int64_t descriptor_size(const struct tracee *tracee, int fd); /* of its file; -1 if unknown */
/* The description at fd, or NULL if it is not followed. An inherited one gets rows that stand for
 * its opening. */
struct description *descriptor(struct recorder *recorder, struct tracee *tracee, int fd);
void descriptors_look(struct recorder *recorder, struct tracee *tracee); /* at all of them */
const char *descriptor_path(struct recorder *recorder, struct tracee *tracee, int fd);
const char *folder_path(struct recorder *recorder, struct tracee *tracee);
struct working_folder *folder_new(void);
void folder_changed(struct working_folder *folder);
void folder_release(struct working_folder *folder);

/* resolve.c: paths as the tracee resolves them */

/* Resolves `path` to an absolute one; follows a last symlink if `follow` is set. */
int resolve(struct recorder *recorder, struct tracee *tracee, int folder, const char *path,
	    bool follow, char *absolute);
void resolve_forget(const char *path); /* for a name that has changed; NULL for all */

/* mapped_files.c: mapped files */

struct mapping;

struct address_space {
	unsigned int uses;
	struct mapping *first;
};

enum space_saying {
	SAY_CHANGED, /* changed pages */
	SAY_SYNCED,  /* the same, before they are written back */
	SAY_ALL,     /* touched pages, too */
	SAY_GONE     /* the same, and drops the range */
};

struct address_space *space_new(void);
struct address_space *space_copy(const struct address_space *from);
void space_release(struct address_space *space);
bool space_touches(const struct address_space *space, uint64_t address, uint64_t length);
void space_add(struct recorder *recorder, struct tracee *tracee, const struct record_row *row,
	       const struct description *description);
void space_say(struct recorder *recorder, struct tracee *tracee, uint64_t address, uint64_t length,
	       enum space_saying what);
/* Reports changes in mappings of a file that is synced, or of all files for NULL. */
void space_say_file(struct recorder *recorder, struct tracee *tracee,
		    const struct description *description);
/* In virtual time, reports changes in all mappings; returns whether any is compared. */
bool space_look(struct recorder *recorder, struct tracee *tracee);
void space_moved(struct tracee *tracee, const struct record_row *row);
void space_protected(struct recorder *recorder, struct tracee *tracee,
		     const struct record_row *row);

/* tracees.c: the tasks that are followed */

struct tracee {
	pid_t tid;
	pid_t tgid;
	uint32_t number;
	struct tracee *next;   /* in its bucket */
	struct tracee *before; /* in the list of tasks within a call */
	struct tracee *behind;
	bool in_call;
	struct tracee *parked_behind; /* in the list of tasks that wait to begin their call */
	bool parked;
	bool known; /* its creation was reported; else it waits, stopped */
	struct descriptor_table *table;
	struct working_folder *folder;
	struct address_space *space;
	const struct known_call *call; /* NULL outside of a followed call */
	struct call_registers registers;
	struct record_row row;
	char *texts;     /* path, to_path, name, target of the call; RECORD_PATH each */
	uint64_t cpu_ns; /* at its last row */
	uint32_t stops;  /* since then */
	bool rows;       /* the last was a call with two stops */
	bool entry_stop; /* a stop before the call is due, to be ignored */
	int schedstat;   /* -1: uses the clock of its process, of which it is the only task */
};

enum { TRACEE_BUCKETS = 1024, TRACEE_ENDED = 4096 };

struct ended_tracee {
	pid_t tid;
	uint32_t number;
};

struct tracees {
	struct tracee *bucket[TRACEE_BUCKETS];
	struct tracee *first; /* within a call, in the order of beginnings */
	struct tracee *last;
	struct tracee *parked; /* the first that waits */
	struct ended_tracee ended[TRACEE_ENDED];
	size_t count;
	uint32_t numbers;
};

struct tracee *tracee_find(struct tracees *tracees, pid_t tid);
struct tracee *tracee_add(struct tracees *tracees, pid_t tid);
void tracee_remove(struct tracees *tracees, struct tracee *tracee);
void tracees_enter(struct tracees *tracees, struct tracee *tracee);
void tracees_leave(struct tracees *tracees, struct tracee *tracee);
void tracees_park(struct tracees *tracees, struct tracee *tracee);
void tracees_unpark(struct tracees *tracees, struct tracee *tracee);
/* the number of an ended task, -1 for none */
int64_t tracees_ended(const struct tracees *tracees, pid_t tid);
/* Adds the child of a clone with these flags; shares or copies its parent's state. */
int tracee_born(struct recorder *recorder, struct tracee *parent, struct tracee *child,
		uint64_t flags);
void tracee_renamed(struct tracees *tracees, struct tracee *tracee, pid_t tid);

/* arguments.c */

/* Fills the row and the texts; returns whether an argument is a followed file. */
bool arguments_read(struct recorder *recorder, struct tracee *tracee);
void call_texts(const struct tracee *tracee, const char *texts[ROW_TEXTS]);

/* call.c: one system call, at its entry and its exit */

enum call_course {
	CALL_GOES_ON, /* and does not stop again */
	CALL_RETURNS, /* stops at its exit */
	CALL_WAITS    /* for another call: it stays stopped */
};

enum call_course call_begin(struct recorder *recorder, struct tracee *tracee);
/* Begins a call that waited and need not any longer. NULL if there is none. */
struct tracee *call_begin_parked(struct recorder *recorder);
void call_end(struct recorder *recorder, struct tracee *tracee);

/* listing.c: the content of the folders before the program begins */

int listing(struct recorder *recorder);
/* Lists a folder that has another path for the program, and optionally the folder itself. */
int list_folder(struct recorder *recorder, const char *folder, const char *path, bool itself);

/* overhead.c: what following a call costs */

struct overhead {
	uint64_t stop_cpu_ns; /* of the tracee, for a stop without a row */
	uint64_t call_cpu_ns; /* of the tracee, for a call with a row */
	uint64_t call_ns;     /* of the call's duration */
	bool entry_stop;      /* there is a stop between the filter's and the call */
};

int overhead_measure(struct overhead *overhead);

/* follow.c: the recorder */

enum { RECORD_COUNTS = 96 };

struct record_count {
	const char *name;
	uint64_t count;
};

struct recorder {
	struct row_stream stream;
	struct tracees tracees;
	struct followed_folders folders;
	struct overhead overhead;
	uint64_t zero_ns;
	uint64_t now_ns; /* when the current stop was seen */
	/* The recorder's work takes no time, and a task's time awake stands for its processor time.
	 * It must not read flash that the program would not read: that does take time. */
	bool in_virtual_time;
	int slept_of; /* then the kernel's flashbed_slept */
	uint64_t order;
	uint64_t stops;
	uint64_t calls;
	uint64_t busy_ns;
	struct record_count counts[RECORD_COUNTS]; /* what is not followed */
	size_t counts_used;
	unsigned int names; /* generation: incremented when a name changes */
	pid_t child;
	int status; /* of the program, as a shell reports it */
	bool over;  /* the program has ended, perhaps not all of its tasks */
	uint64_t over_ns;
	bool tells; /* says so if tasks that it left continue */
};

int follow_program(struct recorder *recorder, char **command, bool output_aside);
/* Follows a process of another parent, which waits for a byte at the other end of `gate` before its
 * exec. */
int follow_process(struct recorder *recorder, pid_t process, int gate);

/* facts.c: what the stream says of the recording at its beginning, and at its end */

int facts_begin(struct recorder *recorder, char **command);
int facts_end(struct recorder *recorder);
/* The end of a stream of nothing, or of nothing whole: what failed, and its errno. */
int facts_failed(struct recorder *recorder, int handle, const char *what, int error);

/* record_main.c: flashbed-agent record */
int record_main(int argc, char **argv);

#endif
