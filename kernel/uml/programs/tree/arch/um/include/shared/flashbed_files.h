/* SPDX-License-Identifier: GPL-2.0-only */
/* What flashbed_calls.c and mm/memory.c tell flashbed_files.c. */
#ifndef FLASHBED_FILES_H
#define FLASHBED_FILES_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct file;
struct vm_fault;

enum flashbed_did { FLASHBED_READ, FLASHBED_WROTE, FLASHBED_MAPPED, FLASHBED_SYNCED };

bool flashbed_file_on_flash(const struct file *file);
/* Whether the file is on flash. */
bool flashbed_file_did(struct file *file, enum flashbed_did did, u64 bytes, u64 ns);
/* `result` is what the file system's page_mkwrite returned. */
void flashbed_page_written(struct vm_fault *vmf, vm_fault_t result);

#endif
