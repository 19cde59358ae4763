#!/bin/sh
# SQLite: inserts, an index, updates, a selection, deletions, in the journal mode that is named.
set -eu
{
	echo "pragma journal_mode=$1; pragma synchronous=full;"
	echo "create table t(id integer primary key, a text, b int);"
	number=0
	while [ "$number" -lt 60 ]; do
		number=$((number + 1))
		echo "insert into t(a, b) values('row $number of sixty rows', $((number * 7919 % 101)));"
	done
	echo "create index i on t(b);"
	echo "begin; update t set a = a || ' updated' where b < 50; commit;"
	echo "select count(*) from t where b > 20;"
	echo "delete from t where id % 3 = 0;"
} | sqlite3 "$1.db" >/dev/null
