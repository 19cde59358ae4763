// SPDX-License-Identifier: GPL-2.0-only
/* rdtsc and rdtscp of programs: stubs have PR_TSC_SIGSEGV, and the guest's clock answers, a cycle a
 * nanosecond. The host's counter would be another one in each run.
 */
#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <sysdep/ptrace.h>

#include <flashbed_calls.h>

bool flashbed_reads_cycles(struct uml_pt_regs *regs)
{
	const u8 __user *at = (const u8 __user *)UPT_IP(regs);
	u8 code[3] = {0};
	unsigned int length = 2;
	u64 now;

	if (copy_from_user(code, at, 2) || code[0] != 0x0f)
		return false;
	if (code[1] == 0x01) {
		if (copy_from_user(code + 2, at + 2, 1) || code[2] != 0xf9)
			return false;
		REGS_CX(regs->gp) = 0;
		length = 3;
	} else if (code[1] != 0x31) {
		return false;
	}
	now = ktime_get_ns();
	REGS_AX(regs->gp) = (u32)now;
	REGS_DX(regs->gp) = now >> 32;
	UPT_IP(regs) += length;
	return true;
}
