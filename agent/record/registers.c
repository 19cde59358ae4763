/* SPDX-License-Identifier: Apache-2.0 */
/* A stopped task's registers: its system call, arguments and result.
 *
 * Kernel interface: PTRACE_GETREGSET with NT_PRSTATUS, which differs between architectures only in
 * the register set. User-mode Linux has PTRACE_GETREGS, which returns the same words. Each layout
 * below is that of the kernel's ABI. MIPS (o32) has the fifth argument and later ones on the
 * program's stack, and reports failure in a register of its own. Leaves out programs of another
 * word size than the agent's.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "record/record.h"

#if defined(__x86_64__)
const uint32_t record_audit_arch = AUDIT_ARCH_X86_64;
typedef uint64_t word;
/* struct user_regs_struct: r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip ... */
enum { WORDS = 27, NUMBER = 15, RESULT = 10, CODE_SEGMENT = 17 };
static const int places[] = {14, 13, 12, 7, 9, 8};
#elif defined(__aarch64__)
const uint32_t record_audit_arch = AUDIT_ARCH_AARCH64;
typedef uint64_t word;
/* x0 to x30, sp, pc, pstate */
enum { WORDS = 34, NUMBER = 8, RESULT = 0 };
static const int places[] = {0, 1, 2, 3, 4, 5};
#elif defined(__arm__)
const uint32_t record_audit_arch = AUDIT_ARCH_ARM;
typedef uint32_t word;
/* r0 to r15, cpsr, orig_r0 */
enum { WORDS = 18, NUMBER = 7, RESULT = 0 };
static const int places[] = {0, 1, 2, 3, 4, 5, 6};
#elif defined(__mips__)
const uint32_t record_audit_arch = AUDIT_ARCH_MIPSEL;
typedef uint32_t word;
/* six words of padding, $0 to $31, lo, hi, epc, badvaddr, status, cause, one of padding */
enum { WORDS = 45, FIRST = 6, NUMBER = FIRST + 2, RESULT = FIRST + 2, FAILED = FIRST + 7 };
enum { STACK = FIRST + 29, STACK_BYTES = 16, ON_STACK = 3 };
static const int places[] = {FIRST + 4, FIRST + 5, FIRST + 6, FIRST + 7};
#elif defined(__riscv) && __riscv_xlen == 64
const uint32_t record_audit_arch = AUDIT_ARCH_RISCV64;
typedef uint64_t word;
/* pc, x1 to x31: a0 is x10, a7 is x17 */
enum { WORDS = 32, NUMBER = 17, RESULT = 10, PLACES = 6 };
#else
#error "registers.c: this architecture's registers are not known"
#endif

#ifndef __riscv
enum { PLACES = sizeof(places) / sizeof(places[0]) };
#endif

#ifdef __x86_64__
static bool is_foreign(const word *words)
{
	/* The code segment of 32-bit programs, and the call numbers of x32. */
	return words[CODE_SEGMENT] == 0x23 || words[NUMBER] & 0x40000000;
}

static bool read_the_old_way(pid_t tid, word *words)
{
	return errno == EIO && ptrace(PTRACE_GETREGS, tid, NULL, words) == 0;
}
#else
static bool is_foreign(const word *words)
{
	(void)words;
	return false;
}

static bool read_the_old_way(pid_t tid, const word *words)
{
	(void)tid;
	(void)words;
	return false;
}
#endif

static int read_words(pid_t tid, word *words)
{
	struct iovec all = {words, WORDS * sizeof(word)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) &&
	    !read_the_old_way(tid, words))
		return -errno;
	/* A 32-bit program on a 64-bit machine has another register set. */
	return all.iov_len < (WORDS - 1) * sizeof(word) || is_foreign(words) ? -ENOSYS : 0;
}

#ifdef __riscv
/* The register set loses the first argument; only this request returns it. The struct has the
 * fields needed here. */
int registers_at_entry(pid_t tid, struct call_registers *registers)
{
	enum { GET_SYSCALL_INFO = 0x420e };
	struct {
		uint8_t op;
		uint8_t padding[3];
		uint32_t arch;
		uint64_t instruction;
		uint64_t stack;
		uint64_t number;
		uint64_t argument[PLACES];
		uint64_t data;
	} info = {0};

	if (ptrace(GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) < 0)
		return -errno;
	registers->number = (unsigned long)info.number;
	for (int i = 0; i < PLACES; i++)
		registers->argument[i] = info.argument[i];
	return info.arch == record_audit_arch ? 0 : -ENOSYS;
}
#else
int registers_at_entry(pid_t tid, struct call_registers *registers)
{
	word words[WORDS] = {0};
	const int err = read_words(tid, words);

	if (err)
		return err;
	registers->number = (unsigned long)words[NUMBER];
	for (int i = 0; i < PLACES; i++)
		registers->argument[i] = words[places[i]];
	for (int i = PLACES; i < CALL_ARGUMENTS; i++)
		registers->argument[i] = 0;
#ifdef __mips__
	word more[ON_STACK] = {0};

	if (memory_read(tid, words[STACK] + STACK_BYTES, more, sizeof(more)) > 0)
		for (int i = 0; i < ON_STACK; i++)
			registers->argument[PLACES + i] = more[i];
#endif
	return 0;
}
#endif

int registers_at_exit(pid_t tid, int64_t *result)
{
	word words[WORDS] = {0};
	const int err = read_words(tid, words);

	if (err)
		return err;
#if defined(__mips__)
	*result = words[FAILED] ? -(int64_t)words[RESULT] : (int64_t)(int32_t)words[RESULT];
#elif defined(__arm__)
	/* mmap returns addresses above 2 GiB, too; only numbers of the last page are errors. */
	*result = (int64_t)words[RESULT];
	if (words[RESULT] >= UINT32_MAX - 4094)
		*result = (int64_t)(int32_t)words[RESULT];
#else
	*result = (int64_t)words[RESULT];
#endif
	return 0;
}
