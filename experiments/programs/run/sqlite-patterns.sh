#!/bin/sh
# SQLite: the five patterns of the workload sqlite (insert, select, update, join, select-all), each a transaction of a
# process of its own, over two tables of 128 records with 300 letters.
set -eu
letters=$(head -c 300 /dev/zero | tr '\0' a)
sqlite3 patterns.db "create table r(id integer primary key, t text); create table s(id integer primary key, t text);"
statements() { # STATEMENT: a transaction of 128 of them, with the numbers from 1 in place of &
	echo "begin;"
	seq 1 128 | sed "s/.*/$1/"
	echo "end;"
}
for table in r s; do statements "insert into $table values(&, '$letters');" | sqlite3 patterns.db; done
statements "select t from r where id = &;" | sqlite3 patterns.db >/dev/null
statements "update r set t = '&$letters' where id = &;" | sqlite3 patterns.db
sqlite3 patterns.db "select r.t, s.t from r join s on r.id = s.id where r.id <= 128;" >/dev/null
sqlite3 patterns.db "select t from s where id <= 128;" >/dev/null
