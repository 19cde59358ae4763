// SPDX-License-Identifier: GPL-2.0-only
/* The chip's command set: executes the operations that nand_base.c passes to exec_op on the cells,
 * times, logs and counts them.
 *
 * Mirrors struct nand_controller_ops of include/linux/mtd/rawnand.h and its callers in
 * drivers/mtd/nand/raw/nand_base.c (nand_sp_exec_read_page_op, nand_lp_exec_read_page_op,
 * nand_exec_prog_page_op, nand_erase_op, ...). Small pages (512 bytes) have pointer commands and
 * one column cycle, large ones READSTART and column changes. Leaves out cached and multi-plane
 * commands, features, the parameter page, 16-bit buses: exec_op refuses their opcodes.
 *
 * Array time counts with the command that starts it. Bus time counts with the data (transfer=bytes)
 * or with the command (transfer=page). Invariants:
 * 1. An operation's time is the sum of its instructions' times. It is waited for once, at the end
 *    of the operation, after flashbed.lock is released.
 * 2. The effect of an operation and its time depend neither on the log nor on what user space reads
 *    meanwhile.
 */
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "flashbed_nand.h"

/* No maker has this number, so nand_base.c calls no maker's hooks; 0x90: a cell holds one bit. No
 * byte is 0, because the core compares strings.
 */
const u8 fbn_id[NAND_MAX_ID_LEN] = {0xfb, 0xed, 0x90, 0x01, 0xfb, 0xed, 0x90, 0x01};

void fbn_begin(void)
{
	mutex_lock(&flashbed.lock);
	flashbed.bus.started_ns = fbn_now_ns();
	flashbed.bus.spent_ns = 0;
}

void fbn_end(u64 *started_ns, u64 *spent_ns)
{
	*started_ns = flashbed.bus.started_ns;
	*spent_ns = flashbed.bus.spent_ns;
	mutex_unlock(&flashbed.lock);
}

/* The part of a page's bus time for `bytes`, rounded down. */
u32 fbn_share_ns(u32 whole_ns, u32 bytes)
{
	return bytes == flashbed.p.raw_bytes
		       ? whole_ns
		       : (u32)div_u64((u64)whole_ns * bytes, flashbed.p.raw_bytes);
}

static void charge(u64 ns)
{
	struct fbn_bus *bus = &flashbed.bus;

	bus->spent_ns += ns;
	flashbed.counts.busy_ns += ns;
	bus->record.duration_ns += ns;
	if (bus->logged)
		bus->logged->duration_ns = bus->record.duration_ns;
}

/* Sets flags in the log record of the current command. */
void fbn_record_flags(u8 flags)
{
	flashbed.bus.record.flags |= flags;
	if (flashbed.bus.logged)
		flashbed.bus.logged->flags = flashbed.bus.record.flags;
}

static void start_record(enum fbn_kind kind, u32 page, u32 column)
{
	struct fbn_bus *bus = &flashbed.bus;

	memset(&bus->record, 0, sizeof(bus->record));
	bus->record.start_ns = bus->started_ns + fbn_owed_ns();
	bus->record.page = page;
	bus->record.column = column;
	bus->record.kind = kind;
	memcpy(bus->record.task, current->comm, sizeof(bus->record.task));
	bus->logged = NULL;
	bus->moved = false;
	bus->page = page;
	bus->column = column;
	bus->output = FBN_OUT_PAGE;
}

static struct fbn_record *put_in_log(void)
{
	struct fbn_record *at = fbn_log_add(&flashbed.log, &flashbed.bus.record);

	if (!at)
		flashbed.counts.lost++;
	return at;
}

/* Accounts for a data transfer from or to the page register. The log records the main-area part of
 * the first transfer, if that begins in the main area. A whole page therefore looks the same
 * whether its OOB is part of the same transfer or of another.
 */
static void move(u32 whole_ns, u32 bytes)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u32 page_bytes = flashbed.p.page_bytes;

	if (!bus->moved) {
		bus->moved = true;
		bus->record.column = bus->column;
		bus->record.length =
			bus->column < page_bytes ? min(bytes, page_bytes - bus->column) : bytes;
		if (bus->logged) {
			bus->logged->column = bus->record.column;
			bus->logged->length = bus->record.length;
		}
	}
	if (!flashbed.p.transfer_page)
		charge(fbn_share_ns(whole_ns, bytes));
	bus->column += bytes;
}

static void change_column(u32 column)
{
	flashbed.bus.column = column;
	charge(flashbed.p.column_change_ns);
}

void fbn_command_read(u32 page, u32 column)
{
	struct fbn_bus *bus = &flashbed.bus;

	start_record(FBN_READ, page, column);
	bus->flips = fbn_draw_flips(&flashbed.faults, flashbed.counts.reads++, bus->flip_bits);
	bus->logged = put_in_log();
	charge(flashbed.p.read_array_ns +
	       (u64)(flashbed.p.transfer_page ? flashbed.p.bus_read_ns : 0));
}

/* Transfers the whole page register at once, as it is in the cells. */
void fbn_move_in_whole(u8 *page, u8 *oob)
{
	struct fbn_bus *bus = &flashbed.bus;

	fbn_cells_read(&flashbed.cells, bus->page, 0, page, flashbed.p.page_bytes);
	fbn_cells_read(&flashbed.cells, bus->page, flashbed.p.page_bytes, oob,
		       flashbed.p.oob_bytes);
	bus->column = 0;
	move(flashbed.p.bus_read_ns, flashbed.p.raw_bytes);
}

/* Flips the bits of `bytes` that this read got wrong; the bytes begin at `column`. Returns whether
 * there were any.
 */
bool fbn_flip(u8 *bytes, u32 column, u32 length)
{
	const struct fbn_bus *bus = &flashbed.bus;
	bool any = false;
	int i;

	for (i = 0; i < bus->flips; i++) {
		const u32 at = bus->flip_bits[i] / 8;

		if (at < column || at - column >= length)
			continue;
		bytes[at - column] ^= 1U << (bus->flip_bits[i] & 7);
		any = true;
	}
	return any;
}

static void move_in(u8 *to, u32 bytes)
{
	const u32 column = flashbed.bus.column;

	fbn_cells_read(&flashbed.cells, flashbed.bus.page, column, to, bytes);
	if (fbn_flip(to, column, bytes))
		fbn_record_flags(FBN_FLAG_CORRECTED);
	move(flashbed.p.bus_read_ns, bytes);
}

void fbn_command_program(u32 page, u32 column)
{
	struct fbn_bus *bus = &flashbed.bus;

	start_record(FBN_PROGRAM, page, column);
	if (bus->latch_to > bus->latch_from)
		memset(bus->latch + bus->latch_from, 0xff, bus->latch_to - bus->latch_from);
	bus->latch_from = flashbed.p.raw_bytes;
	bus->latch_to = 0;
}

/* Transfers the whole page register at once. */
void fbn_move_out_whole(const u8 *page, const u8 *oob)
{
	struct fbn_bus *bus = &flashbed.bus;

	memcpy(bus->latch, page, flashbed.p.page_bytes);
	memcpy(bus->latch + flashbed.p.page_bytes, oob, flashbed.p.oob_bytes);
	bus->latch_from = 0;
	bus->latch_to = flashbed.p.raw_bytes;
	bus->column = 0;
	move(flashbed.p.bus_program_ns, flashbed.p.raw_bytes);
}

static void move_out(const u8 *from, u32 bytes)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u32 column = min(bus->column, flashbed.p.raw_bytes);
	const u32 kept = min(bytes, flashbed.p.raw_bytes - column);

	memcpy(bus->latch + column, from, kept);
	bus->latch_from = min(bus->latch_from, column);
	bus->latch_to = max(bus->latch_to, column + kept);
	move(flashbed.p.bus_program_ns, bytes);
}

/* Counts a change down; returns whether the power fails in it, which then decides the effect. */
static bool power_fails(struct fbn_effect *effect)
{
	struct fbn_power *power = &flashbed.power;

	if (!power->cut_at || --power->cut_at)
		return false;
	power->off = true;
	*effect = fbn_torn(power->cut_seed);
	return true;
}

static int finish_change(bool failed, bool cut, int err)
{
	struct fbn_bus *bus = &flashbed.bus;

	if (failed || cut)
		fbn_record_flags(FBN_FLAG_FAILED);
	if (failed)
		bus->status |= NAND_STATUS_FAIL;
	(void)put_in_log();
	bus->logged = NULL;
	return cut ? -EIO : err;
}

/* The effect of faults on program number `number`. */
static struct fbn_effect program_effect(u32 page, u64 number, bool *failed)
{
	const struct fbn_parameters *p = &flashbed.p;
	const struct fbn_faults *faults = &flashbed.faults;
	struct fbn_effect effect = {
		.how = FBN_WHOLE,
		.seed = fbn_draw(faults->seed, FBN_DRAW_PROGRAM, number - faults->first_program)};

	*failed = flashbed.cells.blocks[page >> p->page_in_block_shift].state == FBN_FACTORY_BAD;
	if (*failed || (flashbed.power.drop_at && !--flashbed.power.drop_at)) {
		effect.how = FBN_NOTHING;
	} else if ((faults->program_fail_ppm && fbn_hit(effect.seed, faults->program_fail_ppm)) ||
		   fbn_is_chosen(&faults->programs, number)) {
		effect.how = FBN_BITS;
		*failed = true;
	}
	return effect;
}

int fbn_confirm_program(void)
{
	struct fbn_bus *bus = &flashbed.bus;
	const struct fbn_parameters *p = &flashbed.p;
	const bool empty = bus->latch_to <= bus->latch_from;
	const struct fbn_program program = {
		.page = bus->page,
		.from = empty ? 0 : bus->latch_from,
		.to = empty ? 0 : bus->latch_to,
		.bytes = bus->latch + (empty ? 0 : bus->latch_from),
	};
	struct fbn_effect effect;
	bool failed;
	bool cut;

	charge(p->program_array_ns + (u64)(p->transfer_page ? p->bus_program_ns : 0));
	bus->status &= ~NAND_STATUS_FAIL;
	if (program.page >= p->pages)
		return finish_change(true, false, 0);
	if (fbn_rules_check(&program, bus->record.start_ns))
		fbn_record_flags(FBN_FLAG_BREACH);
	effect = program_effect(program.page, flashbed.counts.programs++, &failed);
	fbn_tell_programmed();
	cut = power_fails(&effect);
	fbn_history_add_program(&program, effect);
	return finish_change(failed, cut, fbn_cells_program(&flashbed.cells, &program, effect));
}

/* The effect of faults on erase number `number`. */
static struct fbn_effect erase_effect(u32 number_of_block, u64 number, bool *failed)
{
	const struct fbn_faults *faults = &flashbed.faults;
	const u64 draw = fbn_draw(faults->seed, FBN_DRAW_ERASE, number - faults->first_erase);
	const struct fbn_block *block = &flashbed.cells.blocks[number_of_block];
	struct fbn_effect effect = {.how = FBN_WHOLE};

	effect.worn = faults->wear_out_erases && block->state == FBN_GOOD &&
		      block->erases >= fbn_endurance(faults, number_of_block);
	*failed = effect.worn || block->state != FBN_GOOD ||
		  (faults->erase_fail_ppm && fbn_hit(draw, faults->erase_fail_ppm)) ||
		  fbn_is_chosen(&faults->erases, number);
	if (*failed)
		effect.how = FBN_NOTHING;
	return effect;
}

static int confirm_erase(u32 page)
{
	struct fbn_bus *bus = &flashbed.bus;
	const struct fbn_parameters *p = &flashbed.p;
	const u32 block = page >> p->page_in_block_shift;
	struct fbn_effect effect;
	bool failed;
	bool cut;

	start_record(FBN_ERASE, block << p->page_in_block_shift, 0);
	bus->record.length = p->page_bytes * p->pages_per_block;
	charge(p->erase_array_ns);
	bus->status &= ~NAND_STATUS_FAIL;
	if (block >= p->blocks)
		return finish_change(true, false, 0);
	effect = erase_effect(block, flashbed.counts.erases++, &failed);
	cut = power_fails(&effect);
	fbn_history_add_erase(block, effect);
	return finish_change(failed, cut, fbn_cells_erase(&flashbed.cells, block, effect));
}

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
	case NAND_CMD_RNDOUTSTART:
		bus->output = FBN_OUT_PAGE;
		change_column(column());
		break;
	case NAND_CMD_PAGEPROG:
		return fbn_confirm_program();
	case NAND_CMD_ERASE2:
		return confirm_erase(row(0));
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
		change_column(column());
		break;
	case NAND_CMD_READID:
		bus->id_address = cycles[0];
		break;
	}
}

static void do_data_in(u8 *to, u32 bytes)
{
	const struct fbn_bus *bus = &flashbed.bus;
	u32 i;

	if (bus->output == FBN_OUT_STATUS)
		memset(to, bus->status, bytes);
	else if (bus->output == FBN_OUT_ID)
		for (i = 0; i < bytes; i++)
			to[i] = bus->id_address ? 0 : fbn_id[i % sizeof(fbn_id)];
	else
		move_in(to, bytes);
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
		move_out(instruction->ctx.data.buf.out, instruction->ctx.data.len);
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

int fbn_exec_op(struct nand_chip *nand, const struct nand_operation *op, bool check_only)
{
	u64 started_ns;
	u64 spent_ns;
	unsigned int i;
	int err;

	for (i = 0; i < op->ninstrs; i++)
		if (op->instrs[i].type == NAND_OP_CMD_INSTR && !knows(op->instrs[i].ctx.cmd.opcode))
			return -EOPNOTSUPP;
	if (check_only)
		return 0;
	fbn_begin();
	err = flashbed.power.off ? -EIO : 0;
	if (err)
		read_nonsense(op);
	for (i = 0; i < op->ninstrs && !err; i++)
		err = do_instruction(&op->instrs[i]);
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns, spent_ns);
	return err;
}
