/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of an emulated board that tries the tracers alone: obeys a script, writes what comes of
 * it, powers off. Any other process of this program is the agent, whose main() is agent_main()
 * here.
 *
 * The script is the host's file `job`, what comes of it the host's `stream`, by semihosting
 * (agent/base/channel.c). A line is one of
 *   fs NAME              a fresh file system of that name, mounted on /mnt
 *   run WORD...          the agent with these arguments; what it says, then `exit STATUS`
 *   killed MS WORD...    the same, killed by SIGKILL after so many milliseconds; `killed`
 *   signalled MS WORD... the same with SIGTERM, waited for; `exit STATUS`
 *   show PATH            a file's lines
 *   list PATH            names in a directory
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/fs.h"

int agent_main(int argc, char **argv);

enum { WORDS = 64 };

static struct channel in;
static struct channel out;

static void load_modules(void)
{
	static char text[65536];
	char *at = NULL;

	if (read_file("/modules", text, sizeof(text)) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		char *parameters = strchr(line, ' ');

		if (parameters)
			*parameters++ = '\0';
		const int fd = open(line, O_RDONLY | O_CLOEXEC);

		if (syscall(SYS_finit_module, fd, parameters ? parameters : "", 0))
			(void)channel_printf(&out, "module %s: %s\n", line, strerror(errno));
		(void)close(fd);
	}
}

static void show(const char *path, const char *prefix)
{
	char line[4096];
	FILE *file = fopen(path, "re");

	if (!file)
		(void)channel_printf(&out, "%serror %s\n", prefix, strerror(errno));
	while (file && fgets(line, sizeof(line), file))
		(void)channel_printf(&out, "%s%.*s\n", prefix, (int)strcspn(line, "\n"), line);
	if (file)
		(void)fclose(file);
}

static void list(const char *path)
{
	DIR *directory = opendir(path);

	for (const struct dirent *entry = directory ? readdir(directory) : NULL; entry;
	     entry = readdir(directory))
		if (entry->d_name[0] != '.')
			(void)channel_printf(&out, "- %s\n", entry->d_name);
	if (directory)
		(void)closedir(directory);
}

static pid_t start(char **words)
{
	const pid_t child = fork();

	if (child == 0) {
		const int fd = open("/said", O_WRONLY | O_CREAT | O_TRUNC, 0600);

		(void)dup2(fd, STDOUT_FILENO);
		(void)dup2(fd, STDERR_FILENO);
		(void)close(fd);
		(void)execv("/init", words);
		_exit(126);
	}
	return child;
}

static void run(char **words, long wait_ms, int signal_number)
{
	const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
	const pid_t child = start(words);
	int status = 0;

	if (wait_ms) {
		(void)nanosleep(&wait, NULL);
		(void)kill(child, signal_number);
	}
	(void)waitpid(child, &status, 0);
	show("/said", "| ");
	if (WIFSIGNALED(status))
		(void)channel_printf(&out, "killed\n");
	else
		(void)channel_printf(&out, "exit %d\n", WEXITSTATUS(status));
}

static void make_fs(const char *name)
{
	static struct fs fs;
	int err = fs.geometry.page_bytes ? 0 : fs_init(&fs, 0, "/mnt");

	if (!err)
		err = fs_format(&fs, name);
	if (!err)
		err = fs_mount_fresh(&fs);
	(void)channel_printf(&out, "fs %s\n", err ? fs.detail : name);
}

static void obey(char *line)
{
	char *words[WORDS + 1] = {"agent"};
	int count = 0;
	char *at = NULL;

	for (char *word = strtok_r(line, " ", &at); word && count < WORDS;
	     word = strtok_r(NULL, " ", &at))
		words[count++] = word;
	words[count] = NULL;
	if (strcmp(words[0], "fs") == 0)
		make_fs(words[1]);
	else if (strcmp(words[0], "show") == 0)
		show(words[1], "- ");
	else if (strcmp(words[0], "list") == 0)
		list(words[1]);
	else if (strcmp(words[0], "run") == 0)
		run(words, 0, 0);
	else if (strcmp(words[0], "killed") == 0)
		run(words + 1, strtol(words[1], NULL, 10), SIGKILL);
	else if (strcmp(words[0], "signalled") == 0)
		run(words + 1, strtol(words[1], NULL, 10), SIGTERM);
}

int main(int argc, char **argv)
{
	static const char *const mounts[][2] = {{"proc", "/proc"},
						{"sysfs", "/sys"},
						{"devtmpfs", "/dev"},
						{"debugfs", "/sys/kernel/debug"}};
	char line[4096];

	if (getpid() != 1)
		return agent_main(argc, argv);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		(void)mkdir(mounts[i][1], 0755);
		(void)mount(mounts[i][0], mounts[i][1], mounts[i][0], 0, NULL);
	}
	(void)channel_open_host(&in, "job", false);
	(void)channel_open_host(&out, "stream", true);
	load_modules();
	while (channel_get_line(&in, line, sizeof(line)) >= 0) {
		(void)channel_printf(&out, "> %s\n", line);
		obey(line);
		(void)channel_flush(&out);
	}
	(void)reboot(RB_POWER_OFF);
	return 0;
}
