/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program on flash: creates a file system, copies the request's files onto it, runs the
 * program and reports what it did to the flash. As process 1 of the kernel for programs and of the
 * emulated board, and on a user's board.
 *
 * The answer, a line each:
 *   step NAME NS [READS PROGRAMS ERASES BUSY_NS]  from attaching to the mounted stack, before
 *   ran exit N | ran signal N | cannot ERRNO
 *   until SIGNAL                               if it was ended because its time was up
 *   time NS                                    from its first instruction to its end
 *   counts WHEN READS PROGRAMS ERASES BUSY_NS  WHEN is `run`, or `flush` for sync(2)'s writes
 *   missed N | unseen WHY                      operations not recorded: some, or all
 *   call NAME CALLS NS BYTES                   a kind of system call
 *   failed NAME ERRNO CALLS                    calls that failed on flash; 0: short writes
 *   file ...                                   a line of flashbed_files
 *   wear ERASES...                             by block, in run and flush
 *   page BYTES
 *   stdout BYTES | stderr BYTES                followed by the bytes, unless the host has them
 *   boot ... | read ... | unread ...           of a boot afterwards (boot.c)
 *   end | error WORDS
 * Processes that the program leaves running are killed after its end.
 *
 * Kernel interfaces: /sys/kernel/debug/flashbed_calls, _files and _costs, fork(2), execve(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host.h"

#define CALLS "/sys/kernel/debug/flashbed_calls"
#define FILES "/sys/kernel/debug/flashbed_files"
#define COSTS "/sys/kernel/debug/flashbed_costs"
#define FLASH "/mnt"
#define REQUEST "/request"
#define PORT "/dev/vport0p1"

/* How long the file system's threads have after the mount, as in the preparation of a recording
 * (python/flashbed/plan/experiment.py). A board passes it in real time, and has less. */
static const uint64_t MOUNTED_NS = 10000000000;
static const uint64_t MOUNTED_ON_BOARD_NS = 1000000000;
static const uint64_t PORT_TICK_NS = 100000000;

enum { PORT_TICKS = 50 };

/* Shared with the program's process until its exec. */
struct launch {
	uint64_t began_ns;
	int err;
};

bool host_is_kernel(void)
{
	return access(CALLS, F_OK) == 0;
}

static int use_descriptor(int from, int as)
{
	if (from < 0)
		return -errno;
	if (from == as)
		return fcntl(as, F_SETFD, 0) ? -errno : 0;
	if (dup2(from, as) < 0)
		return -errno;
	return close(from) ? -errno : 0;
}

/* Opens a file of the place's folder; `in` may be missing. */
static int open_file(const char *folder, int fd)
{
	static const char *const names[] = {"in", "out", "err"};
	char path[MAX_PATH_BYTES + 8];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, names[fd]);
	if (fd > 0)
		return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	const int in = open(path, O_RDONLY | O_CLOEXEC);

	return in < 0 && errno == ENOENT ? open("/dev/null", O_RDONLY | O_CLOEXEC) : in;
}

/* The terminal, the host's descriptors, or files. On a board standard input is the agent's own. */
static int use_descriptors(const struct host_request *request, const struct host_place *place)
{
	int err = 0;

	if (request->terminal)
		return host_use_terminal();
	for (int fd = place->where == HOST_BOARD ? 1 : 0; fd < 3 && !err; fd++)
		err = use_descriptor(place->folder ? open_file(place->folder, fd)
						   : host_open(HOST_STDIN + fd),
				     fd);
	return err;
}

/* Restarts the counters of calls, if this kernel has them. */
static int restart_counting(int calls, int files)
{
	const bool counted = calls >= 0 && files >= 0;

	return counted && (write(calls, "0", 1) < 0 || write(files, "0", 1) < 0) ? -errno : 0;
}

/* In the program's process; returns only if the exec fails. */
static int execute_program(const struct host_request *request, const struct host_place *place,
			   struct host_recorder *recorder, struct launch *launch)
{
	const int calls = open(CALLS, O_WRONLY | O_CLOEXEC);
	const int files = open(FILES, O_WRONLY | O_CLOEXEC);
	int err = use_descriptors(request, place);

	if (!err)
		err = host_enter_view(request, place);
	if (err)
		return err;
	(void)signal(SIGPIPE, SIG_DFL);
	err = host_record_wait(recorder);
	if (err)
		return err;
	launch->began_ns = now_ns();
	err = restart_counting(calls, files);
	if (err)
		return err;
	if (place->where == HOST_BOARD)
		(void)execvpe(request->program, request->arguments, request->environment);
	else
		(void)execve(request->program, request->arguments, request->environment);
	return -errno;
}

static int flush(const struct fs *fs, struct host_counts *after)
{
	sync();
	const int err = phase_settle();

	return err ? err : host_count(fs, after);
}

static void say_end(struct channel *out, const struct launch *launch, const struct host_end *end)
{
	if (launch->err)
		(void)channel_printf(out, "cannot %d\n", -launch->err);
	else if (WIFSIGNALED(end->status))
		(void)channel_printf(out, "ran signal %d\n", WTERMSIG(end->status));
	else
		(void)channel_printf(out, "ran exit %d\n", WEXITSTATUS(end->status));
	if (end->signal)
		(void)channel_printf(out, "until %d\n", end->signal);
	(void)channel_printf(out, "time %" PRIu64 "\n", end->ns - launch->began_ns);
}

/* Sets the cost of each kind of call. */
static int set_costs(const struct host_request *request)
{
	int err = 0;

	for (char **cost = request->costs; cost && *cost && !err; cost++)
		err = write_file(COSTS, *cost);
	return err;
}

static int start(const struct host_request *request, const struct host_place *place,
		 struct host_recorder *recorder, struct launch *launch, pid_t *program)
{
	const pid_t parent = getpid();

	*program = fork();
	if (*program == 0) {
		/* On a board the program would continue if this process were killed. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		launch->err = execute_program(request, place, recorder, launch);
		_exit(1);
	}
	return *program < 0 ? -errno : host_record_process(recorder, *program);
}

/* The program begins where the replay of its recording begins (job/case.c), so that timers of the
 * file system and JFFS2's `jiffies % 128` are at the same point. */
static int sleep_to_mark(const struct host_place *place)
{
	const bool shared = place->where == HOST_BOARD;
	int err = phase_sleep_until(now_ns() + (shared ? MOUNTED_ON_BOARD_NS : MOUNTED_NS));

	if (!err)
		err = phase_sleep_until(phase_next(shared));
	return err ? err : phase_sleep_until(phase_next(shared));
}

static int run(const struct host_request *request, const struct host_place *place,
	       const struct fs *fs, struct host_recorder *recorder, struct channel *out)
{
	struct launch *launch = mmap(NULL, sizeof(*launch), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct host_counts before = {0};
	struct host_counts ran = {0};
	struct host_counts flushed = {0};
	struct host_end end;
	pid_t program;

	if (launch == MAP_FAILED)
		return -errno;
	int err = set_costs(request);

	if (!err)
		err = host_record_start(recorder);
	sync();
	if (!err)
		err = sleep_to_mark(place);
	if (!err)
		err = host_count(fs, &before);
	if (!err)
		err = start(request, place, recorder, launch, &program);
	if (err)
		return err;
	host_wait(request, program, &end);
	err = host_count(fs, &ran);
	if (!err)
		err = host_record_end(recorder);
	host_kill_the_rest();
	if (err)
		return err;
	host_say_steps(out, fs, "step");
	say_end(out, launch, &end);
	host_say_calls(out);
	host_say_counts(out, "run", &before, &ran);
	if (request->boot == BOOT_UNCLEAN)
		return 0;
	err = flush(fs, &flushed);
	if (err)
		return err;
	host_say_counts(out, "flush", &ran, &flushed);
	host_say_wear(out, fs, &before, &flushed);
	return 0;
}

static int say_file(struct channel *out, const char *word, const char *folder, const char *name)
{
	char path[MAX_PATH_BYTES + 8];
	struct stat about;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (stat(path, &about))
		return errno == ENOENT ? 0 : -errno;
	const int err = channel_printf(out, "%s %" PRIu64 "\n", word, (uint64_t)about.st_size);

	return err ? err : host_send_file(out, path, (uint64_t)about.st_size);
}

/* Sends what the program printed, if that went to files. */
static int say_output(struct channel *out, const struct host_place *place)
{
	int err = 0;

	if (!place->folder)
		return 0;
	err = say_file(out, "stdout", place->folder, "out");
	return err ? err : say_file(out, "stderr", place->folder, "err");
}

/* Lets the user look at the flash after everything is counted. */
static int look(const struct host_request *request, const struct host_place *place,
		const struct fs *fs, struct channel *out, const char **what)
{
	static struct channel kept;
	const bool apart = place->where == HOST_USER_MODE;
	int err = 0;

	*what = "the shell";
	if (request->keep && apart) {
		*what = "what is on the flash";
		err = channel_from_fd(&kept, host_open(HOST_KEEP));
		if (!err)
			err = host_keep(&kept, place->mount_point, fs->geometry.size_bytes);
	}
	if (request->shell && !err)
		err = host_shell(request, place);
	if (!err)
		err = channel_printf(out, "end\n");
	if (request->keep && !apart && !err)
		err = host_keep(out, place->mount_point, fs->geometry.size_bytes);
	return err;
}

/* Gives the folder on flash to the program's user, in one change of attributes: YAFFS2 programs a
 * page for each, and a replay of the recording is prepared with one (`chmod .`). */
static int give_folder(const struct host_request *request, const char *folder)
{
	struct stat about;

	if (stat(folder, &about))
		return -errno;
	const bool own = about.st_uid == request->uid && about.st_gid == request->gid;

	if (!own && chown(folder, request->uid, request->gid))
		return -errno;
	if ((own || (about.st_mode & 07777) != 0755) && chmod(folder, 0755))
		return -errno;
	return 0;
}

/* Sets what the request wants in /proc/sys, dots in a name as slashes. */
static int set_sysctls(const struct host_request *request, const char **what)
{
	static char path[MAX_PATH_BYTES + 1];
	int err = 0;

	for (char **each = request->sysctls; each && *each && !err; each++) {
		const size_t length = strcspn(*each, " ");

		(void)snprintf(path, sizeof(path), "/proc/sys/%.*s", (int)length, *each);
		for (char *at = path + strlen("/proc/sys/"); *at; at++)
			if (*at == '.')
				*at = '/';
		*what = path;
		err = (*each)[length] ? write_file(path, *each + length + 1) : -EPROTO;
	}
	return err;
}

/* Names the dump that the partition holds at first. */
static int take_dump(const struct host_request *request, const struct host_place *place,
		     struct fs *fs)
{
	static char path[MAX_PATH_BYTES + 16];

	if (!request->dump)
		return 0;
	if (snprintf(path, sizeof(path), "%s%s", host_files(place), request->dump) >=
	    (int)sizeof(path))
		return fs_fail(fs, -ENAMETOOLONG, "naming the dump");
	fs->dump = path;
	fs->dump_oob_bytes = request->dump_oob_bytes;
	return 0;
}

/* Whether the first mount of a dump is the boot that is looked at. */
static bool boots_dump(const struct host_request *request)
{
	return request->dump && !request->arguments && !request->puts_count;
}

/* Prepares a new file system, or what a dump holds, with the request's files on it, none of them
 * in memory. */
static int prepare(const struct host_request *request, const struct host_place *place,
		   struct fs *fs, struct host_recorder **recorder, struct channel *out,
		   const char **what)
{
	const bool shared = place->where == HOST_BOARD;
	int64_t window = 0;
	int err = set_sysctls(request, what);

	if (err)
		return err;
	err = fs_init(fs, place->mtd, place->mount_point);
	fs->name = place->name;
	fs->tells_steps = true;
	fs->layout = request->layout.count ? &request->layout : NULL;
	*what = fs->detail;
	if (!err)
		err = take_dump(request, place, fs);
	if (!err)
		err = fs_format(fs, request->fs);
	if (!err)
		err = phase_sleep_to_round(shared);
	if (!err && boots_dump(request))
		return 0;
	if (!err)
		err = fs_mount_fresh(fs);
	if (!err)
		err = phase_sleep_to_round(shared);
	if (err)
		return err;
	*what = "the folder on flash";
	if (!shared && !request->dump)
		err = give_folder(request, place->mount_point);
	if (!err)
		err = host_put_all(request, place, what);
	if (err)
		return err;
	*what = "the recorder";
	err = host_record_begin(request, place, recorder);
	if (err)
		return err;
	*what = "the files before";
	err = host_boot_before(request, fs, out);
	if (err)
		return err;
	*what = fs->detail;
	err = fs_remount(fs);
	if (err || request->read_ahead_kib == WINDOW_SHIPPED)
		return err;
	return fs_set_read_ahead(fs, request->read_ahead_kib, &window);
}

/* Arms the source of flash operations; a board may have none. */
static int arm(const struct host_place *place, const struct fs *fs, struct channel *out)
{
	char points[1024];
	const int err = flash_arm(fs, points, sizeof(points));

	if (!err)
		return flash_discard();
	if (place->where != HOST_BOARD)
		return err;
	return channel_printf(out, "unseen %s\n", points);
}

/* Sends the addresses of functions of the kernel and its modules, for a debugger. */
static int say_symbols(struct channel *out)
{
	char line[512];
	FILE *in = fopen("/proc/kallsyms", "re");
	int err = in ? 0 : -errno;

	while (in && !err && fgets(line, sizeof(line), in))
		err = channel_printf(out, "symbol %s", line);
	if (in)
		(void)fclose(in);
	return err ? err : channel_printf(out, "end\n");
}

int host_run(int asked, struct channel *out, const struct host_place *place)
{
	static struct host_request request;
	static struct fs fs;
	struct host_recorder *recorder = NULL;
	const char *what = "the request";
	int err = asked < 0 ? asked : host_read_request(asked, &request);

	if (!err && request.symbols) {
		err = say_symbols(out);
		return err ? err : channel_flush(out);
	}
	if (!err)
		err = prepare(&request, place, &fs, &recorder, out, &what);
	if (!err && request.arguments)
		err = host_make_view(&request, place, &what);
	if (!err) {
		what = "finding the flash operations";
		err = arm(place, &fs, out);
	}
	if (!err)
		err = host_boot_begin(&request);
	if (!err && request.arguments) {
		what = "the run";
		err = run(&request, place, &fs, recorder, out);
	}
	if (!err)
		err = host_boot(&request, &fs, out, &what);
	if (!err)
		err = say_output(out, place);
	if (!err)
		err = look(&request, place, &fs, out, &what);
	if (err)
		(void)channel_printf(out, "error %s: %s\n", what, strerror(-err));
	flash_disarm();
	if (fs.mounted != FS_NONE && place->where == HOST_BOARD)
		(void)fs_unmount(&fs);
	(void)channel_flush(out);
	return err;
}

/* The first reader of random bytes waits a second while the kernel collects them; that must not be
 * the program. */
static void ready_random(void)
{
	const int fd = open("/dev/random", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && read(fd, &byte, 1) == 1)
		(void)close(fd);
}

bool host_has_request(void)
{
	return access(REQUEST, F_OK) == 0;
}

/* The node appears a moment after its driver was loaded. */
static int open_port(void)
{
	int fd = -1;

	for (int tick = 0; tick < PORT_TICKS && fd < 0; tick++) {
		fd = open(PORT, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			(void)phase_sleep_until(now_ns() + PORT_TICK_NS);
	}
	return fd < 0 ? -errno : fd;
}

/* The emulated board: the request is in the initramfs, the answer goes to a host file through a
 * virtio port. */
static int run_in_guest(void)
{
	static struct channel out;
	const struct host_place place = {
		.where = HOST_GUEST, .mount_point = FLASH, .folder = "/io"};
	const int port = open_port();
	const int err = port < 0 ? port : channel_from_fd(&out, port);

	return err ? err : host_run(open(REQUEST, O_RDONLY | O_CLOEXEC), &out, &place);
}

int host_main(void)
{
	static struct channel out;
	const struct host_place place = {.where = HOST_USER_MODE, .mount_point = FLASH};

	ready_random();
	(void)sethostname("flashbed", strlen("flashbed"));
	(void)write_file("/proc/sys/kernel/threads-max", "1000");
	if (!host_is_kernel())
		return run_in_guest();
	const int err = channel_from_fd(&out, host_open(HOST_ANSWER));

	return err ? err : host_run(host_open(HOST_REQUEST), &out, &place);
}
