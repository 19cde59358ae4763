/* SPDX-License-Identifier: Apache-2.0 */
/* Flash operations, seen by kprobe events on the kernel's functions, without a kernel module.
 * README.md has the order in which functions are preferred and what each level counts.
 *
 * Kernel functions: drivers/mtd/nand/raw/nand_base.c and the page functions of controllers (`struct
 * nand_ecc_ctrl` of include/linux/mtd/rawnand.h, which lost their mtd_info argument in 4.20),
 * drivers/mtd/mtdcore.c.
 *
 * Invariant: an access is passed on once. A page function may call the core's function, mtd_read
 * calls mtd_read_oob. An access at an outer point therefore waits until its function returns, and
 * is replaced by one of the same kind and page at a deeper point.
 *
 * Before 4.4 page functions do not get the page that they write (ecc->write_page), before 3.16 not
 * the one of which they read a part. There the functions that MTD calls are probed: MTD's own if
 * they are functions, else the core's (nand_read and the like), whose mtd_info is the chip's.
 *
 * Leaves out: column changes within a page (nand_change_read_column_op), SPI NAND except at
 * LEVEL_MTD, durations.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracing/tracing.h"

enum { POINTS = 128, WAITING = 16, PARTITIONS = 32 };

/* The positions of a function's arguments, from 0 on; -1 for none, which means the whole page. */
struct shape {
	int page;
	int column;
	int length;
};

enum depth { DEPTH_OUTER, DEPTH_INNER };

struct point {
	unsigned int type;
	enum flash_kind kind;
	enum depth depth;
	bool in_blocks; /* nand_erase_op takes a block */
	unsigned int page_at;
	unsigned int column_at;
	unsigned int length_at;   /* 0 if the function has none */
	unsigned int mtd_at;      /* LEVEL_MTD */
	unsigned int return_type; /* of an outer point */
	unsigned int from_size;
};

struct waiting {
	bool used;
	int pid;
	struct flash_event event;
	uint32_t pages;
};

struct flashmon {
	struct tracefs *session;
	struct flash_geometry geometry;
	struct point points[POINTS];
	size_t count;
	struct waiting waiting[WAITING];
	uint64_t mtd; /* the kernel's address of the partition, 0 for any */
	char *said;
	size_t room;
};

static void say_point(struct flashmon *flashmon, const char *function)
{
	const size_t used = strlen(flashmon->said);

	(void)snprintf(flashmon->said + used, flashmon->room - used, "%s%s", used ? "," : "",
		       function);
}

static int field(const struct flashmon *flashmon, unsigned int type, const char *name,
		 unsigned int *at)
{
	unsigned int size;

	return tracefs_field(flashmon->session, type, name, at, &size);
}

/* The return of an outer point's function. */
static int add_return(struct flashmon *flashmon, const char *function, struct point *point)
{
	char name[TRACE_NAME];

	(void)snprintf(name, sizeof(name), "back%zu", flashmon->count);
	return point->depth == DEPTH_OUTER ? tracefs_probe(flashmon->session, 'r', name, function,
							   "", &point->return_type)
					   : 0;
}

static int add_point(struct flashmon *flashmon, const char *function, enum flash_kind kind,
		     enum depth depth, struct shape shape)
{
	struct point point = {.kind = kind, .depth = depth};
	char arguments[160];
	char name[TRACE_NAME];

	if (flashmon->count == POINTS)
		return 0;
	int used = snprintf(arguments, sizeof(arguments), "page=%s:u32",
			    kernel_argument((unsigned int)shape.page));

	if (shape.column >= 0)
		used += snprintf(arguments + used, sizeof(arguments) - (size_t)used,
				 " column=%s:u32", kernel_argument((unsigned int)shape.column));
	if (shape.length >= 0)
		(void)snprintf(arguments + used, sizeof(arguments) - (size_t)used, " length=%s:u32",
			       kernel_argument((unsigned int)shape.length));
	(void)snprintf(name, sizeof(name), "flash%zu", flashmon->count);
	int err = tracefs_probe(flashmon->session, 'p', name, function, arguments, &point.type);

	err = err ? err : field(flashmon, point.type, "page", &point.page_at);
	if (!err && shape.column >= 0)
		err = field(flashmon, point.type, "column", &point.column_at);
	if (!err && shape.length >= 0)
		err = field(flashmon, point.type, "length", &point.length_at);
	if (err)
		return err;
	point.in_blocks = strcmp(function, "nand_erase_op") == 0;
	err = add_return(flashmon, function, &point);
	if (err)
		return err;
	flashmon->points[flashmon->count++] = point;
	say_point(flashmon, strchr(function, ':') ? strchr(function, ':') + 1 : function);
	return 0;
}

static const struct shape PAGE_OP = {1, 2, 4};    /* (chip, page, column, buf, length) */
static const struct shape BLOCK_OP = {1, -1, -1}; /* (chip, block) */

static int arm_core(struct flashmon *flashmon)
{
	int err = add_point(flashmon, "nand_read_page_op", FLASH_READ, DEPTH_INNER, PAGE_OP);

	err = err ? err
		  : add_point(flashmon, "nand_prog_page_begin_op", FLASH_PROGRAM, DEPTH_INNER,
			      PAGE_OP);
	err = err ? err
		  : add_point(flashmon, "nand_prog_page_op", FLASH_PROGRAM, DEPTH_INNER, PAGE_OP);
	return err ? err : add_point(flashmon, "nand_erase_op", FLASH_ERASE, DEPTH_INNER, BLOCK_OP);
}

/* Name prefixes of functions in drivers/mtd/nand/raw, if these are built into the kernel. */
static const char *const controllers[] = {
	"anfc_",       "atmel_",       "brcmnand_",     "cadence_nand_",   "cafe_nand_",
	"denali_",     "ebu_nand_",    "flctl_",        "fsl_elbc_",       "fsl_ifc_",
	"fsmc_",       "gpmi_",        "hisi_nand_",    "lpc32xx_",        "marvell_nfc_",
	"meson_nfc_",  "micron_nand_", "mtk_nfc_",      "mxc_nand_",       "pl35x_nand_",
	"qcom_nandc_", "rk_nfc_",      "rnandc_",       "stm32_fmc2_nfc_", "sunxi_nfc_",
	"tango_",      "tegra_nand_",  "toshiba_nand_", "vf610_nfc_",      "omap_",
	NULL,
};

/* `ecc.read_page(chip, buf, oob_required, page)`, `ecc.read_subpage(chip, offset, length, buf,
 * page)`, `ecc.write_page(chip, buf, oob_required, page)`, `ecc.write_subpage(chip, offset, length,
 * buf, oob_required, page)`; until 4.20 with an mtd_info before them.
 */
static bool page_function(const char *name, enum flash_kind *kind, struct shape *shape)
{
	static const struct {
		const char *part;
		enum flash_kind kind;
		struct shape shape;
	} kinds[] = {
		{"read_page", FLASH_READ, {3, -1, -1}},
		{"read_subpage", FLASH_READ, {4, 1, 2}},
		{"write_page", FLASH_PROGRAM, {3, -1, -1}},
		{"write_subpage", FLASH_PROGRAM, {5, 1, 2}},
	};
	const int shift = kernel_version() < 420 ? 1 : 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *found = strstr(name, kinds[i].part);
		const char *after = found ? found + strlen(kinds[i].part) : NULL;

		/* A whole word: not read_pages, and no `..._op`, which is the core's. */
		if (!found || (found > name && found[-1] != '_') || (*after && *after != '_') ||
		    strstr(after, "_op") || strstr(name, "notsupp"))
			continue;
		*kind = kinds[i].kind;
		*shape = kinds[i].shape;
		shape->page += shift;
		shape->column += shape->column < 0 ? 0 : shift;
		shape->length += shape->length < 0 ? 0 : shift;
		return true;
	}
	return false;
}

static bool is_controllers(const struct symbol *symbol)
{
	char path[200];

	/* If the core is built into the kernel, it has no holders. */
	(void)snprintf(path, sizeof(path), "/sys/module/nand/holders/%.100s", symbol->module);
	if (*symbol->module && access(path, F_OK) == 0)
		return true;
	if (strcmp(symbol->module, "nand") != 0 &&
	    (strstr(symbol->module, "nand") || strstr(symbol->module, "_nfc")))
		return true;
	for (size_t i = 0; controllers[i]; i++)
		if (strncmp(symbol->name, controllers[i], strlen(controllers[i])) == 0)
			return true;
	return false;
}

static bool is_cores(const struct symbol *symbol)
{
	return (strcmp(symbol->module, "nand") == 0 || !*symbol->module) &&
	       (strncmp(symbol->name, "nand_read_", 10) == 0 ||
		strncmp(symbol->name, "nand_write_", 11) == 0 ||
		strncmp(symbol->name, "nand_monolithic_", 16) == 0);
}

/* Probes page functions: those of controllers, and the core's if its operations are not seen. One
 * that cannot be probed is left out. */
static int arm_pages(struct flashmon *flashmon, const struct symbols *symbols, bool cores)
{
	const size_t before = flashmon->count;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];
		char function[256];
		enum flash_kind kind;
		struct shape shape;

		if (!page_function(symbol->name, &kind, &shape) ||
		    !(is_controllers(symbol) || (cores && is_cores(symbol))))
			continue;
		(void)snprintf(function, sizeof(function), "%s%s%s", symbol->module,
			       *symbol->module ? ":" : "", symbol->name);
		(void)add_point(flashmon, function, kind, DEPTH_OUTER, shape);
	}
	if (!cores)
		return 0;
	if (flashmon->count == before)
		return -ENOENT;
	return add_point(flashmon,
			 symbols_have(symbols, "nand_erase_op") ? "nand_erase_op" : "single_erase",
			 FLASH_ERASE, DEPTH_INNER, BLOCK_OP);
}

/* mtd_read_oob(mtd, from, ops) and the like. On 32-bit machines a 64-bit argument takes two places,
 * the first of them even. `ops`: unsigned int mode; size_t len, retlen, ooblen. An erase has u64
 * addr, len, after an mtd_info until 4.16.
 */
static int add_mtd_point(struct flashmon *flashmon, const char *function, enum flash_kind kind,
			 enum depth depth)
{
	struct point point = {.kind = kind, .depth = depth};
	const unsigned int word = kernel_word();
	const unsigned int third = word == 8 ? 2 : 4;
	char arguments[200];
	char name[TRACE_NAME];

	if (kind == FLASH_ERASE) {
		const unsigned int at = kernel_version() < 417 ? 8 : 0;

		(void)snprintf(arguments, sizeof(arguments),
			       "mtd=%s:u%u page=+%u(%s):u64 length=+%u(%s):u64", kernel_argument(0),
			       word * 8, at, kernel_argument(1), at + 8, kernel_argument(1));
	} else {
		int used = snprintf(arguments, sizeof(arguments), "mtd=%s:u%u page=%s:u%u",
				    kernel_argument(0), word * 8,
				    kernel_argument(word == 8 ? 1 : 2), word * 8);

		if (strstr(function, "_oob"))
			(void)snprintf(arguments + used, sizeof(arguments) - (size_t)used,
				       " length=+%u(%s):u%u column=+%u(%s):u%u", word,
				       kernel_argument(third), word * 8, word * 3,
				       kernel_argument(third), word * 8);
		else
			(void)snprintf(arguments + used, sizeof(arguments) - (size_t)used,
				       " length=%s:u%u", kernel_argument(third), word * 8);
	}
	(void)snprintf(name, sizeof(name), "mtd%zu", flashmon->count);
	int err = tracefs_probe(flashmon->session, 'p', name, function, arguments, &point.type);

	if (!err)
		err = tracefs_field(flashmon->session, point.type, "page", &point.page_at,
				    &point.from_size);
	err = err ? err : field(flashmon, point.type, "length", &point.length_at);
	err = err ? err : field(flashmon, point.type, "mtd", &point.mtd_at);
	if (!err && kind != FLASH_ERASE && strstr(function, "_oob"))
		err = field(flashmon, point.type, "column", &point.column_at);
	err = err ? err : add_return(flashmon, function, &point);
	if (err)
		return err;
	flashmon->points[flashmon->count++] = point;
	say_point(flashmon, function);
	return 0;
}

static int see_mtd(void *context, const struct trace_event *event)
{
	struct flashmon *flashmon = context;

	for (size_t i = 0; i < flashmon->count; i++)
		if (flashmon->points[i].type == event->type && event->pid == getpid())
			flashmon->mtd = trace_number(event->data + flashmon->points[i].mtd_at,
						     kernel_word());
	return 0;
}

/* Finds the partition's mtd_info: the one in a call caused by a read of its device file. */
static int find_mtd(struct flashmon *flashmon, int mtd)
{
	uint8_t byte;
	char path[40];

	(void)snprintf(path, sizeof(path), "/dev/mtd%dro", mtd);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int err = pread(fd, &byte, 1, 0) < 0 ? -errno : 0;

	(void)close(fd);
	return err ? err : tracefs_drain(flashmon->session, UINT64_MAX, see_mtd, flashmon);
}

struct mtd_function {
	const char *name;
	enum flash_kind kind;
	enum depth depth;
};

/* MTD's functions, if those for spare areas are functions, too (mtd_write_oob was inline until
 * 4.14); else those of the NAND core, which MTD calls by pointer. */
static const struct mtd_function *mtd_functions(const struct symbols *symbols)
{
	static const struct mtd_function of_mtd[] = {
		{"mtd_read_oob", FLASH_READ, DEPTH_INNER},
		{"mtd_read", FLASH_READ, DEPTH_OUTER},
		{"mtd_write_oob", FLASH_PROGRAM, DEPTH_INNER},
		{"mtd_write", FLASH_PROGRAM, DEPTH_OUTER},
		{"mtd_erase", FLASH_ERASE, DEPTH_INNER},
		{NULL, FLASH_READ, DEPTH_INNER},
	};
	static const struct mtd_function of_core[] = {
		{"nand_read_oob", FLASH_READ, DEPTH_INNER},
		{"nand_read", FLASH_READ, DEPTH_OUTER},
		{"nand_write_oob", FLASH_PROGRAM, DEPTH_INNER},
		{"nand_write", FLASH_PROGRAM, DEPTH_OUTER},
		{"nand_erase", FLASH_ERASE, DEPTH_INNER},
		{NULL, FLASH_READ, DEPTH_INNER},
	};
	const bool whole =
		symbols_have(symbols, "mtd_read_oob") && symbols_have(symbols, "mtd_write_oob");

	return !whole && symbols_have(symbols, "nand_write_oob") &&
			       symbols_have(symbols, "nand_erase")
		       ? of_core
		       : of_mtd;
}

static int arm_mtd(struct flashmon *flashmon, const struct symbols *symbols, int mtd)
{
	int err = 0;

	for (const struct mtd_function *function = mtd_functions(symbols); function->name && !err;
	     function++)
		if (symbols_have(symbols, function->name))
			err = add_mtd_point(flashmon, function->name, function->kind,
					    function->depth);
	if (!err && !flashmon->count)
		err = -ENOENT;
	return err ? err : find_mtd(flashmon, mtd);
}

int flashmon_open(struct flashmon **made, struct tracefs *session,
		  const struct flash_geometry *geometry, int mtd, enum flash_level level,
		  char *points, size_t size)
{
	struct flashmon *flashmon = calloc(1, sizeof(*flashmon));
	struct symbols symbols;

	*made = flashmon;
	if (!flashmon)
		return -ENOMEM;
	flashmon->session = session;
	flashmon->geometry = *geometry;
	flashmon->said = points;
	flashmon->room = size;
	points[0] = '\0';
	int err = symbols_read(&symbols);

	if (level == LEVEL_CHOOSE && kernel_version() < 404)
		level = LEVEL_MTD;
	if (!err && level == LEVEL_PAGE && kernel_version() < 404)
		err = tracefs_refuse(session, -ENOTSUP,
				     "points=page: before Linux 4.4 page functions do not know "
				     "their page; points=mtd");
	if (level == LEVEL_CHOOSE) {
		level = symbols_have(&symbols, "nand_read_page_op") &&
					symbols_have(&symbols, "nand_erase_op")
				? LEVEL_NAND
				: LEVEL_PAGE;
		if (level == LEVEL_PAGE && !symbols_have(&symbols, "nand_read_page_swecc") &&
		    !symbols_have(&symbols, "nand_read_page_hwecc"))
			level = LEVEL_MTD;
	}
	if (!err && level == LEVEL_NAND)
		err = arm_core(flashmon);
	if (!err && (level == LEVEL_NAND || level == LEVEL_PAGE))
		err = arm_pages(flashmon, &symbols, level == LEVEL_PAGE);
	if (!err && level == LEVEL_MTD)
		err = arm_mtd(flashmon, &symbols, mtd);
	symbols_free(&symbols);
	return err;
}

/* Passes on an access, page by page if it covers several. */
static int pass_on(const struct flashmon *flashmon, const struct flash_event *first, uint32_t pages,
		   flash_sink sink, void *context)
{
	struct flash_event event = *first;
	uint64_t left = event.length;
	int err = 0;

	if (event.kind == FLASH_ERASE || pages <= 1)
		return sink(context, &event);
	for (uint32_t i = 0; i < pages && !err; i++) {
		const uint64_t room = flashmon->geometry.page_bytes - event.column;

		event.length = (uint32_t)(left < room ? left : room);
		left -= event.length;
		err = sink(context, &event);
		event.page++;
		event.column = 0;
	}
	return err;
}

/* An access at the MTD layer: bytes of the partition, or that many bytes of spare areas. */
static uint32_t decode_mtd(const struct flashmon *flashmon, const struct point *point,
			   const uint8_t *data, struct flash_event *event)
{
	const struct flash_geometry *g = &flashmon->geometry;
	const unsigned int word = kernel_word();
	const uint64_t from = trace_number(data + point->page_at, point->from_size);
	const uint64_t length =
		trace_number(data + point->length_at, point->kind == FLASH_ERASE ? 8 : word);
	const uint64_t oob = point->column_at ? trace_number(data + point->column_at, word) : 0;

	event->page = (uint32_t)(from / g->page_bytes);
	event->column = (uint32_t)(from % g->page_bytes);
	event->length = (uint32_t)length;
	if (point->kind == FLASH_ERASE)
		return (uint32_t)((length + g->block_bytes - 1) / g->block_bytes);
	if (length)
		return (uint32_t)((event->column + length + g->page_bytes - 1) / g->page_bytes);
	event->column = g->page_bytes;
	event->length = (uint32_t)oob;
	return 1;
}

static uint32_t decode(const struct flashmon *flashmon, const struct point *point,
		       const struct trace_event *from, struct flash_event *event)
{
	const struct flash_geometry *g = &flashmon->geometry;
	const uint32_t per_block = g->block_bytes / g->page_bytes;
	uint32_t pages = 1;

	*event = (struct flash_event){.start_ns = from->time_ns,
				      .duration_ns = -1,
				      .kind = point->kind,
				      .pid = from->pid};
	if (point->mtd_at) {
		pages = decode_mtd(flashmon, point, from->data, event);
	} else {
		event->page =
			trace_u32(from->data + point->page_at) * (point->in_blocks ? per_block : 1);
		event->column = point->column_at ? trace_u32(from->data + point->column_at) : 0;
		event->length =
			point->length_at ? trace_u32(from->data + point->length_at) : g->page_bytes;
		/* A command without data: the ECC's driver then transfers the whole page. */
		if (!event->length)
			event->length = g->page_bytes;
	}
	if (event->kind == FLASH_ERASE)
		event->length = g->block_bytes;
	(void)snprintf(event->task, sizeof(event->task), "%s", trace_task(from->pid));
	return pages;
}

static struct waiting *waiting_of(struct flashmon *flashmon, int pid)
{
	for (size_t i = 0; i < WAITING; i++)
		if (flashmon->waiting[i].used && flashmon->waiting[i].pid == pid)
			return &flashmon->waiting[i];
	return NULL;
}

static struct waiting *unused(struct flashmon *flashmon)
{
	for (size_t i = 0; i < WAITING; i++)
		if (!flashmon->waiting[i].used)
			return &flashmon->waiting[i];
	return &flashmon->waiting[0];
}

static int flush_waiting(struct flashmon *flashmon, struct waiting *waiting, flash_sink sink,
			 void *context)
{
	if (!waiting || !waiting->used)
		return 0;
	waiting->used = false;
	return pass_on(flashmon, &waiting->event, waiting->pages, sink, context);
}

static int take_erases(struct flashmon *flashmon, struct flash_event *event, uint32_t blocks,
		       flash_sink sink, void *context)
{
	const uint32_t per_block = flashmon->geometry.block_bytes / flashmon->geometry.page_bytes;
	int err = 0;

	for (uint32_t i = 0; i < blocks && !err; i++, event->page += per_block)
		err = sink(context, event);
	return err;
}

int flashmon_take(struct flashmon *flashmon, const struct trace_event *event, flash_sink sink,
		  void *context)
{
	const struct point *point = NULL;
	struct flash_event access;

	for (size_t i = 0; i < flashmon->count && !point; i++) {
		if (flashmon->points[i].return_type == event->type)
			return flush_waiting(flashmon, waiting_of(flashmon, event->pid), sink,
					     context);
		if (flashmon->points[i].type == event->type)
			point = &flashmon->points[i];
	}
	if (!point)
		return 0;
	if (point->mtd_at && flashmon->mtd &&
	    trace_number(event->data + point->mtd_at, kernel_word()) != flashmon->mtd)
		return 0;
	const uint32_t pages = decode(flashmon, point, event, &access);
	struct waiting *waiting = waiting_of(flashmon, event->pid);

	if (waiting && waiting->event.kind == access.kind && waiting->event.page == access.page)
		waiting->used = false;
	int err = flush_waiting(flashmon, waiting, sink, context);

	if (err)
		return err;
	if (point->depth == DEPTH_OUTER) {
		waiting = unused(flashmon);
		err = flush_waiting(flashmon, waiting, sink, context);
		*waiting = (struct waiting){true, event->pid, access, pages};
		return err;
	}
	return access.kind == FLASH_ERASE ? take_erases(flashmon, &access, pages, sink, context)
					  : pass_on(flashmon, &access, pages, sink, context);
}

int flashmon_finish(struct flashmon *flashmon, flash_sink sink, void *context)
{
	int err = 0;

	for (size_t i = 0; i < WAITING && !err; i++)
		err = flush_waiting(flashmon, &flashmon->waiting[i], sink, context);
	return err;
}

void flashmon_close(struct flashmon *flashmon)
{
	free(flashmon);
}
