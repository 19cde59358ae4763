/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the request for a program: lines of a word and its value, from
 * python/flashbed/targets/exec/request.py.
 *
 *   flashbed-program 1
 *   fs FS | at PATH | program PATH | user UID GID GROUP... | memory BYTES | cover PATH
 *   volume NAME static|dynamic BYTES HOLDS OPTIONS IMAGE | layer LOWER UPPER | writes_to NAME
 *   root NAME
 *   dump OOB_BYTES PATH
 *   folder MODE PATH | file MODE PATH SOURCE | link 0 PATH TARGET
 *   boot clean|unclean | cuts N | read PATH
 *   until NS | keep yes | record yes | terminal yes | symbols yes | shell PATH
 *   read_ahead KIB | sysctl NAME VALUE
 *   cost NAME NS PS_PER_BYTE
 *   arg WORD | env NAME=VALUE
 *   run
 *
 * With `boot` there need be no program. Fields are separated by one space. In a field `%` and bytes
 * other than visible ASCII are encoded as %XX.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host.h"

enum { FIRST_BYTES = 65536 };

static char *read_all(int fd)
{
	size_t size = FIRST_BYTES;
	size_t used = 0;
	char *text = malloc(size);

	while (text) {
		const ssize_t got = read(fd, text + used, size - 1 - used);

		if (got <= 0)
			break;
		used += (size_t)got;
		if (used == size - 1) {
			char *more = realloc(text, size *= 2);

			if (!more)
				return NULL;
			text = more;
		}
	}
	if (text)
		text[used] = '\0';
	return text;
}

static int hex(char digit)
{
	return digit >= 'a' ? digit - 'a' + 10 : digit >= 'A' ? digit - 'A' + 10 : digit - '0';
}

/* Decodes a field in place. */
static char *decoded(char *field)
{
	char *to = field;

	for (const char *from = field; from && *from; from++) {
		if (*from == '%' && from[1] && from[2]) {
			*to++ = (char)(hex(from[1]) * 16 + hex(from[2]));
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	if (to)
		*to = '\0';
	return field;
}

/* Appends an element, and NULL after it. */
static int append(char ***list, size_t *count, char *word)
{
	char **more = realloc(*list, (*count + 2) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[(*count)++] = word;
	more[*count] = NULL;
	*list = more;
	return 0;
}

static int add_put(struct host_request *request, enum host_entry kind, char **rest)
{
	struct host_put *more = realloc(request->puts, (request->puts_count + 1) * sizeof(*more));
	char *mode = strsep(rest, " ");
	char *path = strsep(rest, " ");

	if (!more)
		return -ENOMEM;
	request->puts = more;
	if (!path || (kind != HOST_FOLDER && !*rest))
		return -EPROTO;
	more[request->puts_count++] =
		(struct host_put){kind, (mode_t)strtoul(mode, NULL, 8), decoded(path),
				  kind == HOST_FOLDER ? NULL : decoded(*rest)};
	return 0;
}

static int read_user(struct host_request *request, char **rest)
{
	char *uid = strsep(rest, " ");
	char *gid = strsep(rest, " ");

	if (!uid || !gid)
		return -EPROTO;
	request->uid = (uid_t)strtoul(uid, NULL, 10);
	request->gid = (gid_t)strtoul(gid, NULL, 10);
	while (*rest && request->groups_count < HOST_GROUPS)
		request->groups[request->groups_count++] =
			(gid_t)strtoul(strsep(rest, " "), NULL, 10);
	return 0;
}

enum { ARGUMENTS, VARIABLES, COSTS, SYSCTLS, READS, LISTS };

static int read_dump(struct host_request *request, char **rest)
{
	const char *oob_bytes = strsep(rest, " ");

	if (!*rest)
		return -EPROTO;
	request->dump_oob_bytes = (uint32_t)strtoul(oob_bytes, NULL, 10);
	request->dump = decoded(*rest);
	return 0;
}

/* Reads an optional line; false for another word. */
static bool read_option(struct host_request *request, const char *word, char *rest)
{
	if (strcmp(word, "until") == 0)
		request->until_ns = strtoull(rest, NULL, 10);
	else if (strcmp(word, "read_ahead") == 0)
		request->read_ahead_kib = (int64_t)strtoll(rest, NULL, 10);
	else if (strcmp(word, "keep") == 0)
		request->keep = true;
	else if (strcmp(word, "record") == 0)
		request->record = true;
	else if (strcmp(word, "terminal") == 0)
		request->terminal = true;
	else if (strcmp(word, "symbols") == 0)
		request->symbols = true;
	else if (strcmp(word, "shell") == 0)
		request->shell = decoded(rest);
	else if (strcmp(word, "cuts") == 0)
		request->cuts = (int64_t)strtoll(rest, NULL, 10);
	else if (strcmp(word, "boot") == 0)
		request->boot = strcmp(rest, "unclean") == 0 ? BOOT_UNCLEAN : BOOT_CLEAN;
	else
		return false;
	return true;
}

static int read_line(struct host_request *request, const char *word, char *rest,
		     size_t counts[LISTS])
{
	if (!rest)
		return -EPROTO;
	if (read_option(request, word, rest))
		return 0;
	const int err = layout_line(&request->layout, word, rest);

	if (err <= 0)
		return err;
	if (strcmp(word, "user") == 0)
		return read_user(request, &rest);
	if (strcmp(word, "dump") == 0)
		return read_dump(request, &rest);
	if (strcmp(word, "folder") == 0)
		return add_put(request, HOST_FOLDER, &rest);
	if (strcmp(word, "file") == 0)
		return add_put(request, HOST_FILE, &rest);
	if (strcmp(word, "link") == 0)
		return add_put(request, HOST_LINK, &rest);
	if (strcmp(word, "arg") == 0)
		return append(&request->arguments, &counts[ARGUMENTS], decoded(rest));
	if (strcmp(word, "env") == 0)
		return append(&request->environment, &counts[VARIABLES], decoded(rest));
	if (strcmp(word, "cost") == 0)
		return append(&request->costs, &counts[COSTS], rest);
	if (strcmp(word, "sysctl") == 0)
		return append(&request->sysctls, &counts[SYSCTLS], rest);
	if (strcmp(word, "read") == 0)
		return append(&request->reads, &counts[READS], decoded(rest));
	if (strcmp(word, "memory") == 0)
		request->memory_bytes = strtoull(rest, NULL, 10);
	else if (strcmp(word, "fs") == 0)
		request->fs = decoded(rest);
	else if (strcmp(word, "at") == 0)
		request->at = decoded(rest);
	else if (strcmp(word, "program") == 0)
		request->program = decoded(rest);
	else if (strcmp(word, "cover") == 0 && request->covers_count < HOST_COVERS)
		request->covers[request->covers_count++] = decoded(rest);
	else
		return -EPROTO;
	return 0;
}

int host_read_request(int fd, struct host_request *request)
{
	char *text = read_all(fd);
	char *line = text ? strsep(&text, "\n") : NULL;
	size_t counts[LISTS] = {0};
	static char *nothing[] = {NULL};
	int err = 0;

	*request = (struct host_request){.environment = nothing, .read_ahead_kib = WINDOW_SHIPPED};
	/* Appending begins with an empty list. */
	request->environment = NULL;
	if (!line || strcmp(line, "flashbed-program 1") != 0)
		return -EPROTO;
	while (!err && (line = strsep(&text, "\n")) && strcmp(line, "run") != 0) {
		char *rest = line;
		const char *word = strsep(&rest, " ");

		err = read_line(request, word, rest, counts);
	}
	if (!request->environment)
		request->environment = nothing;
	if (!err &&
	    (!line || !request->fs || !request->at || (!request->program && !request->boot) ||
	     (!counts[ARGUMENTS] && !request->boot)))
		err = -EPROTO;
	return err;
}
