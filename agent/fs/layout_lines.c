/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a layout (agent/PROTOCOL.md), the same in a job and in a program's request:
 *
 *   volume NAME static|dynamic|partition BYTES HOLDS OPTIONS IMAGE
 *   verity NAME BLOCKS ROOT SALT
 *   writes_to NAME
 *   root NAME
 *   layer LOWER UPPER
 *
 * Volumes come in the order in which they are made, and before the lines that name them. `-` stands
 * for no options, and for no image. `verity` counts the blocks of data, and has its hashes in hex.
 * Names have no characters that would have to be encoded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fs.h"

/* -EPROTO for no word, and for one that is too long. */
static int copy_word(char *to, size_t size, const char *word)
{
	if (!word || strlen(word) >= size)
		return -EPROTO;
	memcpy(to, word, strlen(word) + 1);
	return 0;
}

static int copy_optional(char *to, size_t size, const char *word)
{
	return copy_word(to, size, word && strcmp(word, "-") == 0 ? "" : word);
}

static int add_volume(struct layout *layout, char *rest)
{
	if (layout->count == LAYOUT_VOLUMES)
		return -E2BIG;
	struct layout_volume *volume = &layout->volumes[layout->count];
	int err = copy_word(volume->name, sizeof(volume->name), strsep(&rest, " "));
	const char *type = strsep(&rest, " ");
	const char *bytes = strsep(&rest, " ");

	if (!type || !bytes)
		return -EPROTO;
	volume->fixed = strcmp(type, "static") == 0;
	layout->on_mtd = strcmp(type, "partition") == 0;
	volume->bytes = strtoull(bytes, NULL, 10);
	if (!err)
		err = copy_word(volume->holds, sizeof(volume->holds), strsep(&rest, " "));
	if (!err)
		err = copy_optional(volume->options, sizeof(volume->options), strsep(&rest, " "));
	if (!err)
		err = copy_optional(volume->image, sizeof(volume->image), strsep(&rest, " "));
	if (!err)
		layout->count++;
	return err;
}

static int find_volume(const struct layout *layout, char **rest,
		       const struct layout_volume **volume)
{
	const char *name = strsep(rest, " ");

	for (size_t i = 0; name && i < layout->count; i++)
		if (strcmp(layout->volumes[i].name, name) == 0) {
			*volume = &layout->volumes[i];
			return 0;
		}
	return -EPROTO;
}

static int check_volume(struct layout *layout, char *rest)
{
	const struct layout_volume *found = NULL;
	int err = find_volume(layout, &rest, &found);
	const char *blocks = strsep(&rest, " ");

	if (err || !blocks)
		return -EPROTO;
	struct layout_volume *volume = &layout->volumes[found - layout->volumes];

	volume->verity_blocks = strtoull(blocks, NULL, 10);
	err = copy_word(volume->root_hash, sizeof(volume->root_hash), strsep(&rest, " "));
	return err ? err : copy_word(volume->salt, sizeof(volume->salt), strsep(&rest, " "));
}

int layout_line(struct layout *layout, const char *word, char *rest)
{
	if (strcmp(word, "volume") == 0)
		return add_volume(layout, rest);
	if (strcmp(word, "verity") == 0)
		return check_volume(layout, rest);
	if (strcmp(word, "writes_to") == 0)
		return find_volume(layout, &rest, &layout->program);
	if (strcmp(word, "root") == 0)
		return find_volume(layout, &rest, &layout->root);
	if (strcmp(word, "layer") != 0)
		return 1;
	const int err = find_volume(layout, &rest, &layout->lower);

	return err ? err : find_volume(layout, &rest, &layout->upper);
}
