/* SPDX-License-Identifier: GPL-2.0-only */
/* Between flashbed_host.c, which uses the host's C library, and the kernel's side of it:
 * flashbed_chip.c, flashbed_stdio.c and flashbed_terminal.c. */
#ifndef FLASHBED_HOST_H
#define FLASHBED_HOST_H

/* Zeroes, a whole number of the host's pages; NULL if the host has none left. */
void *flashbed_host_memory(unsigned long bytes);
void flashbed_host_memory_free(void *at, unsigned long bytes);

/* How far the program is: the file `progress` of the folder in which the kernel was started, if
 * there is one (python/flashbed/targets/exec/progress.py). */
struct flashbed_progress {
	unsigned long long began_ns; /* of virtual time; 0 before the program begins */
	unsigned long long now_ns;
	unsigned long long programs_before;
	unsigned long long programs;
	unsigned int shown; /* flashbed has written a line, which output of the program replaces */
	unsigned int mid_line; /* the program's output on a terminal has not ended its line */
};
extern struct flashbed_progress *flashbed_progress;
void flashbed_host_shows_progress(void);

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
