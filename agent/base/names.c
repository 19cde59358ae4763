/* SPDX-License-Identifier: Apache-2.0 */
/* Names of arbitrary bytes (docs/reference/operations.md): decoded in place, and printed again.
 * Uses no kernel interface. */
#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

static bool is_plain(char byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

static int digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* `slash`: a slash is written as itself, else as `%2F`. Returns the number of bytes, or -1. */
static int decode(char *text, bool slash)
{
	char *out = text;

	for (const char *in = text; *in; out++) {
		if (*in != '%') {
			if (!is_plain(*in) && !(slash && *in == '/'))
				return -1;
			*out = *in++;
			continue;
		}
		const int high = digit(in[1]);
		const int low = high < 0 ? -1 : digit(in[2]);
		const char byte = (char)(high * 16 + low);

		if (low < 0 || byte == '\0' || is_plain(byte) || (slash && byte == '/'))
			return -1;
		*out = byte;
		in += 3;
	}
	*out = '\0';
	return (int)(out - text);
}

bool name_decode_path(char *text)
{
	if (strcmp(text, ".") == 0)
		return true;
	const int length = decode(text, true);

	if (length < 0 || length > MAX_PATH_BYTES)
		return false;
	for (;;) {
		const size_t name = strcspn(text, "/");

		if (name == 0 || name > MAX_NAME_BYTES ||
		    (text[0] == '.' && (name == 1 || (name == 2 && text[1] == '.'))))
			return false;
		if (text[name] == '\0')
			return true;
		text += name + 1;
	}
}

bool name_decode_target(char *text)
{
	const int length = decode(text, true);

	return length > 0 && length <= MAX_PATH_BYTES;
}

bool name_decode_attribute(char *text)
{
	const int length = decode(text, false);

	return length > 5 && length <= MAX_NAME_BYTES && strncmp(text, "user.", 5) == 0;
}

void name_encode(char byte, bool attribute, char text[NAME_CHARS])
{
	const bool plain = is_plain(byte) || (byte == '/' && !attribute);

	if (plain)
		(void)snprintf(text, NAME_CHARS, "%c", byte);
	else
		(void)snprintf(text, NAME_CHARS, "%%%02X", (unsigned int)(unsigned char)byte);
}

void name_print(const char *text, bool attribute, FILE *out)
{
	char encoded[NAME_CHARS];

	for (; *text; text++) {
		name_encode(*text, attribute, encoded);
		(void)fputs(encoded, out);
	}
}
