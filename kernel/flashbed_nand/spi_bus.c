// SPDX-License-Identifier: GPL-2.0-only
/* The SPI controller that the chip is behind: how long an operation takes, and how Linux' drivers
 * of such chips find it.
 *
 * Mirrors include/linux/spi/spi-mem.h. An operation's cycles are its bits over the lines of each
 * phase (command, address, dummy, data), at spi_hz; spi_op_ns is added to each. What an operation
 * does is the chip's: spi.c, nor.c.
 */
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mtd/partitions.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spi/spi-mem.h>
#include <linux/spi/spi.h>
#include <linux/string.h>
#include <linux/version.h>

#include "flashbed_nand.h"

#define HAS_DTR (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0))

#if HAS_DTR
#define DTR_OF(phase) ((phase).dtr)
#else
#define DTR_OF(phase) false
#endif

static struct {
	struct platform_device *device;
	struct spi_controller *controller;
} bus;

/* The core of SPI-NOR keeps the module of the controller's driver, so there is one. */
static struct platform_driver driver = {
	.driver = {.name = "flashbed-spi"},
};

static u32 phase_cycles(u32 bytes, u8 lines, bool dtr)
{
	return bytes ? bytes * 8 / lines / (dtr ? 2 : 1) : 0;
}

/* Until so many bytes of its data are moved. */
u64 fbn_spi_ns(const struct spi_mem_op *op, u32 bytes)
{
	const u32 cycles = phase_cycles(op->cmd.nbytes, op->cmd.buswidth, DTR_OF(op->cmd)) +
			   phase_cycles(op->addr.nbytes, op->addr.buswidth, DTR_OF(op->addr)) +
			   phase_cycles(op->dummy.nbytes, op->dummy.buswidth, DTR_OF(op->dummy)) +
			   phase_cycles(bytes, op->data.buswidth, DTR_OF(op->data));

	return flashbed.p.spi_op_ns + div_u64((u64)cycles * NSEC_PER_SEC, flashbed.p.spi_hz);
}

/* The array works on while time passes on the bus. */
void fbn_spi_pass(u64 ns)
{
	u64 *busy_ns = &flashbed.bus.busy_ns;

	fbn_charge(ns);
	*busy_ns = *busy_ns > ns ? *busy_ns - ns : 0;
}

/* The core of MTD asks the parsers that it knows by name for a device's partitions. */
static int parse(struct mtd_info *master, const struct mtd_partition **parts,
		 struct mtd_part_parser_data *data)
{
	*parts = fbn_parts();
	return *parts ? (int)flashbed.p.parts_count + 1 : -ENOMEM;
}

static struct mtd_part_parser parser = {
	.parse_fn = parse,
	.name = "cmdlinepart",
};

/* The widest that the controller can do, which includes what is narrower. */
static u32 width_bit(u32 lines, u32 dual, u32 quad, u32 octal)
{
	switch (lines) {
	case 2:
		return dual;
	case 4:
		return quad;
	case 8:
		return octal;
	}
	return 0;
}

static u32 mode_bits(void)
{
	return width_bit(flashbed.p.spi_rx_lines, SPI_RX_DUAL, SPI_RX_QUAD, SPI_RX_OCTAL) |
	       width_bit(flashbed.p.spi_tx_lines, SPI_TX_DUAL, SPI_TX_QUAD, SPI_TX_OCTAL);
}

#if HAS_DTR
static struct spi_controller_mem_caps caps;
#endif

static int add_controller(const struct spi_controller_mem_ops *ops)
{
	struct spi_controller *controller;
	int err;

	controller = __spi_alloc_controller(&bus.device->dev, 0, false);
	if (!controller)
		return -ENOMEM;
	controller->bus_num = 0;
	controller->num_chipselect = 1;
	controller->mem_ops = ops;
	controller->mode_bits = mode_bits();
#if HAS_DTR
	caps.dtr = flashbed.p.spi_dtr;
	caps.no_cs_assertion = !flashbed.p.spi_continuous_reads;
	controller->mem_caps = &caps;
#endif
	err = spi_register_controller(controller);
	if (err) {
		spi_controller_put(controller);
		return err;
	}
	bus.controller = controller;
	return 0;
}

static void remove_device(void)
{
	platform_device_unregister(bus.device);
	platform_driver_unregister(&driver);
}

static int add_device(void)
{
	int err = platform_driver_register(&driver);

	if (err)
		return err;
	bus.device = platform_device_register_simple("flashbed-spi", PLATFORM_DEVID_NONE, NULL, 0);
	if (!IS_ERR(bus.device))
		return 0;
	platform_driver_unregister(&driver);
	return PTR_ERR(bus.device);
}

void fbn_spi_detach(void)
{
	spi_unregister_controller(bus.controller);
	remove_device();
	deregister_mtd_parser(&parser);
}

/* Lets the kernel's driver `name` find the chip behind a controller with these operations. */
int fbn_spi_attach(const char *name, const struct spi_controller_mem_ops *ops)
{
	struct spi_board_info info = {
		.max_speed_hz = flashbed.p.spi_hz,
		.mode = SPI_MODE_0 | mode_bits(),
	};
	int err = add_device();

	if (err)
		return err;
	err = add_controller(ops);
	if (err) {
		remove_device();
		return err;
	}
	strscpy(info.modalias, name, sizeof(info.modalias));
	register_mtd_parser(&parser);
	if (spi_new_device(bus.controller, &info))
		return 0;
	fbn_spi_detach();
	return -ENODEV;
}
