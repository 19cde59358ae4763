/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the agent with SQLite share: sql.c and calls.c. */
#ifndef FLASHBED_AGENT_SQL_H
#define FLASHBED_AGENT_SQL_H

#include <stdbool.h>

#include "sqlite3.h"

extern bool sync_data_only; /* a sync is fdatasync */

void calls_hook(sqlite3_vfs *vfs);

#endif
