// SPDX-License-Identifier: GPL-2.0-only
/* SPI-NOR: the chip's command set behind the controller (spi_bus.c), driven by Linux' SPI-NOR core
 * and the tables of its makers.
 *
 * Mirrors the operations of include/linux/mtd/spi-nor.h and a data sheet. A read is one command of
 * any length. A program takes bytes of one page of 256; it clears bits and may be repeated, without
 * an order of pages. The time of a program follows its bytes, where the data sheet tells that of a
 * byte. The controller polls the status by itself: a status command that finds the chip busy lasts
 * as many of them as it takes until the chip is ready, and the operation before it is charged.
 *
 * A command that a driver must not send is a breach, and is refused with a line: a program or an
 * erase without write enable or while the chip is busy, an address of the wrong length, four lines
 * while they are disabled, bytes beyond a page's end. A chip of NOR does not tell failures, so
 * faults show in what is read back. Four lines are enabled from the start, as makers ship such
 * parts. Leaves out protected blocks, one-time programmable pages, suspended erases, erases of
 * other sizes than a block, double data rate.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mtd/spi-nor.h>
#include <linux/printk.h>
#include <linux/sizes.h>
#include <linux/spi/spi-mem.h>
#include <linux/string.h>

#include "flashbed_nand.h"

#define READ_SFDP 0x5a
#define READ_SR2 0x35
#define WRITE_EAR 0xc5
#define CLEAR_STATUS 0x30 /* Spansion: of failures, which are not told */
#define RESET_ENABLE 0x66
#define RESET 0x99
#define CHIP_ERASE_TOO 0x60
#define QUAD_PROGRAM 0x38 /* Macronix: address on four lines as well */

#define SFDP_HEADER_BYTES 16
#define SFDP_DWORDS 16
#define ALL_ONES 0xff

static struct {
	u8 status[2];
	bool enabled; /* a write */
	bool four_bytes;
	u64 before_ns; /* of commands before one of the array, whose record they count for */
	u8 sfdp[SFDP_HEADER_BYTES + 4 * SFDP_DWORDS];
} nor;

static int refuse(const struct spi_mem_op *op, const char *why)
{
	pr_err("command %#x refused: %s\n", op->cmd.opcode, why);
	flashbed.counts.breaches++;
	return -EIO;
}

static bool is_read(u8 opcode)
{
	switch (opcode) {
	case SPINOR_OP_READ:
	case SPINOR_OP_READ_FAST:
	case SPINOR_OP_READ_1_1_2:
	case SPINOR_OP_READ_1_2_2:
	case SPINOR_OP_READ_1_1_4:
	case SPINOR_OP_READ_1_4_4:
	case SPINOR_OP_READ_4B:
	case SPINOR_OP_READ_FAST_4B:
	case SPINOR_OP_READ_1_1_2_4B:
	case SPINOR_OP_READ_1_2_2_4B:
	case SPINOR_OP_READ_1_1_4_4B:
	case SPINOR_OP_READ_1_4_4_4B:
		return true;
	}
	return false;
}

static bool is_program(u8 opcode)
{
	switch (opcode) {
	case SPINOR_OP_PP:
	case SPINOR_OP_PP_1_1_4:
	case QUAD_PROGRAM:
	case SPINOR_OP_PP_4B:
	case SPINOR_OP_PP_1_1_4_4B:
	case SPINOR_OP_PP_1_4_4_4B:
		return true;
	}
	return false;
}

/* The bytes of an erase; 0 for another command. */
static u32 erased_by(u8 opcode)
{
	switch (opcode) {
	case SPINOR_OP_BE_4K:
	case SPINOR_OP_BE_4K_4B:
		return SZ_4K;
	case SPINOR_OP_BE_32K:
	case SPINOR_OP_BE_32K_4B:
		return SZ_32K;
	case SPINOR_OP_SE:
	case SPINOR_OP_SE_4B:
		return SZ_64K;
	}
	return 0;
}

static bool has_long_address(u8 opcode)
{
	switch (opcode) {
	case SPINOR_OP_READ_4B:
	case SPINOR_OP_READ_FAST_4B:
	case SPINOR_OP_READ_1_1_2_4B:
	case SPINOR_OP_READ_1_2_2_4B:
	case SPINOR_OP_READ_1_1_4_4B:
	case SPINOR_OP_READ_1_4_4_4B:
	case SPINOR_OP_PP_4B:
	case SPINOR_OP_PP_1_1_4_4B:
	case SPINOR_OP_PP_1_4_4_4B:
	case SPINOR_OP_BE_4K_4B:
	case SPINOR_OP_BE_32K_4B:
	case SPINOR_OP_SE_4B:
		return true;
	}
	return nor.four_bytes;
}

static bool four_lines_on(void)
{
	switch (flashbed.p.nor_quad) {
	case FBN_QUAD_SR1_BIT6:
		return nor.status[0] & BIT(6);
	case FBN_QUAD_SR2_BIT1:
		return nor.status[1] & BIT(1);
	case FBN_QUAD_ALWAYS:
		break;
	}
	return true;
}

static void reset(void)
{
	nor.enabled = false;
	nor.four_bytes = false;
	nor.before_ns = 0;
}

/* Of a program of so many bytes. */
static u64 program_ns(u32 bytes)
{
	const struct fbn_parameters *p = &flashbed.p;
	const u64 of_bytes = p->nor_first_byte_ns + (u64)(bytes - 1) * p->nor_next_byte_ns;

	return p->nor_first_byte_ns ? min_t(u64, of_bytes, p->program_array_ns)
				    : p->program_array_ns;
}

static int program(const struct spi_mem_op *op)
{
	const u32 page_bytes = flashbed.p.page_bytes;
	const u32 column = op->addr.val & (page_bytes - 1);
	int err;

	if (!op->data.nbytes || op->data.nbytes > page_bytes - column)
		return refuse(op, "its bytes are not within a page");
	fbn_command_program(div_u64(op->addr.val, page_bytes), column);
	fbn_move_out(op->data.buf.out, op->data.nbytes);
	err = fbn_confirm_program();
	flashbed.bus.busy_ns = program_ns(op->data.nbytes);
	return err;
}

static int erase_chip(void)
{
	const struct fbn_parameters *p = &flashbed.p;
	int err = 0;
	u32 block;

	for (block = 0; block < p->blocks && !err; block++)
		err = fbn_confirm_erase(block << p->page_in_block_shift);
	flashbed.bus.busy_ns = (u64)p->blocks * p->erase_array_ns;
	return err;
}

static int erase(const struct spi_mem_op *op, u32 bytes)
{
	if (bytes != flashbed.p.page_bytes * flashbed.p.pages_per_block)
		return refuse(op, "erases other than a block are left out");
	return fbn_confirm_erase(div_u64(op->addr.val, flashbed.p.page_bytes));
}

static int change(const struct spi_mem_op *op)
{
	const u32 bytes = erased_by(op->cmd.opcode);
	int err;

	if (!nor.enabled)
		return refuse(op, "writes are not enabled");
	if (op->cmd.opcode == SPINOR_OP_CHIP_ERASE || op->cmd.opcode == CHIP_ERASE_TOO)
		err = erase_chip();
	else
		err = bytes ? erase(op, bytes) : program(op);
	nor.enabled = false;
	return err;
}

static int obey_array(const struct spi_mem_op *op)
{
	const u8 wanted = has_long_address(op->cmd.opcode) ? 4 : 3;

	if (flashbed.bus.busy_ns)
		return refuse(op, "the chip is busy");
	if (op->addr.nbytes && op->addr.nbytes != wanted)
		return refuse(op, "its address has the wrong length");
	if (op->data.buswidth == 4 && !four_lines_on())
		return refuse(op, "four lines are disabled");
	if (!is_read(op->cmd.opcode))
		return change(op);
	fbn_command_stream(op->addr.val, op->data.buf.in, op->data.nbytes);
	return 0;
}

static int write_status(const struct spi_mem_op *op)
{
	if (!nor.enabled)
		return refuse(op, "writes are not enabled");
	memcpy(nor.status, op->data.buf.out, min_t(u32, op->data.nbytes, sizeof(nor.status)));
	nor.status[0] &= ~(SR_WIP | SR_WEL);
	nor.enabled = false;
	return 0;
}

static void give(const struct spi_mem_op *op, const u8 *bytes, u32 from, u32 count)
{
	const u32 there = from < count ? min_t(u32, op->data.nbytes, count - from) : 0;

	memset(op->data.buf.in, ALL_ONES, op->data.nbytes);
	memcpy(op->data.buf.in, bytes + (there ? from : 0), there);
}

static u8 status(void)
{
	return nor.status[0] | (flashbed.bus.busy_ns ? SR_WIP : 0) | (nor.enabled ? SR_WEL : 0);
}

static int obey_register(const struct spi_mem_op *op)
{
	const struct fbn_parameters *p = &flashbed.p;

	switch (op->cmd.opcode) {
	case SPINOR_OP_RDID:
		give(op, p->nor_id, 0, p->nor_id_bytes);
		return 0;
	case READ_SFDP:
		give(op, nor.sfdp, op->addr.val, sizeof(nor.sfdp));
		return 0;
	case SPINOR_OP_RDSR:
		memset(op->data.buf.in, status(), op->data.nbytes);
		return 0;
	case READ_SR2:
		memset(op->data.buf.in, nor.status[1], op->data.nbytes);
		return 0;
	case SPINOR_OP_WRSR:
		return write_status(op);
	case SPINOR_OP_WREN:
	case SPINOR_OP_WRDI:
		nor.enabled = op->cmd.opcode == SPINOR_OP_WREN;
		return 0;
	case SPINOR_OP_EN4B:
	case SPINOR_OP_EX4B:
		nor.four_bytes = op->cmd.opcode == SPINOR_OP_EN4B;
		return 0;
	case WRITE_EAR:
	case CLEAR_STATUS:
	case RESET_ENABLE:
		return 0;
	case RESET:
		reset();
		return 0;
	}
	return refuse(op, "the chip has no such command");
}

static bool is_of_array(u8 opcode)
{
	return is_read(opcode) || is_program(opcode) || erased_by(opcode) ||
	       opcode == SPINOR_OP_CHIP_ERASE || opcode == CHIP_ERASE_TOO;
}

static int obey_timed(const struct spi_mem_op *op)
{
	struct fbn_bus *bus = &flashbed.bus;
	const u64 ns = fbn_spi_ns(op, op->data.nbytes);
	int err;

	if (op->cmd.opcode == SPINOR_OP_RDSR && bus->busy_ns) {
		fbn_spi_pass(div64_u64(bus->busy_ns + ns - 1, ns) * ns);
		return obey_register(op);
	}
	if (!is_of_array(op->cmd.opcode)) {
		bus->logged = NULL;
		nor.before_ns += ns;
		err = obey_register(op);
		fbn_charge(ns);
		return err;
	}
	err = obey_array(op);
	bus->record.duration_ns += nor.before_ns;
	nor.before_ns = 0;
	fbn_charge(ns);
	return err;
}

static int exec_op(struct spi_mem *mem, const struct spi_mem_op *op)
{
	u64 started_ns;
	u64 spent_ns;
	int err;

	fbn_begin();
	err = flashbed.power.off ? -EIO : obey_timed(op);
	fbn_end(&started_ns, &spent_ns);
	fbn_wait(started_ns, spent_ns);
	return err;
}

static const struct spi_controller_mem_ops controller_ops = {
	.exec_op = exec_op,
};

static void put_dword(u32 number, u32 value)
{
	const __le32 bytes = cpu_to_le32(value);

	memcpy(nor.sfdp + SFDP_HEADER_BYTES + 4 * (number - 1), &bytes, sizeof(bytes));
}

/* JESD216: the header, and the table of basic parameters as its revision A has it. */
static void make_sfdp(void)
{
	static const u32 quad[] = {
		[FBN_QUAD_ALWAYS] = 0,
		[FBN_QUAD_SR1_BIT6] = 2,
		[FBN_QUAD_SR2_BIT1] = 5,
	};
	static const u8 header[SFDP_HEADER_BYTES] = {
		'S', 'F', 'D',      'P',         5,
		1,   0,   ALL_ONES, /* revision, tables, unused */
		0,   5,   1,        SFDP_DWORDS, SFDP_HEADER_BYTES,
		0,   0,   ALL_ONES,
	};
	const struct fbn_parameters *p = &flashbed.p;
	const u64 bytes = (u64)p->pages * p->page_bytes;
	const bool small = p->nor_small_erases;

	memcpy(nor.sfdp, header, sizeof(header));
	/* Reads on two and four lines; longer addresses where the chip is larger. */
	put_dword(1, 0xff800000 | BIT(22) | BIT(21) | BIT(20) | BIT(16) |
			     (bytes > SZ_16M ? BIT(17) : 0) | SPINOR_OP_BE_4K << 8 | BIT(2) |
			     (small ? 1 : 3));
	put_dword(2, (u32)(bytes * 8 - 1));
	/* Of each read its command, its mode cycles and its wait states. */
	put_dword(3, SPINOR_OP_READ_1_1_4 << 24 | 8 << 16 | SPINOR_OP_READ_1_4_4 << 8 | 2 << 5 | 4);
	put_dword(4, (u32)SPINOR_OP_READ_1_2_2 << 24 | 4 << 21 | SPINOR_OP_READ_1_1_2 << 8 | 8);
	put_dword(5, 0xffffffee);
	put_dword(6, 0x0000ffff);
	put_dword(7, 0x0000ffff);
	put_dword(8, small ? SPINOR_OP_BE_32K << 24 | 15 << 16 | SPINOR_OP_BE_4K << 8 | 12 : 0);
	put_dword(9, SPINOR_OP_SE << 8 | 16);
	put_dword(11, ilog2(p->page_bytes) << 4);
	put_dword(15, quad[p->nor_quad] << 20);
}

static int compare(const struct mtd_info *mtd)
{
	const struct fbn_parameters *p = &flashbed.p;

	if (mtd->type == MTD_NORFLASH && mtd->size == (u64)p->pages * p->page_bytes &&
	    mtd->erasesize == p->page_bytes * p->pages_per_block)
		return 0;
	pr_err("Linux takes nor_id for another chip: %llu bytes in all, blocks of %u "
	       "(CONFIG_MTD_SPI_NOR_USE_4K_SECTORS chooses small ones)\n",
	       mtd->size, mtd->erasesize);
	return -EINVAL;
}

static int find_core(void)
{
	struct mtd_info *part = get_mtd_device_nm(FBN_PARTITION);
	struct mtd_info *mtd;
	int err;

	if (IS_ERR(part)) {
		pr_err("Linux' SPI-NOR driver does not know the chip %*ph\n",
		       (int)flashbed.p.nor_id_bytes, flashbed.p.nor_id);
		return -ENODEV;
	}
	mtd = mtd_get_master(part);
	err = compare(mtd);
	flashbed.core.mtd = mtd;
	flashbed.core.lock = &container_of(mtd, struct spi_nor, mtd)->lock;
	put_mtd_device(part);
	return err;
}

int fbn_nor_start(void)
{
	int err;

	make_sfdp();
	nor.status[0] = flashbed.p.nor_quad == FBN_QUAD_SR1_BIT6 ? BIT(6) : 0;
	nor.status[1] = flashbed.p.nor_quad == FBN_QUAD_SR2_BIT1 ? BIT(1) : 0;
	err = fbn_spi_attach("spi-nor", &controller_ops);
	if (err)
		return err;
	err = find_core();
	if (err)
		fbn_spi_detach();
	return err;
}

/* The driver keeps nothing of the chip's content, and the address mode that it has set. */
void fbn_nor_forget(void)
{
	nor.enabled = false;
	nor.before_ns = 0;
	flashbed.bus.busy_ns = 0;
}
