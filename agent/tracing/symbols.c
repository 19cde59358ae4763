/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's functions, and how to fetch their arguments at entry.
 *
 * Kernel interfaces: /proc/kallsyms, uname(2). The registers are those of the running kernel's
 * machine, whatever this program was compiled for. Leaves out arguments further up the stack, and
 * machines whose registers are not listed here if their kernel does not know `$argN` either
 * (CONFIG_HAVE_FUNCTION_ARG_ACCESS_API): tracefs_probe reports that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "tracing/tracing.h"

enum { MACHINE_ARGUMENTS = 8 };

static const struct machine {
	const char *name; /* the prefix of uname's machine */
	unsigned int word;
	const char *arguments[MACHINE_ARGUMENTS];
} machines[] = {
	{"aarch64", 8, {"%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"}},
	/* An aarch64 kernel to 32-bit programs; a 32-bit kernel says armv7l on the same processor.
	 */
	{"armv8", 8, {"%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"}},
	{"arm", 4, {"%r0", "%r1", "%r2", "%r3", "$stack0", "$stack1", "$stack2", "$stack3"}},
	{"x86_64", 8, {"%di", "%si", "%dx", "%cx", "%r8", "%r9", "$stack1", "$stack2"}},
	{"riscv64", 8, {"%a0", "%a1", "%a2", "%a3", "%a4", "%a5", "%a6", "%a7"}},
	{"mips64", 8, {"%r4", "%r5", "%r6", "%r7", "%r8", "%r9", "%r10", "%r11"}},
	/* The four register arguments have places on the stack as well. */
	{"mips", 4, {"%r4", "%r5", "%r6", "%r7", "$stack4", "$stack5", "$stack6", "$stack7"}},
	{"", 0, {"$arg1", "$arg2", "$arg3", "$arg4", "$arg5", "$arg6", "$arg7", "$arg8"}},
};

static const struct machine *this_machine(void)
{
	struct utsname names;
	const struct machine *machine = machines;

	if (uname(&names))
		names.machine[0] = '\0';
	while (strncmp(names.machine, machine->name, strlen(machine->name)) != 0)
		machine++;
	return machine;
}

unsigned int kernel_word(void)
{
	const unsigned int word = this_machine()->word;

	return word ? word : sizeof(long);
}

unsigned int kernel_version(void)
{
	struct utsname names;
	unsigned int major = 0;
	unsigned int minor = 0;

	if (uname(&names) || sscanf(names.release, "%u.%u", &major, &minor) != 2)
		return 0;
	return major * 100 + minor;
}

const char *kernel_argument(unsigned int at)
{
	return at < MACHINE_ARGUMENTS ? this_machine()->arguments[at] : NULL;
}

bool kernel_arguments_known(void)
{
	return this_machine()->word != 0;
}

bool glob_match(const char *pattern, const char *text)
{
	if (*pattern == '*')
		return glob_match(pattern + 1, text) || (*text && glob_match(pattern, text + 1));
	if (!*text || !*pattern)
		return *text == *pattern;
	return (*pattern == '?' || *pattern == *text) && glob_match(pattern + 1, text + 1);
}

static int add(struct symbols *symbols, const char *name, const char *module)
{
	if (symbols->count == symbols->capacity) {
		const size_t capacity = symbols->capacity ? 2 * symbols->capacity : 4096;
		struct symbol *more = realloc(symbols->list, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		symbols->list = more;
		symbols->capacity = capacity;
	}
	struct symbol *symbol = &symbols->list[symbols->count];

	symbol->name = strdup(name);
	symbol->module = *module ? strdup(module) : "";
	symbols->count++;
	return symbol->name && symbol->module ? 0 : -ENOMEM;
}

int symbols_read(struct symbols *symbols)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	char line[1024];
	int err = 0;

	memset(symbols, 0, sizeof(*symbols));
	if (!in)
		return -errno;
	while (!err && fgets(line, sizeof(line), in)) {
		char kind;
		char name[512];
		char module[128] = "";

		if (sscanf(line, "%*s %c %511s [%127[^]]", &kind, name, module) >= 2 &&
		    strchr("tTwW", kind))
			err = add(symbols, name, module);
	}
	(void)fclose(in);
	if (!err && !symbols->count)
		err = -ENODATA;
	return err;
}

bool symbols_have(const struct symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (strcmp(symbols->list[i].name, name) == 0)
			return true;
	return false;
}

void symbols_free(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		free(symbols->list[i].name);
		if (*symbols->list[i].module)
			free(symbols->list[i].module);
	}
	free(symbols->list);
	memset(symbols, 0, sizeof(*symbols));
}
