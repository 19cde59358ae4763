/* SPDX-License-Identifier: Apache-2.0 */
/* UBIFS that is authenticated, and files that are encrypted by fscrypt (docs/models/protection.md).
 *
 * `authenticated` among the mount options stands for UBIFS' own auth_key= and auth_hash_name=; the
 * key is in the session's keyring before each mount. `encrypted` is none of UBIFS': the folder of
 * the program gets an encryption policy (AES-256-XTS for contents, AES-256-CTS for names) while it
 * is empty, and the key is given to each mount. Both keys are always the same bytes.
 *
 * Kernel interfaces: add_key(2), FS_IOC_ADD_ENCRYPTION_KEY and FS_IOC_SET_ENCRYPTION_POLICY
 * (linux/fscrypt.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/fs.h"

#define AUTH_KEY "flashbed:key"

enum { KEY_BYTES = 64, SESSION_KEYRING = -3 };

static void fill_key(uint8_t *key)
{
	for (size_t i = 0; i < KEY_BYTES; i++)
		key[i] = (uint8_t)i;
}

static int append(char *options, size_t size, const char *word)
{
	const size_t there = strlen(options);

	if (there + strlen(word) + 2 > size)
		return -E2BIG;
	(void)snprintf(options + there, size - there, "%s%s", there ? "," : "", word);
	return 0;
}

int protection_take(struct fs *fs)
{
	char given[sizeof(fs->options)];
	char *rest = given;
	const char *word;
	int err = 0;

	memcpy(given, fs->options, sizeof(given));
	fs->options[0] = '\0';
	fs->authenticated = false;
	fs->encrypted = false;
	while (!err && (word = strsep(&rest, ","))) {
		if (strcmp(word, "encrypted") == 0) {
			fs->encrypted = true;
		} else if (strcmp(word, "authenticated") == 0) {
			fs->authenticated = true;
			err = append(fs->options, sizeof(fs->options),
				     "auth_key=" AUTH_KEY ",auth_hash_name=sha256");
		} else if (*word) {
			err = append(fs->options, sizeof(fs->options), word);
		}
	}
	return fs_fail(fs, err, "taking the mount options");
}

int protection_before_mount(struct fs *fs)
{
	uint8_t key[KEY_BYTES];

	if (!fs->authenticated)
		return 0;
	fill_key(key);
	if (syscall(SYS_add_key, "logon", AUTH_KEY, key, sizeof(key), SESSION_KEYRING) < 0)
		return fs_fail(fs, -errno, "giving the kernel the key of UBIFS");
	return 0;
}

/* The key first: the policy names it. */
static int encrypt_folder(int folder, bool new)
{
	/* The key follows the argument, whose alignment the union has. */
	union {
		struct fscrypt_add_key_arg argument;
		uint8_t bytes[sizeof(struct fscrypt_add_key_arg) + KEY_BYTES];
	} add = {.argument = {.key_spec = {.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER},
			      .raw_size = KEY_BYTES}};
	struct fscrypt_policy_v2 policy = {.version = FSCRYPT_POLICY_V2,
					   .contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS,
					   .filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS,
					   .flags = FSCRYPT_POLICY_FLAGS_PAD_32};

	fill_key(add.bytes + sizeof(add.argument));
	if (ioctl(folder, FS_IOC_ADD_ENCRYPTION_KEY, &add))
		return -errno;
	memcpy(policy.master_key_identifier, add.argument.key_spec.u.identifier,
	       sizeof(policy.master_key_identifier));
	return new && ioctl(folder, FS_IOC_SET_ENCRYPTION_POLICY, &policy) ? -errno : 0;
}

int protection_after_mount(struct fs *fs, const char *path, bool new)
{
	if (!fs->encrypted)
		return 0;
	const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int err = folder < 0 ? -errno : encrypt_folder(folder, new);

	if (folder >= 0)
		(void)close(folder);
	if (err)
		(void)umount2(path, 0);
	return fs_fail(fs, err, "encrypting the folder");
}
