// SPDX-License-Identifier: GPL-2.0-only
/* The files of /sys/kernel/debug/flashbed_nand, except the chip's image (image.c) and its partition
 * (raw.c). kernel/flashbed_nand/README.md describes them.
 *
 * Mirrors fs/debugfs/file.c: files are opened through its proxies, so none is in use when the
 * module is unloaded.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "flashbed_nand.h"

#define COMMAND_BYTES 64

/* Copies whole and partial records from one chunk. A program needs several calls for a long log. */
static ssize_t log_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	const struct fbn_record *record;
	u32 skip;
	u32 run;
	const u64 number = div_u64_rem(*at, sizeof(*record), &skip);
	ssize_t copied = 0;

	mutex_lock(&flashbed.lock);
	record = fbn_log_at(&flashbed.log, number, &run);
	if (record) {
		copied = min_t(size_t, count, run * sizeof(*record) - skip);
		if (copy_to_user(to, (const u8 *)record + skip, copied))
			copied = -EFAULT;
	}
	mutex_unlock(&flashbed.lock);
	if (copied > 0)
		*at += copied;
	return copied;
}

static const struct file_operations log_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = log_read,
	.llseek = default_llseek,
};

static int counts_show(struct seq_file *file, void *unused)
{
	const struct mtd_ecc_stats *stats = &flashbed.core.mtd->ecc_stats;
	const struct fbn_counts *counts = &flashbed.counts;

	mutex_lock(&flashbed.lock);
	seq_printf(file, "reads %llu\nprograms %llu\nerases %llu\nbusy_ns %llu\nchanges %llu\n",
		   counts->reads, counts->programs, counts->erases, counts->busy_ns,
		   counts->changes);
	seq_printf(file, "corrected %u\nuncorrectable %u\nbreaches %llu\nlost %llu\n",
		   stats->corrected, stats->failed, counts->breaches, counts->lost);
	mutex_unlock(&flashbed.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counts);

/* Pages with anything in their main area. A clean marker or a bad block's mark is in the spare
 * area.
 */
static u32 pages_used(const struct fbn_block *block)
{
	u32 used = 0;
	u32 page;

	for (page = 0; page < block->next_page; page++)
		used += block->pages[page] && block->pages[page]->data;
	return used;
}

static int blocks_show(struct seq_file *file, void *unused)
{
	u32 block;

	mutex_lock(&flashbed.lock);
	for (block = 0; block < flashbed.p.blocks; block++) {
		const struct fbn_block *state = &flashbed.cells.blocks[block];
		const bool bad = state->state == FBN_FACTORY_BAD ||
				 fbn_cells_marked_bad(&flashbed.cells, block);

		seq_printf(file, "%u %u %s %u\n", block, state->erases,
			   bad                        ? "bad"
			   : state->state == FBN_WORN ? "worn"
						      : "good",
			   pages_used(state));
	}
	mutex_unlock(&flashbed.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(blocks);

static int breaches_show(struct seq_file *file, void *unused)
{
	return fbn_breaches_show(file, unused);
}
DEFINE_SHOW_ATTRIBUTE(breaches);

/* A rewind as the driver sees it: the power failed and came back. */
static int rewind_to(u64 change, u64 seed)
{
	const int err = fbn_history_rewind(change, seed);

	if (err)
		return err;
	memset(&flashbed.power, 0, sizeof(flashbed.power));
	fbn_forget_driver_state();
	return 0;
}

/* Cancels a cut or a drop that is still to come, because the run to be cut is over. */
static int power_on(void)
{
	const bool was_off = flashbed.power.off;

	memset(&flashbed.power, 0, sizeof(flashbed.power));
	if (was_off)
		fbn_forget_driver_state();
	return 0;
}

static void clear_log(void)
{
	fbn_log_clear(&flashbed.log);
	flashbed.bus.logged = NULL;
}

static int wear(u32 first, u32 count, u32 erases)
{
	u32 block;

	if (first >= flashbed.p.blocks || count > flashbed.p.blocks - first)
		return -EINVAL;
	for (block = first; block < first + count; block++)
		flashbed.cells.blocks[block].erases = erases;
	return 0;
}

static int mark_bad(u32 block)
{
	const bool can = block < flashbed.p.blocks && !flashbed.p.nor;
	const int err = can ? fbn_mark_factory_bad(block) : -EINVAL;

	if (!err)
		fbn_forget_driver_state();
	return err;
}

/* The values of `faults`: a seed, failing operations per million, reads per million with bit flips,
 * and their number of bits.
 */
struct rates {
	u64 seed;
	u32 program_fail_ppm;
	u32 erase_fail_ppm;
	u32 bit_flip_ppm;
	u32 bit_flips;
};

/* Sets the faults from now on; operations are counted from here. */
static int set_faults(const struct rates *asked)
{
	struct fbn_faults *faults = &flashbed.faults;

	if (flashbed.p.nor && asked->bit_flip_ppm)
		return -EINVAL;
	if (asked->program_fail_ppm > FBN_PPM || asked->erase_fail_ppm > FBN_PPM ||
	    asked->bit_flip_ppm > FBN_PPM || !asked->bit_flips || asked->bit_flips > FBN_FLIPS_MAX)
		return -EINVAL;
	faults->seed = asked->seed;
	faults->first_read = flashbed.counts.reads;
	faults->first_program = flashbed.counts.programs;
	faults->first_erase = flashbed.counts.erases;
	faults->program_fail_ppm = asked->program_fail_ppm;
	faults->erase_fail_ppm = asked->erase_fail_ppm;
	faults->bit_flip_ppm = asked->bit_flip_ppm;
	faults->bit_flips_min = asked->bit_flips;
	faults->bit_flips_max = asked->bit_flips;
	faults->programs.used = 0;
	faults->erases.used = 0;
	return 0;
}

/* Bit errors follow the curve from now on. */
static int begin_errors(u64 seed, u32 age_hours, u32 reads)
{
	struct fbn_curve *curve = &flashbed.faults.curve;
	u32 block;

	if (flashbed.p.nor || flashbed.p.page_bytes / flashbed.p.ecc_step_bytes > FBN_STEPS_MAX)
		return -EINVAL;
	for (block = 0; block < flashbed.p.blocks; block++)
		flashbed.cells.blocks[block].reads = 0;
	curve->on = true;
	curve->seed = seed;
	curve->begun_ns = fbn_now_ns() + fbn_owed_ns();
	curve->age_hours = age_hours;
	curve->reads = reads;
	return 0;
}

/* Commands of the curve of bit errors. */
static int obey_errors(const char *command)
{
	struct fbn_term term;
	u64 seed;
	u32 which;
	u32 age_hours;
	u32 reads;
	char more;

	if (sscanf(command, "error-term %u %d %u %u%c", &which, &term.log2, &term.erases_power,
		   &term.power, &more) == 4 &&
	    which < FBN_TERMS) {
		flashbed.faults.curve.terms[which] = term;
		return 0;
	}
	if (sscanf(command, "errors %llu %u %u%c", &seed, &age_hours, &reads, &more) == 3)
		return begin_errors(seed, age_hours, reads);
	return -EINVAL;
}

/* Commands that replace the chip or make it fail. */
static int obey_faults(const char *command)
{
	struct fbn_faults *faults = &flashbed.faults;
	struct rates asked;
	u64 number;
	u32 first;
	u32 count;
	u32 erases;
	char more;

	if (sscanf(command, "wear %u %u %u%c", &first, &count, &erases, &more) == 3)
		return wear(first, count, erases);
	if (sscanf(command, "bad %u%c", &first, &more) == 1)
		return mark_bad(first);
	if (sscanf(command, "endurance %u %llu%c", &erases, &number, &more) == 2) {
		faults->wear_out_erases = erases;
		faults->wear_seed = number;
		return 0;
	}
	if (sscanf(command, "faults %llu %u %u %u %u%c", &asked.seed, &asked.program_fail_ppm,
		   &asked.erase_fail_ppm, &asked.bit_flip_ppm, &asked.bit_flips, &more) == 5)
		return set_faults(&asked);
	if (sscanf(command, "fail-program %llu%c", &number, &more) == 1 && number)
		return fbn_choose(&faults->programs, flashbed.counts.programs + number - 1);
	if (sscanf(command, "fail-erase %llu%c", &number, &more) == 1 && number)
		return fbn_choose(&faults->erases, flashbed.counts.erases + number - 1);
	return obey_errors(command);
}

/* Commands with numbers. A further word makes a command invalid. */
static int obey_numbers(const char *command)
{
	u64 number;
	u64 seed;
	char more;

	if (sscanf(command, "cut %llu %llu%c", &number, &seed, &more) == 2 && number) {
		flashbed.power.cut_at = number;
		flashbed.power.cut_seed = seed;
		return 0;
	}
	if (sscanf(command, "rewind %llu %llu%c", &number, &seed, &more) == 2)
		return rewind_to(number, seed);
	if (sscanf(command, "drop %llu%c", &number, &more) == 1 && number) {
		flashbed.power.drop_at = number;
		return 0;
	}
	return obey_faults(command);
}

static int obey(const char *command)
{
	if (!strcmp(command, "clear")) {
		clear_log();
		return 0;
	}
	if (!strcmp(command, "record"))
		return fbn_history_start();
	if (!strcmp(command, "forget")) {
		fbn_history_forget();
		return 0;
	}
	if (!strcmp(command, "forget-page")) {
		fbn_forget_page();
		return 0;
	}
	if (!strcmp(command, "on"))
		return power_on();
	if (!strcmp(command, "renew"))
		return fbn_chip_renew();
	return obey_numbers(command);
}

static ssize_t ctl_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	char text[COMMAND_BYTES];
	char *command;
	int err;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, count))
		return -EFAULT;
	text[count] = '\0';
	command = strim(text);
	if (!strcmp(command, "load")) {
		err = fbn_load_finish();
	} else {
		mutex_lock(flashbed.core.lock);
		mutex_lock(&flashbed.lock);
		err = obey(command);
		mutex_unlock(&flashbed.lock);
		mutex_unlock(flashbed.core.lock);
	}
	fbn_pay();
	return err ? err : count;
}

static const struct file_operations ctl_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = ctl_write,
	.llseek = noop_llseek,
};

int fbn_debugfs_create(struct dentry **folder)
{
	*folder = debugfs_create_dir(FBN_NAME, NULL);
	if (IS_ERR(*folder))
		return PTR_ERR(*folder);
	debugfs_create_file("log", 0400, *folder, NULL, &log_fops);
	debugfs_create_file("counts", 0400, *folder, NULL, &counts_fops);
	debugfs_create_file("blocks", 0400, *folder, NULL, &blocks_fops);
	debugfs_create_file("breaches", 0400, *folder, NULL, &breaches_fops);
	debugfs_create_file("chip", 0600, *folder, NULL, &fbn_image_fops);
	debugfs_create_file("partition", 0600, *folder, NULL, &fbn_raw_fops);
	debugfs_create_file("ctl", 0200, *folder, NULL, &ctl_fops);
	return 0;
}
