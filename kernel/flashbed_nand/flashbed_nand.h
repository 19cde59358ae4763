/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of flashbed_nand share: a chip in memory with its controller: NAND, raw
 * or on SPI, or SPI-NOR.
 *
 * Mirrors include/linux/mtd/rawnand.h of Linux 6.1 and 6.12 (struct nand_controller_ops), in the
 * place of nandsim, and include/linux/spi/spi-mem.h (struct spi_controller_mem_ops). A machine has
 * one chip, `flashbed`. Layers, each a file that uses only functions and variables of those above
 * it (tests/tidy/test_layers_of_c.py):
 *   state       the variable `flashbed`, of which each layer owns a part
 *   parameters  the module's parameters, checked
 *   parts       MTD's partitions
 *   pairing     pages that share cells
 *   draws       random numbers of a seed
 *   errors      bit errors that follow erases, reads and age
 *   faults      what the seed decides: factory-bad blocks, endurance, failures, flipped bits, how a
 *               torn operation is torn
 *   host        what the kernel for programs offers: memory of the host
 *   cells       content of the array: blocks, pages; program and erase, whole or torn
 *   rules       the datasheet's rules for programs, and broken ones
 *   log         a record of each operation
 *   record      snapshot, changes since then, power cut, rewind
 *   wait        how an operation's time passes
 *   calls       calls into MTD, which wait for their operations' time
 *   array       what the chip does, however its commands reach it
 *   exec        the command set of raw NAND
 *   ecc         the engine of the controller or of the chip
 *   spi_ecc     how a chip of SPI-NAND tells what it corrected
 *   spi_bus     the SPI controller
 *   spi         the command set of SPI-NAND
 *   nor         the command set of SPI-NOR
 *   chip        the chip as a whole: created, renewed, marked bad, freed
 *   load        loading an image of the chip
 *   image       the file `chip` of debugfs
 *   raw         the file `partition`
 *   debugfs     the other files, and the commands of `ctl`
 *   module      loading and unloading
 *
 * Invariants:
 * 1. flashbed.lock guards everything here except the parameters, which do not change after init. It
 *    is not held while an operation's time passes.
 * 2. Lock order: flashbed.core.lock (the NAND core's, held around every operation), then
 *    flashbed.lock.
 */
#ifndef FLASHBED_NAND_H
#define FLASHBED_NAND_H

#include <linux/mtd/mtd.h>
#include <linux/mtd/rawnand.h>
#include <linux/mutex.h>
#include <linux/types.h>

#define FBN_NAME "flashbed_nand"
#define FBN_PARTITION "flashbed"
#define FBN_PARTS 16
#define FBN_PART_NAME_BYTES 72

struct mtd_partition;
struct seq_file;
struct dentry;
struct kmem_cache;
struct spi_controller_mem_ops;
struct spi_mem_op;

/* parameters.c */

enum fbn_ecc { FBN_ECC_SOFTWARE, FBN_ECC_HARDWARE, FBN_ECC_NONE, FBN_ECC_ON_DIE };
#define FBN_ID_BYTES 4
/* After the functions of Linux' tables that end in _ecc_get_status. */
enum fbn_status {
	FBN_STATUS_CORE,
	FBN_STATUS_TX58CXGXSXRAIX,
	FBN_STATUS_W25N02KV,
	FBN_STATUS_MACRONIX,
	FBN_STATUS_MICRON_8,
	FBN_STATUS_GD5FXGQ4XA,
	FBN_STATUS_GD5FXGQ4UEXXG,
	FBN_STATUS_GD5FXGQ5XEXXG,
	FBN_STATUS_GD5FXGQ4UFXXG,
	FBN_STATUS_XT26G0XA,
	FBN_STATUS_XT26XXXD,
};
/* What enables four lines of SPI-NOR, as JESD216 has it. */
enum fbn_quad { FBN_QUAD_ALWAYS, FBN_QUAD_SR1_BIT6, FBN_QUAD_SR2_BIT1 };
#define FBN_NOR_ID_BYTES 6
enum fbn_wait { FBN_WAIT_BUSY, FBN_WAIT_HALT, FBN_WAIT_SLEEP };

/* A partition of a layout, within that of the board. */
struct fbn_part {
	char name[FBN_PART_NAME_BYTES];
	u32 blocks;
};

struct fbn_parameters {
	u32 page_bytes;
	u32 oob_bytes;
	u32 raw_bytes; /* page and OOB */
	u32 pages_per_block;
	u32 bits_per_cell;
	bool pairs;    /* two pages of a block share cells (pairing.c) */
	bool slc_mode; /* the partition has the first pages of pairs only */
	u32 page_in_block_shift;
	u32 blocks;
	u32 pages;
	u32 first_block;
	u32 partition_blocks;
	struct fbn_part parts[FBN_PARTS];
	u32 parts_count;
	u32 read_array_ns;
	u32 program_array_ns;
	u32 erase_array_ns;
	u32 bus_read_ns;
	u32 bus_program_ns;
	u32 column_change_ns;
	u32 cache_read_ns; /* 0: no sequential cache reads */
	bool transfer_page;
	enum fbn_ecc ecc;
	u32 ecc_step_bytes;
	u32 ecc_strength_bits;
	u32 ecc_bytes; /* of OOB, a step */
	u32 spi_hz;    /* 0: raw NAND */
	u32 spi_rx_lines;
	u32 spi_tx_lines;
	u32 spi_op_ns;
	bool spi_dtr;
	bool spi_continuous_reads;
	u8 spi_read_opcode;
	u8 spi_program_opcode;
	enum fbn_status spi_ecc_status;
	u8 spi_id[FBN_ID_BYTES];
	u32 spi_id_bytes;
	bool nor; /* the chip is SPI-NOR */
	bool nor_small_erases;
	enum fbn_quad nor_quad;
	u32 nor_first_byte_ns; /* 0: a program's time does not follow its bytes */
	u32 nor_next_byte_ns;
	u8 nor_id[FBN_NOR_ID_BYTES];
	u32 nor_id_bytes;
	enum fbn_wait wait;
	u64 seed;
	u32 bad_blocks;
	u32 wear_out_erases;
	u32 program_fail_ppm;
	u32 erase_fail_ppm;
	u32 bit_flip_ppm;
	u32 bit_flips_max;
};

int fbn_parameters_check(struct fbn_parameters *to);

/* parts.c */

struct mtd_partition *fbn_parts(void);

/* pairing.c */

s32 fbn_paired_before(u32 page);
u32 fbn_page_of_partition(u32 page);
void fbn_pair(struct mtd_info *mtd);

/* draws.c */

#define FBN_PPM 1000000U

enum fbn_draw {
	FBN_DRAW_BAD,
	FBN_DRAW_WEAR,
	FBN_DRAW_PROGRAM,
	FBN_DRAW_ERASE,
	FBN_DRAW_READ,
	FBN_DRAW_TEAR,
	FBN_DRAW_ERRORS
};

u64 fbn_draw(u64 seed, enum fbn_draw what, u64 number);
u64 fbn_next(u64 *state);
u32 fbn_below(u64 *state, u32 limit);
bool fbn_hit(u64 draw, u32 ppm);

/* errors.c */

#define FBN_STEPS_MAX 64       /* of a page */
#define FBN_STEP_ERRORS_MAX 65 /* more than any ECC corrects */

/* 2^(log2 / 2^24) times powers, in 2^-16, of the erases and of the hours or reads. */
struct fbn_term {
	s32 log2;
	u32 erases_power;
	u32 power;
};

enum fbn_terms { FBN_TERM_FRESH, FBN_TERM_WEAR, FBN_TERM_RETENTION, FBN_TERM_DISTURB, FBN_TERMS };

/* Expected errors of an ECC step. */
struct fbn_curve {
	struct fbn_term terms[FBN_TERMS];
	bool on;
	u64 seed;
	u64 begun_ns;
	u32 age_hours; /* of what was programmed before */
	u32 reads;     /* of its block */
};

struct fbn_step {
	u32 number;
	u32 bits;
	u64 expected; /* errors, in 2^-32 */
};

s64 fbn_log2(u64 number);
u64 fbn_exp2(s64 log);
u64 fbn_wait_for_error(u64 uniform);
u64 fbn_expected(const struct fbn_curve *curve, u32 erases, u32 hours, u32 reads);
u32 fbn_draw_errors(u64 seed, u32 erases, const struct fbn_step *step, u32 *bits);

/* faults.c */

#define FBN_FLIPS_MAX 64
#define FBN_WRONG_MAX (FBN_STEPS_MAX * FBN_STEP_ERRORS_MAX)

/* How much of a program or an erase takes effect. */
enum fbn_how {
	FBN_WHOLE,
	FBN_NOTHING,
	FBN_PART, /* program: the first bytes; erase: some pages */
	FBN_BITS, /* some of the bits */
};

struct fbn_effect {
	u8 how;
	bool worn; /* an erase that wears out the block */
	bool torn; /* the power failed */
	u64 seed;  /* selects the part or the bits */
};

#define FBN_CHOSEN_MAX 64

/* Operations of a kind that were chosen to fail, by their number since the load. */
struct fbn_chosen {
	u64 numbers[FBN_CHOSEN_MAX];
	u32 used;
};

/* The current faults: at first those of the parameters, then those set through `ctl`. */
struct fbn_faults {
	u64 seed;       /* of everything but endurance */
	u64 first_read; /* draws count operations from these */
	u64 first_program;
	u64 first_erase;
	u32 program_fail_ppm;
	u32 erase_fail_ppm;
	u32 bit_flip_ppm;
	u32 bit_flips_min;
	u32 bit_flips_max;
	u64 wear_seed;
	u32 wear_out_erases;
	struct fbn_chosen programs;
	struct fbn_chosen erases;
	struct fbn_curve curve;
};

struct fbn_effect fbn_torn(u64 seed);
void fbn_faults_start(struct fbn_faults *faults, const struct fbn_parameters *p);
int fbn_choose(struct fbn_chosen *chosen, u64 number);
bool fbn_is_chosen(const struct fbn_chosen *chosen, u64 number);
u32 fbn_endurance(const struct fbn_faults *faults, u32 block);
int fbn_draw_flips(const struct fbn_faults *faults, u64 number, u32 *bits);

/* host.c */

/* Objects of one size. */
struct fbn_pool {
	u32 bytes;
	struct kmem_cache *cache; /* NULL where the memory is the host's */
	void *free;               /* each begins with the address of the next */
	void **chunks;
};

void fbn_host_find(void);
void fbn_tell_programmed(void);
void *fbn_memory_get(size_t bytes);
void fbn_memory_put(void *at, size_t bytes);
int fbn_pool_create(struct fbn_pool *pool, const char *name, u32 bytes);
void fbn_pool_destroy(struct fbn_pool *pool);
void *fbn_pool_get(struct fbn_pool *pool);
void fbn_pool_put(struct fbn_pool *pool, void *object);

/* cells.c */

enum fbn_state { FBN_GOOD, FBN_FACTORY_BAD, FBN_WORN };

#define FBN_SUBPAGES 4
#define FBN_PROGRAMS_A_PAGE 4 /* the datasheets' NOP, where a cell holds one bit */

/* A page that was programmed since its block was erased. `data` and `intended` are page_bytes long,
 * or NULL. NULL data means all 0xff. `intended` is what the controller's ECC was calculated over,
 * if that differs from the cells.
 */
struct fbn_page {
	u32 users;
	u8 programs;
	u8 touched;        /* programmed sub-pages, one bit each */
	u32 reads;         /* of its block, when it was programmed last */
	u64 programmed_ns; /* 0: before bit errors began */
	u8 *data;
	u8 *intended;
	u8 oob[];
};

struct fbn_block {
	struct fbn_page **pages;
	u32 erases;
	u32 reads;     /* since the erase or the beginning of faults */
	u16 next_page; /* after the highest one programmed */
	u8 state;
};

struct fbn_cells {
	struct fbn_block *blocks;
};

/* Bytes of one program command: columns from..to of the page. */
struct fbn_program {
	u32 page;
	u32 from;
	u32 to;
	const u8 *bytes;
};

int fbn_pools_create(void);
void fbn_pools_destroy(void);
int fbn_cells_init(struct fbn_cells *cells);
void fbn_cells_free(struct fbn_cells *cells);
int fbn_cells_share(struct fbn_cells *to, const struct fbn_cells *from);
struct fbn_page *fbn_cells_page(const struct fbn_cells *cells, u32 page);
struct fbn_page *fbn_cells_own_page(struct fbn_cells *cells, u32 page);
int fbn_page_fill(u8 **area, const u8 *bytes);
void fbn_cells_read(const struct fbn_cells *cells, u32 page, u32 column, u8 *to, u32 bytes);
int fbn_cells_program(struct fbn_cells *cells, const struct fbn_program *program,
		      struct fbn_effect effect);
int fbn_cells_erase(struct fbn_cells *cells, u32 block, struct fbn_effect effect);
bool fbn_cells_marked_bad(const struct fbn_cells *cells, u32 block);
u32 fbn_marker_column(void);
u8 fbn_subpages_touched(const struct fbn_program *program);

/* rules.c */

enum fbn_rule { FBN_PROGRAMMED_TWICE, FBN_OUT_OF_ORDER, FBN_TOO_MANY_PROGRAMS, FBN_SETS_BITS };

struct fbn_breach {
	u64 time_ns;
	u32 page;
	u8 rule;
	char task[16];
};

struct fbn_breaches {
	struct fbn_breach *list;
	u32 size;
	u32 used;
};

bool fbn_rules_check(const struct fbn_program *program, u64 time_ns);
void fbn_breaches_free(void);
int fbn_breaches_show(struct seq_file *file, void *unused);

/* log.c */

enum fbn_kind { FBN_READ, FBN_PROGRAM, FBN_ERASE };
enum { FBN_FLAG_FAILED = 1, FBN_FLAG_CORRECTED = 2, FBN_FLAG_BREACH = 4 };

struct fbn_record {
	u64 start_ns;
	u64 duration_ns;
	u32 page;
	u32 column;
	u32 length;
	u8 kind;
	u8 flags;
	u16 zero;
	char task[16];
};

struct fbn_log {
	struct fbn_record **chunks;
	u32 chunks_size;
	u32 chunks_used;
	u64 records;
	u32 records_chunk; /* where the next record goes */
	u32 records_in_chunk;
};

struct fbn_record *fbn_log_add(struct fbn_log *log, const struct fbn_record *record);
void fbn_log_clear(struct fbn_log *log);
void fbn_log_free(struct fbn_log *log);
const struct fbn_record *fbn_log_at(const struct fbn_log *log, u64 number, u32 *run);

/* record.c */

struct fbn_change;

struct fbn_history {
	bool there;  /* there is a snapshot */
	bool open;   /* changes are still added to it */
	bool broken; /* memory ran out, so changes are missing */
	struct fbn_cells snapshot;
	struct fbn_cells reached; /* the snapshot after the first `reached_changes` changes */
	u32 reached_changes;
	struct fbn_change **changes;
	u32 size;
	u32 used;
};

void fbn_history_add_program(const struct fbn_program *program, struct fbn_effect effect);
void fbn_history_add_erase(u32 block, struct fbn_effect effect);
int fbn_history_start(void);
void fbn_history_forget(void);
int fbn_history_rewind(u64 change, u64 seed);

/* wait.c */

u64 fbn_now_ns(void);
void fbn_wait(u64 started_ns, u64 spent_ns);
u64 fbn_owed_ns(void);
void fbn_pay(void);

/* calls.c */

void fbn_calls_pay(struct mtd_info *mtd);

/* array.c */

enum fbn_output { FBN_OUT_PAGE, FBN_OUT_STATUS, FBN_OUT_ID };

/* What the array does while the page of the bus is output. */
enum fbn_ahead { FBN_AHEAD_PAGE, FBN_AHEAD_LOADS, FBN_AHEAD_NOTHING };

/* The chip's side of the bus. */
struct fbn_bus {
	u64 started_ns; /* of this exec_op */
	u64 spent_ns;
	u64 busy_ns; /* SPI: of the array, from the end of the command on */
	u8 command;
	u8 address[5];
	u8 addresses;
	u8 output;
	u8 status;
	u8 id_address;
	u32 base; /* small pages: the pointer command's offset of column 0 */
	u32 page;
	u32 column;
	u8 ahead;
	u64 loaded_ns; /* when the array has loaded the next page */
	bool moved;    /* the command has already transferred data */
	struct fbn_record record;
	struct fbn_record *logged; /* log record of a read, which later transfers extend */
	u8 *latch;                 /* the page register while a program is loaded: raw_bytes */
	u32 latch_from;
	u32 latch_to;
	int flips;
	u32 flip_bits[FBN_WRONG_MAX]; /* step by step */
};

void fbn_begin(void);
void fbn_end(u64 *started_ns, u64 *spent_ns);
void fbn_charge(u64 ns);
void fbn_moved(u32 whole_ns, u32 bytes);
void fbn_change_column(u32 column);
void fbn_move_in(u8 *to, u32 bytes);
void fbn_move_out(const u8 *from, u32 bytes);
void fbn_command_read(u32 page, u32 column);
void fbn_command_cache_read(bool last);
void fbn_command_stream(u64 at, u8 *to, u32 bytes);
void fbn_next_page(void);
void fbn_move_in_whole(u8 *page, u8 *oob);
void fbn_command_program(u32 page, u32 column);
void fbn_move_out_whole(const u8 *page, const u8 *oob);
int fbn_confirm_program(void);
int fbn_confirm_erase(u32 page);
bool fbn_flip(u8 *bytes, u32 column, u32 length);
void fbn_record_flags(u8 flags);
u32 fbn_share_ns(u32 whole_ns, u32 bytes);

/* exec.c */

void fbn_id(u8 *id);
int fbn_exec_op(struct nand_chip *nand, const struct nand_operation *op, bool check_only);

/* ecc.c */

int fbn_correct_step(const struct fbn_page *page, u32 step, u8 *bytes);
int fbn_attach_chip(struct nand_chip *nand);

/* spi_ecc.c */

u8 fbn_spi_ecc_status(int most_bits);
bool fbn_spi_ecc_register(u8 number, int most_bits, u8 *value);

/* spi_bus.c */

u64 fbn_spi_ns(const struct spi_mem_op *op, u32 bytes);
void fbn_spi_pass(u64 ns);
int fbn_spi_attach(const char *name, const struct spi_controller_mem_ops *ops);
void fbn_spi_detach(void);

/* spi.c */

int fbn_spi_start(void);
void fbn_spi_forget(void);

/* nor.c */

int fbn_nor_start(void);
void fbn_nor_forget(void);

/* chip.c */

int fbn_chip_make(void);
void fbn_chip_free(void);
int fbn_chip_renew(void);
int fbn_mark_factory_bad(u32 block);
void fbn_forget_page(void);
void fbn_forget_driver_state(void);

/* load.c, and the format that image.c writes */

#define FBN_IMAGE_MAGIC "flashbed-chip 1\n"

struct fbn_image_head {
	char magic[16];
	__le32 page_bytes;
	__le32 oob_bytes;
	__le32 pages_per_block;
	__le32 blocks;
} __packed;

struct fbn_image_block {
	__le32 erases;
	__le16 pages;
	u8 state;
	u8 zero;
} __packed;

enum { FBN_IMAGE_DATA = 1, FBN_IMAGE_INTENDED = 2 };

struct fbn_image_page {
	__le16 page;
	u8 programs;
	u8 touched;
	u8 areas;
	u8 zero[3];
} __packed;

struct fbn_loader;

int fbn_load_bytes(const u8 *bytes, size_t count);
int fbn_load_finish(void);
void fbn_load_abandon(void);

/* image.c */

extern const struct file_operations fbn_image_fops;

/* raw.c */

extern const struct file_operations fbn_raw_fops;

/* debugfs.c */

int fbn_debugfs_create(struct dentry **folder);

/* state.c, last because it contains what the others declare */

struct fbn_counts {
	u64 reads;
	u64 programs;
	u64 erases;
	u64 busy_ns;
	u64 changes;
	u64 breaches;
	u64 lost;
};

struct fbn_power {
	bool off;
	u64 cut_at; /* programs and erases until the power fails, 0: it does not */
	u64 cut_seed;
	u64 drop_at; /* programs until one is dropped */
};

/* What the kernel's driver of the chip has made. */
struct fbn_core {
	struct mtd_info *mtd; /* the whole chip */
	struct mutex *lock;
};

struct fbn {
	struct mutex lock;
	struct fbn_parameters p;
	struct fbn_core core;
	struct nand_chip nand;
	struct nand_controller controller;
	struct fbn_pool page_pool;
	struct fbn_pool data_pool;
	u8 *scratch; /* raw_bytes: a torn program's bytes */
	struct fbn_cells cells;
	struct fbn_bus bus;
	struct fbn_power power;
	struct fbn_faults faults;
	struct fbn_counts counts;
	struct fbn_log log;
	struct fbn_breaches breaches;
	struct fbn_history history;
	struct fbn_loader *loader;
};

extern struct fbn flashbed;

#endif
