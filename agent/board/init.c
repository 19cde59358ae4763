/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of a guest, the emulated board or user-mode Linux. It mounts what is needed, loads the
 * modules, runs the job and powers off. On the kernel for programs it runs a program of the host
 * instead (host/launch.c).
 *
 * Kernel interfaces: mount(2), finit_module(2), reboot(2). The initramfs has /init (this program),
 * /dev/console and /modules, a text with one module a line in load order, `PATH PARAMETERS`. The
 * job is the host's file `job`, the stream the host's file `stream`, both in the directory where
 * the guest was started (channel.c). User-mode Linux mounts that directory (hostfs); the emulated
 * board uses semihosting. Errors before the stream is open go to the console.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "board/board.h"

/* The kernel's threads have the first process identifiers. */
#define KERNEL_THREADS 64

static int complain(int err, const char *what)
{
	if (err)
		(void)fprintf(stderr, "flashbed-agent: %s: %s\n", what, strerror(-err));
	return err;
}

static int mount_at(const char *type, const char *path)
{
	(void)mkdir(path, 0755);
	return complain(mount(type, path, type, 0, NULL) ? -errno : 0, path);
}

static int load_module(char *line)
{
	char *parameters = strchr(line, ' ');

	if (parameters)
		*parameters++ = '\0';
	const int fd = open(line, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return complain(-errno, line);
	const int err = syscall(SYS_finit_module, fd, parameters ? parameters : "", 0) ? -errno : 0;

	(void)close(fd);
	return err == -EEXIST ? 0 : complain(err, line);
}

static int load_modules(void)
{
	static char text[16384];
	char *line = text;
	int err = read_file("/modules", text, sizeof(text));

	if (err < 0)
		return complain(err, "/modules");
	for (err = 0; *line && !err;) {
		char *end = line + strcspn(line, "\n");
		char *next = *end ? end + 1 : end;

		*end = '\0';
		err = load_module(line);
		line = next;
	}
	return err;
}

/* What a kernel may lack: tracefs if the driver has a log, debugfs if there are probes, hostfs if
 * there is semihosting. */
static bool mounted_if_there(const char *type, const char *path)
{
	(void)mkdir(path, 0755);
	return mount(type, path, type, 0, NULL) == 0;
}

/* Makes ksoftirqd of user-mode Linux a real-time task, on kernels whose scheduler is EEVDF (6.6).
 * There it runs RCU's callbacks; as an ordinary task it would keep a lag from the boot and move the
 * average by which the others are picked. On a board the callbacks run where the tick is handled.
 */
static void prefer_softirqs(void)
{
	const struct sched_param priority = {.sched_priority = 1};
	struct utsname names;
	char path[32];
	char name[32];
	int major = 0;
	int minor = 0;

	if (uname(&names) || sscanf(names.release, "%d.%d", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 6))
		return;
	for (int pid = 2; pid < KERNEL_THREADS; pid++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (read_file(path, name, sizeof(name)) > 0 && strncmp(name, "ksoftirqd", 9) == 0)
			if (syscall(SYS_sched_setscheduler, pid, SCHED_FIFO, &priority))
				(void)complain(-errno, path);
	}
}

static int set_up(bool *has_hostfs)
{
	int err = mount_at("proc", "/proc");

	if (!err)
		err = mount_at("sysfs", "/sys");
	if (!err)
		err = mount_at("devtmpfs", "/dev");
	(void)mounted_if_there("tracefs", "/sys/kernel/tracing");
	(void)mounted_if_there("debugfs", "/sys/kernel/debug");
	*has_hostfs = mounted_if_there("hostfs", "/host");
	if (*has_hostfs)
		prefer_softirqs();
	return err ? err : load_modules();
}

static int open_channels(struct channel *in, struct channel *out, bool hostfs)
{
	int err = hostfs ? channel_open_mounted(in, "/host/job", false)
			 : channel_open_host(in, "job", false);

	if (err)
		return complain(err, "the host's file job");
	err = hostfs ? channel_open_mounted(out, "/host/stream", true)
		     : channel_open_host(out, "stream", true);
	return complain(err, "the host's file stream");
}

static int run_job(bool hostfs)
{
	static struct channel in;
	static struct channel out;
	const struct job_place place = {.mount_point = "/mnt"};
	const int err = open_channels(&in, &out, hostfs);

	return err ? err : complain(job_run(&in, &out, &place), "the job");
}

int init_main(void)
{
	bool hostfs = false;
	int err = set_up(&hostfs);

	if (!err)
		err = host_is_kernel() || host_has_request() ? complain(host_main(), "the program")
							     : run_job(hostfs);
	if (reboot(RB_POWER_OFF))
		(void)complain(-errno, "power off");
	return err ? 1 : 0;
}
