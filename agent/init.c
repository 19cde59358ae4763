/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of the emulated board: mounts what is needed, loads the modules, runs the job and powers off.
 *
 * Kernel interfaces: mount(2), finit_module(2), reboot(2). The initramfs has /init (this program), /dev/console and /modules, a text with
 * one module a line in the order to load, `PATH PARAMETERS`. The job is the host's file `job`, the stream the host's file `stream`, both
 * in the directory where the emulator was started (channel.c). What goes wrong before the stream is open goes to the console.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"

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

static int set_up(void)
{
	int err = mount_at("proc", "/proc");

	if (!err)
		err = mount_at("sysfs", "/sys");
	if (!err)
		err = mount_at("devtmpfs", "/dev");
	if (!err)
		err = mount_at("tracefs", "/sys/kernel/tracing");
	return err ? err : load_modules();
}

int init_main(void)
{
	static struct channel in;
	static struct channel out;
	int err = set_up();

	if (!err)
		err = complain(channel_open_host(&in, "job", false), "the host's file job");
	if (!err)
		err = complain(channel_open_host(&out, "stream", true), "the host's file stream");
	if (!err)
		err = complain(job_run(&in, &out, 0, "/mnt"), "the job");
	if (reboot(RB_POWER_OFF))
		(void)complain(-errno, "power off");
	return err ? 1 : 0;
}
