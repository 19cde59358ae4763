#!/bin/sh
# LMDB: a database loaded, added to in ten transactions, and read.
set -eu
seq 1 600 | mdb_load -n -T lmdb
for round in 1 2 3 4 5 6 7 8 9 10; do
	{ echo "key$round"; seq "$round" 50 | tr '\n' ' '; echo; } | mdb_load -n -T lmdb
done
mdb_dump -n lmdb >/dev/null
