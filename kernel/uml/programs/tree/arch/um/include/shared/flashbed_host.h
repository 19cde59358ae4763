/* SPDX-License-Identifier: GPL-2.0-only */
/* Between flashbed_host.c, which uses the host's C library, and the kernel's side of it. */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

int flashbed_host_is_terminal(int fd);
long flashbed_host_read(int fd, char *to, unsigned long count);
long flashbed_host_write(int fd, const char *from, unsigned long count);

#endif
