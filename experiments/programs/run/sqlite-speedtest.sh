#!/bin/sh
# SQLite: a small run of the kinds of statements that its speedtest1 measures, a transaction each.
set -eu
inserts() { # TABLE: 300 rows of a number, another, and a text
	seq 1 300 | awk -v table="$1" '{
		print "insert into " table " values(" $1 ", " $1 * 7919 % 10007 ", \047row " $1 " of 300 rows\047);"
	}'
}
{
	echo "create table a(n int, k int, t text);"
	echo "begin;" && inserts a && echo "commit;"
	echo "create table b(n integer primary key, k int unique, t text);"
	echo "begin;" && inserts b && echo "commit;"
	for low in 0 2000 4000 6000; do
		echo "select count(*), avg(k) from a where k between $low and $((low + 2000));"
		echo "select count(*), avg(k) from b where k between $low and $((low + 2000));"
	done
	echo "select count(*) from a where t like '%row 2%'; select t from a order by t limit 10;"
	echo "create unique index a_k on a(k); create index a_n on a(n, t);"
	echo "begin; update a set t = t || ' changed' where k between 1000 and 3000; commit;"
	echo "begin; update b set k = k + 20000 where n between 20 and 120; commit;"
	echo "begin; insert into b select n + 1000, k + 50000, t from a; commit;"
	echo "select count(*) from a join b on a.k = b.k; select sum(length(t)) from b;"
	echo "begin; delete from b where n between 100 and 200; commit;"
	echo "begin; replace into b select n, k + 50000, t from a where n < 100; commit;"
	echo "delete from a where k < 500; drop table a; vacuum; pragma integrity_check;"
} | sqlite3 speedtest.db >/dev/null
