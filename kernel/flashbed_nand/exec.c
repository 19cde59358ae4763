// SPDX-License-Identifier: GPL-2.0-only
/* The command set of raw NAND: executes the operations that nand_base.c passes to exec_op.
 *
 * Mirrors struct nand_controller_ops of include/linux/mtd/rawnand.h and its callers in
 * drivers/mtd/nand/raw/nand_base.c (nand_sp_exec_read_page_op, nand_lp_exec_read_page_op,
 * nand_exec_prog_page_op, nand_erase_op, ...). Small pages (512 bytes) have pointer commands and
 * one column cycle, large ones READSTART and column changes, and sequential cache reads if the chip
 * has them (cache_read_ns). Leaves out cached programs, multi-plane commands, features, the
 * parameter page, 16-bit buses: exec_op refuses their opcodes.
 */
#include <linux/string.h>

#include "flashbed_nand.h"

/* No maker has this number, so nand_base.c calls no maker's hooks. The third byte says how many
 * bits a cell holds (nand_get_bits_per_cell). No byte is 0, because the core compares strings.
 */
void fbn_id(u8 *id)
{
	static const u8 of_one_bit[NAND_MAX_ID_LEN] = {0xfb, 0xed, 0x90, 0x01,
						       0xfb, 0xed, 0x90, 0x01};

	memcpy(id, of_one_bit, NAND_MAX_ID_LEN);
	id[2] |= (flashbed.p.bits_per_cell - 1) << NAND_CI_CELLTYPE_SHIFT;
}

#ifndef NAND_CMD_READCACHESEQ
#define NAND_CMD_READCACHESEQ 0x31
#define NAND_CMD_READCACHEEND 0x3f
#endif

static bool small_pages(void)
{
	return flashbed.p.page_bytes <= 512;
}

static u32 row(unsigned int first)
{
	const struct fbn_bus *bus = &flashbed.bus;
	u32 page = 0;
	unsigned int i;

	for (i = first; i < bus->addresses; i++)
		page |= (u32)bus->address[i] << 8 * (i - first);
	return page;
}

static u32 column(void)
{
	const struct fbn_bus *bus = &flashbed.bus;

	return small_pages() ? bus->base + bus->address[0]
			     : bus->address[0] | (u32)bus->address[1] << 8;
}

static int do_command(u8 opcode)
{
	struct fbn_bus *bus = &flashbed.bus;

	bus->command = opcode;
	switch (opcode) {
	case NAND_CMD_READ0:
		bus->base = 0;
		bus->output = FBN_OUT_PAGE;
		break;
	case NAND_CMD_READ1:
		bus->base = 256;
		break;
	case NAND_CMD_READOOB:
		bus->base = flashbed.p.page_bytes;
		break;
	case NAND_CMD_READSTART:
		fbn_command_read(row(2), column());
		break;
	case NAND_CMD_READCACHESEQ:
	case NAND_CMD_READCACHEEND:
		fbn_command_cache_read(opcode == NAND_CMD_READCACHEEND);
		break;
	case NAND_CMD_RNDOUTSTART:
		bus->output = FBN_OUT_PAGE;
		fbn_change_column(column());
		break;
	case NAND_CMD_PAGEPROG:
		return fbn_confirm_program();
	case NAND_CMD_ERASE2:
		return fbn_confirm_erase(row(0));
	case NAND_CMD_STATUS:
		bus->output = FBN_OUT_STATUS;
		break;
	case NAND_CMD_READID:
		bus->output = FBN_OUT_ID;
		break;
	case NAND_CMD_RESET:
		bus->status = NAND_STATUS_WP | NAND_STATUS_READY | NAND_STATUS_TRUE_READY;
		bus->output = FBN_OUT_PAGE;
		break;
	}
	return 0;
}

static void do_address(const u8 *cycles, unsigned int count)
{
	struct fbn_bus *bus = &flashbed.bus;

	bus->addresses = min_t(unsigned int, count, sizeof(bus->address));
	memcpy(bus->address, cycles, bus->addresses);
	switch (bus->command) {
	case NAND_CMD_READ0:
	case NAND_CMD_READ1:
	case NAND_CMD_READOOB:
		if (small_pages())
			fbn_command_read(row(1), column());
		break;
	case NAND_CMD_SEQIN:
		fbn_command_program(row(small_pages() ? 1 : 2), column());
		break;
	case NAND_CMD_RNDIN:
		fbn_change_column(column());
		break;
	case NAND_CMD_READID:
		bus->id_address = cycles[0];
		break;
	}
}

static void do_data_in(u8 *to, u32 bytes)
{
	const struct fbn_bus *bus = &flashbed.bus;
	u8 id[NAND_MAX_ID_LEN];
	u32 i;

	if (bus->output == FBN_OUT_STATUS) {
		memset(to, bus->status, bytes);
	} else if (bus->output == FBN_OUT_ID) {
		fbn_id(id);
		for (i = 0; i < bytes; i++)
			to[i] = bus->id_address ? 0 : id[i % sizeof(id)];
	} else {
		fbn_move_in(to, bytes);
	}
}

static int do_instruction(const struct nand_op_instr *instruction)
{
	switch (instruction->type) {
	case NAND_OP_CMD_INSTR:
		return do_command(instruction->ctx.cmd.opcode);
	case NAND_OP_ADDR_INSTR:
		do_address(instruction->ctx.addr.addrs, instruction->ctx.addr.naddrs);
		return 0;
	case NAND_OP_DATA_IN_INSTR:
		do_data_in(instruction->ctx.data.buf.in, instruction->ctx.data.len);
		return 0;
	case NAND_OP_DATA_OUT_INSTR:
		fbn_move_out(instruction->ctx.data.buf.out, instruction->ctx.data.len);
		return 0;
	case NAND_OP_WAITRDY_INSTR:
		return 0;
	}
	return -EOPNOTSUPP;
}

static bool knows(u8 opcode)
{
	switch (opcode) {
	case NAND_CMD_READ1:
	case NAND_CMD_READOOB:
		return small_pages();
	case NAND_CMD_READSTART:
	case NAND_CMD_RNDOUT:
	case NAND_CMD_RNDOUTSTART:
	case NAND_CMD_RNDIN:
		return !small_pages();
	case NAND_CMD_READCACHESEQ:
	case NAND_CMD_READCACHEEND:
		return flashbed.p.cache_read_ns;
	case NAND_CMD_READ0:
	case NAND_CMD_SEQIN:
	case NAND_CMD_PAGEPROG:
	case NAND_CMD_ERASE1:
	case NAND_CMD_ERASE2:
	case NAND_CMD_STATUS:
	case NAND_CMD_READID:
	case NAND_CMD_RESET:
		return true;
	}
	return false;
}

/* nand_read_page_swecc ignores errors and corrects whatever is in its buffers. Without power they
 * get steps of zeros except for two bits: their Hamming code differs by two bits from an erased
 * page's, and is close to no other.
 */
static void read_nonsense(const struct nand_operation *op)
{
	unsigned int i;
	u32 at;

	for (i = 0; i < op->ninstrs; i++) {
		const struct nand_op_data_instr *data = &op->instrs[i].ctx.data;

		if (op->instrs[i].type != NAND_OP_DATA_IN_INSTR)
			continue;
		memset(data->buf.in, 0, data->len);
		for (at = 0; at < data->len; at += flashbed.p.ecc_step_bytes)
			((u8 *)data->buf.in)[at] = 3;
	}
}

/* nand_base.c counts a sequential cache read's pages only if they are read, and warns otherwise. */
static bool reads_cached(const struct nand_operation *op)
{
	unsigned int i;

	for (i = 0; i < op->ninstrs; i++)
		if (op->instrs[i].type == NAND_OP_CMD_INSTR &&
		    (op->instrs[i].ctx.cmd.opcode == NAND_CMD_READCACHESEQ ||
		     op->instrs[i].ctx.cmd.opcode == NAND_CMD_READCACHEEND))
			return true;
	return false;
}

int fbn_exec_op(struct nand_chip *nand, const struct nand_operation *op, bool check_only)
{
	u64 started_ns;
	u64 spent_ns;
	unsigned int i;
	int err = 0;

	for (i = 0; i < op->ninstrs; i++)
		if (op->instrs[i].type == NAND_OP_CMD_INSTR && !knows(op->instrs[i].ctx.cmd.opcode))
			return -EOPNOTSUPP;
	if (check_only)
		return 0;
	fbn_begin();
	if (flashbed.power.off) {
		read_nonsense(op);
		err = reads_cached(op) ? 0 : -EIO;
	} else {
		for (i = 0; i < op->ninstrs && !err; i++)
			err = do_instruction(&op->instrs[i]);
	}
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns, spent_ns);
	return err;
}
