/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of operations, as in docs/reference/operations.md, and refusing a line. Uses no kernel
 * interface.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "base/base.h"

bool number_parse(const char *text, size_t length, uint64_t *value)
{
	uint64_t sum = 0;

	if (length == 0 || (text[0] == '0' && length > 1))
		return false;
	for (; length; text++, length--) {
		if (*text < '0' || *text > '9')
			return false;
		const uint64_t digit = (uint64_t)(*text - '0');
		if (sum > (MAX_NUMBER - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}

int reader_fail(struct ops_error *error, const char *code, const char *format, const char *what)
{
	error->code = code;
	(void)snprintf(error->detail, sizeof(error->detail), format, what);
	return -EINVAL;
}
