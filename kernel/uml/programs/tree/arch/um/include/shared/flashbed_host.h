/* SPDX-License-Identifier: GPL-2.0-only */
/* Between flashbed_host.c, which uses the host's C library, and the kernel's side of it:
 * flashbed_stdio.c and flashbed_terminal.c. */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

int flashbed_host_is_terminal(int fd);
long flashbed_host_read(int fd, char *to, unsigned long count);
long flashbed_host_write(int fd, const char *from, unsigned long count);

/* Real nanoseconds until there was a key or another window, at least 1; 0 if there was none within
 * `most_ns`. */
unsigned long long flashbed_host_has_news(int fd, unsigned long long most_ns);
int flashbed_host_keys(int fd, unsigned char *keys, int room); /* 0 for none */
void flashbed_host_window(int fd, unsigned short *rows, unsigned short *columns);
int flashbed_host_resized(int fd); /* since flashbed_host_window() was called */
/* A key stops the program that runs; -1 for no terminal. */
void flashbed_host_watch(int fd);
void flashbed_host_runs(int pid); /* called before the stub of a program runs */

/* flashbed_terminal.c, called from where the guest waits and from where a program was stopped */
void flashbed_terminal_waits(unsigned long long until);
void flashbed_terminal_looks(void);

#endif
