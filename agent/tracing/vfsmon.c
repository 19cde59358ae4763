/* SPDX-License-Identifier: Apache-2.0 */
/* Activity of the VFS: reads, writes, syncs, read-ahead, write-back, and pages that enter and leave
 * the page cache (agent/tracing/README.md).
 *
 * Kernel functions and trace points (Linux 6.1; fs/read_write.c, fs/sync.c, mm/readahead.c,
 * mm/page-writeback.c, events/filemap.h): vfs_read, vfs_write, vfs_fsync_range,
 * page_cache_ra_unbounded (__do_page_cache_readahead before 5.8), do_writepages,
 * mm_filemap_add_to_page_cache, mm_filemap_delete_from_page_cache.
 *
 * The offsets of the dentry in `struct file`, of name and inode in the dentry, and of the number in
 * the inode depend on kernel and configuration. They are found by trial (find_layout). `struct
 * address_space` begins with its inode, `struct readahead_control` with file, mapping and state.
 *
 * Vectored I/O is do_iter_read, do_iter_write; where these are missing (6.8) vfs_readv, vfs_writev,
 * whose length is unknown.
 *
 * Leaves out: mapped I/O, splice.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum {
	KINDS = 16,
	ARGUMENTS = 700,
	TRIALS = 120,
	FILE_WORDS = 28,
	INODE_WORDS = 44,
	TRIAL_BYTES = 37
};

/* Offsets in bytes; `known` once both trials agree. */
struct layout {
	bool known;
	unsigned int dentry; /* in struct file */
	unsigned int name;   /* in struct dentry: the pointer of d_name */
	unsigned int inode;  /* in struct dentry */
	unsigned int number; /* in struct inode */
};

struct kind {
	const char *name;
	unsigned int type;
	unsigned int return_type; /* 0 for a trace point: no duration */
	unsigned int inode_at, inode_size;
	unsigned int offset_at, offset_size;
	unsigned int length_at, length_size;
	unsigned int file_at;  /* 0 for none */
	unsigned int extra_at; /* fsync: whether it is fdatasync */
	unsigned int result_at, result_size;
	unsigned int unit; /* of offset and length, in bytes */
};

struct vfsmon {
	struct tracefs *session;
	const struct symbols *symbols; /* only while it is being opened */
	struct layout layout;
	struct kind kinds[KINDS];
	size_t count;
	struct open_calls open;
	char *said;
	size_t room;
};

/* The probe of a trial and what it saw of the two files. The trial's own reads have a length of
 * TRIAL_BYTES. */
struct trial {
	unsigned int type;
	unsigned int length_at;
	unsigned int at[TRIALS];
	unsigned int size[TRIALS];
	size_t count;
	bool wanted_text;
	const char *name;
	uint64_t number;
	bool fits[TRIALS];
};

static int look(void *context, const struct trace_event *event)
{
	struct trial *trial = context;

	if (event->type != trial->type || event->pid != getpid() ||
	    trace_u32(event->data + trial->length_at) != TRIAL_BYTES)
		return 0;
	for (size_t i = 0; i < trial->count; i++) {
		char text[64];

		if (trial->wanted_text)
			trial->fits[i] &=
				strcmp(trace_string(event, trial->at[i], text, sizeof(text)),
				       trial->name) == 0;
		else
			trial->fits[i] &= trace_number(event->data + trial->at[i],
						       trial->size[i]) == trial->number;
	}
	return 0;
}

/* Reads a byte of two files with known names and numbers, under a probe that fetches many places;
 * -ENOENT if none fits both. */
static int try_places(struct vfsmon *vfsmon, const char *arguments, struct trial *trial,
		      size_t *fitting)
{
	static const char *const names[] = {"version", "meminfo"};
	char name[32];
	unsigned int ignored;
	int err = tracefs_probe(vfsmon->session, 'p', "trial", "vfs_read", arguments, &trial->type);

	if (!err)
		err = tracefs_field(vfsmon->session, trial->type, "length", &trial->length_at,
				    &ignored);

	for (size_t i = 0; i < trial->count && !err; i++) {
		(void)snprintf(name, sizeof(name), "t%zu", i);
		err = tracefs_field(vfsmon->session, trial->type, name, &trial->at[i],
				    &trial->size[i]);
		trial->fits[i] = true;
	}
	for (size_t file = 0; file < 2 && !err; file++) {
		struct stat status;
		char path[32];
		char bytes[TRIAL_BYTES];

		(void)snprintf(path, sizeof(path), "/proc/%s", names[file]);
		const int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &status) ||
		    tracefs_drain(vfsmon->session, UINT64_MAX, NULL, NULL) ||
		    pread(fd, bytes, sizeof(bytes), 0) != TRIAL_BYTES)
			err = -EIO;
		if (fd >= 0)
			(void)close(fd);
		trial->name = names[file];
		trial->number = kernel_word() == 4 ? (uint32_t)status.st_ino : status.st_ino;
		if (!err)
			err = tracefs_drain(vfsmon->session, UINT64_MAX, look, trial);
	}
	(void)tracefs_forget_probes(vfsmon->session);
	for (*fitting = 0; !err && *fitting < trial->count; (*fitting)++)
		if (trial->fits[*fitting])
			return 0;
	return err ? err : -ENOENT;
}

/* d_name's pointer comes after flags, sequence, hash list and parent, and the first half of the
 * name's hash and length, with or without alignment. */
static int find_name(struct vfsmon *vfsmon)
{
	static const unsigned int names_32[] = {32, 28, 36};
	static const unsigned int names_64[] = {40, 48, 32};
	const unsigned int word = kernel_word();
	const unsigned int *names = word == 8 ? names_64 : names_32;
	struct trial *trial = calloc(1, sizeof(*trial));
	char *text = malloc(4096);
	size_t fitting = 0;

	if (!trial || !text) {
		free(trial);
		free(text);
		return -ENOMEM;
	}
	size_t used = (size_t)sprintf(text, "length=%s:u32 ", kernel_argument(2));

	trial->wanted_text = true;
	for (unsigned int at = 0; at < FILE_WORDS; at++)
		for (unsigned int n = 0; n < 3; n++)
			used += (size_t)snprintf(text + used, 4096 - used,
						 "t%zu=+0(+%u(+%u(%s))):string ", trial->count++,
						 names[n], at * word, kernel_argument(0));
	const int err = try_places(vfsmon, text, trial, &fitting);

	vfsmon->layout.dentry = (unsigned int)(fitting / 3) * word;
	vfsmon->layout.name = names[fitting % 3];
	free(trial);
	free(text);
	return err;
}

/* d_inode comes after the name's pointer, with or without alignment; i_ino is somewhere in the
 * inode. */
static int find_number(struct vfsmon *vfsmon)
{
	const unsigned int word = kernel_word();
	struct layout *layout = &vfsmon->layout;
	struct trial *trial = calloc(1, sizeof(*trial));
	char *text = malloc(4096);
	size_t fitting = 0;

	if (!trial || !text) {
		free(trial);
		free(text);
		return -ENOMEM;
	}
	size_t used = (size_t)sprintf(text, "length=%s:u32 ", kernel_argument(2));

	for (unsigned int inode = 1; inode <= 2; inode++)
		for (unsigned int at = 0; at < INODE_WORDS; at++)
			used += (size_t)snprintf(text + used, 4096 - used,
						 "t%zu=+%u(+%u(+%u(%s))):u%u ", trial->count++,
						 at * word, layout->name + inode * word,
						 layout->dentry, kernel_argument(0), word * 8);
	const int err = try_places(vfsmon, text, trial, &fitting);

	layout->inode = layout->name + (unsigned int)(1 + fitting / INODE_WORDS) * word;
	layout->number = (unsigned int)(fitting % INODE_WORDS) * word;
	layout->known = !err;
	free(trial);
	free(text);
	return err;
}

static void say_point(struct vfsmon *vfsmon, const char *what)
{
	const size_t used = strlen(vfsmon->said);

	(void)snprintf(vfsmon->said + used, vfsmon->room - used, "%s%s", used ? "," : "", what);
}

/* Notes what this kernel lacks, so that it is not seen. */
static void say_without(struct vfsmon *vfsmon, const char *what)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "without-%s", what);
	say_point(vfsmon, text);
}

/* An optional field. */
static void optional(const struct vfsmon *vfsmon, unsigned int type, const char *name,
		     unsigned int *at, unsigned int *size)
{
	if (tracefs_field(vfsmon->session, type, name, at, size))
		*at = 0;
}

static int add_call(struct vfsmon *vfsmon, const char *kind, const char *function,
		    unsigned int unit, const char *arguments)
{
	/* Kinds are identified by their functions, because two may have the same name. */
	struct kind added = {.name = kind, .unit = unit};
	struct tracefs *session = vfsmon->session;
	char result[40];
	char name[64];
	unsigned int ignored;

	if (!symbols_have(vfsmon->symbols, function)) {
		say_without(vfsmon, function);
		return 0;
	}
	(void)snprintf(result, sizeof(result), "result=$retval:s%u", kernel_word() * 8);
	int err = tracefs_probe(session, 'p', function, function, arguments, &added.type);

	(void)snprintf(name, sizeof(name), "%s_back", function);
	if (!err)
		err = tracefs_probe(session, 'r', name, function, result, &added.return_type);
	if (!err)
		err = tracefs_field(session, added.return_type, "result", &added.result_at,
				    &added.result_size);
	if (err)
		return err;
	optional(vfsmon, added.type, "inode", &added.inode_at, &added.inode_size);
	optional(vfsmon, added.type, "offset", &added.offset_at, &added.offset_size);
	optional(vfsmon, added.type, "length", &added.length_at, &added.length_size);
	optional(vfsmon, added.type, "file", &added.file_at, &ignored);
	optional(vfsmon, added.type, "datasync", &added.extra_at, &ignored);
	vfsmon->kinds[vfsmon->count++] = added;
	say_point(vfsmon, function);
	return 0;
}

static int add_cache_point(struct vfsmon *vfsmon, const char *kind, const char *path)
{
	struct kind added = {.name = kind, .unit = (unsigned int)sysconf(_SC_PAGESIZE)};
	int err = tracefs_point(vfsmon->session, path, &added.type);

	if (err == -ENOENT) {
		say_without(vfsmon, strchr(path, '/') + 1);
		return 0;
	}
	if (!err)
		err = tracefs_field(vfsmon->session, added.type, "i_ino", &added.inode_at,
				    &added.inode_size);
	if (!err)
		err = tracefs_field(vfsmon->session, added.type, "index", &added.offset_at,
				    &added.offset_size);
	if (err)
		return err;
	vfsmon->kinds[vfsmon->count++] = added;
	say_point(vfsmon, strchr(path, '/') + 1);
	return 0;
}

/* The name and inode number of the `struct file` at `pointer`. */
static void of_file(const struct vfsmon *vfsmon, const char *pointer, char *text, size_t size)
{
	const struct layout *layout = &vfsmon->layout;
	const unsigned int bits = kernel_word() * 8;

	text[0] = '\0';
	if (layout->known)
		(void)snprintf(text, size,
			       "file=+0(+%u(+%u(%s))):string inode=+%u(+%u(+%u(%s))):u%u ",
			       layout->name, layout->dentry, pointer, layout->number, layout->inode,
			       layout->dentry, pointer, bits);
}

static int arm_files(struct vfsmon *vfsmon)
{
	const bool wide = kernel_word() == 8;
	char file[200];
	char text[ARGUMENTS];

	of_file(vfsmon, kernel_argument(0), file, sizeof(file));
	(void)snprintf(text, sizeof(text), "%slength=%s:u%u offset=+0(%s):s64", file,
		       kernel_argument(2), kernel_word() * 8, kernel_argument(3));
	int err = add_call(vfsmon, "read", "vfs_read", 1, text);

	if (!err)
		err = add_call(vfsmon, "write", "vfs_write", 1, text);
	/* (file, loff_t start, loff_t end, datasync): on 32 bits `start` is in the third and fourth
	 * place, `end` on the stack. */
	(void)snprintf(text, sizeof(text), "%sdatasync=%s:u32", file,
		       kernel_argument(wide ? 3 : 6));
	return err ? err : add_call(vfsmon, "fsync", "vfs_fsync_range", 1, text);
}

/* The count of iov_iter comes after its kind and offset, from 6.4 on after a pointer as well. */
static int arm_vectors(struct vfsmon *vfsmon)
{
	static const char *const names[2][3] = {{"read", "do_iter_read", "vfs_readv"},
						{"write", "do_iter_write", "vfs_writev"}};
	const unsigned int word = kernel_word();
	char file[200];
	char text[ARGUMENTS];
	int err = 0;

	of_file(vfsmon, kernel_argument(0), file, sizeof(file));
	for (size_t i = 0; i < 2 && !err; i++) {
		if (symbols_have(vfsmon->symbols, names[i][1])) {
			(void)snprintf(text, sizeof(text), "%slength=+%u(%s):u%u offset=+0(%s):s64",
				       file, word * (kernel_version() < 604 ? 2 : 3),
				       kernel_argument(1), word * 8, kernel_argument(2));
			err = add_call(vfsmon, names[i][0], names[i][1], 1, text);
		} else if (symbols_have(vfsmon->symbols, names[i][2])) {
			(void)snprintf(text, sizeof(text), "%soffset=+0(%s):s64", file,
				       kernel_argument(3));
			err = add_call(vfsmon, names[i][0], names[i][2], 1, text);
		}
	}
	return err;
}

static int arm_cache(struct vfsmon *vfsmon)
{
	const unsigned int word = kernel_word();
	const unsigned int page = (unsigned int)sysconf(_SC_PAGESIZE);
	const bool control = symbols_have(vfsmon->symbols, "page_cache_ra_unbounded");
	char inode[80] = "";
	char text[ARGUMENTS];

	/* (struct readahead_control *, pages, ...), and before 5.8 (mapping, file, offset, pages,
	 * ...). */
	if (vfsmon->layout.known)
		(void)snprintf(inode, sizeof(inode), "inode=+%u(+0(%s%s%s)):u%u ",
			       vfsmon->layout.number, control ? (word == 8 ? "+8(" : "+4(") : "",
			       kernel_argument(0), control ? ")" : "", word * 8);
	if (control)
		(void)snprintf(text, sizeof(text), "%soffset=+%u(%s):u%u length=%s:u%u", inode,
			       3 * word, kernel_argument(0), word * 8, kernel_argument(1),
			       word * 8);
	else
		(void)snprintf(text, sizeof(text), "%soffset=%s:u%u length=%s:u%u", inode,
			       kernel_argument(2), word * 8, kernel_argument(3), word * 8);
	int err = add_call(vfsmon, "readahead",
			   control ? "page_cache_ra_unbounded" : "__do_page_cache_readahead", page,
			   text);

	if (vfsmon->layout.known)
		(void)snprintf(inode, sizeof(inode), "inode=+%u(+0(%s)):u%u", vfsmon->layout.number,
			       kernel_argument(0), word * 8);
	else
		(void)snprintf(inode, sizeof(inode), "mapping=%s:u%u", kernel_argument(0),
			       word * 8);
	if (!err)
		err = add_call(vfsmon, "writeback", "do_writepages", 1, inode);
	if (!err)
		err = add_cache_point(vfsmon, "cache-add", "filemap/mm_filemap_add_to_page_cache");
	return err ? err
		   : add_cache_point(vfsmon, "cache-delete",
				     "filemap/mm_filemap_delete_from_page_cache");
}

int vfsmon_open(struct vfsmon **made, struct tracefs *session, const struct symbols *symbols,
		char *points, size_t size)
{
	struct vfsmon *vfsmon = calloc(1, sizeof(*vfsmon));

	*made = vfsmon;
	if (!vfsmon)
		return -ENOMEM;
	vfsmon->session = session;
	vfsmon->symbols = symbols;
	vfsmon->said = points;
	vfsmon->room = size;
	points[0] = '\0';
	int err = find_name(vfsmon);

	if (!err)
		err = find_number(vfsmon);
	/* Probes of the oldest kernels have no strings (before 2.6.36) or shorter lines
	 * (WRITE_BUFSIZE), and refuse the trial. */
	if (err == -ENOENT || (err == -EINVAL && kernel_arguments_known()))
		say_point(vfsmon, "files-unnamed");
	else if (err)
		return err;
	err = arm_files(vfsmon);
	if (!err)
		err = arm_vectors(vfsmon);
	return err ? err : arm_cache(vfsmon);
}

/* A number of a record that may be signed, as offsets and results are. */
static int64_t signed_number(const uint8_t *bytes, unsigned int size)
{
	return size == 4 ? (int64_t)(int32_t)trace_u32(bytes) : (int64_t)trace_number(bytes, size);
}

static int give_point(const struct kind *kind, const struct trace_event *event, call_sink sink,
		      void *context)
{
	const struct call_row row = {
		.what = kind->name,
		.start_ns = event->time_ns,
		.duration_ns = -1,
		.inode = trace_number(event->data + kind->inode_at, kind->inode_size),
		.offset = (int64_t)(trace_number(event->data + kind->offset_at, kind->offset_size) *
				    kind->unit),
		.length = kind->unit,
		.pid = event->pid,
		.file = "",
	};

	return sink(context, &row);
}

static int enter(struct vfsmon *vfsmon, size_t at, const struct trace_event *event)
{
	const struct kind *kind = &vfsmon->kinds[at];
	struct open_call call = {.probe = (unsigned int)at,
				 .pid = event->pid,
				 .start_ns = event->time_ns,
				 .offset = -1,
				 .length = -1};

	if (kind->inode_at)
		call.inode = trace_number(event->data + kind->inode_at, kind->inode_size);
	if (kind->offset_at)
		call.offset =
			(int64_t)trace_number(event->data + kind->offset_at, kind->offset_size) *
			kind->unit;
	if (kind->length_at)
		call.length =
			(int64_t)trace_number(event->data + kind->length_at, kind->length_size) *
			kind->unit;
	if (kind->file_at)
		(void)trace_string(event, kind->file_at, call.file, sizeof(call.file));
	if (kind->extra_at)
		call.length = trace_u32(event->data + kind->extra_at) != 0;
	return calls_enter(&vfsmon->open, &call);
}

static int give_call(const struct vfsmon *vfsmon, const struct open_call *call,
		     const struct trace_event *event, call_sink sink, void *context)
{
	const struct kind *kind = &vfsmon->kinds[call->probe];
	struct call_row row = {
		.what = kind->name,
		.start_ns = call->start_ns,
		.duration_ns = event ? (int64_t)(event->time_ns - call->start_ns) : -1,
		.inode = call->inode,
		.offset = call->offset,
		.length = call->length,
		.pid = call->pid,
		.file = call->file,
	};

	if (event) {
		row.result = signed_number(event->data + kind->result_at, kind->result_size);
		/* A function without a result leaves something in the register. */
		row.has_result = strcmp(kind->name, "readahead") != 0;
	}
	if (kind->extra_at) {
		row.what = call->length ? "fdatasync" : "fsync";
		row.length = -1;
	}
	return sink(context, &row);
}

int vfsmon_take(struct vfsmon *vfsmon, const struct trace_event *event, call_sink sink,
		void *context)
{
	for (size_t i = 0; i < vfsmon->count; i++) {
		const struct kind *kind = &vfsmon->kinds[i];
		struct open_call call;

		if (kind->type == event->type)
			return kind->return_type ? enter(vfsmon, i, event)
						 : give_point(kind, event, sink, context);
		if (kind->return_type == event->type)
			return calls_leave(&vfsmon->open, (unsigned int)i, event->pid, &call)
				       ? give_call(vfsmon, &call, event, sink, context)
				       : 0;
	}
	return 0;
}

int vfsmon_finish(struct vfsmon *vfsmon, call_sink sink, void *context)
{
	int err = 0;

	for (size_t i = 0; i < vfsmon->open.count && !err; i++)
		err = give_call(vfsmon, &vfsmon->open.list[i], NULL, sink, context);
	vfsmon->open.count = 0;
	return err;
}

void vfsmon_close(struct vfsmon *vfsmon)
{
	if (vfsmon)
		free(vfsmon->open.list);
	free(vfsmon);
}
