// SPDX-License-Identifier: GPL-2.0-only
/* What the chip does, however its commands reach it: reads a page into its register and programs
 * it, erases a block, moves bytes over the bus. Each is timed, logged and counted.
 *
 * Mirrors a datasheet, not code. Array time counts with the command that starts it. Bus time counts
 * with the data (transfer=bytes) or with the command (transfer=page); on SPI it counts with each
 * command of the bus (spi.c). Invariants:
 * 1. An operation's time is the sum of its instructions' times. It is waited for once, at the end
 *    of the operation, after flashbed.lock is released.
 * 2. The effect of an operation and its time depend neither on the log nor on what user space reads
 *    meanwhile.
 */
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "flashbed_nand.h"

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

void fbn_charge(u64 ns)
{
	struct fbn_bus *bus = &flashbed.bus;

	bus->spent_ns += ns;
	flashbed.counts.busy_ns += ns;
	bus->record.duration_ns += ns;
	if (bus->logged)
		bus->logged->duration_ns = bus->record.duration_ns;
}

/* The array is busy from here on. A command of raw NAND lasts until it is ready; on SPI the driver
 * polls (spi.c).
 */
static void begin_array(u32 array_ns, u32 whole_ns)
{
	if (flashbed.p.spi_hz)
		flashbed.bus.busy_ns = array_ns;
	else
		fbn_charge(array_ns + (u64)(flashbed.p.transfer_page ? whole_ns : 0));
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
	bus->record.page = fbn_page_of_partition(page);
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
void fbn_moved(u32 whole_ns, u32 bytes)
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
	if (!flashbed.p.transfer_page && !flashbed.p.spi_hz)
		fbn_charge(fbn_share_ns(whole_ns, bytes));
	bus->column += bytes;
}

void fbn_change_column(u32 column)
{
	flashbed.bus.column = column;
	fbn_charge(flashbed.p.column_change_ns);
}

/* Whole hours until the command that began last. */
static u32 hours_since(u64 ns)
{
	return (u32)div_u64(div_u64(flashbed.bus.record.start_ns - ns, NSEC_PER_SEC), 3600);
}

/* The wrong bits of a page in its cells, which this read disturbs. */
static int page_errors(u32 number, u32 *bits)
{
	const struct fbn_parameters *p = &flashbed.p;
	const struct fbn_curve *curve = &flashbed.faults.curve;
	const struct fbn_page *page = fbn_cells_page(&flashbed.cells, number);
	const u32 step_bits = p->ecc_step_bytes * 8;
	struct fbn_step step = {.number = number * FBN_STEPS_MAX, .bits = step_bits};
	struct fbn_block *block;
	u32 hours;
	u32 reads;
	u32 i;
	int count = 0;

	if (number >= p->pages)
		return 0;
	block = &flashbed.cells.blocks[number >> p->page_in_block_shift];
	reads = block->reads++;
	if (!page || !page->touched)
		return 0;
	if (page->programmed_ns < curve->begun_ns) {
		hours = hours_since(curve->begun_ns) + curve->age_hours;
		reads += curve->reads;
	} else {
		hours = hours_since(page->programmed_ns);
		reads -= page->reads;
	}
	step.expected = fbn_expected(curve, block->erases, hours, reads);
	for (i = 0; i < p->page_bytes / p->ecc_step_bytes; i++, step.number++) {
		u32 drawn = fbn_draw_errors(curve->seed, block->erases, &step, bits + count);

		while (drawn--)
			bits[count++] += i * step_bits;
	}
	return count;
}

static void load_page(u32 page, u32 column)
{
	struct fbn_bus *bus = &flashbed.bus;

	start_record(FBN_READ, page, column);
	if (flashbed.faults.curve.on)
		bus->flips = page_errors(page, bus->flip_bits);
	else
		bus->flips =
			fbn_draw_flips(&flashbed.faults, flashbed.counts.reads, bus->flip_bits);
	flashbed.counts.reads++;
	bus->logged = put_in_log();
}

void fbn_command_read(u32 page, u32 column)
{
	load_page(page, column);
	begin_array(flashbed.p.read_array_ns, flashbed.p.bus_read_ns);
	flashbed.bus.ahead = FBN_AHEAD_PAGE;
}

/* The page after the one that was output, which the array has loaded ahead. */
void fbn_next_page(void)
{
	load_page(flashbed.bus.page + 1, 0);
}

/* A read of SPI-NOR: bytes across pages and blocks, from the cells, by one command. */
void fbn_command_stream(u64 at, u8 *to, u32 bytes)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	u32 column;
	u32 page = (u32)div_u64_rem(at, page_bytes, &column);

	start_record(FBN_READ, page, column);
	flashbed.bus.record.length = bytes;
	flashbed.counts.reads++;
	flashbed.bus.logged = put_in_log();
	while (bytes) {
		const u32 of_page = min(bytes, page_bytes - column);

		fbn_cells_read(&flashbed.cells, page++, column, to, of_page);
		to += of_page;
		bytes -= of_page;
		column = 0;
	}
}

/* READ CACHE SEQUENTIAL, or READ CACHE END: moves the page that the array has loaded into the cache
 * register, from which it is output, and lets the array load the next one. After READ CACHE END the
 * array has the same page still.
 */
void fbn_command_cache_read(bool last)
{
	struct fbn_bus *bus = &flashbed.bus;
	u64 now_ns;

	if (bus->ahead == FBN_AHEAD_LOADS)
		fbn_next_page();
	else if (bus->ahead == FBN_AHEAD_NOTHING)
		load_page(bus->page, 0);
	now_ns = bus->started_ns + fbn_owed_ns() + bus->spent_ns;
	if (bus->ahead == FBN_AHEAD_LOADS && bus->loaded_ns > now_ns)
		fbn_charge(bus->loaded_ns - now_ns);
	fbn_charge(flashbed.p.cache_read_ns);
	bus->ahead = last ? FBN_AHEAD_NOTHING : FBN_AHEAD_LOADS;
	bus->loaded_ns = bus->started_ns + fbn_owed_ns() + bus->spent_ns + flashbed.p.read_array_ns;
}

/* Transfers the whole page register at once, as it is in the cells. */
void fbn_move_in_whole(u8 *page, u8 *oob)
{
	struct fbn_bus *bus = &flashbed.bus;

	fbn_cells_read(&flashbed.cells, bus->page, 0, page, flashbed.p.page_bytes);
	fbn_cells_read(&flashbed.cells, bus->page, flashbed.p.page_bytes, oob,
		       flashbed.p.oob_bytes);
	bus->column = 0;
	fbn_moved(flashbed.p.bus_read_ns, flashbed.p.raw_bytes);
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

void fbn_move_in(u8 *to, u32 bytes)
{
	const u32 column = flashbed.bus.column;

	fbn_cells_read(&flashbed.cells, flashbed.bus.page, column, to, bytes);
	if (fbn_flip(to, column, bytes))
		fbn_record_flags(FBN_FLAG_CORRECTED);
	fbn_moved(flashbed.p.bus_read_ns, bytes);
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
	fbn_moved(flashbed.p.bus_program_ns, flashbed.p.raw_bytes);
}

void fbn_move_out(const u8 *from, u32 bytes)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u32 column = min(bus->column, flashbed.p.raw_bytes);
	const u32 kept = min(bytes, flashbed.p.raw_bytes - column);

	memcpy(bus->latch + column, from, kept);
	bus->latch_from = min(bus->latch_from, column);
	bus->latch_to = max(bus->latch_to, column + kept);
	fbn_moved(flashbed.p.bus_program_ns, bytes);
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
	bus->logged = put_in_log();
	if (!flashbed.p.spi_hz)
		bus->logged = NULL; /* SPI's record gets the polls as well */
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

/* What bit errors depend on, of a page whose main area was programmed. */
static void note_program(const struct fbn_program *program)
{
	const struct fbn_block *block =
		&flashbed.cells.blocks[program->page >> flashbed.p.page_in_block_shift];
	struct fbn_page *page = fbn_cells_page(&flashbed.cells, program->page);

	if (!flashbed.faults.curve.on || !page || !fbn_subpages_touched(program))
		return;
	page->programmed_ns = flashbed.bus.record.start_ns;
	page->reads = block->reads;
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
	int err;

	begin_array(p->program_array_ns, p->bus_program_ns);
	bus->status &= ~NAND_STATUS_FAIL;
	if (program.page >= p->pages)
		return finish_change(true, false, 0);
	if (fbn_rules_check(&program, bus->record.start_ns))
		fbn_record_flags(FBN_FLAG_BREACH);
	effect = program_effect(program.page, flashbed.counts.programs++, &failed);
	fbn_tell_programmed();
	cut = power_fails(&effect);
	fbn_history_add_program(&program, effect);
	err = fbn_cells_program(&flashbed.cells, &program, effect);
	note_program(&program);
	return finish_change(failed, cut, err);
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

int fbn_confirm_erase(u32 page)
{
	struct fbn_bus *bus = &flashbed.bus;
	const struct fbn_parameters *p = &flashbed.p;
	const u32 block = page >> p->page_in_block_shift;
	struct fbn_effect effect;
	bool failed;
	bool cut;

	start_record(FBN_ERASE, block << p->page_in_block_shift, 0);
	bus->record.length = p->page_bytes * fbn_page_of_partition(p->pages_per_block);
	begin_array(p->erase_array_ns, 0);
	bus->status &= ~NAND_STATUS_FAIL;
	if (block >= p->blocks)
		return finish_change(true, false, 0);
	effect = erase_effect(block, flashbed.counts.erases++, &failed);
	cut = power_fails(&effect);
	fbn_history_add_erase(block, effect);
	return finish_change(failed, cut, fbn_cells_erase(&flashbed.cells, block, effect));
}
