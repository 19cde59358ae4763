/* SPDX-License-Identifier: Apache-2.0 */
/* What a test of a file system does to its tree of files, in commands of nand_guest.c. */
#ifndef FLASHBED_TREE_H
#define FLASHBED_TREE_H

#include <stddef.h>

/* Each takes the words of its line and may fill `detail`; 0 or a negative errno. Names without a
 * leading / are in /mnt. */
struct tree_command {
	const char *name;
	int (*run)(char **word, char *detail, size_t size);
	int needs;
};

extern const struct tree_command tree_commands[];

#endif
