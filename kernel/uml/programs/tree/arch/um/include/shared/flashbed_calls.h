/* SPDX-License-Identifier: GPL-2.0-only */
/* What handle_syscall() and segv_handler() call of flashbed's. */
#ifndef FLASHBED_CALLS_H
#define FLASHBED_CALLS_H

struct uml_pt_regs;

u64 flashbed_call_begins(int nr);
void flashbed_call_ends(struct uml_pt_regs *r, int nr, long result, u64 began);
/* Whether what the current process does costs nothing and is not counted. */
bool flashbed_is_free(void);
bool flashbed_reads_cycles(struct uml_pt_regs *r);

#endif
