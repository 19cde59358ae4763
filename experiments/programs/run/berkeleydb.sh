#!/bin/sh
# Berkeley DB: a B-tree loaded, added to ten times, checked and read.
set -eu
seq 1 600 | db5.3_load -T -t btree bdb
for round in 1 2 3 4 5 6 7 8 9 10; do
	{ echo "key$round"; seq "$round" 50 | tr '\n' ' '; echo; } | db5.3_load -T -t btree bdb
done
db5.3_verify bdb
db5.3_dump bdb >/dev/null
