// SPDX-License-Identifier: GPL-2.0-only
/* How a chip of SPI-NAND tells how many bits it corrected in the page that it read.
 *
 * The counterpart of the functions of drivers/mtd/nand/spi (Linux 6.12) that end in
 * _ecc_get_status: what they decode is encoded here, as data sheets have it. A chip of
 * FBN_STATUS_CORE tells only that there were some. The tables of two makers keep the count in a
 * register: Toshiba's and Winbond's at 0x30, GigaDevice's at 0xf0; Macronix has a command for it.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/mtd/spinand.h>

#include "flashbed_nand.h"

#define COUNT_REGISTER 0x30
#define GIGADEVICE_STATUS2 0xf0
#define STATUS_ECC(value) ((value) << 4)
#define FEWER_THAN_8 STATUS_ECC(1)
#define EIGHT STATUS_ECC(3)
#define SEVEN_IS_LOST STATUS_ECC(7)
#define XTX_MORE_SHIFT 6
#define XTX_COUNT_SHIFT 2

static u8 of_micron(int bits)
{
	if (bits <= 3)
		return STATUS_ECC(1);
	return bits <= 6 ? STATUS_ECC(3) : STATUS_ECC(5);
}

/* The part of the status, for 1 and more corrected bits. */
static u8 of_corrected(int bits)
{
	switch (flashbed.p.spi_ecc_status) {
	case FBN_STATUS_MICRON_8:
		return of_micron(bits);
	case FBN_STATUS_GD5FXGQ4XA:
	case FBN_STATUS_GD5FXGQ4UEXXG:
		return bits < 8 ? FEWER_THAN_8 : EIGHT;
	case FBN_STATUS_GD5FXGQ4UFXXG:
		return bits <= 3 ? STATUS_ECC(1) : STATUS_ECC(bits - 2);
	case FBN_STATUS_XT26G0XA:
		return bits < 8 ? bits << XTX_COUNT_SHIFT : EIGHT;
	case FBN_STATUS_XT26XXXD:
		return bits < 8 ? FEWER_THAN_8 | (max(bits, 4) - 4) << XTX_MORE_SHIFT : EIGHT;
	default:
		return STATUS_ECC_HAS_BITFLIPS;
	}
}

/* `most_bits`: of the step with most, or -EBADMSG. */
u8 fbn_spi_ecc_status(int most_bits)
{
	if (most_bits < 0)
		return flashbed.p.spi_ecc_status == FBN_STATUS_GD5FXGQ4UFXXG
			       ? SEVEN_IS_LOST
			       : STATUS_ECC_UNCOR_ERROR;
	return most_bits ? of_corrected(most_bits) : STATUS_ECC_NO_BITFLIPS;
}

/* Whether a register tells more of the corrected bits, and then what. */
bool fbn_spi_ecc_register(u8 number, int most_bits, u8 *value)
{
	const int bits = max(most_bits, 0);

	if (number == COUNT_REGISTER) {
		*value = bits << 4;
		return true;
	}
	if (number != GIGADEVICE_STATUS2)
		return false;
	if (flashbed.p.spi_ecc_status == FBN_STATUS_GD5FXGQ5XEXXG)
		*value = STATUS_ECC(max(bits, 1) - 1);
	else
		*value = STATUS_ECC(max(bits, 4) - 4);
	return true;
}
