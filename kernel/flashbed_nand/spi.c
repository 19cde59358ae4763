// SPDX-License-Identifier: GPL-2.0-only
/* SPI-NAND: the chip's command set behind a controller of its own, driven by Linux' SPI-NAND core
 * and the tables of its makers.
 *
 * Mirrors struct spi_controller_mem_ops of include/linux/spi/spi-mem.h, and the operations of
 * include/linux/mtd/spinand.h. An operation's cycles are its bits over the lines of each phase
 * (command, address, dummy, data), at spi_hz; spi_op_ns is added to each. The array is busy from
 * the end of a command on. The controller polls the status by itself (poll_status), with the delays
 * that the core hands it: a poll that finds the chip ready ends it, as in spi_mem_poll_status(),
 * where each sleep takes its longest. Nothing else is scheduled meanwhile. A command is shorter
 * than what the processor does to simulate it, so the polls that follow are shortened by the
 * difference: the chip's cells cost no time (wait.c).
 *
 * The chip corrects what it reads while ECC is on, by the same rules as a controller's engine
 * (ecc.c), and tells them as its maker's do (spi_ecc.c). With Macronix' feature of continuous reads
 * it outputs page after page, as fast as the bus is, and tells of all of them. In octal DTR
 * commands and addresses come twice, or a command with the high byte of a row. Leaves out several
 * dies, one-time programmable pages, locked blocks, double data rate of some phases only, and
 * Winbond's continuous reads: of a chip that has others than Macronix' the controller says that it
 * cannot keep it selected, so Linux does not use them.
 *
 * Invariant: init asks for each block's mark, as the raw driver does when it scans a chip. So no
 * later call reads one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mtd/spinand.h>
#include <linux/spi/spi-mem.h>
#include <linux/string.h>
#include <linux/version.h>

#include "flashbed_nand.h"

/* Before, the core of SPI-NAND asks for the status again and again, without delays. */
#define CONTROLLER_POLLS (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0))

/* Since then it reads chips continuously whose maker has a function to set that feature. */
#define CORE_READS_ON (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

/* The operations of the chip's present mode, of which it has two since 7.0. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define TEMPLATES(spinand) ((spinand)->op_templates)
#define IS_DTR(spinand) ((spinand)->bus_iface == ODTR)
#define READS_ON(spinand) ((spinand)->cont_read_possible)
#else
#define IS_DTR(spinand) false
#define READS_ON(spinand) ((spinand)->set_cont_read)
#define TEMPLATES(spinand) (&(spinand)->op_templates)
#endif

#define READ_ID 0x9f
#define RESET 0xff
#define GET_FEATURE 0x0f
#define SET_FEATURE 0x1f
#define WRITE_ENABLE 0x06
#define WRITE_DISABLE 0x04
#define PAGE_READ 0x13
#define PROGRAM_EXECUTE 0x10
#define BLOCK_ERASE 0xd8
#define WRITE_VCR 0x81 /* Winbond: how the chip's bus works, which the operations show */

#define CONTINUOUS BIT(2) /* of REG_CFG: Macronix */
#define READ_ECCSR 0x7c   /* Macronix: the corrected bits of the page in the register */

static struct {
	u8 features[256];
	int most_bits; /* wrong in a step of what was read, or -EBADMSG */
	int last_bits; /* in one of the last page */
	u64 moved_ns;  /* of this operation, which has been counted */
	u64 before_ns; /* of operations before one of the array, whose record they count for */
	u64 late_ns;   /* simulating the last command took so much longer than its bus cycles */
} spi;

/* Of an opcode of two bytes the first one. */
static u8 opcode_of(const struct spi_mem_op *op)
{
	return op->cmd.nbytes == 2 ? op->cmd.opcode >> 8 : op->cmd.opcode;
}

/* The row's high byte may be the opcode's second one. */
static u32 row_of(const struct spi_mem_op *op)
{
	const u8 second = op->cmd.opcode & 255;

	if (op->cmd.nbytes == 2 && second != opcode_of(op))
		return op->addr.val | second << 16;
	return op->addr.val;
}

/* Corrects `bytes`, the first `length` bytes of the main area of the page in the page register, as
 * they are in the cells. Returns the most wrong bits of an ECC step, or -EBADMSG.
 */
static int correct(u8 *bytes, u32 length)
{
	const struct fbn_page *page = fbn_cells_page(&flashbed.cells, flashbed.bus.page);
	int most = 0;
	u32 step;

	for (step = 0; (step + 1) * flashbed.p.ecc_step_bytes <= length; step++) {
		const int wrong =
			fbn_correct_step(page, step, bytes + step * flashbed.p.ecc_step_bytes);

		if (wrong < 0)
			most = wrong;
		else if (most >= 0)
			most = max(most, wrong);
	}
	return most;
}

static bool corrects(void)
{
	return spi.features[REG_CFG] & CFG_ECC_ENABLE;
}

static bool continues(void)
{
	return flashbed.p.spi_continuous_reads && (spi.features[REG_CFG] & CONTINUOUS);
}

/* Corrects the page in the page register, which becomes part of what the status tells. */
static void judge_page(void)
{
	spi.last_bits = 0;
	if (!corrects())
		return;
	fbn_cells_read(&flashbed.cells, flashbed.bus.page, 0, flashbed.scratch,
		       flashbed.p.page_bytes);
	spi.last_bits = correct(flashbed.scratch, flashbed.p.page_bytes);
	if (spi.last_bits < 0 || spi.most_bits < 0)
		spi.most_bits = -EBADMSG;
	else
		spi.most_bits = max(spi.most_bits, spi.last_bits);
	if (spi.last_bits < 0)
		fbn_record_flags(FBN_FLAG_FAILED);
	else if (spi.last_bits)
		fbn_record_flags(FBN_FLAG_CORRECTED);
}

static void read_page(u32 page)
{
	fbn_command_read(page, 0);
	spi.most_bits = 0;
	judge_page();
}

static u8 status(void)
{
	u8 bits = flashbed.bus.busy_ns ? STATUS_BUSY : 0;

	if (flashbed.bus.status & NAND_STATUS_FAIL)
		bits |= STATUS_PROG_FAILED | STATUS_ERASE_FAILED;
	return bits | fbn_spi_ecc_status(spi.most_bits);
}

static u8 feature(u8 number)
{
	u8 value;

	if (number == REG_STATUS)
		return status();
	if (fbn_spi_ecc_register(number, spi.most_bits, &value))
		return value;
	return spi.features[number];
}

/* The plane is the bit above the column. */
static u32 column_of(const struct spi_mem_op *op)
{
	return op->addr.val & ((1U << fls(flashbed.p.page_bytes)) - 1);
}

/* Outputs whole pages; each is a read of its own in the log. */
static void move_in_continuously(const struct spi_mem_op *op)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	u8 *to = op->data.buf.in;
	u32 at;

	for (at = 0; at < op->data.nbytes; at += page_bytes) {
		const u32 bytes = min(page_bytes, op->data.nbytes - at);

		if (at) {
			const u64 ns = fbn_spi_ns(op, at) - spi.moved_ns;

			fbn_charge(ns);
			spi.moved_ns += ns;
			fbn_next_page();
			judge_page();
		}
		flashbed.bus.column = 0;
		fbn_cells_read(&flashbed.cells, flashbed.bus.page, 0, to + at, bytes);
		if (corrects())
			(void)correct(to + at, bytes);
		fbn_moved(0, bytes);
	}
}

static void move_in(const struct spi_mem_op *op)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u32 column = column_of(op);
	u8 *to = op->data.buf.in;

	if (continues()) {
		move_in_continuously(op);
		return;
	}
	bus->column = column;
	if (!corrects() || column) {
		fbn_move_in(to, op->data.nbytes);
		return;
	}
	fbn_cells_read(&flashbed.cells, bus->page, 0, to, op->data.nbytes);
	(void)correct(to, min(op->data.nbytes, flashbed.p.page_bytes));
	fbn_moved(0, op->data.nbytes);
}

static void move_out(const struct spi_mem_op *op)
{
	fbn_command_program(0, column_of(op));
	fbn_move_out(op->data.buf.out, op->data.nbytes);
}

static int program(u32 page)
{
	flashbed.bus.page = page;
	flashbed.bus.record.page = page;
	return fbn_confirm_program();
}

static void give_id(u8 *to, u32 bytes)
{
	memset(to, 0, bytes);
	memcpy(to, flashbed.p.spi_id, min_t(u32, bytes, flashbed.p.spi_id_bytes));
}

static void reset(void)
{
	memset(spi.features, 0, sizeof(spi.features));
	spi.features[REG_CFG] = CFG_ECC_ENABLE;
	spi.most_bits = 0;
	spi.last_bits = 0;
	flashbed.bus.status &= ~NAND_STATUS_FAIL;
}

/* The last page's corrected bits; above them, in a continuous read, the most of any page. */
static u8 eccsr(void)
{
	const u8 bits = max(spi.last_bits, 0);

	return continues() ? bits | max(spi.most_bits, 0) << 4 : bits;
}

static int obey(const struct spi_mem_op *op)
{
	switch (opcode_of(op)) {
	case READ_ID:
		give_id(op->data.buf.in, op->data.nbytes);
		return 0;
	case RESET:
		reset();
		return 0;
	case GET_FEATURE:
		memset(op->data.buf.in, feature(op->addr.val & 255), op->data.nbytes);
		return 0;
	case SET_FEATURE:
		spi.features[op->addr.val & 255] = *(const u8 *)op->data.buf.out;
		return 0;
	case READ_ECCSR:
		memset(op->data.buf.in, eccsr(), op->data.nbytes);
		return 0;
	case WRITE_ENABLE:
	case WRITE_DISABLE:
	case WRITE_VCR:
		return 0;
	case PAGE_READ:
		read_page(row_of(op));
		return 0;
	case PROGRAM_EXECUTE:
		return program(op->addr.val);
	case BLOCK_ERASE:
		return fbn_confirm_erase(op->addr.val);
	}
	if (op->data.dir == SPI_MEM_DATA_IN)
		move_in(op);
	else
		move_out(op);
	return 0;
}

/* Whether it is an operation of the array or moves its bytes. The log has a record of those; what
 * comes before, such as the enabling of a write, counts for the next one.
 */
static bool is_of_array(u8 opcode)
{
	switch (opcode) {
	case READ_ID:
	case RESET:
	case GET_FEATURE:
	case SET_FEATURE:
	case READ_ECCSR:
	case WRITE_ENABLE:
	case WRITE_DISABLE:
	case WRITE_VCR:
		return false;
	}
	return true;
}

static int obey_timed(const struct spi_mem_op *op)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u64 ns = fbn_spi_ns(op, op->data.nbytes);
	int err;

	/* A poll of the core's own, which counts for the operation that it waits for. */
	if (!CONTROLLER_POLLS && opcode_of(op) == GET_FEATURE && bus->busy_ns) {
		fbn_spi_pass(ns);
		return obey(op);
	}
	/* What ends a continuous read counts for its last page. */
	if (!is_of_array(opcode_of(op)) && continues() && bus->logged) {
		fbn_charge(ns);
		return obey(op);
	}
	if (!is_of_array(opcode_of(op))) {
		bus->logged = NULL;
		spi.before_ns += ns;
		err = obey(op);
		fbn_charge(ns);
		return err;
	}
	err = obey(op);
	bus->record.duration_ns += spi.before_ns;
	spi.before_ns = 0;
	fbn_charge(ns - spi.moved_ns);
	spi.moved_ns = 0;
	return err;
}

static int exec_op(struct spi_mem *mem, const struct spi_mem_op *op)
{
	u64 started_ns;
	u64 spent_ns;
	u64 passed_ns;
	int err;

	fbn_begin();
	err = flashbed.power.off ? -EIO : obey_timed(op);
	fbn_end(&started_ns, &spent_ns);
	passed_ns = fbn_now_ns() - started_ns;
	spi.late_ns = passed_ns > spent_ns ? passed_ns - spent_ns : 0;
	fbn_wait(started_ns, spent_ns);
	return err;
}

#if CONTROLLER_POLLS
static int poll_status(struct spi_mem *mem, const struct spi_mem_op *op, u16 mask, u16 match,
		       unsigned long initial_delay_us, unsigned long polling_rate_us,
		       unsigned long timeout_ms)
{
	u64 started_ns;
	u64 spent_ns;
	int err;

	fbn_begin();
	err = flashbed.power.off ? -EIO : 0;
	if (!err) {
		fbn_spi_pass(initial_delay_us * NSEC_PER_USEC);
		fbn_spi_pass(fbn_spi_ns(op, op->data.nbytes));
		while (flashbed.bus.busy_ns) {
			fbn_spi_pass(polling_rate_us * NSEC_PER_USEC);
			fbn_spi_pass(fbn_spi_ns(op, op->data.nbytes));
		}
		memset(op->data.buf.in, status(), op->data.nbytes);
	}
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns - spi.late_ns, spent_ns);
	spi.late_ns = 0;
	return err;
}
#endif

static const struct spi_controller_mem_ops controller_ops = {
	.exec_op = exec_op,
#if CONTROLLER_POLLS
	.poll_status = poll_status,
#endif
};

/* Whether the kernel's table has the chip as the parameters do, and the driver's choices are those
 * that the parameters stand for.
 */
static int compare(const struct mtd_info *mtd, const struct spinand_device *spinand)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u64 bytes = (u64)p->pages * p->page_bytes;
	const u8 read = TEMPLATES(spinand)->read_cache->cmd.opcode;
	const u8 program = TEMPLATES(spinand)->update_cache->cmd.opcode;

	if (mtd->writesize != p->page_bytes || mtd->oobsize != p->oob_bytes ||
	    mtd->erasesize != p->page_bytes * p->pages_per_block || mtd->size != bytes) {
		pr_err("Linux takes spi_id for another chip: pages of %u + %u bytes, blocks of %u, "
		       "%llu bytes in all\n",
		       mtd->writesize, mtd->oobsize, mtd->erasesize, mtd->size);
		return -EINVAL;
	}
#if CORE_READS_ON
	if (READS_ON(spinand) && !p->spi_continuous_reads) {
		pr_err("spi_continuous_reads=0 is impossible: Linux reads this chip "
		       "continuously\n");
		return -EINVAL;
	}
#endif
	if (IS_DTR(spinand) != p->spi_dtr) {
		pr_err("spi_dtr=%d is impossible: Linux uses this chip at %s data rate\n",
		       p->spi_dtr, IS_DTR(spinand) ? "double" : "single");
		return -EINVAL;
	}
	if (read != p->spi_read_opcode || program != p->spi_program_opcode) {
		pr_err("spi_read_opcode=%#x and spi_program_opcode=%#x are impossible: with these "
		       "lines Linux uses %#x and %#x\n",
		       p->spi_read_opcode, p->spi_program_opcode, read, program);
		return -EINVAL;
	}
	return 0;
}

static int find_core(void)
{
	struct mtd_info *part = get_mtd_device_nm(FBN_PARTITION);
	struct mtd_info *mtd;
	int err;

	if (IS_ERR(part)) {
		pr_err("Linux' SPI-NAND driver does not know the chip %*ph\n",
		       (int)flashbed.p.spi_id_bytes, flashbed.p.spi_id);
		return -ENODEV;
	}
	mtd = mtd_get_master(part);
	err = compare(mtd, mtd_to_spinand(mtd));
	flashbed.core.mtd = mtd;
	flashbed.core.lock = &mtd_to_spinand(mtd)->lock;
	put_mtd_device(part);
	return err;
}

/* Reads each block's mark once, as the driver would when a file system first asks for it. */
static void scan_marks(void)
{
	struct mtd_info *mtd = flashbed.core.mtd;
	u32 block;

	for (block = 0; block < flashbed.p.blocks; block++)
		(void)mtd_block_isbad(mtd, (loff_t)block * mtd->erasesize);
}

int fbn_spi_start(void)
{
	int err = fbn_spi_attach("spi-nand", &controller_ops);

	if (err)
		return err;
	err = find_core();
	if (err) {
		fbn_spi_detach();
		return err;
	}
	fbn_calls_pay(flashbed.core.mtd);
	scan_marks();
	return 0;
}

/* The table of bad blocks is made again from the chip's marks, and ECC is on, as after any read or
 * write. The caller holds flashbed.core.lock and flashbed.lock.
 */
void fbn_spi_forget(void)
{
	struct spinand_device *spinand = mtd_to_spinand(flashbed.core.mtd);
	struct nand_device *nand = spinand_to_nand(spinand);
	u32 block;

	spi.before_ns = 0;
	spinand->cfg_cache[0] |= CFG_ECC_ENABLE;
	spi.features[REG_CFG] |= CFG_ECC_ENABLE;
	for (block = 0; block < flashbed.p.blocks; block++)
		(void)nanddev_bbt_set_block_status(nand, block,
						   fbn_cells_marked_bad(&flashbed.cells, block)
							   ? NAND_BBT_BLOCK_FACTORY_BAD
							   : NAND_BBT_BLOCK_GOOD);
}
