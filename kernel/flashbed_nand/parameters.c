// SPDX-License-Identifier: GPL-2.0-only
/* The module's parameters. Every one is checked here, before anything is allocated.
 *
 * Mirrors no kernel code. The limits are those of drivers/mtd/nand/raw/nand_base.c (powers of two,
 * three row address cycles) and of drivers/mtd/nand/ecc-sw-hamming.c (steps of 256 or 512 bytes, 3
 * bytes of ECC each). Invariant: a refused load prints one line, which begins with the name of the
 * parameter.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "flashbed_nand.h"

#define MISSING UINT_MAX
#define CHIP_BYTES_MAX (8ULL << 30)
#define CLEAN_MARKER_BYTES 8

#define FBN_UINT(name, initial, text)                                                              \
	static uint name = (initial);                                                              \
	module_param(name, uint, 0444);                                                            \
	MODULE_PARM_DESC(name, text)
#define FBN_WORD(name, text)                                                                       \
	static char *name;                                                                         \
	module_param(name, charp, 0444);                                                           \
	MODULE_PARM_DESC(name, text)

FBN_UINT(page_bytes, MISSING, "page size: a power of two, 512 to 16384");
FBN_UINT(oob_bytes, MISSING, "spare bytes of a page");
FBN_UINT(pages_per_block, MISSING, "a power of two, 16 to 512");
FBN_UINT(bits_per_cell, 1, "1, 2 or 3");
FBN_WORD(pairing, "dist3: pairs of pages share cells; none");
FBN_UINT(slc_mode, 0, "1: the partition has the first pages of pairs only");
FBN_UINT(blocks, MISSING, "blocks of the chip; up to 8 GiB");
FBN_UINT(first_block, MISSING, "where the partition begins");
FBN_UINT(partition_blocks, MISSING, "blocks of the partition");
static char *parts[FBN_PARTS];
static uint parts_count;
module_param_array(parts, charp, &parts_count, 0444);
MODULE_PARM_DESC(parts, "NAME:BLOCKS of partitions within it, one after the other");
FBN_UINT(read_array_ns, MISSING, "cells to page register");
FBN_UINT(program_array_ns, MISSING, "page register to cells");
FBN_UINT(erase_array_ns, MISSING, "erase of a block");
FBN_UINT(bus_read_ns, MISSING, "a whole page with its OOB from the page register");
FBN_UINT(bus_program_ns, MISSING, "a whole page with its OOB to the page register");
FBN_UINT(column_change_ns, MISSING, "change of the column within the page register");
FBN_UINT(cache_read_ns, 0, "page register to cache register; 0: no sequential cache reads");
FBN_WORD(transfer, "bytes or page");
FBN_WORD(ecc, "software-subpage, hardware-page, none or on-die");
FBN_UINT(ecc_step_bytes, MISSING, "data bytes of an ECC step");
FBN_UINT(ecc_strength_bits, MISSING, "bits corrected in a step (hardware-page)");
FBN_UINT(spi_hz, 0, "clock of the SPI bus; 0: the chip is raw NAND");
FBN_UINT(spi_rx_lines, 1, "data lines that the controller reads: 1, 2, 4 or 8");
FBN_UINT(spi_tx_lines, 1, "data lines that it writes, addresses included");
FBN_UINT(spi_dtr, 0, "1: octal DTR, all operations at both edges of the clock");
FBN_UINT(spi_op_ns, 0, "what an operation of the controller takes besides its cycles");
FBN_UINT(spi_read_opcode, 0, "how the kernel's driver is to read from the page register");
FBN_UINT(spi_program_opcode, 0, "how it is to write to the page register");
FBN_UINT(spi_continuous_reads, 0, "1: the chip outputs page after page (Macronix' feature)");
FBN_WORD(spi_ecc_status, "how the chip tells corrected bits: core, micron_8, ...");
static unsigned char spi_id[FBN_ID_BYTES];
static uint spi_id_bytes;
module_param_array(spi_id, byte, &spi_id_bytes, 0444);
MODULE_PARM_DESC(spi_id, "maker and device, as the kernel's driver compares them");
static unsigned char nor_id[FBN_NOR_ID_BYTES];
static uint nor_id_bytes;
module_param_array(nor_id, byte, &nor_id_bytes, 0444);
MODULE_PARM_DESC(nor_id, "SPI-NOR: its identification; without it the chip is NAND");
FBN_WORD(nor_quad, "what enables four lines: always, sr1-bit6 or sr2-bit1");
FBN_UINT(nor_small_erases, 1, "0: the chip has no erases of 4 and 32 KiB");
FBN_UINT(nor_first_byte_ns, 0, "a program of a byte; 0: programs of all lengths take as long");
FBN_UINT(nor_next_byte_ns, 0, "what each further byte of a program adds");
FBN_WORD(wait, "busy, halt or sleep");
FBN_UINT(bad_blocks, 0, "factory-bad blocks of the partition");
FBN_UINT(wear_out_erases, 0, "mean endurance of a block; 0: for ever");
FBN_UINT(program_fail_ppm, 0, "programs that fail");
FBN_UINT(erase_fail_ppm, 0, "erases that fail");
FBN_UINT(bit_flip_ppm, 0, "page reads with flipped bits");
FBN_UINT(bit_flips_max, 1, "how many bits at once, at most");
static unsigned long long seed;
module_param(seed, ullong, 0444);
MODULE_PARM_DESC(seed, "decides all faults");

static int refuse(const char *name, uint value, const char *wanted)
{
	if (value == MISSING)
		pr_err("%s is missing: %s\n", name, wanted);
	else
		pr_err("%s=%u is impossible: %s\n", name, value, wanted);
	return -EINVAL;
}

#define REFUSE_UNLESS(condition, name, wanted)                                                     \
	do {                                                                                       \
		if (name == MISSING || !(condition))                                               \
			return refuse(#name, name, wanted);                                        \
	} while (0)

static int check_geometry(struct fbn_parameters *to)
{
	u64 block_bytes;

	if (nor_id_bytes) {
		REFUSE_UNLESS(page_bytes == 256, page_bytes, "256 of SPI-NOR");
		REFUSE_UNLESS(oob_bytes == 0, oob_bytes, "0 of SPI-NOR");
	} else {
		REFUSE_UNLESS(is_power_of_2(page_bytes) && page_bytes >= 512 && page_bytes <= 16384,
			      page_bytes, "a power of two, 512 to 16384");
		REFUSE_UNLESS(oob_bytes >= 16 && oob_bytes <= page_bytes / 4, oob_bytes,
			      "16 to a quarter of a page");
	}
	REFUSE_UNLESS(is_power_of_2(pages_per_block) && pages_per_block >= 16 &&
			      pages_per_block <= 512,
		      pages_per_block, "a power of two, 16 to 512");
	block_bytes = (u64)page_bytes * pages_per_block;
	REFUSE_UNLESS(blocks > 0 && blocks * block_bytes <= CHIP_BYTES_MAX, blocks,
		      "1 block to 8 GiB");
	REFUSE_UNLESS(first_block < blocks, first_block, "a block of the chip");
	REFUSE_UNLESS(partition_blocks > 0 && partition_blocks <= blocks - first_block,
		      partition_blocks, "1 to what the chip has from first_block");
	to->page_bytes = page_bytes;
	to->oob_bytes = oob_bytes;
	to->raw_bytes = page_bytes + oob_bytes;
	to->pages_per_block = pages_per_block;
	to->page_in_block_shift = ilog2(pages_per_block);
	to->blocks = blocks;
	to->pages = blocks * pages_per_block;
	to->first_block = first_block;
	to->partition_blocks = partition_blocks;
	return 0;
}

/* `NAME:BLOCKS` of each. */
static int check_parts(struct fbn_parameters *to)
{
	u32 left = partition_blocks;
	uint i;

	for (i = 0; i < parts_count; i++) {
		struct fbn_part *part = &to->parts[i];
		const char *colon = strchr(parts[i], ':');

		if (!colon || colon - parts[i] >= FBN_PART_NAME_BYTES ||
		    kstrtouint(colon + 1, 10, &part->blocks) || !part->blocks ||
		    part->blocks > left) {
			pr_err("parts=%s is impossible: NAME:BLOCKS within the partition\n",
			       parts[i]);
			return -EINVAL;
		}
		memcpy(part->name, parts[i], colon - parts[i]);
		left -= part->blocks;
	}
	to->parts_count = parts_count;
	return 0;
}

static int check_times(struct fbn_parameters *to)
{
	REFUSE_UNLESS(true, read_array_ns, "nanoseconds");
	REFUSE_UNLESS(true, program_array_ns, "nanoseconds");
	REFUSE_UNLESS(true, erase_array_ns, "nanoseconds");
	REFUSE_UNLESS(true, bus_read_ns, "nanoseconds");
	REFUSE_UNLESS(true, bus_program_ns, "nanoseconds");
	REFUSE_UNLESS(true, column_change_ns, "nanoseconds");
	to->read_array_ns = read_array_ns;
	to->program_array_ns = program_array_ns;
	to->erase_array_ns = erase_array_ns;
	to->bus_read_ns = bus_read_ns;
	to->bus_program_ns = bus_program_ns;
	to->column_change_ns = column_change_ns;
	to->cache_read_ns = cache_read_ns;
	return 0;
}

/* The index of `given` in `words` (0-terminated); prints a line and returns a negative error code
 * if it is not there.
 */
static int choose(const char *name, const char *given, const char *const *words, const char *wanted)
{
	int i;

	for (i = 0; given && words[i]; i++)
		if (!strcmp(given, words[i]))
			return i;
	if (given)
		pr_err("%s=%s is impossible: %s\n", name, given, wanted);
	else
		pr_err("%s is missing: %s\n", name, wanted);
	return -EINVAL;
}

static int check_cells(struct fbn_parameters *to)
{
	static const char *const schemes[] = {"none", "dist3", NULL};
	const int scheme = pairing ? choose("pairing", pairing, schemes, "none or dist3") : 0;

	if (scheme < 0)
		return scheme;
	REFUSE_UNLESS(bits_per_cell >= 1 && bits_per_cell <= 3, bits_per_cell, "1, 2 or 3");
	REFUSE_UNLESS(!scheme || bits_per_cell == 2, bits_per_cell, "2 with pairing=dist3");
	REFUSE_UNLESS(!slc_mode || scheme, slc_mode, "0 without pairs of pages");
	to->bits_per_cell = bits_per_cell;
	to->pairs = scheme;
	to->slc_mode = slc_mode;
	return 0;
}

static int check_words(struct fbn_parameters *to)
{
	static const char *const transfers[] = {"bytes", "page", NULL};
	static const char *const eccs[] = {"software-subpage", "hardware-page", "none", "on-die",
					   NULL};
	static const char *const waits[] = {"busy", "halt", "sleep", NULL};
	int which = choose("transfer", transfer, transfers, "bytes or page");

	if (which < 0)
		return which;
	to->transfer_page = which == 1;
	which = choose("ecc", ecc, eccs, "software-subpage, hardware-page, none or on-die");
	if (which < 0)
		return which;
	to->ecc = which;
	which = choose("wait", wait, waits, "busy, halt or sleep");
	if (which < 0)
		return which;
	to->wait = which;
	REFUSE_UNLESS(!cache_read_ns || (!to->transfer_page && page_bytes > 512 && !spi_hz),
		      cache_read_ns, "with transfer=bytes and pages of more than 512 bytes only");
	return 0;
}

/* The bytes of a BCH code over a step: m bits a corrected bit, where 2^m exceeds the bits of the
 * step.
 */
static u32 bch_bytes(u32 step_bytes, u32 strength_bits)
{
	return DIV_ROUND_UP(strength_bits * fls(step_bytes * 8), 8);
}

static int check_ecc(struct fbn_parameters *to)
{
	const u32 marker_bytes = page_bytes > 512 ? 2 : 1;

	if (to->ecc == FBN_ECC_NONE) {
		to->ecc_step_bytes = page_bytes;
		return 0;
	}
	if (to->ecc == FBN_ECC_ON_DIE) {
		REFUSE_UNLESS(is_power_of_2(ecc_step_bytes) && ecc_step_bytes <= page_bytes,
			      ecc_step_bytes, "a power of two, at most a page");
		REFUSE_UNLESS(ecc_strength_bits > 0 && ecc_strength_bits <= FBN_FLIPS_MAX,
			      ecc_strength_bits, "1 to 64 with ecc=on-die");
		to->ecc_step_bytes = ecc_step_bytes;
		to->ecc_strength_bits = ecc_strength_bits;
		to->ecc_bytes = 0;
		return 0;
	}
	if (to->ecc == FBN_ECC_SOFTWARE) {
		REFUSE_UNLESS(ecc_step_bytes == 256 || ecc_step_bytes == 512, ecc_step_bytes,
			      "256 or 512 with ecc=software-subpage");
		to->ecc_strength_bits = 1;
		to->ecc_bytes = 3;
	} else {
		REFUSE_UNLESS(is_power_of_2(ecc_step_bytes) && ecc_step_bytes >= 256 &&
				      ecc_step_bytes <= page_bytes,
			      ecc_step_bytes, "a power of two, 256 to a page");
		REFUSE_UNLESS(ecc_strength_bits > 0 && ecc_strength_bits <= FBN_FLIPS_MAX,
			      ecc_strength_bits, "1 to 64 with ecc=hardware-page");
		to->ecc_strength_bits = ecc_strength_bits;
		to->ecc_bytes = bch_bytes(ecc_step_bytes, ecc_strength_bits);
	}
	to->ecc_step_bytes = ecc_step_bytes;
	if (page_bytes / ecc_step_bytes * to->ecc_bytes + marker_bytes + CLEAN_MARKER_BYTES >
	    oob_bytes) {
		pr_err("oob_bytes=%u is impossible: ECC takes %u, the bad block marker %u and "
		       "JFFS2's clean marker 8\n",
		       oob_bytes, page_bytes / ecc_step_bytes * to->ecc_bytes, marker_bytes);
		return -EINVAL;
	}
	return 0;
}

static bool is_width(uint lines)
{
	return lines == 1 || lines == 2 || lines == 4 || lines == 8;
}

/* In the order of enum fbn_status. */
static int choose_status(void)
{
	static const char *const names[] = {
		"core",          "tx58cxgxsxraix", "w25n02kv",      "macronix",
		"micron_8",      "gd5fxgq4xa",     "gd5fxgq4uexxg", "gd5fxgq5xexxg",
		"gd5fxgq4ufxxg", "xt26g0xa",       "xt26xxxd",      NULL,
	};

	if (!spi_ecc_status)
		return FBN_STATUS_CORE;
	return choose("spi_ecc_status", spi_ecc_status, names,
		      "core or the beginning of one of Linux' functions _ecc_get_status");
}

static int check_nor(struct fbn_parameters *to)
{
	static const char *const quads[] = {"always", "sr1-bit6", "sr2-bit1", NULL};
	int quad;

	REFUSE_UNLESS(spi_hz > 0, spi_hz, "the clock of SPI-NOR");
	REFUSE_UNLESS(is_width(spi_rx_lines) && spi_rx_lines <= 4, spi_rx_lines, "1, 2 or 4");
	REFUSE_UNLESS(is_width(spi_tx_lines) && spi_tx_lines <= 4, spi_tx_lines, "1, 2 or 4");
	REFUSE_UNLESS(nor_id_bytes >= 3, nor_id_bytes, "nor_id has a maker and a device");
	REFUSE_UNLESS(bad_blocks == 0, bad_blocks, "0 of SPI-NOR");
	REFUSE_UNLESS(nor_small_erases <= 1, nor_small_erases, "0 or 1");
	if (to->ecc != FBN_ECC_NONE) {
		pr_err("nor_id is impossible with this ecc: SPI-NOR has ecc=none\n");
		return -EINVAL;
	}
	quad = choose("nor_quad", nor_quad, quads, "always, sr1-bit6 or sr2-bit1");
	if (quad < 0)
		return quad;
	to->nor = true;
	to->nor_quad = quad;
	to->nor_small_erases = nor_small_erases;
	to->nor_first_byte_ns = nor_first_byte_ns;
	to->nor_next_byte_ns = nor_next_byte_ns;
	memcpy(to->nor_id, nor_id, sizeof(nor_id));
	to->nor_id_bytes = nor_id_bytes;
	return 0;
}

static int check_spi(struct fbn_parameters *to)
{
	int status;

	to->spi_hz = spi_hz;
	to->spi_rx_lines = spi_rx_lines;
	to->spi_tx_lines = spi_tx_lines;
	to->spi_op_ns = spi_op_ns;
	if (nor_id_bytes)
		return check_nor(to);
	if (!spi_hz) {
		if (to->ecc != FBN_ECC_ON_DIE)
			return 0;
		pr_err("ecc=on-die is impossible: spi_hz is 0, and raw NAND is corrected "
		       "outside\n");
		return -EINVAL;
	}
	if (to->ecc != FBN_ECC_ON_DIE) {
		pr_err("spi_hz=%u is impossible: SPI-NAND corrects by itself, ecc=on-die\n",
		       spi_hz);
		return -EINVAL;
	}
	REFUSE_UNLESS(is_width(spi_rx_lines), spi_rx_lines, "1, 2, 4 or 8");
	REFUSE_UNLESS(is_width(spi_tx_lines), spi_tx_lines, "1, 2, 4 or 8");
	REFUSE_UNLESS(spi_continuous_reads <= 1, spi_continuous_reads, "0 or 1");
	REFUSE_UNLESS(spi_dtr <= (spi_rx_lines == 8 && spi_tx_lines == 8), spi_dtr,
		      "0, or 1 with 8 lines");
	REFUSE_UNLESS(spi_id_bytes >= 2, spi_id_bytes, "spi_id has a maker and a device");
	REFUSE_UNLESS(spi_read_opcode > 0 && spi_read_opcode <= 255, spi_read_opcode, "an opcode");
	REFUSE_UNLESS(spi_program_opcode > 0 && spi_program_opcode <= 255, spi_program_opcode,
		      "an opcode");
	status = choose_status();
	if (status < 0)
		return status;
	to->spi_ecc_status = status;
	to->spi_dtr = spi_dtr;
	to->spi_continuous_reads = spi_continuous_reads;
	to->spi_read_opcode = spi_read_opcode;
	to->spi_program_opcode = spi_program_opcode;
	memcpy(to->spi_id, spi_id, sizeof(spi_id));
	to->spi_id_bytes = spi_id_bytes;
	return 0;
}

static int check_faults(struct fbn_parameters *to)
{
	REFUSE_UNLESS(bad_blocks <= partition_blocks, bad_blocks, "at most the partition's");
	REFUSE_UNLESS(wear_out_erases <= 100000000, wear_out_erases, "0 to 100000000");
	REFUSE_UNLESS(program_fail_ppm <= FBN_PPM, program_fail_ppm, "0 to 1000000");
	REFUSE_UNLESS(erase_fail_ppm <= FBN_PPM, erase_fail_ppm, "0 to 1000000");
	REFUSE_UNLESS(bit_flip_ppm <= FBN_PPM, bit_flip_ppm, "0 to 1000000");
	REFUSE_UNLESS(bit_flips_max >= 1 && bit_flips_max <= FBN_FLIPS_MAX, bit_flips_max,
		      "1 to 64");
	to->seed = seed;
	to->bad_blocks = bad_blocks;
	to->wear_out_erases = wear_out_erases;
	to->program_fail_ppm = program_fail_ppm;
	to->erase_fail_ppm = erase_fail_ppm;
	to->bit_flip_ppm = bit_flip_ppm;
	to->bit_flips_max = bit_flips_max;
	return 0;
}

/* Fills `to`; returns -EINVAL after printing one line with the error. */
int fbn_parameters_check(struct fbn_parameters *to)
{
	int err = check_geometry(to);

	if (!err)
		err = check_parts(to);
	if (!err)
		err = check_cells(to);
	if (!err)
		err = check_times(to);
	if (!err)
		err = check_words(to);
	if (!err)
		err = check_ecc(to);
	if (!err)
		err = check_spi(to);
	if (!err)
		err = check_faults(to);
	return err;
}
