#!/bin/sh
# RocksDB: its db_bench fills a database in order, overwrites it at random, and reads it. Each write is synced;
# 32 KiB of memory before a table is written, so that there are tables to write and to merge.
set -eu
db_bench --db=db --benchmarks=fillseq,overwrite,readrandom,readseq --num=600 --write_buffer_size=32768 \
	--sync=1 --seed=1 >/dev/null 2>&1
