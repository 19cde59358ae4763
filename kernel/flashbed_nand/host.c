// SPDX-License-Identifier: GPL-2.0-only
/* What the kernel for programs offers (kernel/uml/programs): memory of the host for the content of
 * the chip and the log, so that a program has as much page cache as on a board; and a count of
 * programs, which flashbed shows. Other kernels have neither, and their own memory is used.
 *
 * Invariant: flashbed.lock is held, but at init and exit.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "flashbed_nand.h"

/* Of the kernel for programs only. */
extern void *flashbed_host_memory(unsigned long bytes);
extern void flashbed_host_memory_free(void *at, unsigned long bytes);
extern void flashbed_page_programmed(void);

static typeof(&flashbed_host_memory) host_memory;
static typeof(&flashbed_host_memory_free) host_memory_free;
static typeof(&flashbed_page_programmed) page_programmed;

void fbn_host_find(void)
{
	host_memory = symbol_get(flashbed_host_memory);
	host_memory_free = symbol_get(flashbed_host_memory_free);
	page_programmed = symbol_get(flashbed_page_programmed);
}

void fbn_tell_programmed(void)
{
	if (page_programmed)
		page_programmed();
}

void *fbn_memory_get(size_t bytes)
{
	return host_memory ? host_memory(bytes) : vmalloc(bytes);
}

void fbn_memory_put(void *at, size_t bytes)
{
	if (host_memory && at)
		host_memory_free(at, bytes);
	else
		vfree(at);
}

int fbn_pool_create(struct fbn_pool *pool, const char *name, u32 bytes)
{
	memset(pool, 0, sizeof(*pool));
	pool->bytes = ALIGN(bytes, sizeof(void *));
	if (!host_memory)
		pool->cache = kmem_cache_create(name, bytes, 0, 0, NULL);
	return host_memory || pool->cache ? 0 : -ENOMEM;
}

/* Objects that are still in use go with it where the memory is the host's. */
void fbn_pool_destroy(struct fbn_pool *pool)
{
	void **chunk = pool->chunks;

	while (chunk) {
		void **next = *chunk;

		fbn_memory_put(chunk, SZ_1M);
		chunk = next;
	}
	kmem_cache_destroy(pool->cache);
	memset(pool, 0, sizeof(*pool));
}

/* The first object of a chunk links the chunks. */
static bool grow(struct fbn_pool *pool)
{
	u8 *chunk = fbn_memory_get(SZ_1M);
	u32 at;

	if (!chunk)
		return false;
	*(void **)chunk = pool->chunks;
	pool->chunks = (void **)chunk;
	for (at = pool->bytes; at + pool->bytes <= SZ_1M; at += pool->bytes)
		fbn_pool_put(pool, chunk + at);
	return true;
}

void *fbn_pool_get(struct fbn_pool *pool)
{
	void **object;

	if (pool->cache)
		return kmem_cache_alloc(pool->cache, GFP_NOIO);
	if (!pool->free && !grow(pool))
		return NULL;
	object = pool->free;
	pool->free = *object;
	return object;
}

void fbn_pool_put(struct fbn_pool *pool, void *object)
{
	if (pool->cache) {
		kmem_cache_free(pool->cache, object);
		return;
	}
	*(void **)object = pool->free;
	pool->free = object;
}
